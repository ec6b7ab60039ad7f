package draw

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"svcapi/functions/barcode/qrcode"
	"svcapi/functions/barcode/symbology"
	"svcapi/test/must"
)

// decodePNG reads a picture with the standard library and checks the properties that pixels do not show: a palette of
// two opaque colours, one bit per pixel.
func decodePNG(t testing.TB, p *Picture) *image.Paletted {
	t.Helper()
	data := p.PNG()
	decoded, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", p.Title, err)
	}
	picture, ok := decoded.(*image.Paletted)
	if !ok || len(picture.Palette) != 2 || data[24] != 1 {
		t.Fatalf("%s: %T of bit depth %d", p.Title, decoded, data[24])
	}
	for i, want := range []Color{p.Background, p.Foreground} {
		if picture.Palette[i] != (color.RGBA{want[0], want[1], want[2], 255}) {
			t.Fatalf("%s: palette %v, want %v", p.Title, picture.Palette, want)
		}
	}
	if size := picture.Bounds().Size(); size != image.Pt(p.Width, p.Height) {
		t.Fatalf("%s: %v, want %d by %d", p.Title, size, p.Width, p.Height)
	}
	return picture
}

type svgDocument struct {
	XMLName   xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	Width     int      `xml:"width,attr"`
	Height    int      `xml:"height,attr"`
	ViewBox   string   `xml:"viewBox,attr"`
	Rendering string   `xml:"shape-rendering,attr"`
	Title     string   `xml:"title"`
	Desc      string   `xml:"desc"`
	Rect      []struct {
		Fill string `xml:"fill,attr"`
	} `xml:"rect"`
	Path []struct {
		Fill string `xml:"fill,attr"`
		D    string `xml:"d,attr"`
	} `xml:"path"`
}

var rectangle = regexp.MustCompile(`^M(\d+) (\d+)h(\d+)v(\d+)h-(\d+)z`)

// decodeSVG draws a picture's path on a grid of pixels; drawing on a dark pixel is an error.
func decodeSVG(t testing.TB, p *Picture) (svgDocument, []bool) {
	t.Helper()
	var doc svgDocument
	if err := xml.Unmarshal(p.SVG(), &doc); err != nil {
		t.Fatalf("%s: %v", p.Title, err)
	}
	if len(doc.Path) != 1 || len(doc.Rect) != 1 || doc.Rendering != "crispEdges" ||
		doc.Width != p.Width || doc.Height != p.Height || doc.ViewBox != fmt.Sprintf("0 0 %d %d", p.Width, p.Height) {
		t.Fatalf("%s: %d by %d, view box %s, %d paths, %d rects", p.Title, doc.Width, doc.Height, doc.ViewBox,
			len(doc.Path), len(doc.Rect))
	}
	pixels := make([]bool, p.Width*p.Height)
	for d := doc.Path[0].D; d != ""; {
		m := rectangle.FindStringSubmatch(d)
		if m == nil {
			t.Fatalf("%s: path continues with %.40q", p.Title, d)
		}
		d = d[len(m[0]):]
		var n [5]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+1])
		}
		for y := n[1]; y < n[1]+n[3]; y++ {
			for x := n[0]; x < n[0]+n[2]; x++ {
				if pixels[y*p.Width+x] || n[4] != n[2] {
					t.Fatalf("%s: %s overlaps", p.Title, m[0])
				}
				pixels[y*p.Width+x] = true
			}
		}
	}
	return doc, pixels
}

// samePixels holds PNG and SVG against each other and against the modules: want reports which pixels are dark.
func samePixels(t *testing.T, p *Picture, want func(x, y int) bool) {
	t.Helper()
	picture := decodePNG(t, p)
	_, pixels := decodeSVG(t, p)
	for y := range p.Height {
		for x := range p.Width {
			inPNG, inSVG := picture.ColorIndexAt(x, y) == 1, pixels[y*p.Width+x]
			if inPNG != inSVG || inPNG != want(x, y) {
				t.Fatalf("%s (%d, %d): PNG %v, SVG %v, want %v", p.Title, x, y, inPNG, inSVG, want(x, y))
			}
		}
	}
}

// vectors returns the data of testdata/vectors.jsonl by type, at least ten texts of each.
func vectors(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../testdata/vectors.jsonl")
	must.Succeed(t, err)
	data := map[string][]string{}
	for line := range bytes.Lines(text) {
		var v struct{ Type, Data string }
		must.Succeed(t, json.Unmarshal(line, &v))
		data[v.Type] = append(data[v.Type], v.Data)
	}
	return data
}

// docs/decisions/pictures.md#barcode-pictures: width is modules times width_factor, height is exact, PNG and SVG show
// the same; the quiet zone is the symbology's. Short bars of POSTNET have 0.4 of the height and begin at the bottom.
func TestLinear(t *testing.T) {
	data, heights := vectors(t), []int{20, 21, 80, 300}
	for _, name := range symbology.Names() {
		kind, _ := symbology.Lookup(name)
		for factor := 1; factor <= 4; factor++ {
			height := heights[factor-1]
			code, err := kind.Encode(data[name][factor])
			must.Succeed(t, err)
			modules := code.Size.X
			short := height - (2*height+2)/5
			for _, quiet := range []bool{false, true} {
				left, right := 0, 0
				if quiet {
					left, right = kind.QuietLeft, kind.QuietRight
				}
				p, above := Linear(name, code, factor, height, left, right), 0
				if kind.Matrix() {
					p, above = Matrix(name, code, factor, left), left*factor
					height = (code.Size.Y + 2*left) * factor
				}
				p.Foreground = Color{0x12, 0x34, 0x56}
				if p.Width != (left+modules+right)*factor || p.Height != height {
					t.Errorf("%s: %d by %d", name, p.Width, p.Height)
				}
				samePixels(t, p, func(x, y int) bool {
					column := x/factor - left
					if x < left*factor || column >= modules {
						return false
					}
					row := 0
					if kind.Matrix() {
						if row = y/factor - above/factor; row < 0 || row >= code.Size.Y {
							return false
						}
					}
					if name == "POSTNET" && y >= short {
						row = 4
					}
					return code.Dark(column, row)
				})
			}
		}
	}
}

// docs/decisions/pictures.md#qr-codes: the size is exact, a module has whole pixels, and the remaining pixels widen the
// margin.
func TestSquare(t *testing.T) {
	for _, c := range []struct {
		bytes, size, margin int
		module, left        int // pixels
	}{
		{10, 64, 4, 2, 11}, // 21 modules and 8: 58 of 64
		{10, 64, 0, 3, 0},  // 63 of 64: the odd pixel goes to the right
		{10, 1024, 10, 24, 260},
		{10, 256, 4, 8, 44},
		{2331, 1024, 4, 5, 69}, // version 40
		{100, 100, 1, 2, 9},
	} {
		code, err := qrcode.Encode(strings.Repeat("a", c.bytes), "M")
		must.Succeed(t, err)
		p, err := Square("QR code", code, c.size, c.margin)
		must.Succeed(t, err)
		side := code.Size.X
		if p.Width != c.size || p.Height != c.size || p.module != c.module || p.left != c.left {
			t.Errorf("%d modules, margin %d on %d: modules of %d from %d, want %d from %d", side, c.margin, c.size, p.module,
				p.left, c.module, c.left)
		}
		if right := c.size - p.left - side*p.module; p.left < c.margin*p.module || right < c.margin*p.module ||
			right-p.left > 1 {
			t.Errorf("margins of %d and %d pixels", p.left, right)
		}
		p.Background = Color{250, 240, 230}
		samePixels(t, p, func(x, y int) bool {
			x, y = x-p.left, y-p.left
			return x >= 0 && y >= 0 && x < side*p.module && y < side*p.module && code.Dark(x/p.module, y/p.module)
		})
	}
}

// docs/decisions/pictures.md#qr-codes: a symbol that does not fit the size is an error that says what would.
func TestSquareTooSmall(t *testing.T) {
	code, err := qrcode.Encode(strings.Repeat("a", 2953), "L")
	must.Succeed(t, err)
	_, err = Square("QR code", code, 184, 4)
	if want := "177 modules and margins of 4 do not fit 184 pixels; size must be at least 185"; err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := Square("QR code", code, 185, 4); err != nil {
		t.Error(err)
	}
}

// The physical size of a picture: pixels per metre in the PNG, millimetres in the SVG. Without a resolution there is
// none.
func TestDPI(t *testing.T) {
	code, err := qrcode.Encode("x", "M")
	must.Succeed(t, err)
	for dpi, want := range map[int][2]string{
		0: {"", `width="300" height="300" viewBox="0 0 300 300"`},
		72: {"\x00\x00\x00\x09pHYs\x00\x00\x0b\x13\x00\x00\x0b\x13\x01",
			`width="105.833mm" height="105.833mm" viewBox="0 0 300 300"`},
		300: {"\x00\x00\x00\x09pHYs\x00\x00\x2e\x23\x00\x00\x2e\x23\x01",
			`width="25.400mm" height="25.400mm" viewBox="0 0 300 300"`},
	} {
		p, err := Square("QR code", code, 300, 4)
		must.Succeed(t, err)
		p.DPI = dpi
		decodePNG(t, p)
		if data := string(p.PNG()); !strings.Contains(data, want[0]) || strings.Contains(data, "pHYs") != (dpi > 0) ||
			!strings.Contains(string(p.SVG()), want[1]) {
			t.Errorf("%d: %.100q, %.200s", dpi, data, p.SVG())
		}
	}
}

// The contrast ratios of WCAG 2.2, with its documents' examples (docs/decisions/pictures.md#low-contrast).
func TestContrast(t *testing.T) {
	for colors, want := range map[[2]string]float64{
		{"000000", "ffffff"}: 21, {"ffffff", "000000"}: 21, {"777777", "777777"}: 1, {"777777",
			"ffffff"}: 4.48, {"949494", "ffffff"}: 3.03,
		{"969696", "ffffff"}: 2.96, {"ff0000", "ffffff"}: 4, {"0a0a0a", "000000"}: 1.06,
	} {
		var p Picture
		p.Foreground = ParseColor(colors[0])
		p.Background = ParseColor(colors[1])
		if got := p.Contrast(); math.Abs(got-want) > 0.005 {
			t.Errorf("%v: %.3f, want %.2f", colors, got, want)
		}
	}
}

// docs/decisions/pictures.md#barcode-pictures: the text in <desc>, escaped, with control characters dropped.
func TestSVGText(t *testing.T) {
	for data, want := range map[string]string{
		`<b>&"Tom's" ]]>`:            `<b>&"Tom's" ]]>`,
		"A\x00B\x1bC\tD\r\nE\x7fF":   "ABCDEF",
		"Zoë 日本 \u0085\ufffe\uffff😀": "Zoë 日本 😀",
	} {
		code, err := qrcode.Encode(data, "M")
		must.Succeed(t, err)
		p, err := Square("QR <code>", code, 256, 4)
		must.Succeed(t, err)
		p.Foreground, p.Background = Color{0xab, 0xcd, 0xef}, Color{1, 2, 3}
		doc, _ := decodeSVG(t, p)
		if doc.Desc != want || doc.Title != "QR <code>" || doc.Path[0].Fill != "#abcdef" || doc.Rect[0].Fill != "#010203" {
			t.Errorf("%q: title %q, desc %q, colours %s on %s", data, doc.Title, doc.Desc, doc.Path[0].Fill, doc.Rect[0].Fill)
		}
	}
}

// docs/decisions/pictures.md#rotation: a picture turned clockwise has the pixels of the upright one, with and without
// text, and its SVG is turned about the same corner.
func TestTurned(t *testing.T) {
	kind, _ := symbology.Lookup("EAN13")
	code, err := kind.Encode("590123412345")
	must.Succeed(t, err)
	for _, text := range []bool{false, true} {
		p := Linear(kind.Name, code, 1, 20, 11, 7)
		if text {
			must.Succeed(t, p.Print(kind.Labels(code, true), kind.Guards(), kind.Bearer()))
		}
		upright, err := png.Decode(bytes.NewReader(p.PNG()))
		must.Succeed(t, err)
		w, h := p.Width, p.Height
		for quarters, move := range map[int]func(x, y int) (int, int){
			1: func(x, y int) (int, int) { return h - 1 - y, x },
			2: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y },
			3: func(x, y int) (int, int) { return y, w - 1 - x },
		} {
			p.Quarters = quarters
			turned, err := png.Decode(bytes.NewReader(p.PNG()))
			must.Succeed(t, err)
			width, height := p.Size()
			if turned.Bounds().Size() != image.Pt(width, height) {
				t.Fatalf("%d quarters: %v", quarters, turned.Bounds())
			}
			for y := range h {
				for x := range w {
					if toX, toY := move(x, y); turned.At(toX, toY) != upright.At(x, y) {
						t.Fatalf("%d quarters, text %t: (%d, %d) differs", quarters, text, x, y)
					}
				}
			}
			// The middle of the first pixel ends in the middle of a pixel.
			m := regexp.MustCompile(`<g transform="translate\((\d+) (\d+)\)rotate\((\d+)\)">.*</g></svg>`).FindSubmatch(p.SVG())
			if m == nil {
				t.Fatalf("%s", p.SVG())
			}
			at := func(i int) float64 { n, _ := strconv.ParseFloat(string(m[i]), 64); return n }
			sin, cos := math.Sincos(at(3) * math.Pi / 180)
			wantX, wantY := move(0, 0)
			if x, y := at(1)+(cos-sin)/2, at(2)+(sin+cos)/2; math.Abs(x-float64(wantX)-0.5) > 1e-9 ||
				math.Abs(y-float64(wantY)-0.5) > 1e-9 {
				t.Errorf("%d quarters: the first pixel of the SVG is at %v, %v, want %d, %d", quarters, x, y, wantX, wantY)
			}
		}
	}
}

// docs/decisions/pictures.md#background: a transparent background has opacity 0 and stays white for readers that ignore
// opacity; SVG has no background.
func TestTransparent(t *testing.T) {
	kind, _ := symbology.Lookup("C128")
	code, err := kind.Encode("A")
	must.Succeed(t, err)
	for _, text := range []bool{false, true} {
		p := Linear(kind.Name, code, 2, 20, 1, 1)
		if text {
			must.Succeed(t, p.Print(kind.Labels(code, true), nil, 0))
		}
		p.Transparent, p.Foreground = true, Color{10, 20, 30}
		decoded, err := png.Decode(bytes.NewReader(p.PNG()))
		must.Succeed(t, err)
		palette := decoded.(*image.Paletted).Palette
		for i, c := range palette {
			want := color.NRGBA{10, 20, 30, byte(255 * i / (len(palette) - 1))}
			if i == 0 {
				want = color.NRGBA{255, 255, 255, 0}
			}
			if got := color.NRGBAModel.Convert(c); i > 0 && got != want || i == 0 && c != color.Color(want) {
				t.Errorf("shade %d of %d is %v, want %v", i, len(palette), c, want)
			}
		}
		if svg := string(p.SVG()); strings.Contains(svg, "<rect") || !strings.Contains(svg, `fill="#0a141e"`) {
			t.Errorf("%s", svg)
		}
	}
}

package draw

import (
	"bytes"
	"encoding/xml"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"svcapi/functions/barcode/internal/samples"
	"svcapi/functions/barcode/symbology"
)

// printed is a picture with text, and the same picture without.
type printed struct {
	with, without *Picture
	labels        []symbology.Label
	left          int // pixels of the quiet zone
	factor        int
}

// everyType calls check with pictures of every type.
func everyType(t *testing.T, check func(t *testing.T, p printed)) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	for _, name := range symbology.Names() {
		kind, _ := symbology.Lookup(name)
		for i := range 8 {
			code, err := kind.Encode(samples.Random(r, name))
			if err != nil {
				t.Fatal(err)
			}
			quiet, factor, height := i < 4, 1+i%4, 20+r.IntN(100)
			left, right := 0, 0
			if quiet {
				left, right = kind.QuietLeft, kind.QuietRight
			}
			p := printed{labels: kind.Labels(code, quiet), left: left * factor, factor: factor}
			p.with, p.without = Linear(name, code, factor, height, left, right), Linear(name, code, factor, height, left, right)
			if err := p.with.Print(p.labels); err != nil {
				t.Fatal(err)
			}
			p.with.Foreground, p.with.Background = Color{0x12, 0x34, 0x56}, Color{0xfe, 0xdc, 0xba}
			check(t, p)
		}
	}
}

// docs/decisions.md#barcode-text: the picture grows by the line, and the bars are those of the picture without text.
func TestTextLeavesTheBars(t *testing.T) {
	everyType(t, func(t *testing.T, p printed) {
		t.Helper()
		decoded, err := png.Decode(bytes.NewReader(p.with.PNG()))
		if err != nil {
			t.Fatalf("%s: %v", p.with.Title, err)
		}
		with, without := decoded.(*image.Paletted), decodePNG(t, p.without)
		size, before := with.Rect.Size(), without.Rect.Size()
		if grown := size.Y - before.Y; size.X != before.X || grown < 2 || grown > 11*p.factor || size != image.Pt(p.with.Width, p.with.Height) {
			t.Errorf("%s: %v, without text %v", p.with.Title, size, before)
		}
		for i, want := range []Color{0: p.with.Background, 15: p.with.Foreground} {
			if (i == 0 || i == 15) && with.Palette[i] != color.Color(color.RGBA{want[0], want[1], want[2], 255}) {
				t.Fatalf("%s: palette %v", p.with.Title, with.Palette)
			}
		}
		for y := range before.Y {
			for x := range before.X {
				if with.ColorIndexAt(x, y) != 15*without.ColorIndexAt(x, y) {
					t.Fatalf("%s: (%d, %d) differs", p.with.Title, x, y)
				}
			}
		}
		if !bytes.Equal(p.with.PNG(), p.with.PNG()) || !bytes.Equal(p.with.SVG(), p.with.SVG()) {
			t.Errorf("%s: other bytes the second time", p.with.Title)
		}
	})
}

// The text is the one that another typesetter, golang.org/x/image/font, draws of the same labels at the same place.
func TestTextIsReadable(t *testing.T) {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	everyType(t, func(t *testing.T, p printed) {
		t.Helper()
		decoded, err := png.Decode(bytes.NewReader(p.with.PNG()))
		if err != nil {
			t.Fatal(err)
		}
		// The size is the largest one in which every label fits, up to 10 modules.
		size := 10 * float64(p.factor)
		for _, l := range p.labels {
			face := newFace(t, parsed, 1000)
			if width := float64(font.MeasureString(face, l.Text)) / 64 / 1000; width > 0 {
				size = min(size, float64((l.To-l.From)*p.factor)/width)
			}
		}
		face, top := newFace(t, parsed, size), p.without.Height
		want := image.NewAlpha(image.Rect(0, 0, p.with.Width, p.with.Height))
		for _, l := range p.labels {
			centre := fixed.I(2*p.left+(l.From+l.To)*p.factor) / 2
			at := fixed.Point26_6{X: centre - font.MeasureString(face, l.Text)/2, Y: fixed.I(top) + fixed.Int26_6(size*0.84*64)}
			(&font.Drawer{Dst: want, Src: image.Opaque, Face: face, Dot: at}).DrawString(l.Text)
		}
		ink, difference := 0, 0
		for y := top; y < p.with.Height; y++ {
			for x := range p.with.Width {
				drawn := int(decoded.(*image.Paletted).ColorIndexAt(x, y)) * 17
				ink += int(want.AlphaAt(x, y).A)
				difference += max(drawn-int(want.AlphaAt(x, y).A), int(want.AlphaAt(x, y).A)-drawn)
			}
		}
		if ink == 0 && strings.TrimSpace(p.labels[0].Text) != "" || difference*5 > ink {
			t.Errorf("%s %v, factor %d: ink %d, difference %d", p.with.Title, p.labels, p.factor, ink, difference)
		}
	})
}

func newFace(t *testing.T, parsed *opentype.Font, size float64) font.Face {
	t.Helper()
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		t.Fatal(err)
	}
	return face
}

// The outlines of the SVG cover the pixels of the PNG.
func TestTextOfSVG(t *testing.T) {
	everyType(t, func(t *testing.T, p printed) {
		t.Helper()
		var doc struct {
			Path []struct {
				Fill      string `xml:"fill,attr"`
				Transform string `xml:"transform,attr"`
				D         string `xml:"d,attr"`
			} `xml:"path"`
		}
		if err := xml.Unmarshal(p.with.SVG(), &doc); err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(p.labels[0].Text) == "" {
			return
		}
		if len(doc.Path) != 2 || doc.Path[1].Fill != "#123456" || doc.Path[1].Transform != "scale(.015625)" {
			t.Fatalf("%s: %+v", p.with.Title, doc.Path)
		}
		decoded, err := png.Decode(bytes.NewReader(p.with.PNG()))
		if err != nil {
			t.Fatal(err)
		}
		covered := rasterize(t, doc.Path[1].D, p.with.Width, p.with.Height)
		for y := p.without.Height; y < p.with.Height; y++ {
			for x := range p.with.Width {
				got, want := int(decoded.(*image.Paletted).ColorIndexAt(x, y))*17, int(covered.AlphaAt(x, y).A)
				if got-want > 17 || want-got > 17 {
					t.Fatalf("%s (%d, %d): PNG %d, SVG %d", p.with.Title, x, y, got, want)
				}
			}
		}
	})
}

// rasterize draws the data of a path in units of 1/64 pixel.
func rasterize(t *testing.T, data string, width, height int) *image.Alpha {
	t.Helper()
	z := vector.NewRasterizer(width, height)
	for contour := range strings.SplitSeq(strings.TrimSuffix(data, "z"), "z") {
		for contour != "" {
			end := 1 + strings.IndexAny(contour[1:]+"M", "MLQ")
			var n []float32
			for field := range strings.FieldsSeq(contour[1:end]) {
				v, err := strconv.Atoi(field)
				if err != nil {
					t.Fatalf("path: %v", err)
				}
				n = append(n, float32(v)/64)
			}
			switch command := contour[0]; {
			case command == 'M' && len(n) == 2:
				z.MoveTo(n[0], n[1])
			case command == 'L' && len(n) == 2:
				z.LineTo(n[0], n[1])
			case command == 'Q' && len(n) == 4:
				z.QuadTo(n[0], n[1], n[2], n[3])
			default:
				t.Fatalf("path: %s", contour[:end])
			}
			contour = contour[end:]
		}
		z.ClosePath()
	}
	mask := image.NewAlpha(image.Rect(0, 0, width, height))
	z.DrawOp = draw.Src
	z.Draw(mask, mask.Rect, image.Opaque, image.Point{})
	return mask
}

// BenchmarkText compares a picture with text with the same picture without.
func BenchmarkText(b *testing.B) {
	kind, _ := symbology.Lookup("EAN13")
	code, err := kind.Encode("400638133393")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]bool{"without": false, "with": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p := Linear("EAN13", code, 2, 80, 0, 0)
				if text {
					if err := p.Print(kind.Labels(code, false)); err != nil {
						b.Fatal(err)
					}
				}
				p.PNG()
			}
		})
	}
}

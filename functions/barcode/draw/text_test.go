package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"svcapi/functions/barcode/symbology"
	"svcapi/test/must"
)

// printed is a picture with text, and the same picture without.
type printed struct {
	with, without *Picture
	labels        []symbology.Label
	bearer        int // pixels
	left          int // pixels of the quiet zone
	factor        int
}

// everyType calls check with pictures of every type.
func everyType(t *testing.T, check func(t *testing.T, p printed)) {
	t.Helper()
	r, data := rand.New(rand.NewPCG(5, 6)), vectors(t)
	for _, name := range symbology.Names() {
		kind, _ := symbology.Lookup(name)
		for i := range 8 {
			if kind.Matrix() { // has no text
				break
			}
			code, err := kind.Encode(data[name][i])
			must.Succeed(t, err)
			quiet, factor, height := i < 4, 1+i%4, 20+r.IntN(100)
			left, right := 0, 0
			if quiet {
				left, right = kind.QuietLeft, kind.QuietRight
			}
			p := printed{labels: kind.Labels(code, quiet), bearer: kind.Bearer() * factor, left: left * factor, factor: factor}
			p.with, p.without = Linear(name, code, factor, height, left, right), Linear(name, code, factor, height, left, right)
			must.Succeed(t, p.with.Print(p.labels, kind.Guards(), kind.Bearer()))
			p.with.Foreground, p.with.Background = Color{0x12, 0x34, 0x56}, Color{0xfe, 0xdc, 0xba}
			check(t, p)
		}
	}
}

// long has the modules whose bars are longer (GS1 General Specifications, 5.2.5: guards, and in UPC-A the outer
// digits).
var long = map[string]func(column int) bool{
	"EAN13": func(c int) bool { return c < 3 || c >= 45 && c < 50 || c >= 92 },
	"EAN8":  func(c int) bool { return c < 3 || c >= 31 && c < 36 || c >= 64 },
	"UPCA":  func(c int) bool { return c < 10 || c >= 45 && c < 50 || c >= 85 },
	"UPCE":  func(c int) bool { return c < 3 || c >= 45 },
}

// docs/decisions/pictures.md#barcode-text: the picture grows by the line and by bearer bars of ITF-14, and the bars are
// those of the picture without text. Guard bars are longer by five modules.
func TestTextLeavesTheBars(t *testing.T) {
	everyType(t, func(t *testing.T, p printed) {
		t.Helper()
		decoded, err := png.Decode(bytes.NewReader(p.with.PNG()))
		if err != nil {
			t.Fatalf("%s: %v", p.with.Title, err)
		}
		with, without := decoded.(*image.Paletted), decodePNG(t, p.without)
		size, before := with.Rect.Size(), without.Rect.Size()
		if grown := size.Y - before.Y; size.X != before.X || grown < 2 || grown > 11*p.factor+2*p.bearer ||
			(p.bearer > 0) != (p.with.Title == "ITF14") || size != image.Pt(p.with.Width, p.with.Height) {
			t.Errorf("%s: %v, without text %v", p.with.Title, size, before)
		}
		for i, want := range []Color{0: p.with.Background, 15: p.with.Foreground} {
			if (i == 0 || i == 15) && with.Palette[i] != color.Color(color.RGBA{want[0], want[1], want[2], 255}) {
				t.Fatalf("%s: palette %v", p.with.Title, with.Palette)
			}
		}
		for y := range before.Y {
			for x := range before.X {
				if with.ColorIndexAt(x, y+p.bearer) != 15*without.ColorIndexAt(x, y) {
					t.Fatalf("%s: (%d, %d) differs", p.with.Title, x, y)
				}
			}
		}
		for x := range before.X {
			for y := range 2 * p.bearer {
				if y%p.bearer+y/p.bearer*(before.Y+p.bearer) >= size.Y ||
					with.ColorIndexAt(x, y%p.bearer+y/p.bearer*(before.Y+p.bearer)) != 15 {
					t.Fatalf("%s: no bearer bar at %d, %d", p.with.Title, x, y)
				}
			}
			column, guard := (x-p.left)/p.factor, long[p.with.Title]
			for y := range 5 * p.factor {
				if x >= p.left && guard != nil && column < p.with.code.Size.X && guard(column) &&
					with.ColorIndexAt(x, before.Y+y) != 15*without.ColorIndexAt(x, 0) {
					t.Fatalf("%s: the guard bar at module %d ends at %d", p.with.Title, column, y)
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
	must.Succeed(t, err)
	everyType(t, func(t *testing.T, p printed) {
		t.Helper()
		decoded, err := png.Decode(bytes.NewReader(p.with.PNG()))
		must.Succeed(t, err)
		// The size is the largest one in which every label fits, up to 10 modules.
		size := 10 * float64(p.factor)
		for _, l := range p.labels {
			face := newFace(t, parsed, 1000)
			if width := float64(font.MeasureString(face, l.Text)) / 64 / 1000; width > 0 {
				size = min(size, float64((l.To-l.From)*p.factor)/width)
			}
		}
		face, top := newFace(t, parsed, size), p.without.Height+2*p.bearer
		want := image.NewAlpha(image.Rect(0, 0, p.with.Width, p.with.Height))
		for _, l := range p.labels {
			centre := fixed.I(2*p.left+(l.From+l.To)*p.factor) / 2
			at := fixed.Point26_6{X: centre - font.MeasureString(face, l.Text)/2, Y: fixed.I(top) + fixed.Int26_6(size*0.84*64)}
			(&font.Drawer{Dst: want, Src: image.Opaque, Face: face, Dot: at}).DrawString(l.Text)
		}
		for _, bar := range p.with.added { // TestTextLeavesTheBars compares them
			draw.Draw(want, bar, image.Opaque, image.Point{}, draw.Src)
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
	must.Succeed(t, err)
	return face
}

// The SVG has the outlines from which the pixels of the PNG are computed, in units of 1/64 pixel.
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
		must.Succeed(t, xml.Unmarshal(p.with.SVG(), &doc))
		if strings.TrimSpace(p.labels[0].Text) == "" {
			return
		}
		if len(doc.Path) != 2 || doc.Path[1].Fill != "#123456" || doc.Path[1].Transform != "scale(.015625)" {
			t.Fatalf("%s: %+v", p.with.Title, doc.Path)
		}
		var want []string
		for _, s := range p.with.text {
			want = append(want, []string{"M", "L", "Q", "C"}[s.Op])
			for _, point := range s.Args[:[]int{1, 1, 2, 3}[s.Op]] {
				want = append(want, fmt.Sprint(int(point.X)), fmt.Sprint(int(point.Y)))
			}
		}
		got := regexp.MustCompile(`[A-Y]|-?\d+`).FindAllString(doc.Path[1].D, -1)
		if !slices.Equal(got, want) || strings.Count(doc.Path[1].D, "z") != strings.Count(doc.Path[1].D, "M") {
			t.Errorf("%s: the path is %s, want %s", p.with.Title, doc.Path[1].D, want)
		}
	})
}

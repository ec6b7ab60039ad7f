package draw

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
	"strconv"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"svcapi/functions/barcode/symbology"
)

// typeface returns the outlines of the labels: Go Regular, copyright 2016 Bigelow & Holmes Inc., under the licence of
// the Go project (BSD, three clauses). The first call reads the font, so that a picture without text does not need it.
var typeface = sync.OnceValues(func() (*sfnt.Font, error) { return sfnt.Parse(goregular.TTF) })

const (
	// emModules is the largest size of the text, in modules. A digit is then 5.6 modules wide and 7.4 high, close to the
	// digits that GS1 recommends (General Specifications, 5.2.5).
	emModules = 10
	// baselinePercent and linePercent are the baseline and the height of the line in percent of the size. The ASCII
	// characters of the font reach from 78 above the baseline to 21 below.
	baselinePercent = 84
	linePercent     = 105
	// guardModules is how much longer guard bars are (GS1 General Specifications, 5.2.5).
	guardModules = 5
)

// Print adds a line with the labels below the bars, in the largest size up to emModules in which all of them fit. The
// bars of the guards' modules reach into the line, and bearer bars of so many modules are above and below the other
// bars. The picture grows by the heights of the line and of the bearer bars.
func (p *Picture) Print(labels []symbology.Label, guards [][2]int, bearer int) error {
	outlines, err := typeface()
	if err != nil {
		return fmt.Errorf("font: %w", err)
	}
	size := fixed.I(emModules * p.module)
	for _, l := range labels {
		room := fixed.I((l.To - l.From) * p.module)
		_, width, err := set(outlines, size, l.Text)
		if err != nil {
			return err
		}
		if width > room {
			size = fixed.Int26_6(int64(size) * int64(room) / int64(width))
		}
	}
	bearer *= p.module
	for row := range p.tops {
		p.tops[row] += bearer
	}
	p.Height += 2 * bearer
	top := p.Height
	if bearer > 0 {
		p.added = []image.Rectangle{image.Rect(0, 0, p.Width, bearer), image.Rect(0, top-bearer, p.Width, top)}
	}
	ends := make([]int, p.code.Size.X)
	p.runs(0, ends)
	for _, g := range guards {
		for column, end := range ends[g[0]:g[1]] {
			if end > 0 {
				p.added = append(p.added, image.Rect(p.x(g[0]+column), top, p.x(min(end, g[1])), top+guardModules*p.module))
			}
		}
	}
	baseline := fixed.I(top) + size*baselinePercent/100
	for _, l := range labels {
		segments, width, err := set(outlines, size, l.Text)
		if err != nil {
			return err
		}
		start := (fixed.I(p.x(l.From)+p.x(l.To)) - width) / 2
		for _, s := range segments {
			for i := range s.Args {
				s.Args[i] = s.Args[i].Add(fixed.Point26_6{X: start, Y: baseline})
			}
			p.text = append(p.text, s)
		}
	}
	p.textTop = top
	p.Height += (size * linePercent / 100).Ceil()
	return nil
}

// set returns the outlines of a text that begins at the origin, and its width. The size is that of the em, in pixels.
func set(f *sfnt.Font, size fixed.Int26_6, text string) (outlines []sfnt.Segment, width fixed.Int26_6, err error) {
	var buffer sfnt.Buffer
	for _, r := range text {
		glyph, unknown := f.GlyphIndex(&buffer, r)
		segments, noOutline := f.LoadGlyph(&buffer, glyph, size, nil)
		for _, s := range segments { // before the buffer is used again
			for i := range s.Args {
				s.Args[i].X += width
			}
			outlines = append(outlines, s)
		}
		advance, noWidth := f.GlyphAdvance(&buffer, glyph, size, font.HintingNone)
		if err := errors.Join(unknown, noOutline, noWidth); err != nil {
			return nil, 0, fmt.Errorf("glyph of %q: %w", r, err)
		}
		width += advance
	}
	return outlines, width, nil
}

// commands are the commands of an SVG path for the segments of an outline, and how many points they have.
var commands = [...]struct {
	command string
	points  int
}{sfnt.SegmentOpMoveTo: {"M", 1}, sfnt.SegmentOpLineTo: {"L", 1}, sfnt.SegmentOpQuadTo: {"Q",
	2}, sfnt.SegmentOpCubeTo: {"C", 3}}

// appendText writes the text as the data of a path in units of 1/64 pixel.
func (p *Picture) appendText(out []byte) []byte {
	for i, s := range p.text {
		if i > 0 && s.Op == sfnt.SegmentOpMoveTo {
			out = append(out, 'z')
		}
		separator := commands[s.Op].command
		for _, point := range s.Args[:commands[s.Op].points] {
			out = strconv.AppendInt(append(out, separator...), int64(point.X), 10)
			out = strconv.AppendInt(append(out, ' '), int64(point.Y), 10)
			separator = " "
		}
	}
	return append(out, 'z')
}

// coverage returns how much of each pixel below the bars the text covers.
func (p *Picture) coverage() *image.Alpha {
	mask := image.NewAlpha(image.Rect(0, 0, p.Width, p.Height-p.textTop))
	z := vector.NewRasterizer(mask.Rect.Dx(), mask.Rect.Dy())
	z.DrawOp = draw.Src
	point := func(q fixed.Point26_6) (x, y float32) { return float32(q.X) / 64, float32(q.Y)/64 - float32(p.textTop) }
	for _, s := range p.text {
		ax, ay := point(s.Args[0])
		bx, by := point(s.Args[1])
		cx, cy := point(s.Args[2])
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			z.ClosePath()
			z.MoveTo(ax, ay)
		case sfnt.SegmentOpLineTo:
			z.LineTo(ax, ay)
		case sfnt.SegmentOpQuadTo:
			z.QuadTo(ax, ay, bx, by)
		case sfnt.SegmentOpCubeTo:
			z.CubeTo(ax, ay, bx, by, cx, cy)
		}
	}
	z.ClosePath()
	z.Draw(mask, mask.Rect, image.Opaque, image.Point{})
	return mask
}

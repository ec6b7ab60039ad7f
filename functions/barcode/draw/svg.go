package draw

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// SVG returns the picture as one path on a background, in units of pixels. A run of dark modules that the row below has
// as well grows downwards, so that a tall bar is one rectangle.
func (p *Picture) SVG() []byte {
	size := func(pixels int) string {
		if p.DPI == 0 {
			return strconv.Itoa(pixels)
		}
		return strconv.FormatFloat(25.4*float64(pixels)/float64(p.DPI), 'f', 3, 64) + "mm"
	}
	pixelsX, pixelsY := p.Size()
	out := fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %d %d" `+
		`role="img" shape-rendering="crispEdges"><title>%s</title><desc>%s</desc>`,
		size(pixelsX), size(pixelsY), pixelsX, pixelsY, escape(p.Title), escape(p.code.Content()))
	if !p.Transparent {
		out = fmt.Appendf(out, `<rect width="100%%" height="100%%" fill="#%x"/>`, p.Background)
	}
	turn := [...]string{"", fmt.Sprintf("translate(%d 0)rotate(90)", p.Height),
		fmt.Sprintf("translate(%d %d)rotate(180)", p.Width, p.Height), fmt.Sprintf("translate(0 %d)rotate(270)", p.Width)}
	if p.Quarters > 0 {
		out = fmt.Appendf(out, `<g transform="%s">`, turn[p.Quarters])
	}
	out = fmt.Appendf(out, `<path fill="#%x" d="`, p.Foreground)

	width := p.code.Bounds().Dx()
	ends, open, tops := make([]int, width), make([]int, width), make([]int, width)
	for row, y := range p.tops {
		if row+1 < len(p.tops) {
			p.runs(row, ends)
		} else {
			clear(ends)
		}
		for column, end := range ends {
			if end == open[column] {
				continue
			}
			if open[column] > 0 {
				x := p.x(column)
				out = appendRectangle(out, x, tops[column], p.x(open[column])-x, y-tops[column])
			}
			open[column], tops[column] = end, y
		}
	}
	for _, bar := range p.added {
		out = appendRectangle(out, bar.Min.X, bar.Min.Y, bar.Dx(), bar.Dy())
	}
	out = append(out, `"/>`...)
	if len(p.text) > 0 {
		out = fmt.Appendf(out, `<path fill="#%x" shape-rendering="auto" transform="scale(.015625)" d="`, p.Foreground)
		out = append(p.appendText(out), `"/>`...)
	}
	if p.Quarters > 0 {
		out = append(out, "</g>"...)
	}
	return append(out, "</svg>\n"...)
}

func appendRectangle(out []byte, x, y, width, height int) []byte {
	for _, step := range [...]struct {
		command string
		n       int
	}{{"M", x}, {" ", y}, {"h", width}, {"v", height}, {"h-", width}} {
		out = strconv.AppendInt(append(out, step.command...), int64(step.n), 10)
	}
	return append(out, 'z')
}

// escape returns text that XML 1.0 can hold: without control characters and the two code points that are no characters.
func escape(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, text)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

package draw

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
)

// ContentTypeSVG is the media type of what SVG returns.
const ContentTypeSVG = "image/svg+xml"

// SVG draws the picture as one path on a background, in units of pixels.
func (p *Picture) SVG() []byte {
	out := make([]byte, 0, 1024)
	number := func(n int) { out = strconv.AppendInt(out, int64(n), 10) }
	text := func(s string) { out = append(out, s...) }
	color := func(c Color) { out = hex.AppendEncode(append(out, '#'), c[:]) }

	text(`<svg xmlns="http://www.w3.org/2000/svg" width="`)
	number(p.Width)
	text(`" height="`)
	number(p.Height)
	text(`" viewBox="0 0 `)
	number(p.Width)
	text(" ")
	number(p.Height)
	text(`" role="img" shape-rendering="crispEdges"><title>`)
	text(escape(p.Title))
	text(`</title><desc>`)
	text(escape(p.code.Content()))
	text(`</desc><rect width="100%" height="100%" fill="`)
	color(p.Background)
	text(`"/><path fill="`)
	color(p.Foreground)
	text(`" d="`)
	p.rectangles(func(x, y, width, height int) {
		text("M")
		number(x)
		text(" ")
		number(y)
		text("h")
		number(width)
		text("v")
		number(height)
		text("h-")
		number(width)
		text("z")
	})
	text(`"/></svg>`)
	return append(out, '\n')
}

// rectangles visits the dark areas. A run that the row below has as well grows downwards, so that a tall bar
// is one rectangle.
func (p *Picture) rectangles(visit func(x, y, width, height int)) {
	type bar struct {
		run
		top int
	}
	end := func(b bar, row int) { visit(b.from, b.top, b.to-b.from, p.tops[row]-b.top) }
	var open, kept []bar
	var found []run
	for row := range p.tops {
		found = found[:0]
		if row+1 < len(p.tops) {
			found = p.runs(row, found)
		}
		kept = kept[:0]
		next := 0
		for _, r := range found {
			for ; next < len(open) && open[next].from < r.from; next++ {
				end(open[next], row)
			}
			if next < len(open) && open[next].run == r {
				kept = append(kept, open[next])
				next++
			} else {
				kept = append(kept, bar{r, p.tops[row]})
			}
		}
		for ; next < len(open); next++ {
			end(open[next], row)
		}
		open, kept = kept, open
	}
}

// escape makes text that XML 1.0 can hold: control characters and the two that are no characters are dropped.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case !unicode.IsControl(r) && r != 0xfffe && r != 0xffff:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Package draw returns PNG and SVG pictures of barcodes, the same bytes for the same request. PNG and SVG have the same
// pixels.
package draw

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"image"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font/sfnt"

	"svcapi/functions/barcode/symbology"
)

// Color has red, green and blue. The zero value is black.
type Color [3]byte

// ParseColor returns the color of six hexadecimal digits, with or without # before them. The caller has validated the
// text.
func ParseColor(text string) (c Color) {
	_, _ = hex.Decode(c[:], []byte(strings.TrimPrefix(text, "#")))
	return c
}

// Picture is a barcode laid out in pixels.
type Picture struct {
	Width, Height          int
	Foreground, Background Color
	// Title names the symbol for readers who cannot see the picture.
	Title string

	code   symbology.Symbol
	module int   // pixels
	left   int   // where the first column of modules begins
	tops   []int // where the rows of modules begin, then where the last row ends

	text    []sfnt.Segment    // the outlines of the text below the bars, in pixels; nil: no text
	textTop int               // the first row of pixels of the text
	added   []image.Rectangle // bars beside those of the code, in pixels

	// Transparent leaves the background out. The contrast is then that with Background, as which a reader without
	// transparency sees it.
	Transparent bool
	// Quarters is the number of quarter turns by which the picture is turned clockwise, 0 to 3.
	Quarters int

	// DPI is the resolution for the picture's physical size, in pixels per inch; 0: the picture has no physical size.
	DPI int
}

// Contrast returns the contrast ratio of foreground and background, from 1 to 21 (WCAG 2.2, relative luminance).
func (p *Picture) Contrast() float64 {
	luminance := func(c Color) (sum float64) {
		for i, weight := range [...]float64{0.2126, 0.7152, 0.0722} {
			share := float64(c[i]) / 255
			if share > 0.04045 {
				share = math.Pow((share+0.055)/1.055, 2.4)
			} else {
				share /= 12.92
			}
			sum += weight * share
		}
		return sum
	}
	a, b := luminance(p.Foreground), luminance(p.Background)
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

// Linear lays out a linear barcode: modules are factor pixels wide, the bars are height pixels high, and there
// are quietLeft and quietRight light modules beside them.
func Linear(title string, code symbology.Symbol, factor, height, quietLeft, quietRight int) *Picture {
	size := code.Size
	tops := make([]int, size.Y+1)
	for row := range tops {
		tops[row] = (2*height*row + size.Y) / (2 * size.Y) // rounded
	}
	return &Picture{
		Width: (quietLeft + size.X + quietRight) * factor, Height: height, Background: Color{255, 255, 255}, Title: title,
		code: code, module: factor, left: quietLeft * factor, tops: tops,
	}
}

// Matrix lays out a matrix code: modules are squares of factor pixels, with quiet light modules around the symbol.
func Matrix(title string, code symbology.Symbol, factor, quiet int) *Picture {
	p := Linear(title, code, factor, code.Size.Y*factor, quiet, quiet)
	for row := range p.tops {
		p.tops[row] += quiet * factor
	}
	p.Height += 2 * quiet * factor
	return p
}

// Size returns the width and the height of the turned picture.
func (p *Picture) Size() (width, height int) {
	if p.Quarters%2 == 1 {
		return p.Height, p.Width
	}
	return p.Width, p.Height
}

// Square lays out a matrix code on size by size pixels, with at least margin light modules around the symbol. Modules
// have an integer number of pixels; pixels that remain widen the margin. The error is a client message: the symbol does
// not fit.
func Square(title string, code symbology.Symbol, size, margin int) (*Picture, error) {
	side := code.Size.X
	module := size / (side + 2*margin)
	if module == 0 {
		return nil, fmt.Errorf("%d modules and margins of %d do not fit %d pixels; size must be at least %d",
			side, margin, size, side+2*margin)
	}
	p := Matrix(title, code, module, 0)
	p.Width, p.Height, p.left = size, size, (size-side*module)/2
	for row := range p.tops {
		p.tops[row] += p.left
	}
	return p, nil
}

// runs sets ends: for each run of dark modules in a row, at its first column, the column after its last; else 0.
func (p *Picture) runs(row int, ends []int) {
	clear(ends)
	for x := 0; x < len(ends); x++ {
		start := x
		for x < len(ends) && p.code.Dark(x, row) {
			x++
		}
		if x > start {
			ends[start] = x
		}
	}
}

// x returns the first pixel of a column of modules.
func (p *Picture) x(column int) int { return p.left + column*p.module }

// compressors are used again, because a new one takes 0.8 MB.
var compressors = sync.Pool{New: func() any {
	z, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed) // a valid level
	return z
}}

// PNG returns the picture as a PNG of one bit per pixel with a palette of background and foreground, both opaque. A
// picture with text has four bits per pixel, and a palette with the shades between these colours. A transparent
// background is a white of opacity 0, because readers that ignore opacity see its colour.
//
// The package image/png is not used: it packs and filters each row of pixels, and measured were 165 µs for a barcode
// with a pool of compressors. This code packs each row of modules once, and the filter Up makes the rows below all
// zero.
func (p *Picture) PNG() []byte {
	depth := 1
	if p.textTop > 0 {
		depth = 4
	}
	width, height := p.Size()
	stride := 1 + (width*depth+7)/8 // a filter byte, then the pixels
	rows := make([]byte, 0, stride*height)
	same := make([]byte, stride)
	same[0] = 2 // the filter Up
	add := func(pixels []byte, count int) {
		if count > 0 {
			rows = append(append(rows, pixels...), bytes.Repeat(same, count-1)...)
		}
	}
	if p.Quarters == 0 {
		p.raster(depth, add)
	} else {
		p.turned(depth, stride, add)
	}
	var data bytes.Buffer
	z := compressors.Get().(*zlib.Writer)
	defer compressors.Put(z)
	z.Reset(&data)
	_, _ = z.Write(rows) // a write into memory cannot fail
	_ = z.Close()

	header := binary.BigEndian.AppendUint32(nil, uint32(width))
	header = binary.BigEndian.AppendUint32(header, uint32(height))
	header = append(header, byte(depth), 3, 0, 0, 0) // palette
	out := append(make([]byte, 0, 128+data.Len()), "\x89PNG\r\n\x1a\n"...)
	out = appendChunk(out, "IHDR", header)
	if p.DPI > 0 { // pixels per metre (PNG, 11.3.4.3)
		perMetre := binary.BigEndian.AppendUint32(nil, uint32(math.Round(float64(p.DPI)/0.0254)))
		out = appendChunk(out, "pHYs", append(append(perMetre, perMetre...), 1))
	}
	out = appendChunk(out, "PLTE", p.palette(1<<depth))
	if p.Transparent {
		out = appendChunk(out, "tRNS", opacities(1<<depth))
	}
	out = appendChunk(out, "IDAT", data.Bytes())
	return appendChunk(out, "IEND", nil)
}

// raster yields the rows of pixels, behind a byte for the filter 0 (none), and how often each row occurs.
func (p *Picture) raster(depth int, add func(pixels []byte, count int)) {
	pixels := make([]byte, 1+(p.Width*depth+7)/8)
	p.fill(pixels, 0)
	add(pixels, p.tops[0])
	ends := make([]int, p.code.Size.X)
	for row := range p.tops[1:] {
		clear(pixels)
		p.runs(row, ends)
		for column, end := range ends {
			for bit := p.x(column) * depth; bit < p.x(end)*depth; bit++ {
				pixels[1+bit/8] |= 0x80 >> (bit % 8)
			}
		}
		add(pixels, p.tops[row+1]-p.tops[row])
	}
	end := p.tops[len(p.tops)-1]
	clear(pixels)
	p.fill(pixels, end)
	add(pixels, cmp.Or(p.textTop, p.Height)-end)
	if p.textTop > 0 {
		p.addText(pixels, add)
	}
}

// turned yields the rows of the turned picture.
func (p *Picture) turned(depth, stride int, add func(pixels []byte, count int)) {
	perByte := 8 / depth
	shade := func(row []byte, x int) byte { // the bits of a pixel, at the right end of a byte
		return row[1+x/perByte] >> (8 - depth - x%perByte*depth) & (1<<depth - 1)
	}
	var rows [][]byte
	p.raster(depth, func(pixels []byte, count int) {
		row := bytes.Clone(pixels)
		for range count {
			rows = append(rows, row)
		}
	})
	width, height := p.Size()
	for y := range height {
		pixels := make([]byte, stride)
		for x := range width {
			fromX, fromY := p.Width-1-x, p.Height-1-y
			switch p.Quarters {
			case 1:
				fromX, fromY = y, p.Height-1-x
			case 3:
				fromX, fromY = p.Width-1-y, x
			}
			pixels[1+x/perByte] |= shade(rows[fromY], fromX) << (8 - depth - x%perByte*depth)
		}
		add(pixels, 1)
	}
}

// opacities returns the opacity of each shade, 0 to 255.
func opacities(shades int) (alpha []byte) {
	for i := range shades {
		alpha = append(alpha, byte(255*i/(shades-1)))
	}
	return alpha
}

// palette returns shades from the background to the foreground. Where the background is transparent, all other shades
// are the foreground.
func (p *Picture) palette(shades int) (colors []byte) {
	for i := range shades {
		if p.Transparent && i > 0 {
			colors = append(colors, p.Foreground[:]...)
			continue
		}
		for c := range p.Background {
			mixed := int(p.Background[c])*(shades-1-i) + int(p.Foreground[c])*i
			colors = append(colors, byte((mixed+(shades-1)/2)/(shades-1)))
		}
	}
	return colors
}

// fill darkens the pixels of the added bars in a row, of four bits per pixel.
func (p *Picture) fill(pixels []byte, y int) {
	for _, bar := range p.added {
		for x := bar.Min.X; x < bar.Max.X && bar.Min.Y <= y && y < bar.Max.Y; x++ {
			pixels[1+x/2] |= 0xf0 >> (x % 2 * 4)
		}
	}
}

// addText adds the rows of the text, of four bits per pixel.
func (p *Picture) addText(pixels []byte, add func(pixels []byte, count int)) {
	mask := p.coverage()
	for y := range mask.Rect.Dy() {
		clear(pixels)
		p.fill(pixels, p.textTop+y)
		for x, alpha := range mask.Pix[y*mask.Stride:][:mask.Rect.Dx()] {
			pixels[1+x/2] |= byte((int(alpha)*15+127)/255) << (4 - x%2*4)
		}
		add(pixels, 1)
	}
}

func appendChunk(out []byte, kind string, data []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	start := len(out)
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[start:]))
}

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
		size(pixelsX), size(pixelsY), pixelsX, pixelsY, escape(p.Title), escape(p.code.Text))
	if !p.Transparent {
		out = fmt.Appendf(out, `<rect width="100%%" height="100%%" fill="#%x"/>`, p.Background)
	}
	turn := [...]string{"", fmt.Sprintf("translate(%d 0)rotate(90)", p.Height),
		fmt.Sprintf("translate(%d %d)rotate(180)", p.Width, p.Height), fmt.Sprintf("translate(0 %d)rotate(270)", p.Width)}
	if p.Quarters > 0 {
		out = fmt.Appendf(out, `<g transform="%s">`, turn[p.Quarters])
	}
	out = fmt.Appendf(out, `<path fill="#%x" d="`, p.Foreground)

	width := p.code.Size.X
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

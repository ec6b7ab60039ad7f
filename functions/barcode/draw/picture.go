// Package draw returns PNG and SVG pictures of barcodes, the same bytes for the same request. PNG and SVG have the same
// pixels.
package draw

import (
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"

	"github.com/boombuler/barcode"
	"golang.org/x/image/font/sfnt"
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

	code   barcode.Barcode
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
func Linear(title string, code barcode.Barcode, factor, height, quietLeft, quietRight int) *Picture {
	size := code.Bounds().Size()
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
func Matrix(title string, code barcode.Barcode, factor, quiet int) *Picture {
	size := code.Bounds().Size()
	p := Linear(title, code, factor, size.Y*factor, quiet, quiet)
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
func Square(title string, code barcode.Barcode, size, margin int) (*Picture, error) {
	side := code.Bounds().Dx()
	module := size / (side + 2*margin)
	if module == 0 {
		return nil, fmt.Errorf("%d modules and margins of %d do not fit %d pixels; size must be at least %d",
			side, margin, size, side+2*margin)
	}
	start := (size - side*module) / 2
	tops := make([]int, side+1)
	for row := range tops {
		tops[row] = start + row*module
	}
	return &Picture{
		Width: size, Height: size, Background: Color{255, 255, 255}, Title: title,
		code: code, module: module, left: start, tops: tops,
	}, nil
}

// runs sets ends: for each run of dark modules in a row, at its first column, the column after its last; else 0.
func (p *Picture) runs(row int, ends []int) {
	clear(ends)
	for x := 0; x < len(ends); x++ {
		start := x
		for x < len(ends) && p.code.At(x, row) == color.Color(color.Black) {
			x++
		}
		if x > start {
			ends[start] = x
		}
	}
}

// x returns the first pixel of a column of modules.
func (p *Picture) x(column int) int { return p.left + column*p.module }

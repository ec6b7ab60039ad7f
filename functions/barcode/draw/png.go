package draw

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"math"
	"sync"
)

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
	ends := make([]int, p.code.Bounds().Dx())
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

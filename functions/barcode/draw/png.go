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
// picture with text has four bits per pixel, and a palette with the shades between these colours.
//
// The package image/png is not used: it packs and filters each row of pixels, and measured were 165 µs for a barcode
// with a pool of compressors. This code packs each row of modules once, and the filter Up makes the rows below all
// zero.
func (p *Picture) PNG() []byte {
	depth := 1
	if p.textTop > 0 {
		depth = 4
	}
	stride := 1 + (p.Width*depth+7)/8 // a filter byte (0, none), then the pixels
	rows := make([]byte, 0, stride*p.Height)
	pixels, same := make([]byte, stride), make([]byte, stride)
	same[0] = 2 // the filter Up
	add := func(count int) {
		if count > 0 {
			rows = append(append(rows, pixels...), bytes.Repeat(same, count-1)...)
		}
	}
	p.fill(pixels, 0)
	add(p.tops[0])
	ends := make([]int, p.code.Bounds().Dx())
	for row := range p.tops[1:] {
		clear(pixels)
		p.runs(row, ends)
		for column, end := range ends {
			for bit := p.x(column) * depth; bit < p.x(end)*depth; bit++ {
				pixels[1+bit/8] |= 0x80 >> (bit % 8)
			}
		}
		add(p.tops[row+1] - p.tops[row])
	}
	end := p.tops[len(p.tops)-1]
	clear(pixels)
	p.fill(pixels, end)
	add(cmp.Or(p.textTop, p.Height) - end)
	if p.textTop > 0 {
		p.addText(pixels, add)
	}
	var data bytes.Buffer
	z := compressors.Get().(*zlib.Writer)
	defer compressors.Put(z)
	z.Reset(&data)
	_, _ = z.Write(rows) // a write into memory cannot fail
	_ = z.Close()

	header := binary.BigEndian.AppendUint32(nil, uint32(p.Width))
	header = binary.BigEndian.AppendUint32(header, uint32(p.Height))
	header = append(header, byte(depth), 3, 0, 0, 0) // palette
	out := append(make([]byte, 0, 128+data.Len()), "\x89PNG\r\n\x1a\n"...)
	out = appendChunk(out, "IHDR", header)
	if p.DPI > 0 { // pixels per metre (PNG, 11.3.4.3)
		perMetre := binary.BigEndian.AppendUint32(nil, uint32(math.Round(float64(p.DPI)/0.0254)))
		out = appendChunk(out, "pHYs", append(append(perMetre, perMetre...), 1))
	}
	out = appendChunk(out, "PLTE", p.palette(1<<depth))
	out = appendChunk(out, "IDAT", data.Bytes())
	return appendChunk(out, "IEND", nil)
}

// palette returns shades from the background to the foreground.
func (p *Picture) palette(shades int) (colors []byte) {
	for i := range shades {
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
func (p *Picture) addText(pixels []byte, add func(count int)) {
	mask := p.coverage()
	for y := range mask.Rect.Dy() {
		clear(pixels)
		p.fill(pixels, p.textTop+y)
		for x, alpha := range mask.Pix[y*mask.Stride:][:mask.Rect.Dx()] {
			pixels[1+x/2] |= byte((int(alpha)*15+127)/255) << (4 - x%2*4)
		}
		add(1)
	}
}

func appendChunk(out []byte, kind string, data []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	start := len(out)
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[start:]))
}

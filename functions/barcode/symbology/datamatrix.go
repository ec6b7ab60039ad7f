package symbology

import (
	"fmt"
	"image"

	"github.com/boombuler/barcode/utils"
)

// matrixSize is a size of Data Matrix ECC 200 (ISO/IEC 16022, table 7). boombuler has no rectangles, and its content
// cannot hold both FNC1 and the character 232.
type matrixSize struct {
	rows, columns       int // modules, with the finder patterns
	down, across        int // data regions
	data, check, blocks int // codewords, and blocks of codewords
}

var squares = []matrixSize{
	{10, 10, 1, 1, 3, 5, 1}, {12, 12, 1, 1, 5, 7, 1}, {14, 14, 1, 1, 8, 10, 1}, {16, 16, 1, 1, 12, 12, 1},
	{18, 18, 1, 1, 18, 14, 1}, {20, 20, 1, 1, 22, 18, 1}, {22, 22, 1, 1, 30, 20, 1}, {24, 24, 1, 1, 36, 24, 1},
	{26, 26, 1, 1, 44, 28, 1}, {32, 32, 2, 2, 62, 36, 1}, {36, 36, 2, 2, 86, 42, 1}, {40, 40, 2, 2, 114, 48, 1},
	{44, 44, 2, 2, 144, 56, 1}, {48, 48, 2, 2, 174, 68, 1}, {52, 52, 2, 2, 204, 84, 2}, {64, 64, 4, 4, 280, 112, 2},
}

var rectangles = []matrixSize{
	{8, 18, 1, 1, 5, 7, 1}, {8, 32, 1, 2, 10, 11, 1}, {12, 26, 1, 1, 16, 14, 1}, {12, 36, 1, 2, 22, 18, 1},
	{16, 36, 1, 2, 32, 24, 1}, {16, 48, 1, 2, 49, 28, 1},
}

var latin1 = characters{"takes characters of ISO/IEC 8859-1 only",
	func(r rune) bool { return r <= 127 || 160 <= r && r <= 255 }}

// dataMatrix returns the encoder of the smallest symbol of a list of sizes, in ASCII encodation (ISO/IEC 16022, 5.2.3).
func dataMatrix(sizes []matrixSize) encoder {
	return func(data string) (Symbol, error) {
		words := codewords(data)
		for _, size := range sizes {
			if size.data >= len(words) {
				return size.draw(words, data), nil
			}
		}
		return Symbol{}, fmt.Errorf("takes at most %d codewords in this shape; the data needs %d", sizes[len(sizes)-1].data,
			len(words))
	}
}

// codewords returns data as codewords: two digits, a character of ASCII, an upper one with a shift, or FNC1.
func codewords(data string) (words []byte) {
	text := latin(data)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case holds(setC, text[i:]) && c != fnc1:
			words = append(words, 130+value(setC, text[i:]))
			i++
		case c == fnc1 && text[0] == fnc1:
			words = append(words, 232)
		case c > 127:
			words = append(words, 235, c-127)
		default:
			words = append(words, c+1)
		}
	}
	return words
}

// latin returns a text in ISO/IEC 8859-1. Data with FNC1 has ASCII beside it, and is no UTF-8.
func latin(data string) string {
	if data[0] == fnc1 {
		return data
	}
	var text []byte
	for _, r := range data {
		text = append(text, byte(r))
	}
	return string(text)
}

// draw pads the codewords, adds those of the error correction and places all of them.
func (s matrixSize) draw(words []byte, text string) Symbol {
	for padded := len(words); len(words) < s.data; {
		pad := 129
		if len(words) > padded { // the 253-state algorithm (ISO/IEC 16022, B.1)
			pad += 149*(len(words)+1)%253 + 1
			if pad > 254 {
				pad -= 254
			}
		}
		words = append(words, byte(pad))
	}
	words = append(words, make([]byte, s.check)...)
	field := utils.NewReedSolomonEncoder(utils.NewGaloisField(301, 256, 1))
	for block := range s.blocks {
		var part []int
		for i := block; i < s.data; i += s.blocks {
			part = append(part, int(words[i]))
		}
		for i, check := range field.Encode(part, s.check/s.blocks) {
			words[s.data+block+i*s.blocks] = byte(check)
		}
	}
	height, width := s.rows-2*s.down, s.columns-2*s.across
	bits := place(words, height, width)
	return Symbol{Size: image.Pt(s.columns, s.rows), Text: text, Dark: func(x, y int) bool {
		inY, inX := y%(s.rows/s.down), x%(s.columns/s.across)
		switch {
		case inX == 0 || inY == s.rows/s.down-1: // the solid border
			return true
		case inY == 0: // the dashed border
			return inX%2 == 0
		case inX == s.columns/s.across-1:
			return inY%2 == 1
		}
		row, column := y-1-2*(y/(s.rows/s.down)), x-1-2*(x/(s.columns/s.across))
		return bits[row*width+column] == 1
	}}
}

// place returns the modules of the mapping matrix, 1 for dark ones (ISO/IEC 16022, F.1).
func place(words []byte, height, width int) []int8 {
	bits := make([]int8, height*width)
	for i := range bits {
		bits[i] = -1
	}
	set := func(row, column, word, bit int) {
		if row < 0 {
			row, column = row+height, column+4-(height+4)%8
		}
		if column < 0 {
			column, row = column+width, row+4-(width+4)%8
		}
		bits[row*width+column] = int8(words[word] >> (8 - bit) & 1)
	}
	word := 0
	put := func(at ...int) { // rows and columns of the eight bits
		for bit := range 8 {
			set(at[2*bit], at[2*bit+1], word, bit+1)
		}
		word++
	}
	utah := func(r, c int) {
		if r >= 0 && r < height && c >= 0 && c < width && bits[r*width+c] < 0 {
			put(r-2, c-2, r-2, c-1, r-1, c-2, r-1, c-1, r-1, c, r, c-2, r, c-1, r, c)
		}
	}
	for row, column, h, w := 4, 0, height, width; row < h || column < w; row, column = row+3, column+1 {
		switch {
		case row == h && column == 0:
			put(h-1, 0, h-1, 1, h-1, 2, 0, w-2, 0, w-1, 1, w-1, 2, w-1, 3, w-1)
		case row == h-2 && column == 0 && w%4 != 0:
			put(h-3, 0, h-2, 0, h-1, 0, 0, w-4, 0, w-3, 0, w-2, 0, w-1, 1, w-1)
		case row == h-2 && column == 0 && w%8 == 4:
			put(h-3, 0, h-2, 0, h-1, 0, 0, w-2, 0, w-1, 1, w-1, 2, w-1, 3, w-1)
		case row == h+4 && column == 2 && w%8 == 0:
			put(h-1, 0, h-1, w-1, 0, w-3, 0, w-2, 0, w-1, 1, w-3, 1, w-2, 1, w-1)
		}
		for ; row >= 0 && column < w; row, column = row-2, column+2 {
			utah(row, column)
		}
		row, column = row+1, column+3
		for ; row < h && column >= 0; row, column = row+2, column-2 {
			utah(row, column)
		}
	}
	if last := height*width - 1; bits[last] < 0 { // the corner that no codeword fills
		bits[last], bits[last-1], bits[last-width], bits[last-width-1] = 1, 0, 0, 1
	}
	return bits
}

package symbology

import (
	"fmt"
	"image"
	"image/color"
	"strings"

	"github.com/boombuler/barcode"
)

// postnetDigits are a digit's five bars, 1 is tall (USPS Publication 25, chapter 4).
var postnetDigits = [10]int{
	0b11000, 0b00011, 0b00101, 0b00110, 0b01001, 0b01010, 0b01100, 0b10001, 0b10010, 0b10100,
}

// postnet takes a ZIP, ZIP+4 or delivery point code and always adds the check digit, which completes the sum of
// the digits to a multiple of ten. Tall start and stop bars: 5n+7 bars, 10n+13 modules.
func postnet(data string) (barcode.Barcode, error) {
	err := onlyCharacters(data, "takes digits, - and space only", oneOf("0123456789- "))
	if err != nil {
		return nil, err
	}
	digits := strings.NewReplacer("-", "", " ", "").Replace(data)
	if n := len(digits); n != 5 && n != 9 && n != 11 {
		return nil, fmt.Errorf("takes 5, 9 or 11 digits, not counting - and space; found %d", n)
	}
	tall := []bool{true}
	sum := 0
	add := func(digit int) {
		for bar := 4; bar >= 0; bar-- {
			tall = append(tall, postnetDigits[digit]>>bar&1 == 1)
		}
	}
	for i := range digits {
		digit := int(digits[i] - '0')
		sum += digit
		add(digit)
	}
	add((10 - sum%10) % 10)
	return postalBars{append(tall, true), data}, nil
}

// postalBars has bars of two heights, one module wide with one module between them.
type postalBars struct {
	tall []bool
	text string
}

// Metadata says what the symbol is.
func (p postalBars) Metadata() barcode.Metadata {
	return barcode.Metadata{CodeKind: "POSTNET", Dimensions: 1}
}

// Content is the text as it was sent.
func (p postalBars) Content() string { return p.text }

// ColorModel is that of black and white.
func (p postalBars) ColorModel() color.Model { return color.Gray16Model }

// Bounds is five rows high: short bars have 0.4 of the height.
func (p postalBars) Bounds() image.Rectangle { return image.Rect(0, 0, 2*len(p.tall)-1, 5) }

// At is black where there is a bar: in all rows, or in the lower two where the bar is short.
func (p postalBars) At(x, y int) color.Color {
	if x%2 == 0 && (p.tall[x/2] || y >= 3) {
		return color.Black
	}
	return color.White
}

package symbology

import (
	"fmt"
	"image"
	"image/color"
	"strings"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/twooffive"
	"github.com/boombuler/barcode/utils"
)

// code39Characters has the characters of Code 39 by value, which the check character sums, then start and stop.
const code39Characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-. $/+%*"

// code39Widths has the nine widths of each character (bar, space, bar, ...; ISO/IEC 16388, table 1).
const code39Widths = "" +
	"111331311311311113113311113313311111111331113311331111113331111111311313311311311113311311311113113" +
	"113113113313113111111133113311133111113133111111113313311113311113113311111133311311111133113111133" +
	"313111131111131133311131131113131131111111333311111331113111331111131331331111113133111113333111111" +
	"131131113331131111133131111131111313331111311133111311131313111131311131131113131111313131131131311"

var code39Takes = characters{"takes 0-9, A-Z, - . $ / + % and space only", oneOf(code39Characters[:43])}

// code39 returns the encoder with or without the modulo 43 check character. Wide elements have 3 modules and gaps 1:
// 16(n+2)-1 modules.
func code39(checked bool) encoder {
	return func(data string) (barcode.Barcode, error) {
		text, sum := "*"+data, 0
		for i := range data {
			sum += strings.IndexByte(code39Characters, data[i])
		}
		if checked {
			text += code39Characters[sum%43:][:1]
		}
		bars := new(utils.BitList)
		for i, character := range text + "*" {
			if i > 0 {
				bars.AddBit(false)
			}
			addWidths(bars, code39Widths[9*strings.IndexRune(code39Characters, character):][:9])
		}
		return utils.New1DCode(barcode.TypeCode39, data, bars), nil
	}
}

// postnetDigits are a digit's five bars, 1 is tall (USPS Publication 25, chapter 4).
var postnetDigits = [10]int{
	0b11000, 0b00011, 0b00101, 0b00110, 0b01001, 0b01010, 0b01100, 0b10001, 0b10010, 0b10100,
}

var postnetTakes = characters{"takes digits, - and space only", oneOf("0123456789- ")}

// postnet takes a ZIP, ZIP+4 or delivery point code and always adds the check digit, which completes the sum of
// the digits to a multiple of ten. Tall start and stop bars: 5n+7 bars, 10n+13 modules.
func postnet(data string) (barcode.Barcode, error) {
	digits := strings.NewReplacer("-", "", " ", "").Replace(data)
	if n := len(digits); n != 5 && n != 9 && n != 11 {
		return nil, fmt.Errorf("takes 5, 9 or 11 digits, not counting - and space; found %d", n)
	}
	sum := 0
	for i := range digits {
		sum += int(digits[i] - '0')
	}
	bars := new(utils.BitList)
	bars.AddBit(true)
	for _, digit := range fmt.Sprint(digits, (10-sum%10)%10) {
		for bar := 4; bar >= 0; bar-- {
			bars.AddBit(false, postnetDigits[digit-'0']>>bar&1 == 1)
		}
	}
	bars.AddBit(false, true)
	return postalBars{utils.New1DCode("POSTNET", data, bars)}, nil
}

// postalBars has bars of two heights, one module wide with one module between them. The embedded barcode has the tall
// bars.
type postalBars struct{ barcode.Barcode }

// Bounds returns five rows: short bars have 0.4 of the height.
func (p postalBars) Bounds() image.Rectangle { return image.Rect(0, 0, p.Barcode.Bounds().Dx(), 5) }

// At returns black where a bar is: tall bars in all rows, all bars in the lower two.
func (p postalBars) At(x, y int) color.Color {
	if x%2 == 0 && y >= 3 {
		return color.Black
	}
	return p.Barcode.At(x, 0)
}

// interleaved follows ISO/IEC 16390 (Interleaved 2 of 5), wide elements 3 modules: 9n+9 modules. Digits come in
// pairs, so that an odd count gets a leading zero. ITF-14 (GS1 General Specifications, 5.3) has 135 modules here.
func interleaved(data string) (barcode.Barcode, error) {
	if len(data)%2 == 1 {
		data = "0" + data
	}
	return twooffive.Encode(data, true)
}

// msi writes each digit as four bits, most significant first: 0 is a narrow bar and a wide space, 1 the
// opposite. There is no check digit in this type: 12n+7 modules.
func msi(data string) (barcode.Barcode, error) {
	bars := new(utils.BitList)
	bars.AddBits(0b110, 3)
	for i := range data {
		for bit := 3; bit >= 0; bit-- {
			one := int(data[i]-'0') >> bit & 1
			bars.AddBits(0b100|one<<1, 3)
		}
	}
	bars.AddBits(0b1001, 4)
	return utils.New1DCode("MSI", data, bars), nil
}

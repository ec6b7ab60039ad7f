package symbology

import (
	"fmt"
	"image"
	"image/color"
	"strings"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/utils"
)

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

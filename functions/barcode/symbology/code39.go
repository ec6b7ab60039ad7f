package symbology

import (
	"strings"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/utils"
)

// code39Characters has the characters of Code 39 by value, which the check character sums, then start and stop.
const code39Characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-. $/+%*"

// code39Elements has the nine elements (bar, space, bar, ...) of each character; 1 is wide (ISO/IEC 16388, table 1).
var code39Elements = [44]int{
	0b000110100, 0b100100001, 0b001100001, 0b101100000, 0b000110001, // 0 to 4
	0b100110000, 0b001110000, 0b000100101, 0b100100100, 0b001100100, // 5 to 9
	0b100001001, 0b001001001, 0b101001000, 0b000011001, 0b100011000, // A to E
	0b001011000, 0b000001101, 0b100001100, 0b001001100, 0b000011100, // F to J
	0b100000011, 0b001000011, 0b101000010, 0b000010011, 0b100010010, // K to O
	0b001010010, 0b000000111, 0b100000110, 0b001000110, 0b000010110, // P to T
	0b110000001, 0b011000001, 0b111000000, 0b010010001, 0b110010000, // U to Y
	0b011010000, 0b010000101, 0b110000100, 0b011000100, // Z - . space
	0b010101000, 0b010100010, 0b010001010, 0b000101010, // $ / + %
	0b010010100, // start and stop
}

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
			for element := 8; element >= 0; element-- {
				width := 1 + code39Elements[strings.IndexRune(code39Characters, character)]>>element&1*2
				for range width {
					bars.AddBit(element%2 == 0)
				}
			}
		}
		return utils.New1DCode(barcode.TypeCode39, data, bars), nil
	}
}

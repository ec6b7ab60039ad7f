package symbology

import (
	"strings"

	"github.com/boombuler/barcode"
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

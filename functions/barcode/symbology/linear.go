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

// The code sets of Code 128 (ISO/IEC 15417, table 1): A has the control characters and upper case, B has upper and
// lower case, C has pairs of digits.
const (
	setA = iota
	setB
	setC
)

// Special symbol characters. A set's start is startA + set, the switch to it is switchToA - set.
const (
	shift     = 98
	switchToA = 101
	startA    = 103
)

// code128 returns the shortest symbol for data: 11n+35 modules, where n counts the symbol characters between
// start and check.
func code128(data string) (barcode.Barcode, error) { return drawCode128(data, shortest(data)), nil }

// code128In returns the encoder that stays in one set.
func code128In(set int) encoder {
	return func(data string) (barcode.Barcode, error) {
		if set == setC && len(data)%2 != 0 {
			return nil, fmt.Errorf("takes an even count of digits; found %d", len(data))
		}
		symbols := append(make([]byte, 0, len(data)+1), byte(startA+set))
		for i := 0; i < len(data); i += width(set, data[i:]) {
			symbols = append(symbols, value(set, data[i:]))
		}
		return drawCode128(data, symbols), nil
	}
}

// width returns how many characters at the start of data one symbol character of set holds.
func width(set int, data string) int {
	if set == setC && data[0] != fnc1 {
		return 2
	}
	return 1
}

// holds reports whether set has a symbol character for the start of data.
func holds(set int, data string) bool {
	switch {
	case data[0] == fnc1:
		return true
	case set == setA:
		return data[0] < 96
	case set == setB:
		return data[0] >= 32
	}
	return len(data) >= 2 && isDigit(rune(data[0])) && isDigit(rune(data[1]))
}

// value returns the symbol character of set for the start of data, which set must hold.
func value(set int, data string) byte {
	switch {
	case data[0] == fnc1:
		return 102
	case set == setC:
		return (data[0]-'0')*10 + data[1] - '0'
	case data[0] < 32:
		return data[0] + 64
	}
	return data[0] - 32
}

// shortest returns the fewest symbol characters that encode data, start included. The choice goes backwards:
// rest[i][s] is the least count for data[i:] when set s is in force. At each position the choice is between a
// symbol character of the set, a character of the other set behind a SHIFT (A and B only), and a switch of the set.
// Among equals the first is chosen.
func shortest(data string) []byte {
	const never = 1 << 14
	rest := make([][3]uint16, len(data)+1)
	stay := make([][3]uint16, len(data)) // as rest, without a switch first
	for i := len(data) - 1; i >= 0; i-- {
		for set := setA; set <= setC; set++ {
			stay[i][set] = never
			if holds(set, data[i:]) {
				stay[i][set] = 1 + rest[i+width(set, data[i:])][set]
			} else if set != setC {
				stay[i][set] = 2 + rest[i+1][set]
			}
		}
		least := min(stay[i][setA], stay[i][setB], stay[i][setC])
		for set := setA; set <= setC; set++ {
			rest[i][set] = min(stay[i][set], least+1)
		}
	}

	set := setB
	for other := setA; other <= setC; other++ {
		if rest[0][other] < rest[0][set] {
			set = other
		}
	}
	symbols := append(make([]byte, 0, rest[0][set]+1), byte(startA+set))
	for i := 0; i < len(data); {
		if stay[i][set] > rest[i][set] {
			for to := setA; to <= setC; to++ {
				if stay[i][to]+1 == rest[i][set] {
					set = to
					break
				}
			}
			symbols = append(symbols, byte(switchToA-set))
		}
		if holds(set, data[i:]) {
			symbols = append(symbols, value(set, data[i:]))
			i += width(set, data[i:])
		} else {
			symbols = append(symbols, shift, value(setB-set, data[i:]))
			i++
		}
	}
	return symbols
}

// drawCode128 adds the check character (modulo 103, each symbol character weighted by its position) and the stop.
func drawCode128(data string, symbols []byte) barcode.Barcode {
	bars := new(utils.BitList)
	check := int(symbols[0])
	for i, symbol := range symbols {
		check += i * int(symbol)
		addWidths(bars, code128Widths[6*int(symbol):][:6])
	}
	addWidths(bars, code128Widths[check%103*6:][:6]+code128Widths[6*106:])
	return utils.New1DCode(barcode.TypeCode128, data, bars)
}

// addWidths adds bars and spaces in turn, with their widths in modules as digits.
func addWidths(bars *utils.BitList, widths string) {
	for i := range widths {
		for range widths[i] - '0' {
			bars.AddBit(i%2 == 0)
		}
	}
}

// code128Widths has the six widths of each symbol character by value (bar, space, bar, ...), then those of the stop.
const code128Widths = "" +
	"212222222122222221121223121322131222122213122312132212221213221312231212112232122132122231113222123122123221" +
	"223211221132221231213212223112312131311222321122321221312212322112322211212123212321232121111323131123131321" +
	"112313132113132311211313231113231311112133112331132131113123113321133121313121211331231131213113213311213131" +
	"311123311321331121312113312311332111314111221411431111111224111422121124121421141122141221112214112412122114" +
	"122411142112142211241211221114413111241112134111111242121142121241114212124112124211411212421112421211212141" +
	"214121412121111143111341131141114113114311411113411311113141114131311141411131211412211214211232" + "2331112"

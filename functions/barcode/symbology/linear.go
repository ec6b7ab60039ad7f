package symbology

import (
	_ "embed" // code39.txt and code128.txt
	"errors"
	"fmt"
	"image"
	"strings"

	"github.com/boombuler/barcode/ean"
	"github.com/boombuler/barcode/twooffive"
	"github.com/boombuler/barcode/utils"

	"svcapi/functions/barcode/gs1"
)

// eanCode follows GS1 General Specifications, 5.2.1: EAN-13 has 95 modules, EAN-8 has 67.
func eanCode(number string) (Symbol, error) { return drawn(ean.Encode(number)) }

// upcA returns the EAN-13 of 0 and the number: the same 95 modules, read as 12 digits.
func upcA(number string) (Symbol, error) {
	code, err := drawn(ean.Encode("0" + number))
	code.Text = number
	return code, err
}

// checked returns the encoder of a number of length digits, the last of which is the check digit.
func checked(length int, encode encoder) encoder {
	return func(data string) (Symbol, error) {
		number, err := withCheckDigit(data, length)
		if err != nil {
			return Symbol{}, err
		}
		return encode(number)
	}
}

// withCheckDigit completes a number of length digits: a missing check digit is added, a wrong one is an
// error. Shorter numbers are not padded, since padding hides typing errors.
func withCheckDigit(data string, length int) (string, error) {
	switch len(data) {
	case length - 1:
		return data + string(gs1.CheckDigit(data)), nil
	case length:
		return data, gs1.ValidateCheckDigit(data)
	}
	return "", fmt.Errorf("takes %d digits, or %d with the check digit; found %d", length-1, length, len(data))
}

// upceDigits are a digit's seven modules in number sets A (odd parity) and B (even parity).
var upceDigits = [2][10]int{
	{0b0001101, 0b0011001, 0b0010011, 0b0111101, 0b0100011, 0b0110001, 0b0101111, 0b0111011, 0b0110111, 0b0001011},
	{0b0100111, 0b0110011, 0b0011011, 0b0100001, 0b0011101, 0b0111001, 0b0000101, 0b0010001, 0b0001001, 0b0010111},
}

// upceParities has, by check digit, a bit for each of the six digits: 1 is set B in number system 0, and set A in
// number system 1.
var upceParities = [10]int{
	0b111000, 0b110100, 0b110010, 0b110001, 0b101100, 0b100110, 0b100011, 0b101010, 0b101001, 0b100101,
}

// upcE follows GS1 General Specifications, 5.2.1: 51 modules. The data is 6 digits (number system 0), 7 (with the
// number system), 8 (with the check digit as well), or 11 or 12 digits of a UPC-A that compresses. The check digit is
// that of the UPC-A.
func upcE(data string) (Symbol, error) {
	number := data // number system, six digits, perhaps the check digit
	switch len(data) {
	case 6:
		number = "0" + data
	case 7, 8:
	case 11, 12:
		full, err := withCheckDigit(data, 12)
		if err != nil {
			return Symbol{}, err
		}
		if number, err = compressUPCA(full); err != nil {
			return Symbol{}, err
		}
	default:
		return Symbol{}, fmt.Errorf("takes 6, 7, 8, 11 or 12 digits; found %d", len(data))
	}

	system, six := number[0], number[1:7]
	if system > '1' {
		return Symbol{}, fmt.Errorf("the number system (first digit) must be 0 or 1; found %c", system)
	}
	full, err := expandUPCE(system, six)
	if err != nil {
		return Symbol{}, err
	}
	check := gs1.CheckDigit(full)
	if len(number) == 8 {
		if err := gs1.ValidateCheckDigit(full + number[7:]); err != nil {
			return Symbol{}, err
		}
	}

	parity := upceParities[check-'0']
	if system == '1' {
		parity = ^parity
	}
	bars := new(utils.BitList)
	bars.AddBits(0b101, 3)
	for i := range six {
		bars.AddBits(upceDigits[parity>>(5-i)&1][six[i]-'0'], 7)
	}
	bars.AddBits(0b010101, 6)
	return oneRow(bars, string(system)+six+string(check)), nil
}

// expandUPCE returns the 11 digits of the UPC-A that system and six encode. Six digits are forbidden where
// a shorter suppression encodes the same number.
func expandUPCE(system byte, six string) (string, error) {
	s, last := string(system), six[5]
	switch {
	case last <= '2':
		return s + six[:2] + six[5:] + "0000" + six[2:5], nil
	case last == '3' && six[2] <= '2':
		return "", fmt.Errorf("where the sixth digit is 3, the third must be 3 to 9; found %c", six[2])
	case last == '3':
		return s + six[:3] + "00000" + six[3:5], nil
	case last == '4' && six[3] == '0':
		return "", errors.New("where the sixth digit is 4, the fourth must be 1 to 9; found 0")
	case last == '4':
		return s + six[:4] + "00000" + six[4:5], nil
	case six[4] == '0':
		return "", fmt.Errorf("where the sixth digit is %c, the fifth must be 1 to 9; found 0", last)
	}
	return s + six[:5] + "0000" + six[5:], nil
}

// compressUPCA returns number system and six digits of the UPC-E that encodes the 12 digits of full.
func compressUPCA(full string) (string, error) {
	if full[0] > '1' {
		return "", fmt.Errorf("only a UPC-A of number system 0 or 1 compresses; found %c", full[0])
	}
	for _, six := range []string{
		full[1:3] + full[8:11] + full[3:4], full[1:4] + full[9:11] + "3", full[1:5] + full[10:11] +
			"4", full[1:6] + full[10:11],
	} {
		if expanded, err := expandUPCE(full[0], six); err == nil && expanded == full[:11] {
			return full[:1] + six, nil
		}
	}
	return "", errors.New("the UPC-A has too few zeros in the right places to compress")
}

// code39Characters has the characters of Code 39 by value, which the check character sums, then start and stop.
const code39Characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-. $/+%*"

var code39Takes = characters{"takes 0-9, A-Z, - . $ / + % and space only", oneOf(code39Characters[:43])}

//go:embed code39.txt
var code39Widths string // a line for each character: the nine widths of its bars and spaces in turn

//go:embed code128.txt
var code128Widths string // a line for each symbol character by value, with its six widths, the stop last

// code39 returns the encoder with or without the modulo 43 check character. Wide elements have 3 modules and gaps 1:
// 16(n+2)-1 modules.
func code39(checked bool) encoder {
	return func(data string) (Symbol, error) {
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
			addWidths(bars, code39Widths[10*strings.IndexRune(code39Characters, character):][:9])
		}
		return oneRow(bars, data), nil
	}
}

// postnetDigits are a digit's five bars, 1 is tall (USPS Publication 25, chapter 4).
var postnetDigits = [10]int{
	0b11000, 0b00011, 0b00101, 0b00110, 0b01001, 0b01010, 0b01100, 0b10001, 0b10010, 0b10100,
}

var postnetTakes = characters{"takes digits, - and space only", oneOf("0123456789- ")}

// postnet takes a ZIP, ZIP+4 or delivery point code and always adds the check digit, which completes the sum of
// the digits to a multiple of ten. Tall start and stop bars: 5n+7 bars, 10n+13 modules.
func postnet(data string) (Symbol, error) {
	digits := strings.NewReplacer("-", "", " ", "").Replace(data)
	if n := len(digits); n != 5 && n != 9 && n != 11 {
		return Symbol{}, fmt.Errorf("takes 5, 9 or 11 digits, not counting - and space; found %d", n)
	}
	sum := 0
	for i := range digits {
		sum += int(digits[i] - '0')
	}
	tall := []bool{true}
	for _, digit := range fmt.Sprint(digits, (10-sum%10)%10) {
		for bar := 4; bar >= 0; bar-- {
			tall = append(tall, postnetDigits[digit-'0']>>bar&1 == 1)
		}
	}
	tall = append(tall, true)
	// A bar is one module wide, with one module to the next. Short bars are in the lower two of five rows.
	return Symbol{Size: image.Pt(2*len(tall)-1, 5), Text: data, Dark: func(x, y int) bool {
		return x%2 == 0 && (y >= 3 || tall[x/2])
	}}, nil
}

// interleaved follows ISO/IEC 16390 (Interleaved 2 of 5), wide elements 3 modules: 9n+9 modules. Digits come in
// pairs, so that an odd count gets a leading zero. ITF-14 (GS1 General Specifications, 5.3) has 135 modules here.
func interleaved(data string) (Symbol, error) {
	if len(data)%2 == 1 {
		data = "0" + data
	}
	return drawn(twooffive.Encode(data, true))
}

// msi writes each digit as four bits, most significant first: 0 is a narrow bar and a wide space, 1 the
// opposite. There is no check digit in this type: 12n+7 modules.
func msi(data string) (Symbol, error) {
	bars := new(utils.BitList)
	bars.AddBits(0b110, 3)
	for i := range data {
		for bit := 3; bit >= 0; bit-- {
			one := int(data[i]-'0') >> bit & 1
			bars.AddBits(0b100|one<<1, 3)
		}
	}
	bars.AddBits(0b1001, 4)
	return oneRow(bars, data), nil
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
func code128(data string) (Symbol, error) { return drawCode128(data, shortest(data)), nil }

// code128In returns the encoder that stays in one set.
func code128In(set int) encoder {
	return func(data string) (Symbol, error) {
		if set == setC && len(data)%2 != 0 {
			return Symbol{}, fmt.Errorf("takes an even count of digits; found %d", len(data))
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
func drawCode128(data string, symbols []byte) Symbol {
	bars := new(utils.BitList)
	check := int(symbols[0])
	for i, symbol := range symbols {
		check += i * int(symbol)
		addWidths(bars, code128Widths[7*int(symbol):][:6])
	}
	addWidths(bars, code128Widths[check%103*7:][:6]+strings.TrimSpace(code128Widths[7*106:]))
	return oneRow(bars, data)
}

// addWidths adds bars and spaces in turn, with their widths in modules as digits.
func addWidths(bars *utils.BitList, widths string) {
	for i := range widths {
		for range widths[i] - '0' {
			bars.AddBit(i%2 == 0)
		}
	}
}

package symbology

import (
	"fmt"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/utils"
)

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
		if len(data)%width(set) != 0 {
			return nil, fmt.Errorf("takes an even count of digits; found %d", len(data))
		}
		symbols := append(make([]byte, 0, len(data)+1), byte(startA+set))
		for i := 0; i < len(data); i += width(set) {
			symbols = append(symbols, value(set, data[i:]))
		}
		return drawCode128(data, symbols), nil
	}
}

// width returns how many characters of data one symbol character of set holds.
func width(set int) int { return 1 + set/setC }

// holds reports whether set has a symbol character for the start of data.
func holds(set int, data string) bool {
	switch set {
	case setA:
		return data[0] < 96
	case setB:
		return data[0] >= 32
	}
	return len(data) >= 2 && isDigit(rune(data[0])) && isDigit(rune(data[1]))
}

// value returns the symbol character of set for the start of data, which set must hold.
func value(set int, data string) byte {
	switch {
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
				stay[i][set] = 1 + rest[i+width(set)][set]
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
			i += width(set)
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
		bars.AddBits(code128Patterns[symbol], 11)
	}
	bars.AddBits(code128Patterns[check%103], 11)
	bars.AddBits(code128Stop, 13)
	return utils.New1DCode(barcode.TypeCode128, data, bars)
}

const code128Stop = 0b1100011101011

// code128Patterns are the modules of each symbol character by value.
var code128Patterns = [106]int{
	0b11011001100, 0b11001101100, 0b11001100110, 0b10010011000, 0b10010001100, // 0 to 4
	0b10001001100, 0b10011001000, 0b10011000100, 0b10001100100, 0b11001001000, // 5 to 9
	0b11001000100, 0b11000100100, 0b10110011100, 0b10011011100, 0b10011001110, // 10 to 14
	0b10111001100, 0b10011101100, 0b10011100110, 0b11001110010, 0b11001011100, // 15 to 19
	0b11001001110, 0b11011100100, 0b11001110100, 0b11101101110, 0b11101001100, // 20 to 24
	0b11100101100, 0b11100100110, 0b11101100100, 0b11100110100, 0b11100110010, // 25 to 29
	0b11011011000, 0b11011000110, 0b11000110110, 0b10100011000, 0b10001011000, // 30 to 34
	0b10001000110, 0b10110001000, 0b10001101000, 0b10001100010, 0b11010001000, // 35 to 39
	0b11000101000, 0b11000100010, 0b10110111000, 0b10110001110, 0b10001101110, // 40 to 44
	0b10111011000, 0b10111000110, 0b10001110110, 0b11101110110, 0b11010001110, // 45 to 49
	0b11000101110, 0b11011101000, 0b11011100010, 0b11011101110, 0b11101011000, // 50 to 54
	0b11101000110, 0b11100010110, 0b11101101000, 0b11101100010, 0b11100011010, // 55 to 59
	0b11101111010, 0b11001000010, 0b11110001010, 0b10100110000, 0b10100001100, // 60 to 64
	0b10010110000, 0b10010000110, 0b10000101100, 0b10000100110, 0b10110010000, // 65 to 69
	0b10110000100, 0b10011010000, 0b10011000010, 0b10000110100, 0b10000110010, // 70 to 74
	0b11000010010, 0b11001010000, 0b11110111010, 0b11000010100, 0b10001111010, // 75 to 79
	0b10100111100, 0b10010111100, 0b10010011110, 0b10111100100, 0b10011110100, // 80 to 84
	0b10011110010, 0b11110100100, 0b11110010100, 0b11110010010, 0b11011011110, // 85 to 89
	0b11011110110, 0b11110110110, 0b10101111000, 0b10100011110, 0b10001011110, // 90 to 94
	0b10111101000, 0b10111100010, 0b11110101000, 0b11110100010, 0b10111011110, // 95 to 99
	0b10111101110, 0b11101011110, 0b11110101110, 0b11010000100, 0b11010010000, // 100 to 104
	0b11010011100, // 105
}

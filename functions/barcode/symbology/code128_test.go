package symbology

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/boombuler/barcode"
)

// read decodes the modules of a Code 128 symbol, with the standard's rules and not with the encoder's code.
func read(code barcode.Barcode) (text string, symbols []int, err error) {
	width := code.Bounds().Dx()
	if (width-2)%11 != 0 {
		return "", nil, fmt.Errorf("%d modules", width)
	}
	for x := 0; x+13 < width; x += 11 {
		widths := ""
		for i, first := 0, 0; i < 11; first = i {
			for i < 11 && dark(code, x+i, 0) == (len(widths)%2 == 0) {
				i++
			}
			widths += fmt.Sprint(i - first)
		}
		symbol := slices.Index(regexp.MustCompile(`.{6}`).FindAllString(code128Widths, -1), widths)
		if symbol < 0 {
			return "", nil, fmt.Errorf("no symbol character %s", widths)
		}
		symbols = append(symbols, symbol)
	}
	check := symbols[0]
	for i, symbol := range symbols[:len(symbols)-1] {
		check += i * symbol
	}
	if last := symbols[len(symbols)-1]; check%103 != last {
		return "", nil, fmt.Errorf("check %d, want %d", last, check%103)
	}
	symbols = symbols[:len(symbols)-1]
	return textOf(symbols), symbols, nil
}

// textOf returns the text that symbol characters encode.
func textOf(symbols []int) string {
	var text []byte
	set, shifted := "ABC"[symbols[0]-103], false
	for _, symbol := range symbols[1:] {
		now := set
		if shifted {
			now = 'A' + 'B' - set
		}
		shifted = false
		switch {
		case now == 'C' && symbol < 100:
			text = fmt.Appendf(text, "%02d", symbol)
		case symbol == 98 && set != 'C':
			shifted = true
		case symbol == 99 && set != 'C':
			set = 'C'
		case symbol == 100 && set != 'B':
			set = 'B'
		case symbol == 101 && set != 'A':
			set = 'A'
		case symbol < 64, now == 'B' && symbol < 96:
			text = append(text, byte(symbol+32))
		case now == 'A' && symbol < 96:
			text = append(text, byte(symbol-64))
		default:
			panic(fmt.Sprint("symbol character ", symbol, " in set ", string(set)))
		}
	}
	return string(text)
}

// reachable reports by trying everything whether limit symbol characters after the start can encode data[at:].
func reachable(data string, at int, set byte, limit int) bool {
	if at == len(data) {
		return true
	}
	if limit == 0 {
		return false
	}
	in := func(set byte) int { // characters that one symbol character of the set encodes
		c := data[at]
		digit := func(i int) bool { return i < len(data) && data[i] >= '0' && data[i] <= '9' }
		switch {
		case set == 'A' && c < 96, set == 'B' && c >= 32:
			return 1
		case set == 'C' && digit(at) && digit(at+1):
			return 2
		}
		return 0
	}
	if n := in(set); n > 0 && reachable(data, at+n, set, limit-1) {
		return true
	}
	if set != 'C' && limit >= 2 && in('A'+'B'-set) == 1 && reachable(data, at+1, set, limit-2) {
		return true
	}
	for _, other := range []byte("ABC") {
		if other != set && reachable(data, at, other, limit-1) {
			return true
		}
	}
	return false
}

func canSay(data string, limit int) bool {
	return reachable(data, 0, 'A', limit) || reachable(data, 0, 'B', limit) || reachable(data, 0, 'C', limit)
}

// docs/decisions/pictures.md#code-128: the shortest symbol there is, shown by exhaustive search over all strings of up
// to 5 characters. The alphabet has the sets' classes with their limits: only A, only B, A and B, digits.
func TestCode128IsShortest(t *testing.T) {
	count := 0
	var try func(data string)
	try = func(data string) {
		if data != "" {
			count++
			text, symbols, err := read(encode(t, "C128", data))
			if err != nil || text != data {
				t.Fatalf("%q is read as %q (%v)", data, text, err)
			}
			n := len(symbols) - 1
			if !canSay(data, n) || canSay(data, n-1) {
				t.Fatalf("%q needs %d symbol characters: %v", data, n, symbols)
			}
		}
		if len(data) < 5 {
			for _, c := range "\x01`_19" {
				try(data + string(c))
			}
		}
	}
	try("")
	if want := 5 + 25 + 125 + 625 + 3125; count != want {
		t.Errorf("%d strings, want %d", count, want)
	}
	// Longer ones, where runs of digits and shifts weigh against each other.
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		data := ""
		for range 6 + r.IntN(3) {
			data += string("\x01`_1234"[r.IntN(7)])
		}
		_, symbols, err := read(encode(t, "C128", data))
		if n := len(symbols) - 1; err != nil || !canSay(data, n) || canSay(data, n-1) {
			t.Fatalf("%q needs %v (%v)", data, symbols, err)
		}
	}
}

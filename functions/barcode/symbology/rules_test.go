package symbology

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"svcapi/test/must"
)

// docs/decisions/pictures.md#drawn-first: 400 where the renderer rejects the data for the type. The message names the
// type, the rule and the offending character with its position or the expected check digit.
func TestRejections(t *testing.T) {
	for _, c := range []struct{ name, data, message string }{
		{"C128", "", "C128: takes ASCII characters 0 to 127 only; the data is empty"},
		{"C128", "naïve", "C128: takes ASCII characters 0 to 127 only; found 'ï' at position 3"},
		{"C128", "ab\u00f1", "C128: takes ASCII characters 0 to 127 only; found 'ñ' at position 3"},
		{"C128", "日本", "C128: takes ASCII characters 0 to 127 only; found '日' at position 1"},
		{"C128A", "ABc", "C128A: takes ASCII characters 0 to 95 only; found 'c' at position 3"},
		{"C128A", "é", "C128A: takes ASCII characters 0 to 95 only; found 'é' at position 1"},
		{"C128B", "a\tb", "C128B: takes ASCII characters 32 to 127 only; found '\\t' at position 2"},
		{"C128B", "né", "C128B: takes ASCII characters 32 to 127 only; found 'é' at position 2"},
		{"C128C", "12a4", "C128C: takes digits only; found 'a' at position 3"},
		{"C128C", "123", "C128C: takes an even count of digits; found 3"},
		{"C128C", "", "C128C: takes digits only; the data is empty"},
		{"EAN13", "12345678901x", "EAN13: takes digits only; found 'x' at position 12"},
		{"EAN13", "40063813339", "EAN13: takes 12 digits, or 13 with the check digit; found 11"},
		{"EAN13", "40063813339311", "EAN13: takes 12 digits, or 13 with the check digit; found 14"},
		{"EAN13", "4006381333932", "EAN13: the check digit must be 1; found 2"},
		{"EAN13", "٤٠٠٦٣٨١٣٣٣٩٣", "EAN13: takes digits only; found '٤' at position 1"},
		{"EAN8", "735135", "EAN8: takes 7 digits, or 8 with the check digit; found 6"},
		{"EAN8", "73513538", "EAN8: the check digit must be 7; found 8"},
		{"UPCA", "0360002914", "UPCA: takes 11 digits, or 12 with the check digit; found 10"},
		{"UPCA", "036000291453", "UPCA: the check digit must be 2; found 3"},
		{"UPCE", "12345", "UPCE: takes 6, 7, 8, 11 or 12 digits; found 5"},
		{"UPCE", "123456789", "UPCE: takes 6, 7, 8, 11 or 12 digits; found 9"},
		{"UPCE", "12345-", "UPCE: takes digits only; found '-' at position 6"},
		{"UPCE", "2654321", "UPCE: the number system (first digit) must be 0 or 1; found 2"},
		{"UPCE", "06543218", "UPCE: the check digit must be 7; found 8"},
		{"UPCE", "065100004328", "UPCE: the check digit must be 7; found 8"},
		{"UPCE", "120003", "UPCE: where the sixth digit is 3, the third must be 3 to 9; found 0"},
		{"UPCE", "122003", "UPCE: where the sixth digit is 3, the third must be 3 to 9; found 2"},
		{"UPCE", "123004", "UPCE: where the sixth digit is 4, the fourth must be 1 to 9; found 0"},
		{"UPCE", "123405", "UPCE: where the sixth digit is 5, the fifth must be 1 to 9; found 0"},
		{"UPCE", "123409", "UPCE: where the sixth digit is 9, the fifth must be 1 to 9; found 0"},
		{"UPCE", "21234567890", "UPCE: only a UPC-A of number system 0 or 1 compresses; found 2"},
		{"UPCE", "01234567890", "UPCE: the UPC-A has too few zeros in the right places to compress"},
		{"C39", "Abc", "C39: takes 0-9, A-Z, - . $ / + % and space only; found 'b' at position 2"},
		{"C39", "*A*", "C39: takes 0-9, A-Z, - . $ / + % and space only; found '*' at position 1"},
		{"C39+", "A_B", "C39+: takes 0-9, A-Z, - . $ / + % and space only; found '_' at position 2"},
		{"I25", "12 4", "I25: takes digits only; found ' ' at position 3"},
		{"ITF14", "154001412887", "ITF14: takes 13 digits, or 14 with the check digit; found 12"},
		{"ITF14", "15400141288764", "ITF14: the check digit must be 3; found 4"},
		{"MSI", "12-3", "MSI: takes digits only; found '-' at position 3"},
		{"POSTNET", "1234", "POSTNET: takes 5, 9 or 11 digits, not counting - and space; found 4"},
		{"POSTNET", "- -", "POSTNET: takes 5, 9 or 11 digits, not counting - and space; found 0"},
		{"POSTNET", "12345-678", "POSTNET: takes 5, 9 or 11 digits, not counting - and space; found 8"},
		{"POSTNET", "1234O", "POSTNET: takes digits, - and space only; found 'O' at position 5"},
	} {
		kind, _ := Lookup(c.name)
		_, err := kind.Encode(c.data)
		if err == nil || err.Error() != c.message {
			t.Errorf("%s %q: %v, want %s", c.name, c.data, err, c.message)
		}
	}
}

// Every wrong check digit is rejected, and the right check digit is added (docs/decisions/pictures.md#ean-upc).
func TestCheckDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, length := range map[string]int{"EAN13": 13, "EAN8": 8, "UPCA": 12, "ITF14": 14} {
		kind, _ := Lookup(name)
		for range 100 {
			data := fmt.Sprintf("%013d", r.Int64N(1e13))[:length-1]
			accepted := ""
			for check := '0'; check <= '9'; check++ {
				if _, err := kind.Encode(data + string(check)); err == nil {
					accepted += data + string(check)
				}
			}
			if content := encode(t, name, data).Text; accepted != content {
				t.Errorf("%s %s: accepted %q, added %q", name, data, accepted, content)
			}
		}
	}
}

// Each UPC-E encodes one UPC-A and each of these UPC-A gives its UPC-E, over all of them.
func TestUPCEIsOneToOne(t *testing.T) {
	for n := range 1_000_000 {
		six := fmt.Sprintf("%06d", n)
		full, err := expandUPCE('0', six)
		if err != nil {
			continue
		}
		if back, err := compressUPCA(full + "0"); err != nil || back != "0"+six {
			t.Fatalf("%s encodes %s, which compresses to %s (%v)", six, full, back, err)
		}
	}
}

// No data breaks an encoder, and a rejection names its type.
func FuzzEncode(f *testing.F) {
	for i := range types {
		f.Add(uint8(i), "1234567")
		f.Add(uint8(i), "12345-6789")
		f.Add(uint8(i), "A\x00é*")
	}
	f.Fuzz(func(t *testing.T, number uint8, data string) {
		kind := &types[int(number)%len(types)]
		code, err := kind.Encode(data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), kind.Name+": ") || !utf8.ValidString(err.Error()) {
				t.Fatalf("%s %q: %v", kind.Name, data, err)
			}
			return
		}
		size := code.Size
		if !code.Dark(0, 0) || !code.Dark(size.X-1, size.Y-1) {
			t.Fatalf("%s %q does not begin and end with a bar", kind.Name, data)
		}
		if len(data) <= 80 && size.X > 35+11*3*80 {
			t.Fatalf("%s %q is %d modules wide", kind.Name, data, size.X)
		}
	})
}

// docs/decisions/pictures.md#barcode-text: EAN and UPC in the groups of their standard, all other types as one text. No
// label overlaps another, and all are within the picture.
func TestLabels(t *testing.T) {
	for _, c := range []struct{ kind, data, want string }{
		{"EAN13", "590123412345", "[5 901234 123457]"},
		{"EAN8", "1234567", "[1234 5670]"},
		{"UPCA", "03600029145", "[0 36000 29145 2]"},
		{"UPCE", "123456", "[0 123456 5]"},
		{"UPCE", "1123456", "[1 123456 2]"},
		{"C128", "Ab 1\x00\t\x7f", "[Ab 1]"},
		{"C128A", "\x00", "[]"},
		{"C128B", "Hello", "[Hello]"},
		{"C128C", "0123", "[0123]"},
		{"C39", "A-1", "[A-1]"},
		{"C39+", "A-1", "[A-1]"},
		{"I25", "123", "[0123]"},
		{"ITF14", "1540014128876", "[15400141288763]"},
		{"MSI", "12", "[12]"},
		{"POSTNET", "12345-6789", "[12345-6789]"},
	} {
		kind, _ := Lookup(c.kind)
		code, err := kind.Encode(c.data)
		must.Succeed(t, err)
		for quiet, margins := range map[bool][2]int{false: {}, true: {kind.QuietLeft, kind.QuietRight}} {
			var texts []string
			end := -margins[0]
			for _, l := range kind.Labels(code, quiet) {
				texts = append(texts, l.Text)
				if l.From < end || l.To <= l.From {
					t.Errorf("%s %q: %+v begins before %d", c.kind, c.data, l, end)
				}
				end = l.To
			}
			if got := fmt.Sprint(texts); got != c.want || end > code.Size.X+margins[1] {
				t.Errorf("%s %q: %s up to %d, want %s", c.kind, c.data, got, end, c.want)
			}
		}
	}
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

// symbolCharacters returns the number of symbol characters between start and check. TestBarcodesReadBack reads symbols.
func symbolCharacters(t *testing.T, data string) int {
	t.Helper()
	return (encode(t, "C128", data).Size.X - 35) / 11
}

// docs/decisions/pictures.md#code-128: the shortest symbol there is, shown by exhaustive search over all strings of up
// to 5 characters. The alphabet has the sets' classes with their limits: only A, only B, A and B, digits.
func TestCode128IsShortest(t *testing.T) {
	count := 0
	var try func(data string)
	try = func(data string) {
		if data != "" {
			count++
			if n := symbolCharacters(t, data); !canSay(data, n) || canSay(data, n-1) {
				t.Fatalf("%q has %d symbol characters", data, n)
			}
		}
		if len(data) < 5 {
			for _, c := range "\x1f`_19" {
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
			data += string("\x1f`_1234"[r.IntN(7)])
		}
		if n := symbolCharacters(t, data); !canSay(data, n) || canSay(data, n-1) {
			t.Fatalf("%q has %d symbol characters", data, n)
		}
	}
}

package symbology

import (
	"math/rand/v2"
	"testing"
)

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
	return (encode(t, "C128", data).Bounds().Dx() - 35) / 11
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

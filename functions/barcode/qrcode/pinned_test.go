package qrcode

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// A change of the encoder changes no symbol: segments, version, mask and modules of a wide corpus have the digests of
// testdata/symbols.json, which an earlier, slower encoder wrote.
func TestSymbolsArePinned(t *testing.T) {
	file, err := os.ReadFile("testdata/symbols.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(file, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	digest := func(name string, write func(hash.Hash)) {
		sum := sha256.New()
		write(sum)
		if got[name] = fmt.Sprintf("%x", sum.Sum(nil)[:8]); got[name] != want[name] {
			t.Errorf("%s: digest %s, want %s", name, got[name], want[name])
		}
	}

	for _, kind := range kinds() {
		digest("split "+kind.name, func(sum hash.Hash) {
			for n := range 3000 {
				data := kind.text(1 + n%60)
				for _, version := range []int{1, 10, 40} {
					segments, bits := split(runsOf(data), version)
					fmt.Fprintln(sum, segments, bits)
				}
			}
		})
		for level := L; level <= H; level++ {
			digest(fmt.Sprintf("symbols %s %s", kind.name, level), func(sum hash.Hash) {
				for n := 1; n <= 1300; n += 1 + n/12 {
					pin(sum, kind.text(n), level)
				}
			})
		}
	}
	// The longest text of each version and level, and the shortest that needs the next version.
	for m, text := range map[mode]string{numeric: "31415926", alphanumeric: "QR $%*+-./:7", byteMode: "abc d\xff\x00"} {
		for level := L; level <= H; level++ {
			digest(fmt.Sprintf("boundaries %d %s", m, level), func(sum hash.Hash) {
				for version := 1; version <= maxVersion; version++ {
					n := 0
					for 4+lengthBits[m][class(version)]+textBits(m, n+1) <= 8*dataBytes(version, level) {
						n++
					}
					data := strings.Repeat(text, n/len(text)+1)
					pin(sum, data[:n], level)
					if version < maxVersion {
						pin(sum, data[:n+1], level)
					}
				}
			})
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d digests, want %d", len(got), len(want))
	}
}

// textKind is a source of texts of n bytes.
type textKind struct {
	name string
	text func(n int) string
}

// kinds returns sources of texts in which all modes occur, alone and next to one another.
func kinds() []textKind {
	r := rand.NewPCG(18004, 2)
	pick := func(set string) string { i := r.Uint64() % uint64(len(set)); return set[i : i+1] }
	of := func(sets ...string) func(n int) string {
		return func(n int) string {
			data := ""
			for len(data) < n {
				set := sets[r.Uint64()%uint64(len(sets))]
				for range min(n-len(data), 1+int(r.Uint64()%19)) {
					data += pick(set)
				}
			}
			return data
		}
	}
	const digits, letters, bytes = "0123456789", alphanumericSet, "abcdefgh;\x00\xc3\xa9\xff"
	return []textKind{
		{"digits", of(digits)}, {"letters", of(letters)}, {"bytes", of(bytes)},
		{"digits and letters", of(digits, letters)}, {"digits and bytes", of(digits, bytes)},
		{"letters and bytes", of(letters, bytes)}, {"mixed", of(digits, letters, bytes)},
		{"repeated", func(n int) string { return strings.Repeat(pick(digits+letters+bytes), n) }},
	}
}

// pin writes the modules of the symbol for data; data that does not fit leaves the error.
func pin(sum hash.Hash, data string, level Level) {
	code, err := Encode(data, level)
	fmt.Fprintln(sum, len(data), err)
	if err != nil {
		return
	}
	for y := range code.modules.size {
		sum.Write(line(code.modules, y))
	}
}

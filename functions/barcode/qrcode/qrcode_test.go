package qrcode

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"svcapi/test/must"
)

// The modules of all versions and levels, in every mode and under every mask, are those that two independent
// encoders draw.
func TestVectors(t *testing.T) {
	file, err := os.Open("../testdata/vectors.jsonl")
	must.Succeed(t, err)
	defer file.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var v struct {
			Type, Repeat, Level, SHA256 string
			Length, Version, Mask       int
			Sources                     []string
		}
		must.Succeed(t, json.Unmarshal(lines.Bytes(), &v))
		if v.Type != "QR" {
			continue
		}
		name := fmt.Sprint(v.Version, v.Level)
		seen[name] = true
		data := strings.Repeat(v.Repeat, v.Length/len(v.Repeat)+1)[:v.Length]
		level := strings.Index(levels, v.Level)
		if version, _ := smallest(data, level); version > v.Version {
			t.Errorf("%s: %d characters need version %d", name, v.Length, version)
			continue
		}
		segments, _ := split(runsOf(data), v.Version)
		codewords := protect(pack(data, segments, v.Version, level), v.Version, level)
		hash := sha256.New()
		symbol := newGrid(sizeOf(v.Version))
		newCanvas(codewords, v.Version).masked(level, v.Mask, symbol)
		for y := range symbol.size {
			hash.Write(line(symbol, y))
		}
		if got := fmt.Sprintf("%x", hash.Sum(nil)); got != v.SHA256 {
			t.Errorf("%s mask %d, %d of %q: not as %s draw it", name, v.Mask, v.Length, v.Repeat,
				strings.Join(v.Sources, " and "))
		}
	}
	if len(seen) != 160 || lines.Err() != nil {
		t.Errorf("%d combinations of version and level, want 160 (%v)", len(seen), lines.Err())
	}
}

// line writes a row as the vectors do.
func line(g grid, y int) []byte {
	text := make([]byte, g.size+1)
	for x := range g.size {
		text[x] = '0'
		if g.get(x, y) {
			text[x] = '1'
		}
	}
	text[g.size] = '\n'
	return text
}

// ISO/IEC 18004, table 7: the capacity of the largest symbols. One character more is an error.
func TestCapacity(t *testing.T) {
	for _, c := range []struct {
		level                        string
		digits, alphanumerics, bytes int
	}{{"L", 7089, 4296, 2953}, {"M", 5596, 3391, 2331}, {"Q", 3993, 2420, 1663}, {"H", 3057, 1852, 1273}} {
		for text, most := range map[string]int{"7": c.digits, "Q": c.alphanumerics, "q": c.bytes} {
			if code, err := Encode(strings.Repeat(text, most), c.level); err != nil || code.Size.X != 177 {
				t.Errorf("%d of %q at %s: %v", most, text, c.level, err)
			}
			if _, err := Encode(strings.Repeat(text, most+1), c.level); err == nil {
				t.Errorf("%d of %q fit %s", most+1, text, c.level)
			}
		}
	}
}

// docs/decisions/pictures.md#qr-codes: data that does not fit the level is an error that names what would.
func TestTooMuch(t *testing.T) {
	for _, c := range []struct {
		bytes   int
		level   string
		message string
	}{
		{1274, "H", "1274 bytes are too much for error correction H, which holds 1273 bytes, 1852 capital letters or 3057 " +
			"digits; error correction Q holds them"},
		{2000, "H", "2000 bytes are too much for error correction H, which holds 1273 bytes, 1852 capital letters or 3057 " +
			"digits; error correction M holds them"},
		{2953, "M", "2953 bytes are too much for error correction M, which holds 2331 bytes, 3391 capital letters or 5596 " +
			"digits; error correction L holds them"},
		{2954, "L", "2954 bytes are too much for error correction L, which holds 2953 bytes, 4296 capital letters or 7089 " +
			"digits; no level holds them"},
	} {
		_, err := Encode(strings.Repeat("x", c.bytes), c.level)
		if err == nil || err.Error() != c.message {
			t.Errorf("%d bytes at %s: %v\nwant %s", c.bytes, c.level, err, c.message)
		}
	}
}

// No way of splitting a text into segments needs fewer bits: all ways are tried.
func TestSplitIsShortest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, version := range []int{1, 10, 40} {
		for range 2000 {
			data := make([]byte, 1+r.IntN(40))
			for i := range data {
				data[i] = "0123456789ABCab+"[r.IntN(16)]
				if i > 0 && r.IntN(3) > 0 { // runs
					data[i] = data[i-1]
				}
			}
			segments, bits := split(runsOf(string(data)), version)
			if want := fewestBits(string(data), version, map[string]int{}); bits != want {
				t.Fatalf("%q in version %d: %v needs %d bits, want %d", data, version, segments, bits, want)
			}
			length := 0
			for _, s := range segments {
				for _, c := range data[length : length+s.length] {
					if s.mode < narrowest(c) {
						t.Fatalf("%q: %v has %q in mode %d", data, segments, c, s.mode)
					}
				}
				length += s.length
			}
			if length != len(data) {
				t.Fatalf("%q: %v has %d characters", data, segments, length)
			}
		}
	}
}

func fewestBits(data string, version int, known map[string]int) int {
	if data == "" {
		return 0
	}
	if bits, ok := known[data]; ok {
		return bits
	}
	fewest := 1 << 30
	for m := range modes {
		for n := 1; n <= len(data) && m >= narrowest(data[n-1]); n++ {
			bits := 4 + lengthBits[m][class(version)] + textBits(m, n) + fewestBits(data[n:], version, known)
			fewest = min(fewest, bits)
		}
	}
	known[data] = fewest
	return fewest
}

// ISO/IEC 18004, 7.8.3: the penalty, counted here module by module.
func TestPenalty(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, version := range []int{1, 2, 7, 14, 40} {
		size := sizeOf(version)
		for range 10 {
			g, scratch := newGrid(size), newGrid(size)
			repeated := r.IntN(2) == 0
			for y := range size {
				for x := range size {
					// Runs are likelier than in noise, so that every rule is met.
					dark := r.IntN(2) == 0
					if x > 0 && r.IntN(3) > 0 {
						dark = g.get(x-1, y)
					}
					if repeated && y > 3 && y < 8 {
						dark = g.get(x, 3)
					}
					g.set(x, y, dark)
				}
			}
			for x, dark := range "10111010000" {
				g.set(x, 0, dark == '1')
				g.set(size-11+x, size-1, dark == '1')
			}
			if got, want := penalty(g, scratch), plainPenalty(g); got != want {
				t.Errorf("version %d: penalty %d, want %d", version, got, want)
			}
		}
	}
}

func plainPenalty(g grid) int {
	size := g.size
	sum, dark := 0, 0
	for _, at := range []func(i, j int) bool{
		g.get,
		func(i, j int) bool { return g.get(j, i) },
	} {
		for i := range size {
			text, length := "", 0
			for j := range size {
				if j > 0 && at(i, j) == at(i, j-1) {
					length++
				} else {
					length = 1
				}
				if length == 5 {
					sum += 3
				} else if length > 5 {
					sum++
				}
				text += map[bool]string{true: "1", false: "0"}[at(i, j)]
			}
			for j := 0; j+11 <= size; j++ {
				if part := text[j : j+11]; part == "10111010000" || part == "00001011101" {
					sum += 40
				}
			}
		}
	}
	for y := range size {
		for x := range size {
			if g.get(x, y) {
				dark++
			}
			if dark := g.get(x, y); x > 0 && y > 0 && dark == g.get(x-1, y) && dark == g.get(x, y-1) && dark == g.get(x-1, y-1) {
				sum += 3
			}
		}
	}
	for percent := 5; percent <= 50; percent += 5 {
		if 100*dark <= (50-percent)*size*size || 100*dark >= (50+percent)*size*size {
			sum += 10
		}
	}
	return sum
}

// The mask that is chosen is the first with the lowest penalty.
func TestBestMask(t *testing.T) {
	level := strings.Index(levels, "M")
	for n := range 300 {
		data := strings.Repeat("wörld ", max(0, n%60-20)) + fmt.Sprint(n)
		version, segments := smallest(data, level)
		c := newCanvas(protect(pack(data, segments, version, level), version, level), version)
		lowest, want := math.MaxInt, newGrid(c.size)
		for mask := range 8 {
			other := newGrid(c.size)
			c.masked(level, mask, other)
			if p := plainPenalty(other); p < lowest {
				lowest, want = p, other
			}
		}
		if !slices.Equal(c.bestMask(level).words, want.words) {
			t.Errorf("%q: another mask than the first with the penalty %d", data, lowest)
		}
	}
}

// Any text within the capacity becomes a symbol with three finders.
func FuzzEncode(f *testing.F) {
	f.Add("+94771234567", uint8(0))
	f.Add("Zoë 日本 0123456789", uint8(3))
	f.Fuzz(func(t *testing.T, data string, level uint8) {
		code, err := Encode(data, levels[level%4:][:1])
		if err != nil {
			if len(data) <= 1273 {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		last := code.Size.X - 1
		for _, at := range [][2]int{{3, 3}, {last - 3, 3}, {3, last - 3}} {
			if !code.Dark(at[0], at[1]) {
				t.Fatalf("%q: no finder at %v", data, at)
			}
		}
	})
}

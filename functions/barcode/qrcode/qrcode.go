// Package qrcode draws QR codes (ISO/IEC 18004, model 2, versions 1 to 40).
//
// boombuler's encoder is not used here: its numeric mode takes a sign for a digit ("+94771234567" is read back as
// "094771234567"), it never mixes modes, and it needs 0.8 ms for a small symbol and 40 ms for the largest.
package qrcode

import (
	_ "embed" // blocks.txt
	"fmt"
	"image"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/boombuler/barcode/utils"

	"svcapi/functions/barcode/symbology"
)

// levels are the levels of error correction in the order of the standard's tables, where each has its index. They
// recover about 7, 15, 25 and 30 % of the symbol.
const levels = "LMQH"

// Encode returns the smallest symbol for data, which is split into numeric, alphanumeric and byte segments such that
// the fewest bits are needed. Bytes are written as they are: readers recognise UTF-8, and the header that would
// announce it (ECI) is not read by all of them. The error correction is L, M, Q or H.
//
// The error is a client message: data does not fit the level, and the message names what would.
func Encode(data, correction string) (symbology.Symbol, error) {
	level := strings.Index(levels, correction)
	version, segments := smallest(data, level)
	if version == 0 {
		return symbology.Symbol{}, tooMuch(data, level)
	}
	codewords := protect(pack(data, segments, version, level), version, level)
	modules := newCanvas(codewords, version).bestMask(level)
	return symbology.Symbol{Size: image.Pt(modules.size, modules.size), Text: data, Dark: modules.get}, nil
}

// Fits reports whether the largest symbol holds data at the lowest error correction.
func Fits(data string) bool {
	most := 8 * dataBytes(maxVersion, 0)
	if len(data) > longest(numeric, most) { // whatever its characters
		return false
	}
	_, bits := split(runsOf(data), maxVersion)
	return bits <= most
}

// smallest returns the smallest version that holds data, or 0, and the segments of data in that version.
func smallest(data string, level int) (version int, segments []segment) {
	runs, bits := runsOf(data), 0
	for version = 1; version <= maxVersion; version++ {
		if version == 1 || class(version) != class(version-1) {
			segments, bits = split(runs, version)
		}
		if bits <= 8*dataBytes(version, level) {
			return version, segments
		}
	}
	return 0, nil
}

// tooMuch returns the client message with the level's capacity, and with a level that holds data if there is one.
func tooMuch(data string, level int) error {
	bits := 8 * dataBytes(maxVersion, level)
	most := fmt.Sprintf("%d bytes, %d capital letters or %d digits",
		longest(byteMode, bits), longest(alphanumeric, bits), longest(numeric, bits))
	_, need := split(runsOf(data), maxVersion)
	for lower := level - 1; lower >= 0; lower-- {
		if need <= 8*dataBytes(maxVersion, lower) {
			return fmt.Errorf("%d bytes are too much for error correction %c, which holds %s; error correction %c holds them",
				len(data), levels[level], most, levels[lower])
		}
	}
	return fmt.Errorf("%d bytes are too much for error correction %c, which holds %s; no level holds them",
		len(data), levels[level], most)
}

// mode is an encoding of characters. Each mode has all characters of the modes before it.
type mode uint8

const (
	numeric mode = iota
	alphanumeric
	byteMode
	modes
)

// alphanumericSet has the characters of the alphanumeric mode by value.
const alphanumericSet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"

// Per mode: its indicator, the bits of a segment's length by version class, and the bits of a group
// of characters by how many are left for it (a group has 3 digits, 2 alphanumeric characters or 1 byte).
var (
	indicators = [modes]int{1, 2, 4}
	lengthBits = [modes][3]int{{10, 12, 14}, {9, 11, 13}, {8, 16, 16}}
	groupBits  = [modes][4]int{{0, 4, 7, 10}, {0, 6, 11}, {0, 8}}
	groupSizes = [modes]int{3, 2, 1}
)

// class returns the index into lengthBits: 0 for versions 1 to 9, 1 for 10 to 26, 2 for 27 to 40.
func class(version int) int { return (version + 7) / 17 }

// narrowest returns the first mode that has the character.
func narrowest(c byte) mode {
	switch {
	case '0' <= c && c <= '9':
		return numeric
	case strings.IndexByte(alphanumericSet, c) >= 0:
		return alphanumeric
	}
	return byteMode
}

// textBits returns how many bits n characters need in mode m.
func textBits(m mode, n int) int {
	size := groupSizes[m]
	return n/size*groupBits[m][size] + groupBits[m][n%size]
}

// longest returns how many characters of mode m fit the given bits in one segment of the largest symbol.
func longest(m mode, bits int) int {
	bits -= 4 + lengthBits[m][2]
	n := bits / groupBits[m][groupSizes[m]] * groupSizes[m]
	for textBits(m, n+1) <= bits {
		n++
	}
	return n
}

// segment is a stretch of the text in one mode.
type segment struct {
	mode   mode
	length int // in bytes
}

// run is a stretch of characters with the same narrowest mode. A cheapest segment never ends within a run: to move a
// character from a narrower mode to a wider one costs more than both modes' rounding can save.
type run struct {
	segment
	next [modes]mode // the mode after the run when the run is in a mode
}

func runsOf(data string) []run {
	var runs []run
	for i := range len(data) {
		m := narrowest(data[i])
		if i == 0 || runs[len(runs)-1].mode != m {
			runs = append(runs, run{segment: segment{mode: m}})
		}
		runs[len(runs)-1].length++
	}
	return runs
}

// split joins runs to the segments that need the fewest bits in the version's class, and returns the segments with
// their bits.
//
// The choice goes backwards: least[m] is the fewest sixths of a bit for the rest of the text when the rest begins in
// mode m, the header of that first segment not counted. In sixths, a digit (10 bits for 3) and an alphanumeric
// character (11 bits for 2) have integer costs. An incomplete last group needs less than a bit beyond that, which the
// rounding of a segment's sum to full bits adds.
func split(runs []run, version int) (segments []segment, bits int) {
	const never = 1 << 30
	sixths := [modes]int{20, 33, 48}
	var least, header [modes]int
	for m := range header {
		header[m] = 6 * (4 + lengthBits[m][class(version)])
	}
	for i := len(runs) - 1; i >= 0; i-- {
		r := &runs[i]
		here := [modes]int{never, never, never}
		for m := r.mode; m < modes; m++ {
			cost := least[m]
			r.next[m] = m
			for other := range modes {
				if switched := (least[other]+5)/6*6 + header[other]; switched < cost {
					cost, r.next[m] = switched, other
				}
			}
			here[m] = cost + r.length*sixths[m]
		}
		least = here
	}

	m := byteMode
	for other := range modes {
		if least[other]+header[other] < least[m]+header[m] {
			m = other
		}
	}
	for _, r := range runs {
		if last := len(segments) - 1; last >= 0 && segments[last].mode == m {
			segments[last].length += r.length
		} else {
			segments = append(segments, segment{m, r.length})
		}
		m = r.next[m]
	}
	for _, s := range segments {
		bits += 4 + lengthBits[s.mode][class(version)] + textBits(s.mode, s.length)
	}
	return segments, bits
}

// pack writes segments, terminator and padding into the symbol's data bytes (section 7.4).
func pack(data string, segments []segment, version, level int) []byte {
	bits, capacity := new(utils.BitList), 8*dataBytes(version, level)
	add := func(value, count int) { bits.AddBits(value, byte(count)) } //nolint:gosec // at most 16 bits
	for _, s := range segments {
		add(indicators[s.mode], 4)
		add(s.length, lengthBits[s.mode][class(version)])
		for text := range slices.Chunk([]byte(data[:s.length]), groupSizes[s.mode]) {
			add(group(s.mode, text), groupBits[s.mode][len(text)])
		}
		data = data[s.length:]
	}
	add(0, min(4, capacity-bits.Len()))
	add(0, -bits.Len()&7)
	for pad := 0xec; bits.Len() < capacity; pad ^= 0xec ^ 0x11 {
		add(pad, 8)
	}
	return bits.GetBytes()
}

// group returns the number that encodes a group of characters.
func group(m mode, text []byte) (value int) {
	for _, c := range text {
		digit := int(c)
		if m != byteMode {
			digit = strings.IndexByte(alphanumericSet, c)
		}
		value = value*[modes]int{10, 45, 256}[m] + digit
	}
	return value
}

const maxVersion = 40

//go:embed blocks.txt
var blocksText string

// blocks returns the rows of blocks.txt by version and level. The first call reads the text.
var blocks = sync.OnceValue(func() (rows [][4]struct{ ecc, count int }) {
	for line := range strings.Lines(blocksText) {
		if numbers := strings.Fields(line); numbers[0] != "#" {
			var row [4]struct{ ecc, count int }
			for level := range row {
				row[level].ecc, _ = strconv.Atoi(numbers[2*level])
				row[level].count, _ = strconv.Atoi(numbers[2*level+1])
			}
			rows = append(rows, row)
		}
	}
	return rows
})

// sizeOf returns the modules per side of a version.
func sizeOf(version int) int { return 17 + 4*version }

// totalBytes returns how many bytes a version holds, error correction included: all modules except finders with their
// separators, timing, alignment, format and version.
func totalBytes(version int) int {
	size := sizeOf(version)
	modules := size*size - 3*64 - 2*(size-16) - 31
	if n := alignmentsPerSide(version); n > 0 {
		// Three corners have no pattern; those on the timing lines share 5 modules with them.
		modules -= (n*n-3)*25 - (n-2)*2*5
	}
	if version >= 7 {
		modules -= 2 * 18
	}
	return modules / 8
}

// dataBytes returns how many bytes of a version remain for data.
func dataBytes(version, level int) int {
	row := blocks()[version-1][level]
	return totalBytes(version) - row.ecc*row.count
}

// protect splits data into blocks, adds error correction to each and interleaves them (section 7.6). The last
// blocks are one byte longer where the division has a remainder.
func protect(data []byte, version, level int) []byte {
	count, ecc := blocks()[version-1][level].count, blocks()[version-1][level].ecc
	short, long := len(data)/count, len(data)%count
	field := utils.NewGaloisField(0x11d, 256, 0) // x^8+x^4+x^3+x^2+1
	divisor, remainder := generator(field, ecc), make([]int, ecc)
	out := make([]byte, totalBytes(version))
	for block, start := 0, 0; block < count; block++ {
		length := short
		if block >= count-long {
			length++
		}
		text := data[start : start+length]
		start += length
		for i, b := range text[:short] {
			out[i*count+block] = b
		}
		if length > short {
			out[short*count+block-(count-long)] = text[short]
		}
		divide(field, text, divisor, remainder)
		for i, b := range remainder {
			out[len(data)+i*count+block] = byte(b) //nolint:gosec // an element of the field
		}
	}
	return out
}

// generator returns the logarithms of the coefficients of the product of (x - 2^i) for i below degree, without its
// leading 1, highest power first: no coefficient is 0 for the degrees in use (annex A).
func generator(field *utils.GaloisField, degree int) []int {
	product := utils.NewGFPoly(field, []int{1})
	for i := range degree {
		product = product.Multiply(utils.NewGFPoly(field, []int{1, field.ALogTbl[i]}))
	}
	logs := product.Coefficients[1:]
	for i, coefficient := range logs {
		logs[i] = field.LogTbl[coefficient]
	}
	return logs
}

// divide writes the remainder of data, shifted by the generator's degree, divided by the generator.
func divide(field *utils.GaloisField, data []byte, generator, remainder []int) {
	clear(remainder)
	for _, b := range data {
		factor := int(b) ^ remainder[0]
		copy(remainder, remainder[1:])
		remainder[len(remainder)-1] = 0
		if factor != 0 {
			for i, log := range generator {
				remainder[i] ^= field.ALogTbl[(field.LogTbl[factor]+log)%255]
			}
		}
	}
}

package qrcode

import (
	"slices"
	"strings"

	"github.com/boombuler/barcode/utils"
)

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
func pack(data string, segments []segment, version int, level Level) []byte {
	bits, capacity := new(utils.BitList), 8*dataBytes(version, level)
	for _, s := range segments {
		bits.AddBits(indicators[s.mode], 4)
		bits.AddBits(s.length, byte(lengthBits[s.mode][class(version)]))
		for text := range slices.Chunk([]byte(data[:s.length]), groupSizes[s.mode]) {
			bits.AddBits(group(s.mode, text), byte(groupBits[s.mode][len(text)]))
		}
		data = data[s.length:]
	}
	bits.AddBits(0, byte(min(4, capacity-bits.Len())))
	bits.AddBits(0, byte(-bits.Len()&7))
	for pad := 0xec; bits.Len() < capacity; pad ^= 0xec ^ 0x11 {
		bits.AddBits(pad, 8)
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

package draw

import (
	"bytes"
	"hash"
	"hash/adler32"
	"math/bits"
)

// rowDeflater writes rows of equal length as a zlib stream (RFC 1950) of one block with the fixed Huffman codes
// (RFC 1951, section 3.2.6). The caller passes how often a row repeats, so that the rowDeflater never searches.
type rowDeflater struct {
	out      []byte
	pending  uint64 // bits that are not yet a byte, first bit lowest
	count    int
	last     []byte // the row before
	checksum hash.Hash32
}

// newRowDeflater begins a stream at the end of out.
func newRowDeflater(out []byte) *rowDeflater {
	z := &rowDeflater{out: append(out, 0x78, 0x01), checksum: adler32.New()}
	z.bits(0b011, 3) // the last block, fixed codes
	return z
}

// add writes a row count times.
func (z *rowDeflater) add(row []byte, count int) {
	for range count {
		z.checksum.Write(row)
	}
	repeated := count
	if count > 0 && !bytes.Equal(row, z.last) {
		z.once(row)
		z.last = append(z.last[:0], row...)
		repeated--
	}
	z.copy(repeated*len(row), len(row))
}

// once writes a row without reference to the row before.
func (z *rowDeflater) once(row []byte) {
	for len(row) > 0 {
		same := 1
		for same < len(row) && row[same] == row[0] {
			same++
		}
		literals := same
		if same > 3 {
			literals = 1
		}
		for range literals {
			if b := uint(row[0]); b < 144 {
				z.code(0x30+b, 8)
			} else {
				z.code(0x190+b-144, 9)
			}
		}
		z.copy(same-literals, 1)
		row = row[same:]
	}
}

// close ends the stream and returns all that was written.
func (z *rowDeflater) close() []byte {
	z.bits(0, 7) // end of block
	z.bits(0, -z.count&7)
	return z.checksum.Sum(z.out)
}

// copy repeats length bytes from distance bytes back. The format has no copy of 1 or 2 bytes.
func (z *rowDeflater) copy(length, distance int) {
	for length > 0 {
		n := min(length, 258)
		if rest := length - n; rest == 1 || rest == 2 {
			n -= 3
		}
		z.match(n, distance)
		length -= n
	}
}

// match writes one copy of 3 to 258 bytes.
func (z *rowDeflater) match(length, distance int) {
	symbol, extra := prefix(length-3, 2)
	if length == 258 { // has a symbol of its own
		symbol, extra = 28, 0
	}
	if symbol < 23 {
		z.code(uint(symbol)+1, 7)
	} else {
		z.code(0xc0+uint(symbol)-23, 8)
	}
	z.bits(uint(length-3), extra)
	symbol, extra = prefix(distance-1, 1)
	z.code(uint(symbol), 5)
	z.bits(uint(distance-1), extra)
}

// prefix returns the symbol for the highest bits of a number, the leading 1 and as many as precision, and how many
// extra bits follow the symbol.
func prefix(number, precision int) (symbol, extra int) {
	extra = max(0, bits.Len(uint(number))-1-precision)
	return extra<<precision + number>>extra, extra
}

// code writes a Huffman code, whose first bit is its highest.
func (z *rowDeflater) code(value uint, count int) {
	z.bits(bits.Reverse(value)>>(bits.UintSize-count), count)
}

// bits writes the lowest count bits of a number, the lowest first.
func (z *rowDeflater) bits(value uint, count int) {
	z.pending |= uint64(value) & (1<<count - 1) << z.count
	for z.count += count; z.count >= 8; z.count -= 8 {
		z.out = append(z.out, byte(z.pending))
		z.pending >>= 8
	}
}

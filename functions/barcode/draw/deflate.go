package draw

import (
	"encoding/binary"
	"math/bits"
)

// rowDeflater writes rows of equal length as a zlib stream (RFC 1950) of one block with the fixed Huffman codes
// (RFC 1951, section 3.2.6). It knows what repeats, so it does not search.
type rowDeflater struct {
	out            []byte
	pending        uint64 // bits that are not yet a byte, first bit lowest
	count          int
	sum, sumOfSums uint32 // Adler-32
}

// newRowDeflater begins a stream at the end of out.
func newRowDeflater(out []byte) *rowDeflater {
	z := &rowDeflater{out: append(out, 0x78, 0x01), sum: 1}
	z.bits(0b011, 3) // the last block, fixed codes
	return z
}

// add writes a new row and its repetitions, count rows in all.
func (z *rowDeflater) add(row []byte, count int) {
	if count == 0 {
		return
	}
	for i := 0; i < len(row); {
		z.literal(row[i])
		same := 1
		for i+same < len(row) && row[i+same] == row[i] {
			same++
		}
		if same > 3 {
			z.copy(same-1, 1)
		} else {
			for range same - 1 {
				z.literal(row[i])
			}
		}
		i += same
	}
	z.copy((count-1)*len(row), len(row))
	z.checksum(row, count)
}

// again repeats the last row, which must be given, count times more.
func (z *rowDeflater) again(row []byte, count int) {
	z.copy(count*len(row), len(row))
	z.checksum(row, count)
}

// close ends the stream and returns all that was written.
func (z *rowDeflater) close() []byte {
	z.bits(0, 7) // end of block
	z.bits(0, -z.count&7)
	z.flush()
	return binary.BigEndian.AppendUint32(z.out, z.sumOfSums<<16|z.sum)
}

// checksum counts a row count times, without going through its bytes again.
func (z *rowDeflater) checksum(row []byte, count int) {
	const prime = 65521
	var sum, weighted uint32
	for _, b := range row {
		sum += uint32(b)
		weighted = (weighted + sum) % prime
	}
	length := uint32(len(row))
	for range count {
		z.sumOfSums = (z.sumOfSums + length*z.sum + weighted) % prime
		z.sum = (z.sum + sum) % prime
	}
}

func (z *rowDeflater) literal(b byte) {
	if b < 144 {
		z.code(0x30+uint(b), 8)
	} else {
		z.code(0x190+uint(b)-144, 9)
	}
}

// copy repeats length bytes from distance bytes back. A length of 1 or 2 cannot be written.
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
	symbol, extra := 285, 0
	l := length - 3
	switch {
	case length == 258:
	case l < 8:
		symbol = 257 + l
	default:
		extra = bits.Len(uint(l)) - 3
		symbol = 261 + 4*extra + l>>extra&3
	}
	if symbol < 280 {
		z.code(uint(symbol)-256, 7)
	} else {
		z.code(0xc0+uint(symbol)-280, 8)
	}
	z.bits(uint(l)&(1<<extra-1), extra)

	d := distance - 1
	symbol, extra = d, 0
	if d >= 4 {
		extra = bits.Len(uint(d)) - 2
		symbol = 2*extra + 2 + d>>extra&1
	}
	z.code(uint(symbol), 5)
	z.bits(uint(d)&(1<<extra-1), extra)
}

// code writes a Huffman code, whose first bit is its highest.
func (z *rowDeflater) code(value uint, count int) {
	z.bits(bits.Reverse(value)>>(bits.UintSize-count), count)
}

// bits writes a number, whose first bit is its lowest.
func (z *rowDeflater) bits(value uint, count int) {
	z.pending |= uint64(value) << z.count
	z.count += count
	if z.count >= 32 {
		z.flush()
	}
}

func (z *rowDeflater) flush() {
	for ; z.count >= 8; z.count -= 8 {
		z.out = append(z.out, byte(z.pending))
		z.pending >>= 8
	}
}

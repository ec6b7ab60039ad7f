package qrcode

import (
	"math"
	"math/bits"
)

// grid is a square of modules, kept in strips of 64 columns. Each row of a strip is one word whose lowest bit is the
// leftmost module, so that one operation on words treats 64 columns at once.
type grid struct {
	size  int
	words []uint64
}

func newGrid(size int) grid { return grid{size, make([]uint64, size*((size+63)/64))} }

func (g grid) strips() int { return (g.size + 63) / 64 }

// strip returns the rows of the strip whose first column is 64*k.
func (g grid) strip(k int) []uint64 { return g.words[k*g.size:][:g.size] }

// columns returns a word with a bit for each column of strip k that is left of the column limit.
func (g grid) columns(k, limit int) uint64 { return 1<<max(0, limit-64*k) - 1 }

func (g grid) get(x, y int) bool { return g.words[x/64*g.size+y]>>(x%64)&1 == 1 }

func (g grid) set(x, y int, dark bool) {
	word := &g.words[x/64*g.size+y]
	*word &^= 1 << (x % 64)
	if dark {
		*word |= 1 << (x % 64)
	}
}

// transpose writes the grid into out with rows and columns exchanged.
func (g grid) transpose(out grid) {
	for i := range g.strips() {
		for j := range g.strips() {
			var block [64]uint64
			copy(block[:], g.strip(i)[64*j:])
			transposeBlock(&block, min(64, g.size))
			copy(out.strip(j)[64*i:], block[:])
		}
	}
}

// transposeBlock exchanges rows and columns of the first size rows and columns. Each step swaps the upper right with
// the lower left quarter of all squares of one width, then halves the width.
func transposeBlock(block *[64]uint64, size int) {
	width := 1 << bits.Len(uint(size-1)) / 2
	for side := 2 * width; width > 0; width /= 2 {
		left := ^uint64(0) / (1<<width + 1) // the left half of each square
		for y := 0; y < side; y = (y + width + 1) &^ width {
			upper, lower := &block[y&63], &block[(y+width)&63]
			swap := (*upper>>width ^ *lower) & left
			*upper ^= swap << width
			*lower ^= swap
		}
	}
}

// canvas is a symbol being drawn: its modules, and which of them are not for data.
type canvas struct {
	grid
	functions grid
}

func (c *canvas) function(x, y int, dark bool) {
	c.set(x, y, dark)
	c.functions.set(x, y, true)
}

// newCanvas places function patterns and codewords (ISO/IEC 18004, section 7.7).
func newCanvas(codewords []byte, version int) *canvas {
	c := &canvas{newGrid(sizeOf(version)), newGrid(sizeOf(version))}
	c.patterns(version)
	c.codewords(codewords)
	return c
}

// bestMask returns the symbol under the mask with the lowest penalty, the first among equals (section 7.8).
func (c *canvas) bestMask(level int) grid {
	best, candidate, transposed := newGrid(c.size), newGrid(c.size), newGrid(c.size)
	lowest := math.MaxInt
	for mask := range masks {
		c.masked(level, mask, candidate)
		if p := penalty(candidate, transposed); p < lowest {
			lowest = p
			best, candidate = candidate, best
		}
	}
	return best
}

// patterns draws all modules that do not depend on data, and reserves the format information.
func (c *canvas) patterns(version int) {
	for i := range c.size {
		c.function(i, 6, i%2 == 0)
		c.function(6, i, i%2 == 0)
	}
	const finder, alignment = 0b01011, 0b101
	c.rings(3, 3, 4, finder)
	c.rings(c.size-4, 3, 4, finder)
	c.rings(3, c.size-4, 4, finder)
	centers := alignments(version)
	last := len(centers) - 1
	for i, x := range centers {
		for j, y := range centers {
			if i == 0 && j == 0 || i == 0 && j == last || i == last && j == 0 {
				continue // a finder is there
			}
			c.rings(x, y, 2, alignment)
		}
	}
	c.format(0)
	if version >= 7 {
		info := withRemainder(version, 12, 0x1f25)
		for i := range 18 {
			a, b := c.size-11+i%3, i/3
			c.function(a, b, info>>i&1 == 1)
			c.function(b, a, info>>i&1 == 1)
		}
	}
}

// rings draws square rings around a centre, without the parts outside the symbol. The bits of dark name the dark rings,
// from the innermost in bit 0. The outermost ring of a finder is its light separator.
func (c *canvas) rings(x, y, radius, dark int) {
	for i := max(0, x-radius); i <= min(x+radius, c.size-1); i++ {
		for j := max(0, y-radius); j <= min(y+radius, c.size-1); j++ {
			c.function(i, j, dark>>max(i-x, x-i, j-y, y-j)&1 == 1)
		}
	}
}

// alignments returns the centres of the alignment patterns in each direction (annex E): evenly spread from
// the last to the second, in even steps; the first is always 6.
func alignments(version int) []int {
	n := alignmentsPerSide(version)
	if n == 0 {
		return nil
	}
	step := (version*8 + n*3 + 5) / (n*4 - 4) * 2
	centers := make([]int, n)
	for i := range centers {
		centers[i] = sizeOf(version) - 7 - (n-1-i)*step
	}
	centers[0] = 6
	return centers
}

func alignmentsPerSide(version int) int {
	if version == 1 {
		return 0
	}
	return version/7 + 2
}

// withRemainder appends the remainder of the Bose-Chaudhuri-Hocquenghem code to value.
func withRemainder(value, degree, generator int) int {
	remainder := value
	for range degree {
		remainder = remainder<<1 ^ remainder>>(degree-1)*generator
	}
	return value<<degree | remainder
}

// format draws the 15 bits of level and mask twice, and the dark module (section 7.9).
func (c *canvas) format(info int) {
	for i, at := range [15]int{0, 1, 2, 3, 4, 5, 7, 8, 7, 5, 4, 3, 2, 1, 0} {
		dark := info>>i&1 == 1
		if i < 8 {
			c.function(8, at, dark)
			c.function(c.size-1-i, 8, dark)
		} else {
			c.function(at, 8, dark)
			c.function(8, c.size-15+i, dark)
		}
	}
	c.function(8, c.size-8, true)
}

// formatOf returns the bits that format draws. The standard numbers the levels L 1, M 0, Q 3, H 2.
func formatOf(level, mask int) int {
	return withRemainder((level^1)<<3|mask, 10, 0x537) ^ 0x5412
}

// codewords fills the free modules in columns of two, from the right, upwards and downwards in turn.
func (c *canvas) codewords(data []byte) {
	i := 0
	for right := c.size - 1; right > 0; right -= 2 {
		if right == 6 { // the timing line
			right--
		}
		upward := (right+1)&2 == 0
		for step := range c.size {
			y := step
			if upward {
				y = c.size - 1 - step
			}
			for x := right; x >= right-1; x-- {
				if !c.functions.get(x, y) && i < 8*len(data) {
					c.set(x, y, data[i/8]>>(7-i%8)&1 == 1)
					i++
				}
			}
		}
	}
}

// masks are the patterns of table 10. Each row repeats after six columns, the leftmost is the lowest bit; the rows
// repeat after the last. A test compares the patterns with the standard's formulas.
var masks = [8][]uint64{
	{0b010101, 0b101010},
	{0b111111, 0b000000},
	{0b001001},
	{0b001001, 0b100100, 0b010010},
	{0b000111, 0b000111, 0b111000, 0b111000},
	{0b111111, 0b000001, 0b001001, 0b010101, 0b001001, 0b000001},
	{0b111111, 0b000111, 0b011011, 0b010101, 0b101101, 0b110001},
	{0b010101, 0b111000, 0b110001, 0b101010, 0b000111, 0b001110},
}

// masked writes the symbol under a mask into out.
func (c *canvas) masked(level, mask int, out grid) {
	c.format(formatOf(level, mask))
	for k := range c.strips() {
		dark, functions, rows := c.strip(k), c.functions.strip(k), out.strip(k)
		for first, pattern := range masks[mask] {
			const everySixthBit = 0x1041041041041041
			flip := (pattern | pattern<<6) >> (64 * k % 6) & 0b111111 * everySixthBit & c.columns(k, c.size)
			for y := first; y < c.size; y += len(masks[mask]) {
				rows[y] = dark[y] ^ flip&^functions[y]
			}
		}
	}
}

// penalty returns how hard a symbol is to read (section 7.8.3). The grid transposed is scratch space of the same size.
func penalty(g, transposed grid) int {
	g.transpose(transposed)
	dark := 0
	for _, word := range g.words {
		dark += bits.OnesCount64(word)
	}
	all := g.size * g.size
	// 10 for each full 5 % away from half dark.
	return columnsPenalty(g) + columnsPenalty(transposed) + blocksPenalty(g) + 10*(max(20*dark-10*all, 10*all-20*dark)/all)
}

// columnsPenalty counts the columns' runs of five or more modules (3 and 1 for each further module) and their
// likenesses of a finder (40 for each 1:1:3:1:1 with four light modules on a side).
func columnsPenalty(g grid) int {
	sum := 0
	for k := range g.strips() {
		rows, inside := g.strip(k), g.columns(k, g.size)
		var same1, same2, same3, runs uint64 // same, one to three rows above, and where a run of five ended there
		for y := 1; y < len(rows); y++ {
			same := ^(rows[y] ^ rows[y-1]) & inside
			five := same & same1 & same2 & same3
			sum += bits.OnesCount64(five) + 2*bits.OnesCount64(five&^runs)
			same1, same2, same3, runs = same, same1, same2, five
		}
		for y := 7; y <= len(rows); y++ {
			r := rows[y-7 : y]
			finder := r[0] &^ r[1] & r[2] & r[3] & r[4] &^ r[5] & r[6]
			if finder != 0 && y >= 11 {
				r := rows[y-11 : y-7]
				sum += 40 * bits.OnesCount64(finder&^(r[0]|r[1]|r[2]|r[3]))
			}
			if finder != 0 && y+4 <= len(rows) {
				r := rows[y : y+4]
				sum += 40 * bits.OnesCount64(finder&^(r[0]|r[1]|r[2]|r[3]))
			}
		}
	}
	return sum
}

// blocksPenalty counts 3 for each square of two by two modules of one colour.
func blocksPenalty(g grid) int {
	blocks := 0
	for k := range g.strips() {
		rows, next, inside := g.strip(k), g.strip(min(k+1, g.strips()-1)), g.columns(k, g.size-1)
		var above, aboveRight uint64
		for y, module := range rows {
			right := module>>1 | next[y]<<63
			if y > 0 {
				blocks += bits.OnesCount64(inside &^ ((module ^ right) | (module ^ above) | (module ^ aboveRight)))
			}
			above, aboveRight = module, right
		}
	}
	return 3 * blocks
}

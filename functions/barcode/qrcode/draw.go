package qrcode

import "math/bits"

// row is one row of modules, the leftmost in bit 0; the largest symbol has 177.
type row [3]uint64

func (r row) get(x int) bool { return r[x/64]>>(x%64)&1 == 1 }

// shift moves the row n modules to the left, n below 64.
func (r row) shift(n int) row {
	return row{r[0]>>n | r[1]<<(64-n), r[1]>>n | r[2]<<(64-n), r[2] >> n}
}

func (r row) and(o row) row { return row{r[0] & o[0], r[1] & o[1], r[2] & o[2]} }
func (r row) or(o row) row  { return row{r[0] | o[0], r[1] | o[1], r[2] | o[2]} }
func (r row) xor(o row) row { return row{r[0] ^ o[0], r[1] ^ o[1], r[2] ^ o[2]} }
func (r row) not() row      { return row{^r[0], ^r[1], ^r[2]} }
func (r row) count() int {
	return bits.OnesCount64(r[0]) + bits.OnesCount64(r[1]) + bits.OnesCount64(r[2])
}

// first is a row whose leftmost n modules are dark.
func first(n int) row {
	var r row
	for i := range r {
		if left := n - 64*i; left > 0 {
			r[i] = ^uint64(0) >> max(0, 64-left)
		}
	}
	return r
}

// grid is the rows of a symbol, from the top.
type grid []row

func (g grid) set(x, y int, dark bool) {
	bit := uint64(1) << (x % 64)
	if dark {
		g[y][x/64] |= bit
	} else {
		g[y][x/64] &^= bit
	}
}

// canvas is a symbol being drawn: its modules, and which of them are not for data.
type canvas struct {
	size            int
	dark, functions grid
}

func (c *canvas) function(x, y int, dark bool) {
	c.dark.set(x, y, dark)
	c.functions.set(x, y, true)
}

// bestMask lets draw choose the mask; 0 to 7 fix it.
const bestMask = -1

// draw places function patterns and codewords and applies the mask with the lowest penalty, the first
// among equals (sections 7.7 and 7.8).
func draw(codewords []byte, version int, level Level, mask int) grid {
	size := sizeOf(version)
	c := &canvas{size, make(grid, size), make(grid, size)}
	c.patterns(version)
	c.codewords(codewords)

	masks := maskRows(size)
	if mask != bestMask {
		return c.masked(masks[mask], level, mask, make(grid, size))
	}
	best, candidate, turned := make(grid, size), make(grid, size), make(grid, size)
	lowest := -1
	for mask := range masks {
		c.masked(masks[mask], level, mask, candidate)
		if p := penalty(candidate, turned); lowest < 0 || p < lowest {
			lowest = p
			best, candidate = candidate, best
		}
	}
	return best
}

// patterns draws everything that does not depend on data, and keeps the place of the format information.
func (c *canvas) patterns(version int) {
	for i := range c.size {
		c.function(i, 6, i%2 == 0)
		c.function(6, i, i%2 == 0)
	}
	c.finder(3, 3)
	c.finder(c.size-4, 3)
	c.finder(3, c.size-4)
	centers := alignments(version)
	last := len(centers) - 1
	for i, x := range centers {
		for j, y := range centers {
			if i == 0 && j == 0 || i == 0 && j == last || i == last && j == 0 {
				continue // a finder is there
			}
			for dx := -2; dx <= 2; dx++ {
				for dy := -2; dy <= 2; dy++ {
					c.function(x+dx, y+dy, max(dx, -dx, dy, -dy) != 1)
				}
			}
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

// finder draws a finder pattern and its separator around a centre.
func (c *canvas) finder(x, y int) {
	for dx := -4; dx <= 4; dx++ {
		for dy := -4; dy <= 4; dy++ {
			if x+dx >= 0 && x+dx < c.size && y+dy >= 0 && y+dy < c.size {
				ring := max(dx, -dx, dy, -dy)
				c.function(x+dx, y+dy, ring != 2 && ring != 4)
			}
		}
	}
}

// alignments are the centres of the alignment patterns in each direction (annex E): evenly spread from
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
	bit := func(i int) bool { return info>>i&1 == 1 }
	for i := range 6 {
		c.function(8, i, bit(i))
		c.function(5-i, 8, bit(i+9))
	}
	c.function(8, 7, bit(6))
	c.function(8, 8, bit(7))
	c.function(7, 8, bit(8))
	for i := range 8 {
		c.function(c.size-1-i, 8, bit(i))
	}
	for i := 8; i < 15; i++ {
		c.function(8, c.size-15+i, bit(i))
	}
	c.function(8, c.size-8, true)
}

// formatOf is what format draws. The standard numbers the levels L 1, M 0, Q 3, H 2.
func formatOf(level Level, mask int) int {
	return withRemainder((int(level)^1)<<3|mask, 10, 0x537) ^ 0x5412
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
				if c.functions[y].get(x) || i >= 8*len(data) {
					continue
				}
				if data[i/8]>>(7-i%8)&1 == 1 {
					c.dark.set(x, y, true)
				}
				i++
			}
		}
	}
}

// maskRows are the first twelve rows of each mask (table 10); they repeat from there.
func maskRows(size int) *[8][12]row {
	flips := [8]func(x, y int) bool{
		func(x, y int) bool { return (x+y)%2 == 0 },
		func(x, y int) bool { return y%2 == 0 },
		func(x, y int) bool { return x%3 == 0 },
		func(x, y int) bool { return (x+y)%3 == 0 },
		func(x, y int) bool { return (x/3+y/2)%2 == 0 },
		func(x, y int) bool { return x*y%2+x*y%3 == 0 },
		func(x, y int) bool { return (x*y%2+x*y%3)%2 == 0 },
		func(x, y int) bool { return ((x+y)%2+x*y%3)%2 == 0 },
	}
	rows := new([8][12]row)
	for mask := range rows {
		for y := range rows[mask] {
			for x := range size {
				grid(rows[mask][:]).set(x, y, flips[mask](x, y))
			}
		}
	}
	return rows
}

// masked writes the symbol under a mask into out.
func (c *canvas) masked(rows [12]row, level Level, mask int, out grid) grid {
	c.format(formatOf(level, mask))
	for y := range out {
		out[y] = c.dark[y].xor(rows[y%12].and(c.functions[y].not()))
	}
	return out
}

// penalty says how hard a symbol is to read (section 7.8.3). turned is scratch space of the same size.
func penalty(g, turned grid) int {
	size := len(g)
	clear(turned)
	dark := 0
	for y := range g {
		dark += g[y].count()
		for x := range size {
			if g[y].get(x) {
				turned.set(y, x, true)
			}
		}
	}
	sum := linesPenalty(g) + linesPenalty(turned)

	inside := first(size - 1)
	for y := 0; y+1 < size; y++ { // blocks of 2 by 2 of one colour
		across := g[y].xor(g[y].shift(1))
		down := g[y].xor(g[y+1])
		sum += 3 * across.or(down).or(down.shift(1)).not().and(inside).count()
	}
	// 10 for each full 5 % away from half dark.
	return sum + 10*(max(20*dark-10*size*size, 10*size*size-20*dark)/(size*size))
}

// linesPenalty counts the rows' runs of five or more (3 and 1 for each further module) and their likenesses of
// a finder (40 for each 1:1:3:1:1 with four light modules on a side).
func linesPenalty(g grid) int {
	size := len(g)
	sum := 0
	five, eleven := first(size-4), first(size-10)
	for _, r := range g {
		same := r.xor(r.shift(1)).not()
		same = same.and(same.shift(1))
		runs := same.and(same.shift(2)).and(five) // where a run of five starts
		starts := runs.and(row{runs[0] << 1, runs[1]<<1 | runs[0]>>63, runs[2]<<1 | runs[1]>>63}.not())
		sum += runs.count() + 2*starts.count()

		light := r.not()
		light = light.and(light.shift(1))
		light = light.and(light.shift(2)) // where four light modules start
		core := r.and(r.shift(1).not()).and(r.shift(2)).and(r.shift(3)).and(r.shift(4)).and(r.shift(5).not()).and(r.shift(6))
		sum += 40 * core.and(light.shift(7)).and(eleven).count()
		sum += 40 * light.and(core.shift(4)).and(eleven).count()
	}
	return sum
}

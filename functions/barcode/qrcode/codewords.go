package qrcode

import "github.com/boombuler/barcode/utils"

const maxVersion = 40

// The standard's table 9, by level and version (index 0 is version 1).
var (
	eccBytesPerBlock = [4][maxVersion]int{
		{7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30, 30,
			30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30},
		{10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26, 26, 28, 28, 28, 28, 28, 28, 28, 28,
			28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28},
		{13, 22, 18, 26, 18, 24, 18, 22, 20, 24, 28, 26, 24, 20, 30, 24, 28, 28, 26, 30, 28, 30, 30, 30, 30, 28, 30, 30, 30,
			30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30},
		{17, 28, 22, 16, 22, 28, 26, 26, 24, 28, 24, 28, 22, 24, 24, 30, 28, 28, 26, 28, 30, 24, 30, 30, 30, 30, 30, 30, 30,
			30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30},
	}
	blocks = [4][maxVersion]int{
		{1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19,
			19, 20, 21, 22, 24, 25},
		{1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16, 17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35,
			37, 38, 40, 43, 45, 47, 49},
		{1, 1, 2, 2, 4, 4, 6, 6, 8, 8, 8, 10, 12, 16, 12, 17, 16, 18, 21, 20, 23, 23, 25, 27, 29, 34, 34, 35, 38, 40, 43, 45,
			48, 51, 53, 56, 59, 62, 65, 68},
		{1, 1, 2, 4, 4, 4, 5, 6, 8, 8, 11, 11, 16, 16, 18, 16, 19, 21, 25, 25, 25, 34, 30, 32, 35, 37, 40, 42, 45, 48, 51, 54,
			57, 60, 63, 66, 70, 74, 77, 81},
	}
)

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
func dataBytes(version int, level Level) int {
	return totalBytes(version) - eccBytesPerBlock[level][version-1]*blocks[level][version-1]
}

// protect splits data into blocks, adds error correction to each and interleaves them (section 7.6). The last
// blocks are one byte longer where the division has a remainder.
func protect(data []byte, version int, level Level) []byte {
	count, ecc := blocks[level][version-1], eccBytesPerBlock[level][version-1]
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

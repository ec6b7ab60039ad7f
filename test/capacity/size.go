package capacity

import (
	"math"
	"strings"
)

// attribute is an attribute value in the wire format.
type attribute struct {
	S, N   *string
	B      *[]byte
	M      map[string]attribute
	L      []attribute
	SS, NS []string
	BS     [][]byte
}

type item = map[string]attribute

// sizeOf returns the size of an item in bytes, names included (developer guide, "Item sizes and formats").
func sizeOf(it item) int {
	sum := 0
	for name, value := range it {
		sum += len(name) + value.size()
	}
	return sum
}

func (a *attribute) size() int {
	switch {
	case a.S != nil:
		return len(*a.S)
	case a.N != nil:
		return numberSize(*a.N)
	case a.B != nil:
		return len(*a.B)
	case a.M != nil:
		return 3 + len(a.M) + sizeOf(a.M)
	case a.L != nil:
		sum := 3 + len(a.L)
		for _, value := range a.L {
			sum += value.size()
		}
		return sum
	}
	sum := 0
	for _, s := range a.SS {
		sum += len(s)
	}
	for _, n := range a.NS {
		sum += numberSize(n)
	}
	for _, b := range a.BS {
		sum += len(b)
	}
	return max(sum, 1) // BOOL, NULL
}

// numberSize is one byte, and one for each two significant digits.
func numberSize(n string) int {
	digits := strings.Trim(strings.ReplaceAll(strings.TrimPrefix(n, "-"), ".", ""), "0")
	size := 1 + (len(digits)+1)/2
	if strings.HasPrefix(n, "-") {
		size++
	}
	return size
}

// units returns what a write of an item of so many bytes costs.
func units(bytes int) float64 { return max(1, math.Ceil(float64(bytes)/1024)) }

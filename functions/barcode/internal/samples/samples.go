// Package samples makes random data for tests.
package samples

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

const code39 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-. $/+%"

// Random returns data that a barcode type accepts.
func Random(r *rand.Rand, name string) string {
	switch name {
	case "C128":
		return mixed(r)
	case "C128A":
		return text(r, 1+r.IntN(80), 0, 96)
	case "C128B":
		return text(r, 1+r.IntN(80), 32, 128)
	case "C128C":
		return Digits(r, 2+2*r.IntN(39))
	case "EAN13":
		return Digits(r, 12)
	case "EAN8":
		return Digits(r, 7)
	case "UPCA":
		return Digits(r, 11)
	case "UPCE":
		// Last digits 0 to 2 are free of forbidden forms; the others have no 0 in the third to fifth place.
		if r.IntN(2) == 0 {
			return Digits(r, 5) + fmt.Sprint(r.IntN(3))
		}
		return fmt.Sprintf("%s%d%d%d%d", Digits(r, 2), 3+r.IntN(7), 1+r.IntN(9), 1+r.IntN(9), 3+r.IntN(7))
	case "C39", "C39+":
		data := make([]byte, 1+r.IntN(40))
		for i := range data {
			data[i] = code39[r.IntN(len(code39))]
		}
		return string(data)
	case "I25", "MSI":
		return Digits(r, 1+r.IntN(40))
	case "ITF14":
		return Digits(r, 13)
	case "POSTNET":
		switch r.IntN(4) {
		case 0:
			return Digits(r, 5)
		case 1:
			return Digits(r, 5) + "-" + Digits(r, 4)
		case 2:
			return Digits(r, 9)
		}
		return Digits(r, 5) + " " + Digits(r, 4) + " " + Digits(r, 2)
	}
	panic("samples: no type " + name)
}

// Digits returns n random digits.
func Digits(r *rand.Rand, n int) string { return text(r, n, '0', '9'+1) }

func text(r *rand.Rand, n, from, to int) string {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(from + r.IntN(to-from))
	}
	return string(data)
}

// mixed strings stretches of digits, letters and control characters together, 80 characters at most.
func mixed(r *rand.Rand) string {
	var data strings.Builder
	for range 1 + r.IntN(6) {
		n := 1 + r.IntN(12)
		switch r.IntN(4) {
		case 0:
			data.WriteString(Digits(r, n))
		case 1:
			data.WriteString(text(r, n, 'A', 'Z'+1))
		case 2:
			data.WriteString(text(r, n, 'a', 'z'+1))
		case 3:
			data.WriteString(text(r, 1+r.IntN(3), 0, 128))
		}
	}
	return data.String()
}

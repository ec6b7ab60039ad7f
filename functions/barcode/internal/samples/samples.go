// Package samples returns random data for tests.
package samples

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Random returns data that a barcode type accepts.
func Random(r *rand.Rand, name string) string {
	switch name {
	case "C128": // stretches of digits, letters and any characters
		var data []byte
		for range 1 + r.IntN(6) {
			kind := [...][2]int{{'0', '9' + 1}, {'A', 'Z' + 1}, {'a', 'z' + 1}, {0, 128}}[r.IntN(4)]
			data = append(data, text(r, 1+r.IntN(12), kind[0], kind[1])...)
		}
		return string(data)
	case "GS1128":
		return Elements(r)
	case "DATAMATRIX":
		const characters = "0123456789ABCDEFGHIJabcdefghij ./-\x00\x7f\u00a0éÿ"
		data := []rune{}
		for range 1 + r.IntN(80) {
			data = append(data, []rune(characters)[r.IntN(len([]rune(characters)))])
		}
		return string(data)
	case "UPCE":
		// Last digits 0 to 2 are free of forbidden forms; the others have no 0 in the third to fifth place.
		if r.IntN(2) == 0 {
			return Digits(r, 5) + fmt.Sprint(r.IntN(3))
		}
		return fmt.Sprintf("%s%d%d%d%d", Digits(r, 2), 3+r.IntN(7), 1+r.IntN(9), 1+r.IntN(9), 3+r.IntN(7))
	case "C39", "C39+":
		const characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-. $/+%"
		data := make([]byte, 1+r.IntN(40))
		for i := range data {
			data[i] = characters[r.IntN(len(characters))]
		}
		return string(data)
	case "POSTNET":
		zip := Digits(r, 5)
		return [...]string{zip, zip + "-" + Digits(r, 4), Digits(r, 9),
			zip + " " + Digits(r, 4) + " " + Digits(r, 2)}[r.IntN(4)]
	}
	form := forms[name]
	return text(r, form.least+form.step*r.IntN(form.lengths), form.from, form.to)
}

// Elements returns GS1 elements of at most 48 characters, with and without pre-defined lengths.
func Elements(r *rand.Rand) string {
	all := []string{
		"(01)09506000134352", fmt.Sprintf("(17)26%02d%02d", 1+r.IntN(12), r.IntN(29)), "(3103)" + Digits(r, 6),
		"(10)" + text(r, 1+r.IntN(4), 'A', 'Z'+1), "(21)" + Digits(r, 1+r.IntN(4)), "(91)" + text(r, 1+r.IntN(4), 'a', 'z'+1),
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return strings.Join(all[:1+r.IntN(len(all)-1)], "")
}

// forms are the lengths (the least, in steps, and how many) and the characters of types that accept every such text.
var forms = map[string]struct{ least, step, lengths, from, to int }{
	"C128A": {1, 1, 80, 0, 96}, "C128B": {1, 1, 80, 32, 128}, "C128C": {2, 2, 39, '0',
		'9' + 1}, "EAN13": {12, 0, 1, '0', '9' + 1},
	"EAN8": {7, 0, 1, '0', '9' + 1}, "UPCA": {11, 0, 1, '0', '9' + 1}, "ITF14": {13, 0, 1, '0', '9' + 1},
	"I25": {1, 1, 40, '0', '9' + 1}, "MSI": {1, 1, 40, '0', '9' + 1},
}

// Digits returns n random digits.
func Digits(r *rand.Rand, n int) string { return text(r, n, '0', '9'+1) }

// text returns n random characters, each at least from and less than to.
func text(r *rand.Rand, n, from, to int) string {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(from + r.IntN(to-from))
	}
	return string(data)
}

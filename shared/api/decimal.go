package api

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// decimal is a JSON number as it was sent, to the last digit: ±0.digits × 10^point. Digits neither begin nor end with 0;
// zero has none.
type decimal struct {
	negative bool
	digits   string
	point    int
}

// farPoint stands for an exponent that no digits bring back: bodies are far shorter.
const farPoint = math.MaxInt32

// decimalOf reads a well-formed JSON number, in time and memory of its length, whatever its exponent.
func decimalOf(number string) decimal {
	text, negative := strings.CutPrefix(number, "-")
	exponent := 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		n, _ := strconv.ParseInt(text[e+1:], 10, 64) // beyond int64 it is the nearest one
		exponent = int(max(-farPoint, min(n, farPoint)))
		text = text[:e]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d := decimal{negative, strings.TrimRight(digits, "0"), exponent + len(digits) - len(fraction)}
	if d.digits == "" {
		return decimal{}
	}
	return d
}

func decimalOfFloat(f float64) decimal { return decimalOf(strconv.FormatFloat(f, 'f', -1, 64)) }

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compare is -1 where d is the lesser number, 1 where it is the greater.
func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() || d.sign() == 0 {
		return cmp.Compare(d.sign(), e.sign())
	}
	return d.sign() * cmp.Or(cmp.Compare(d.point, e.point), cmp.Compare(d.digits, e.digits))
}

func (d decimal) whole() bool { return len(d.digits) <= d.point || d.digits == "" }

// cut drops what is behind the decimal point.
func (d decimal) cut() decimal {
	if d.whole() {
		return d
	}
	kept := strings.TrimRight(d.digits[:max(0, d.point)], "0")
	if kept == "" {
		return decimal{}
	}
	return decimal{d.negative, kept, d.point}
}

// float is the nearest float64, infinite beyond the greatest one.
func (d decimal) float() float64 {
	text := "0." + d.digits + "e" + strconv.Itoa(d.point)
	if d.negative {
		text = "-" + text
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range: infinite, or zero
	return f
}

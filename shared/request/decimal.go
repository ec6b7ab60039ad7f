package request

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// decimal is a JSON number as it was sent, to the last digit: ±0.digits × 10^point. Digits neither begin nor end with
// 0; zero has no digits.
type decimal struct {
	sign   int // -1, 0 or 1
	digits string
	point  int
}

// farPoint is the exponent for all larger ones: a body has too few digits to bring such a number back into range.
const farPoint = math.MaxInt32

// decimalOf reads a well-formed JSON number, in time and memory of its length, whatever its exponent.
func decimalOf(number string) decimal {
	text, negative := strings.CutPrefix(number, "-")
	exponent := 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		n, _ := strconv.ParseInt(text[e+1:], 10, 64) // beyond int64, ParseInt returns the nearest one
		exponent = int(max(-farPoint, min(n, farPoint)))
		text = text[:e]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d := decimal{1, strings.TrimRight(digits, "0"), exponent + len(digits) - len(fraction)}
	switch {
	case d.digits == "":
		return decimal{}
	case negative:
		d.sign = -1
	}
	return d
}

func decimalOfFloat(f float64) decimal { return decimalOf(strconv.FormatFloat(f, 'f', -1, 64)) }

// compare returns -1 where d is the lesser number, 1 where d is the greater, and 0 where both are equal.
func (d decimal) compare(e decimal) int {
	if d.sign != e.sign {
		return cmp.Compare(d.sign, e.sign)
	}
	return d.sign * cmp.Or(cmp.Compare(d.point, e.point), cmp.Compare(d.digits, e.digits))
}

func (d decimal) isInteger() bool { return len(d.digits) <= d.point || d.digits == "" }

// truncate drops the digits behind the decimal point.
func (d decimal) truncate() decimal {
	if d.isInteger() {
		return d
	}
	kept := strings.TrimRight(d.digits[:max(0, d.point)], "0")
	if kept == "" {
		return decimal{}
	}
	return decimal{d.sign, kept, d.point}
}

// float returns the nearest float64, infinite beyond the greatest one.
func (d decimal) float() float64 {
	text := "0." + d.digits + "e" + strconv.Itoa(d.point)
	if d.sign < 0 {
		text = "-" + text
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range: infinite, or zero
	return f
}

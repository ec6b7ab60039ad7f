package request

import (
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/test/must"
)

// TestNumbersAreComparedAsSent checks docs/decisions/requests.md#numbers-in-bodies: an integer field accepts 80.0 and
// refuses 80.5, and the range is compared to the last digit that was sent.
func TestNumbersAreComparedAsSent(t *testing.T) {
	const between, integer = "must be between 1 and 4", "must be an integer"
	cases := []struct {
		number            string
		whole, cut, plain string // what a field of each kind says of it, or its value
	}{
		{"4", "4", "4", "4"},
		{"80e-1", between, between, between},
		{"4.0", "4", "4", "4"},
		{"0.4e1", "4", "4", "4"},
		{"40E-1", "4", "4", "4"},
		{"4.0000000000000000000001", between, between, between},
		{"3.9999999999999999999999", integer, "3", "4"}, // the nearest float64
		{"1.0000000000000000000001", integer, "1", "1"},
		{"0.9999999999999999999999", between, between, between},
		{"2.5", integer, "2", "2.5"},
		{"2." + strings.Repeat("0", 100_000), "2", "2", "2"},
		{"2." + strings.Repeat("0", 100_000) + "1", integer, "2", "2"},
		{"2e" + strings.Repeat("0", 1000), "2", "2", "2"},
		{strings.Repeat("9", 1_000_000), between, between, between},
		{"1e999999", between, between, between},
		{"1e-999999", between, between, between},
		{"1e99999999999999999999999999", between, between, between},
		{"1e-99999999999999999999999999", between, between, between},
		{"-2", between, between, between},
		{"-0", between, between, between},
	}
	said := func(number string, r Number) string {
		o, err := parseObject([]byte(`{"n":`+number+`}`), "", newNotes())
		must.Succeed(t, err)
		r.Min, r.Max = 1, 4
		n := o.Number("n", r)
		if len(o.problems) > 0 {
			return strings.Join(o.problems["n"], "; ")
		}
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	for _, c := range cases {
		for name, check := range map[string]struct {
			rule Number
			want string
		}{"whole": {Number{Integer: true}, c.whole}, "cut": {Number{Truncate: true}, c.cut}, "plain": {Number{}, c.plain}} {
			if got := said(c.number, check.rule); got != check.want {
				t.Errorf("%s, %.40q: %s, want %s", name, c.number, got, check.want)
			}
		}
	}
	o, _ := parseObject([]byte(`{"minus":-0,"tiny":-1e-999999,"zero":0e999999}`), "", newNotes())
	for _, name := range []string{"minus", "tiny", "zero"} {
		o.Number(name, Number{Max: 1})
	}
	if got := o.problems.text(); got != "tiny: must be between 0 and 1" {
		t.Errorf("around zero: %s", got)
	}
}

// The arithmetic agrees with that of math/big.
func FuzzDecimal(f *testing.F) {
	for _, n := range []string{"0", "-0", "80.0", "8e1", "4.0000000000000000000001", "-0.05e-3", "1e400",
		"123456789012345678901234567890", "0.0"} {
		f.Add(n, "4")
		f.Add("-4.5", n)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, knownX := rational(a)
		y, knownY := rational(b)
		if !knownX || !knownY {
			return
		}
		da, db := decimalOf(a), decimalOf(b)
		if da.compare(db) != x.Cmp(y) || db.compare(da) != y.Cmp(x) {
			t.Errorf("%s and %s: %d, want %d", a, b, da.compare(db), x.Cmp(y))
		}
		if da.isInteger() != x.IsInt() {
			t.Errorf("%s: whole is %v", a, da.isInteger())
		}
		if want, _ := strconv.ParseFloat(a, 64); da.float() != want {
			t.Errorf("%s: %v, want %v", a, da.float(), want)
		}
		integer := new(big.Int).Quo(x.Num(), x.Denom())
		if !da.truncate().isInteger() || da.truncate().compare(decimalOf(integer.String())) != 0 {
			t.Errorf("%s is cut to %+v, want %s", a, da.truncate(), integer)
		}
	})
}

// rational reads a JSON number whose exponent is small enough to be written out.
func rational(number string) (*big.Rat, bool) {
	v := jsontext.Value(number)
	if len(number) > 1000 || !v.IsValid() || v.Kind() != '0' || strings.ContainsAny(number, " \t\r\n") {
		return nil, false
	}
	if e := strings.IndexAny(number, "eE"); e >= 0 {
		if n, err := strconv.Atoi(number[e+1:]); err != nil || n > 1000 || n < -1000 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(number)
}

package rates

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func dec(t testing.TB, text string) Decimal {
	t.Helper()
	d, err := Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return d
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1": "1", "-1.5": "-1.5", "191.8850": "191.8850", "007.50": "7.50", "1e3": "1000", "0e1": "0",
		"0.00": "0.00", "1.05E-5": "0.0000105",
		// The bounds of Parse: 80 characters, 40 digits, 40 places either way.
		strings.Repeat("0", 79) + "1": "1", strings.Repeat("9", 40): strings.Repeat("9", 40),
		"1e40": "1" + strings.Repeat("0", 40), "1e-40": "0." + strings.Repeat("0", 39) + "1",
		"0.000010563217": "0.000010563217", "123456789012345.12345678": "123456789012345.12345678",
	} {
		if got, err := Parse(text); err != nil || got.String() != want {
			t.Errorf("%s is read as %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " 1", "1 ", "+1", ".5", "1.", "1,5", "NaN", "Infinity", "-inf", "0x1", "1e", "1e999", "1e-99", "null", `"1"`,
		"1.5.5", "٣",
		strings.Repeat("9", 41), "1" + strings.Repeat("0", 90), strings.Repeat("0", 80) + "1", "1e41", "1e-41",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

// docs/decisions/currency.md#decimals: written as JSON numbers without binary noise, 0.1 × 3 is 0.3.
func TestConvert(t *testing.T) {
	for _, c := range []struct{ amount, rate, want string }{
		{"3", "0.1", "0.3"},
		{"1", "304.71846245", "304.7184624"}, // half to even
		{"1", "304.71846255", "304.7184626"},
		{"1", "304.71846245000001", "304.7184625"},
		{"1", "13047.1846245", "13047.184624"},
		{"0.00000001", "0.1", "0.000000001"},
		{"1", "0.0000379567862", "0.0000379567862"}, // VND to USD
		{"1", "0.000123456789050", "0.000123456789"},
		{"1", "0.00012345678915", "0.0001234567892"},
		{"3", "0.33333333333", "1"},
		{"1", "1234.5678905", "1234.56789"}, // six decimals are finer
		{"1", "12.34567890501", "12.34567891"},
		{"100", "2.50", "250"},
		{"999999999999999.99999999", "26345.75", "26345749999999999999.999737"},
		// The largest product of two numbers that Parse takes.
		{strings.Repeat("9", 40) + "e40", strings.Repeat("9", 40) + "e40",
			strings.Repeat("9", 39) + "8" + strings.Repeat("0", 39) + "1" + strings.Repeat("0", 80)},
	} {
		got := Convert(dec(t, c.amount), dec(t, c.rate))
		text, err := got.MarshalJSON()
		if err != nil || string(text) != c.want {
			t.Errorf("%s × %s is %s, want %s", c.amount, c.rate, text, c.want)
		}
	}
}

// halfEven rounds a rational to so many decimals, by integers alone.
func halfEven(r *big.Rat, places int) *big.Rat {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(scale))
	quotient, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	switch twice := rest.Lsh(rest, 1).Cmp(scaled.Denom()); {
	case twice > 0, twice == 0 && quotient.Bit(0) == 1:
		quotient.Add(quotient, big.NewInt(1))
	}
	return new(big.Rat).SetFrac(quotient, scale)
}

// halfEvenDigits rounds a positive rational to so many significant digits.
func halfEvenDigits(r *big.Rat, digits int) *big.Rat {
	places := digits - 1
	ten, scaled := big.NewRat(10, 1), new(big.Rat).Set(r)
	for ; scaled.Cmp(ten) >= 0; places-- {
		scaled.Quo(scaled, ten)
	}
	for ; scaled.Cmp(big.NewRat(1, 1)) < 0; places++ {
		scaled.Mul(scaled, ten)
	}
	if places >= 0 {
		return halfEven(r, places)
	}
	shift := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-places)), nil))
	return new(big.Rat).Mul(halfEven(new(big.Rat).Quo(r, shift), 0), shift)
}

func rat(t testing.TB, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}

// randomNumber has up to so many digits before the point, and behind it. It is above 0.
func randomNumber(r *rand.Rand, before, behind int) string {
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		return b.String()
	}
	text := fmt.Sprint(1+r.IntN(9)) + digits(r.IntN(before))
	if n := r.IntN(behind + 1); n > 0 {
		text += "." + digits(n)
	}
	return text
}

// A conversion's result is the exact product rounded half to even to the finer of 6 decimals and 10 digits, on 10,000
// random cases against math/big.
func TestConvertIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 31))
	for range 10_000 {
		amount, rate := randomNumber(r, 15, 8), randomNumber(r, 6, 12)
		if r.IntN(3) == 0 { // products that end in a half
			amount, rate = randomNumber(r, 6, 1), randomNumber(r, 3, 5)+"5"
		}
		if r.IntN(3) == 0 {
			rate = "0.000" + randomNumber(r, 14, 0)
		}
		got := Convert(dec(t, amount), dec(t, rate)).String()
		product := new(big.Rat).Mul(rat(t, amount), rat(t, rate))
		want := halfEven(product, 6)
		if product.Cmp(big.NewRat(10_000, 1)) < 0 {
			want = halfEvenDigits(product, 10)
		}
		if rat(t, got).Cmp(want) != 0 {
			t.Fatalf("%s × %s is %s, want %s", amount, rate, got, want.FloatString(16))
		}
		if strings.Contains(got, ".") && strings.HasSuffix(got, "0") {
			t.Fatalf("%s × %s is %s, with zeros at its end", amount, rate, got)
		}
	}
}

// Cross rates have 10 significant digits, rounded half to even: 10,000 random ones against math/big, and the widest
// one.
func TestCrossRatesAreExact(t *testing.T) {
	if got := dec(t, "1e40").over(dec(t, "1e-40")).String(); got != "1"+strings.Repeat("0", 80) {
		t.Errorf("the widest cross rate is %s", got)
	}
	r := rand.New(rand.NewPCG(9, 32))
	for range 10_000 {
		a, b := randomNumber(r, 6, 10), randomNumber(r, 6, 10)
		if r.IntN(4) == 0 {
			b = fmt.Sprint(1 << r.IntN(20)) // quotients that end
		}
		table := Table{Base: "USD", Rates: map[string]Decimal{"USD": One(), "EUR": dec(t, a), "LKR": dec(t, b)}}
		got := table.Rate("LKR", "EUR").String()
		if want := halfEvenDigits(new(big.Rat).Quo(rat(t, a), rat(t, b)), significant); rat(t, got).Cmp(want) != 0 {
			t.Fatalf("%s over %s is %s, want %s", a, b, got, want.FloatString(20))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"1", "0.1", "-1e5", "NaN", "1e-40", "0e1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(d.String())
		if err == nil && (again.Cmp(d) != 0 || again.String() != d.String()) {
			t.Errorf("%q is %s, then %s", text, d, again)
		}
	})
}

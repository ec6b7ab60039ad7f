package rates

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/apd/v3"

	"svcapi/shared/pattern"
)

// Decimal is an immutable exact decimal number. The zero value is 0. The package apd rounds to significant digits half to
// even, as cross rates need, and has no silent default precision.
type Decimal struct{ v *apd.Decimal }

const (
	crossDigits  = 10 // significant digits of a cross rate
	resultPlaces = 6  // decimals of a conversion's result
	maxDigits    = 40 // of Parse, so that no text makes arithmetic costly
)

// One returns the rate of a currency to itself.
func One() Decimal { return Decimal{apd.New(1, 0)} }

// numberPattern matches a JSON number (RFC 8259), also with leading zeros.
var numberPattern = pattern.New(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$`)

var errNumber = errors.New("not a decimal number")

// Parse parses a JSON number with up to 40 digits on either side of the point. Parse keeps the decimals: 1.50 stays 1.50.
func Parse(text string) (Decimal, error) {
	if len(text) > 2*maxDigits || !numberPattern().MatchString(text) {
		return Decimal{}, errNumber
	}
	v, _, err := apd.NewFromString(text)
	if err != nil || v.NumDigits() > maxDigits || v.Exponent > maxDigits || v.Exponent < -maxDigits {
		return Decimal{}, errNumber
	}
	if v.IsZero() {
		v.Exponent = min(v.Exponent, 0) // 0e1 is 0, not 00
	}
	return Decimal{v}, nil
}

func (d Decimal) value() *apd.Decimal {
	if d.v == nil {
		return new(apd.Decimal)
	}
	return d.v
}

// String returns the number without an exponent.
func (d Decimal) String() string { return d.value().Text('f') }

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return d.value().Sign() }

// Cmp returns -1 when d is less than e, 0 when they are equal, and 1 when d is more than e.
func (d Decimal) Cmp(e Decimal) int { return d.value().Cmp(e.value()) }

// Reduced returns the number without trailing zeros after the point.
func (d Decimal) Reduced() Decimal {
	reduced, _ := new(apd.Decimal).Reduce(d.value())
	return Decimal{reduced}
}

// rounding returns a context that rounds half to even to a number of significant digits.
func rounding(digits uint32) *apd.Context {
	c := apd.BaseContext.WithPrecision(digits)
	c.Rounding = apd.RoundHalfEven
	return c
}

// over divides d by e, which is not 0, to 10 significant digits, half to even.
func (d Decimal) over(e Decimal) Decimal {
	quotient := new(apd.Decimal)
	if _, err := rounding(crossDigits).Quo(quotient, d.value(), e.value()); err != nil {
		panic(fmt.Errorf("%s over %s: %w", d, e, err)) // rates are positive and bounded
	}
	return Decimal{quotient}.Reduced()
}

// Convert multiplies an amount by a rate, and rounds the exact product half to even to at most 6 decimals.
func Convert(amount, rate Decimal) Decimal {
	exact := rounding(4 * maxDigits)
	product := new(apd.Decimal)
	_, err := exact.Mul(product, amount.value(), rate.value())
	if err == nil && product.Exponent < -resultPlaces {
		_, err = exact.Quantize(product, product, -resultPlaces)
	}
	if err != nil {
		panic(fmt.Errorf("%s times %s: %w", amount, rate, err)) // both are bounded by Parse
	}
	return Decimal{product}.Reduced()
}

// moved reports whether a number differs from an earlier number by more than half of the earlier number.
func moved(from, to Decimal) bool {
	var difference, half apd.Decimal
	c := rounding(4 * maxDigits)
	_, err := c.Sub(&difference, to.value(), from.value())
	if err == nil {
		_, err = c.Mul(&half, from.value(), apd.New(5, -1))
	}
	return err != nil || difference.Abs(&difference).Cmp(&half) > 0
}

// MarshalJSON writes a JSON number with the decimal's own digits.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON parses a JSON number.
func (d *Decimal) UnmarshalJSON(text []byte) (err error) {
	*d, err = Parse(string(text))
	return err
}

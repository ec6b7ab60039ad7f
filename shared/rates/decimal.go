package rates

import (
	"errors"

	"github.com/shopspring/decimal"

	"svcapi/shared/pattern"
)

// Decimal is an immutable exact decimal number. The zero value is 0.
type Decimal struct{ v decimal.Decimal }

const (
	significant  = 10 // digits of a cross rate, and of a conversion's result that has fewer than 6 in its decimals
	resultPlaces = 6  // decimals of a conversion's result, at least
	maxDigits    = 40 // of Parse, so that no text makes arithmetic costly
)

// One returns the rate of a currency to itself.
func One() Decimal { return Decimal{decimal.New(1, 0)} }

// numberPattern matches a JSON number (RFC 8259), also with leading zeros.
var numberPattern = pattern.New(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$`)

var errNumber = errors.New("not a decimal number")

// Parse parses a JSON number with up to 40 digits on either side of the point. Parse keeps the decimals: 1.50 stays
// 1.50.
func Parse(text string) (Decimal, error) {
	if len(text) > 2*maxDigits || !numberPattern().MatchString(text) {
		return Decimal{}, errNumber
	}
	v, err := decimal.NewFromString(text)
	if err != nil || v.NumDigits() > maxDigits || v.Exponent() > maxDigits || v.Exponent() < -maxDigits {
		return Decimal{}, errNumber
	}
	return Decimal{v}, nil
}

// String returns the number without an exponent.
func (d Decimal) String() string { return d.v.StringFixed(max(0, -d.v.Exponent())) }

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return d.v.Sign() }

// Cmp returns -1 when d is less than e, 0 when they are equal, and 1 when d is more than e.
func (d Decimal) Cmp(e Decimal) int { return d.v.Cmp(e.v) }

// Reduced returns the number without trailing zeros after the point.
func (d Decimal) Reduced() Decimal { return Decimal{decimal.RequireFromString(d.v.String())} }

// digits returns the number of digits before the point, which is negative where zeros follow the point.
func digits(v decimal.Decimal) int32 {
	return int32(v.NumDigits()) + v.Exponent() //nolint:gosec // Parse bounds the digits
}

// over divides d by e, both above 0, to 10 significant digits, half to even.
func (d Decimal) over(e Decimal) Decimal {
	places := significant + 1 - digits(d.v) + digits(e.v) // at least one digit more than the result has
	quotient, rest := d.v.QuoRem(e.v, places)
	if !rest.IsZero() {
		quotient = quotient.Add(decimal.New(1, -places-1)) // the digits that follow, so that no truncated quotient is a tie
	}
	return Decimal{quotient.RoundBank(significant - digits(quotient))}.Reduced()
}

// Convert multiplies an amount by a rate, and rounds the exact product half to even to the finer of 6 decimals and 10
// significant digits (docs/decisions/currency.md#decimals).
func Convert(amount, rate Decimal) Decimal {
	product := amount.v.Mul(rate.v)
	return Decimal{product.RoundBank(max(resultPlaces, significant-digits(product)))}.Reduced()
}

// moved reports whether a number differs from an earlier number by more than half of the earlier number.
func moved(from, to Decimal) bool {
	return to.v.Sub(from.v).Abs().Cmp(from.v.Mul(decimal.New(5, -1))) > 0
}

// MarshalJSON writes a JSON number with the decimal's own digits.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON parses a JSON number.
func (d *Decimal) UnmarshalJSON(text []byte) (err error) {
	*d, err = Parse(string(text))
	return err
}

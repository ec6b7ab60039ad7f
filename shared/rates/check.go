package rates

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"
)

// required are the currencies that every complete table has.
var required = []string{"USD", "EUR", "GBP", "JPY", lkr}

// majors are the currencies whose move of over 50 % makes a table not valid.
var majors = []string{"USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "HKD", "SGD", "SEK", "NOK",
	"DKK", "INR", "AED", lkr}

// The bounds of a valid rate.
var (
	least = Decimal{decimal.New(1, -12)}
	most  = Decimal{decimal.New(1, 12)}
)

// ahead is how far a source's date may be in the future, because clocks and time zones differ.
const ahead = 24 * time.Hour

// Validate returns the reason why a fetched table is not valid, or nil. The stored table is the last valid one of the
// same source, and the reference is the table in use; both may be nil. An operator may accept moves of over 50 % that
// are real.
func Validate(fetched, stored, reference *Table, now time.Time, acceptMoves bool) error {
	for code, rate := range fetched.Rates {
		if rate.Cmp(least) < 0 || rate.Cmp(most) > 0 {
			return fmt.Errorf("the rate of %s is %s", code, rate)
		}
	}
	if own := fetched.Rates[fetched.Base]; own.Cmp(One()) != 0 {
		return fmt.Errorf("the rate of the base %s to itself is %s", fetched.Base, own)
	}
	for _, code := range required {
		if !fetched.Active(code) {
			return fmt.Errorf("no rate of %s among %d", code, len(fetched.Rates))
		}
	}
	switch {
	case fetched.Date.IsZero() || fetched.Date.Unix() <= 0:
		return fmt.Errorf("no date")
	case fetched.Date.After(now.Add(ahead)):
		return fmt.Errorf("the date %s is in the future", fetched.Date.Format(time.RFC3339))
	case stored != nil && fetched.Date.Before(stored.Date):
		return fmt.Errorf("the date %s is before the stored date %s", fetched.Date.Format(time.RFC3339),
			stored.Date.Format(time.RFC3339))
	}
	if reference == nil || acceptMoves {
		return nil
	}
	for _, code := range majors {
		if !fetched.Active(code) || !reference.Active(code) {
			continue
		}
		if from, to := reference.Rate("USD", code), fetched.Rate("USD", code); moved(from, to) {
			return fmt.Errorf("%s per USD is %s after %s: a move of over 50%%", code, to, from)
		}
	}
	return nil
}

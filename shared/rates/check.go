package rates

import (
	"fmt"
	"time"

	"github.com/cockroachdb/apd/v3"
)

// required are the currencies without which a table is cut off or another's.
var required = []string{"USD", "EUR", "GBP", "JPY", lkr}

// majors are the currencies whose sudden move makes a table absurd.
var majors = []string{"USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "HKD", "SGD", "SEK", "NOK", "DKK", "INR", "AED", lkr}

// The bounds of a believable rate.
var (
	least = Decimal{apd.New(1, -12)}
	most  = Decimal{apd.New(1, 12)}
)

// ahead is how far a source's date may lie in the future: clocks and zones differ.
const ahead = 24 * time.Hour

// Validate says why a fetched table is not believed; nil: it is. Held is the last
// good one of the same source, reference the one in use, whatever its source;
// nil: none. Moves accepts moves of over 50 %, which an operator has seen to be real.
func Validate(fetched, held, reference *Table, now time.Time, moves bool) error {
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
		return fmt.Errorf("the date %s lies in the future", fetched.Date.Format(time.RFC3339))
	case held != nil && fetched.Date.Before(held.Date):
		return fmt.Errorf("the date %s is before %s, which is held", fetched.Date.Format(time.RFC3339), held.Date.Format(time.RFC3339))
	}
	if reference == nil || moves {
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

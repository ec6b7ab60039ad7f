package rates

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const lkr = "LKR"

// BankSource names the Central Bank of Sri Lanka among the sources.
const BankSource = "cbsl"

// BankBases returns the currencies with values of the central bank (docs/decisions/currency.md#central-bank).
func BankBases() []string { return []string{"USD", "GBP", "EUR", "JPY", "CNY", "AUD"} }

// bankCodes are the target codes of the central bank's values, with the kind of a value in the name of a code.
var bankCodes = map[string]struct {
	kind  string
	quote func(Record) Quote
}{
	"LKR-BUY":     {"telegraphic transfer buying rate", func(r Record) Quote { return r.Buy }},
	"LKR-SELL":    {"telegraphic transfer selling rate", func(r Record) Quote { return r.Sell }},
	"LKR-CENTRAL": {"central bank indicative rate", func(r Record) Quote { return r.Central }},
}

// Day is a calendar day in Colombo, 2006-01-02.
type Day string

const dayFormat = time.DateOnly

// colombo is how far the clocks in Colombo are ahead of UTC, all the year.
const colombo = 5*time.Hour + 30*time.Minute

// DayOf returns the day in Colombo at a time.
func DayOf(t time.Time) Day { return Day(t.UTC().Add(colombo).Format(dayFormat)) }

// utc returns midnight UTC of the day, so that the printed date is the day.
func (d Day) utc() time.Time {
	t, _ := time.Parse(dayFormat, string(d)) // zero for a text that is not a day
	return t
}

// Valid reports whether the text is a day.
func (d Day) Valid() bool { return !d.utc().IsZero() }

// Start returns midnight in Colombo, at which a valid day begins, in UTC.
func (d Day) Start() time.Time { return d.utc().Add(-colombo) }

// Working reports whether the day is Monday to Friday. The calendar of bank holidays is not known.
func (d Day) Working() bool {
	weekday := d.utc().Weekday()
	return weekday != time.Saturday && weekday != time.Sunday
}

// Back returns the day a number of days earlier.
func (d Day) Back(days int) Day { return Day(d.utc().AddDate(0, 0, -days).Format(dayFormat)) }

// usableDays is the largest age of a usable value, in days.
const usableDays = 7

// Quote is one value of the central bank: LKR for one unit of a currency.
type Quote struct {
	Rate Decimal `json:"rate"` // with the bank's decimals
	Date Day     `json:"date"` // the bank's date
}

func (q Quote) absent() bool { return q.Date == "" }

// Usable reports whether the value exists and is at most 7 days old, by days in Colombo.
func (q Quote) Usable(now time.Time) bool {
	return q.Rate.Sign() > 0 && q.Date.Valid() && q.Date >= DayOf(now).Back(usableDays)
}

// Record holds the central bank's values for one currency. A zero Quote is an absent value.
type Record struct {
	Buy     Quote `json:"buy,omitzero"`
	Sell    Quote `json:"sell,omitzero"`
	Central Quote `json:"central,omitzero"`
}

// Equal reports whether both records have the same values.
func (r Record) Equal(other Record) bool {
	return slices.EqualFunc(r.quotes(), other.quotes(), func(a, b Quote) bool {
		return a.Date == b.Date && a.Rate.String() == b.Rate.String()
	})
}

func (r Record) quotes() []Quote { return []Quote{r.Buy, r.Sell, r.Central} }

// Bank is the central bank's records by currency.
type Bank map[string]Record

// Update returns the stored records with the valid values of a fetch. A value that is not valid, or older than the
// stored value, does not replace the stored value; the errors name these refused values. The reference is the table in
// use, or nil.
func (b Bank) Update(fetched Bank, reference *Table, now time.Time, acceptMoves bool) (Bank, []error) {
	var refused []error
	updated := Bank{}
	for _, base := range BankBases() {
		stored, offered := b[base], fetched[base]
		// The bank updates the buying and the selling rate together.
		err := cmp.Or(
			offered.Buy.validate(stored.Buy, base, reference, now, acceptMoves),
			offered.Sell.validate(stored.Sell, base, reference, now, acceptMoves),
		)
		if err == nil && (offered.Buy.Date != offered.Sell.Date || offered.Buy.Rate.Cmp(offered.Sell.Rate) > 0) {
			err = fmt.Errorf("buying %s of %s, selling %s of %s", offered.Buy.Rate, offered.Buy.Date,
				offered.Sell.Rate, offered.Sell.Date)
		}
		switch {
		case offered.Buy.absent() && offered.Sell.absent():
		case err != nil:
			refused = append(refused, fmt.Errorf("%s telegraphic transfer: %w", base, err))
		default:
			stored.Buy, stored.Sell = offered.Buy, offered.Sell
		}
		err = offered.Central.validate(stored.Central, base, reference, now, acceptMoves)
		switch {
		case offered.Central.absent():
		case err != nil:
			refused = append(refused, fmt.Errorf("%s indicative: %w", base, err))
		default:
			stored.Central = offered.Central
		}
		if stored != (Record{}) {
			updated[base] = stored
		}
	}
	return updated, refused
}

func (q Quote) validate(stored Quote, base string, reference *Table, now time.Time, acceptMoves bool) error {
	switch {
	case q.Rate.Sign() <= 0:
		return fmt.Errorf("the rate is %s", q.Rate)
	case !q.Date.Valid() || q.Date > DayOf(now):
		return fmt.Errorf("the date is %q", q.Date)
	case q.Date < stored.Date:
		return fmt.Errorf("the date %s is before the stored date %s", q.Date, stored.Date)
	case !acceptMoves && stored.Rate.Sign() > 0 && moved(stored.Rate, q.Rate):
		return fmt.Errorf("%s after %s: a move of over 50%%", q.Rate, stored.Rate)
	case !acceptMoves && stored.Rate.Sign() <= 0 && reference != nil && reference.Active(base) && reference.Active(lkr) &&
		moved(reference.Rate(base, lkr), q.Rate):
		return fmt.Errorf("%s is over 50%% off the LKR rate of %s", q.Rate, reference.Source)
	}
	return nil
}

// Age returns the age of the oldest value by the bank's dates, and false where there is no value.
func (b Bank) Age(now time.Time) (age time.Duration, found bool) {
	for _, record := range b {
		for _, quote := range record.quotes() {
			if !quote.absent() {
				age, found = max(age, DayOf(now).utc().Sub(quote.Date.utc())), true
			}
		}
	}
	return age, found
}

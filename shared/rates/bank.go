package rates

import (
	"fmt"
	"time"
)

const lkr = "LKR"

// BankSource names the Central Bank of Sri Lanka among the sources.
const BankSource = "cbsl"

// BankBases are the currencies that the central bank's values are held for (docs/decisions.md#central-bank).
func BankBases() []string { return []string{"USD", "GBP", "EUR", "JPY", "CNY", "AUD"} }

// Kind is one of the central bank's values for a currency.
type Kind int

// The central bank's values.
const (
	Buy     Kind = iota // telegraphic transfer, buying
	Sell                // telegraphic transfer, selling
	Central             // indicative
)

// bankCodes are the target codes that select a value.
var bankCodes = map[string]Kind{"LKR-BUY": Buy, "LKR-SELL": Sell, "LKR-CENTRAL": Central}

func (k Kind) name() string {
	return names[lkr] + []string{" (telegraphic transfer buying rate)", " (telegraphic transfer selling rate)", " (central bank indicative rate)"}[k]
}

// Day is a calendar day in Colombo, 2006-01-02.
type Day string

const dayForm = time.DateOnly

var colombo = time.FixedZone("Asia/Colombo", 5*60*60+30*60)

// DayOf is the day in Colombo at a time.
func DayOf(t time.Time) Day { return Day(t.In(colombo).Format(dayForm)) }

// utc is the day as a time, at midnight UTC so that it prints as the day it is.
func (d Day) utc() time.Time {
	t, _ := time.Parse(dayForm, string(d)) // zero where it is no day
	return t
}

// Valid tells whether the text is a day.
func (d Day) Valid() bool { return !d.utc().IsZero() }

// Back is the day so many days earlier.
func (d Day) Back(days int) Day { return Day(d.utc().AddDate(0, 0, -days).Format(dayForm)) }

// usableDays is how old a central bank's value may be.
const usableDays = 7

// Quote is one value of the central bank: LKR for one unit of a currency.
type Quote struct {
	Rate Decimal `json:"rate"` // with the bank's own decimals
	Date Day     `json:"date"` // the bank's
}

func (q Quote) absent() bool { return q.Date == "" }

// Usable tells whether there is a value that is at most 7 days old, as Colombo counts days.
func (q Quote) Usable(now time.Time) bool {
	return q.Rate.Sign() > 0 && q.Date.Valid() && q.Date >= DayOf(now).Back(usableDays)
}

// Record is what the central bank says of one currency. A zero Quote is none.
type Record struct {
	Buy     Quote `json:"buy,omitzero"`
	Sell    Quote `json:"sell,omitzero"`
	Central Quote `json:"central,omitzero"`
}

// Equal tells whether both say the same.
func (r Record) Equal(other Record) bool {
	for _, kind := range []Kind{Buy, Sell, Central} {
		a, b := r.quote(kind), other.quote(kind)
		if a.Date != b.Date || a.Rate.String() != b.Rate.String() {
			return false
		}
	}
	return true
}

func (r Record) quote(kind Kind) Quote { return []Quote{r.Buy, r.Sell, r.Central}[kind] }

// Bank is the central bank's records by currency.
type Bank map[string]Record

// Update is the records with what of a fetch is newer and passes: a value that
// is absurd, or older than the held one, leaves the held one. The errors say
// what was refused. The reference is the table in use; nil: none.
func (b Bank) Update(fetched Bank, reference *Table, now time.Time, moves bool) (Bank, []error) {
	var refused []error
	updated := Bank{}
	for _, base := range BankBases() {
		held, offered := b[base], fetched[base]
		keep := func(what string, err error) {
			if err != nil {
				refused = append(refused, fmt.Errorf("%s %s: %w", base, what, err))
			}
		}
		// Buying and selling belong together: both or none.
		err := offered.Buy.check(held.Buy, base, reference, now, moves)
		if err == nil {
			err = offered.Sell.check(held.Sell, base, reference, now, moves)
		}
		if err == nil && (offered.Buy.Date != offered.Sell.Date || offered.Buy.Rate.Cmp(offered.Sell.Rate) > 0) {
			err = fmt.Errorf("buying %s of %s, selling %s of %s", offered.Buy.Rate, offered.Buy.Date, offered.Sell.Rate, offered.Sell.Date)
		}
		switch {
		case offered.Buy.absent() && offered.Sell.absent():
		case err != nil:
			keep("telegraphic transfer", err)
		default:
			held.Buy, held.Sell = offered.Buy, offered.Sell
		}
		if !offered.Central.absent() {
			if err := offered.Central.check(held.Central, base, reference, now, moves); err != nil {
				keep("indicative", err)
			} else {
				held.Central = offered.Central
			}
		}
		if held != (Record{}) {
			updated[base] = held
		}
	}
	return updated, refused
}

// check says why a value is not believed.
func (q Quote) check(held Quote, base string, reference *Table, now time.Time, moves bool) error {
	switch {
	case q.Rate.Sign() <= 0:
		return fmt.Errorf("the rate is %s", q.Rate)
	case !q.Date.Valid() || q.Date > DayOf(now):
		return fmt.Errorf("the date is %q", q.Date)
	case q.Date < held.Date:
		return fmt.Errorf("of %s, one of %s is held", q.Date, held.Date)
	case !moves && held.Rate.Sign() > 0 && moved(held.Rate, q.Rate):
		return fmt.Errorf("%s after %s: a move of over 50%%", q.Rate, held.Rate)
	case !moves && held.Rate.Sign() <= 0 && reference != nil && reference.Active(base) && reference.Active(lkr) &&
		moved(reference.Rate(base, lkr), q.Rate):
		return fmt.Errorf("%s is over 50%% off the LKR rate of %s", q.Rate, reference.Source)
	}
	return nil
}

// Age is that of the oldest of the held values, by the bank's own dates. False: none is held.
func (b Bank) Age(now time.Time) (age time.Duration, held bool) {
	for _, record := range b {
		for _, kind := range []Kind{Buy, Sell, Central} {
			if quote := record.quote(kind); !quote.absent() {
				age, held = max(age, DayOf(now).utc().Sub(quote.Date.utc())), true
			}
		}
	}
	return age, held
}

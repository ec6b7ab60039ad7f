// Package rates holds exchange rates: exact decimals, tables of sources, the LKR values of the central bank, the
// validation of fetched rates, and the store.
package rates

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"svcapi/shared/pattern"
)

// Table holds the rates of one source at one time. The JSON form is the output of "svc rates show".
type Table struct {
	Source  string             `json:"source"`
	Base    string             `json:"base"`    // the rates are for one unit of this currency
	Date    time.Time          `json:"date"`    // of the source's update, in UTC
	Fetched time.Time          `json:"fetched"` // in UTC
	Rates   map[string]Decimal `json:"rates"`   // units of each currency for one unit of Base; Base itself is 1
}

// Active reports whether the table has a rate for the code and ISO 4217 names the code.
func (t *Table) Active(code string) bool {
	_, named := Name(code)
	_, rated := t.Rates[code]
	return named && rated
}

// Rate returns the units of target for one unit of base: 1 for equal codes, the source's number for the table's base,
// else a cross rate of 10 significant digits. Both codes must be active.
func (t *Table) Rate(base, target string) Decimal {
	switch base {
	case target:
		return One()
	case t.Base:
		return t.Rates[target].Reduced()
	}
	return t.Rates[target].over(t.Rates[base])
}

// Codes returns the active codes, sorted.
func (t *Table) Codes() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.Rates)), func(code string) bool { return !t.Active(code) })
}

// Set is the source of responses: one source's table and the central bank's values.
type Set struct {
	Table
	Bank Bank `json:"central_bank"`
}

// Pair is one rate and its source.
type Pair struct {
	Rate   Decimal
	Date   time.Time // of the source's update
	Source string
}

// Pair returns the rate of base to target, and false for a code that is not active. For a target code of the central
// bank, Pair returns the bank's usable value or else the ordinary LKR rate (docs/decisions/currency.md#central-bank).
func (s *Set) Pair(base, target string, now time.Time) (Pair, bool) {
	if !s.Active(base) {
		return Pair{}, false
	}
	if value, ok := bankCodes[target]; ok {
		if quote := value.quote(s.Bank[base]); quote.Usable(now) {
			return Pair{quote.Rate, quote.Date.utc(), BankSource}, true
		}
		target = lkr
	}
	if !s.Active(target) {
		return Pair{}, false
	}
	return Pair{s.Rate(base, target), s.Date, s.Source}, true
}

// Code is an active code with its name.
type Code struct {
	Code string `json:"code"`
	Name string `json:"name"`
}

// List returns every active code, sorted. A code of the central bank is active while any currency has a usable value.
func (s *Set) List(now time.Time) []Code {
	codes := s.Codes()
	list := make([]Code, 0, len(codes)+len(bankCodes))
	for _, code := range codes {
		list = append(list, Code{code, names()[code]})
	}
	for code, value := range bankCodes {
		for _, record := range s.Bank {
			if value.quote(record).Usable(now) {
				list = append(list, Code{code, names()[lkr] + " (" + value.kind + ")"})
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b Code) int { return strings.Compare(a.Code, b.Code) })
	return list
}

// iso4217 lists the currency codes of ISO 4217 with the names of the standard, without the codes for testing (XTS) and
// for no currency (XXX).
//
//go:embed iso4217.txt
var iso4217 string

// names returns the names of the currencies by code.
var names = sync.OnceValue(func() map[string]string {
	byCode := map[string]string{}
	for line := range strings.Lines(iso4217) {
		code, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		byCode[code] = name
	}
	return byCode
})

// Name returns the name of a currency in ISO 4217, and false for a code that the standard does not name.
func Name(code string) (string, bool) {
	name, ok := names()[code]
	return name, ok
}

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

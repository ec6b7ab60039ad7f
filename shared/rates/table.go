// Package rates holds exchange rates: exact decimals, tables of sources, the LKR values of the central bank, the
// validation of fetched rates, and the store.
package rates

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"
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

// Package rates holds exchange rates: exact decimals, tables from sources, the
// central bank's own LKR values, what makes a fetched table absurd, and how all
// that is stored.
package rates

import (
	"slices"
	"strings"
	"time"
)

// Table is what one source says at one time.
type Table struct {
	// Source is the name of the source.
	Source string
	// Base is the code that the rates are for one unit of.
	Base string
	// Date is the source's own update, in UTC.
	Date time.Time
	// Fetched is when the source was asked, in UTC.
	Fetched time.Time
	// Rates are units of each currency for one unit of Base, which is among them with 1.
	Rates map[string]Decimal
}

// Active tells whether the table holds a rate for the code and ISO 4217 names it.
func (t *Table) Active(code string) bool {
	_, named := names[code]
	_, held := t.Rates[code]
	return named && held
}

// Rate is units of target for one unit of base: 1 for a currency to itself, the
// source's own number from the table's base, else a cross rate of 10
// significant digits. Both codes are active.
func (t *Table) Rate(base, target string) Decimal {
	switch base {
	case target:
		return One()
	case t.Base:
		return t.Rates[target].Reduced()
	}
	return t.Rates[target].over(t.Rates[base])
}

// Codes lists the active codes, sorted.
func (t *Table) Codes() []string {
	codes := make([]string, 0, len(t.Rates))
	for code := range t.Rates {
		if t.Active(code) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// Set is what requests are answered from: one source's table and the central
// bank's values.
type Set struct {
	Table
	Bank Bank
}

// Pair is one rate and where it comes from.
type Pair struct {
	Rate   Decimal
	Date   time.Time // the source's update
	Source string
}

// Pair is the rate of base to target, which may be one of the central bank's codes (docs/decisions.md#central-bank):
// the bank's own value where it holds a usable one, else the ordinary LKR rate. False: a code is not active.
func (s *Set) Pair(base, target string, now time.Time) (Pair, bool) {
	if !s.Active(base) {
		return Pair{}, false
	}
	if kind, ok := bankCodes[target]; ok {
		if quote := s.Bank[base].quote(kind); quote.Usable(now) {
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

// List is every active code, sorted, with the central bank's while a usable
// value is held for any currency.
func (s *Set) List(now time.Time) []Code {
	codes := s.Codes()
	list := make([]Code, 0, len(codes)+len(bankCodes))
	for _, code := range codes {
		list = append(list, Code{code, names[code]})
	}
	for code, kind := range bankCodes {
		for _, record := range s.Bank {
			if record.quote(kind).Usable(now) {
				list = append(list, Code{code, kind.name()})
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b Code) int { return strings.Compare(a.Code, b.Code) })
	return list
}

package rates

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"svcapi/test/itemtest"
)

// A set of rates is read as it was written, to the last digit; what was never written by us is an error or a table that
// can be asked.
func FuzzItems(f *testing.F) {
	f.Add([]byte("rates"), "1.50", "301.25", "2026-01-02")
	f.Add(bytes.Repeat([]byte{1, 2, 0, 10, 4, 3, 0, 1}, 20), "1e-40", "99999999999999999999", "no day")
	names := []string{"pk", "sk", "source", "base", "date", "fetched", "rates", "bank", "failure", "tried"}
	now := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte, usd, bank, day string) {
		strange := itemtest.Item(data, names...)
		if s, err := decodeSet(strange); err == nil {
			s.List(now)
			s.Bank.Age(now)
			s.Pair(s.Base, "LKR-BUY", now)
		}
		if s, err := decodeSource(strange); err == nil && s.Table != nil && s.Table.Rates[s.Table.Base].Cmp(One()) != 0 {
			t.Errorf("%+v", s)
		}
		rate, err := Parse(usd)
		quote, bad := Parse(bank)
		if err != nil || bad != nil {
			return
		}
		want := &Set{
			Table: Table{Source: "s", Base: "LKR", Date: now, Fetched: now,
				Rates: map[string]Decimal{"LKR": One(), "USD": rate}},
			Bank: Bank{"USD": {Buy: Quote{quote, Day("2026-01-02")}}},
		}
		got, err := decodeSet(item{"rates": jsonText(want)})
		if err != nil || got.Rates["USD"].String() != rate.String() || !got.Bank["USD"].Equal(want.Bank["USD"]) ||
			!got.Date.Equal(now) || !reflect.DeepEqual(got.Codes(), want.Codes()) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		if d := Day(day); d.Valid() && d.Back(7).Back(-7) != d {
			t.Errorf("seven days around %s", d)
		}
	})
}

package rates

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// changed is the sample's table after a change.
func changed(t *testing.T, change func(*Table)) *Table {
	t.Helper()
	table := sample(t).Table
	table.Rates = maps.Clone(table.Rates)
	change(&table)
	return &table
}

// docs/decisions/currency.md#rates-in-use: after a failed or invalid fetch the last valid rates stay.
func TestCheck(t *testing.T) {
	set := func(code, rate string) func(*Table) {
		return func(table *Table) { table.Rates[code] = dec(t, rate) }
	}
	drop := func(code string) func(*Table) { return func(table *Table) { delete(table.Rates, code) } }
	cases := map[string]struct {
		change func(*Table)
		moves  bool
		wrong  string // part of the refusal, empty: none
	}{
		"as stored":                    {func(*Table) {}, false, ""},
		"half up":                      {set("LKR", "457.077693"), false, ""}, // 50 % exactly
		"over half up":                 {set("LKR", "457.0777"), false, "over 50%"},
		"half down":                    {set("LKR", "152.359231"), false, ""},
		"over half down":               {set("LKR", "152.359230"), false, "over 50%"},
		"a digit lost":                 {set("LKR", "30.4718462"), false, "LKR"},
		"a digit gained":               {set("JPY", "1548.315"), false, "JPY"},
		"a real move that is accepted": {set("LKR", "700"), true, ""},
		"the base moved":               {func(table *Table) { rebase(t, table, "EUR", "0.1") }, false, "over 50%"},
		"another base, the same rates": {func(table *Table) { rebase(t, table, "EUR", "") }, false, ""},
		"a minor currency moved":       {set("IDR", "99999"), false, ""},
		"empty": {func(table *Table) { table.Rates = map[string]Decimal{} }, false,
			"itself is 0"},
		"the base alone": {func(table *Table) { table.Rates = map[string]Decimal{"USD": One()} }, false,
			"no rate of"},
		"without a required one":      {drop("GBP"), false, "no rate of GBP"},
		"without LKR":                 {drop("LKR"), false, "no rate of LKR"},
		"zero":                        {set("IDR", "0"), false, "IDR is 0"},
		"zero, moves accepted":        {set("IDR", "0"), true, "IDR is 0"},
		"negative":                    {set("CHF", "-0.805432"), false, "CHF is -0.8"},
		"tiny":                        {set("IDR", "0.0000000000001"), false, "IDR"},
		"huge":                        {set("IDR", "10000000000000"), false, "IDR"},
		"the least":                   {set("IDR", "0.000000000001"), false, ""},
		"the most":                    {set("IDR", "1000000000000"), false, ""},
		"a day ahead":                 {func(table *Table) { table.Date = saturday.Add(24 * time.Hour) }, false, ""},
		"a major without a reference": {set("SEK", "9.4"), false, ""},
		"a major that is gone":        {drop("CHF"), false, ""},
		"base is not 1":               {set("USD", "1.1"), false, "itself is 1.1"},
		"no date":                     {func(table *Table) { table.Date = time.Time{} }, false, "no date"},
		"1970":                        {func(table *Table) { table.Date = time.Unix(0, 0) }, false, "no date"},
		"the day after tomorrow": {func(table *Table) { table.Date = saturday.Add(25 * time.Hour) }, false,
			"future"},
		"older than stored": {func(table *Table) { table.Date = table.Date.Add(-time.Second) }, false,
			"before"},
		"older than stored, moves accepted": {func(table *Table) { table.Date = table.Date.Add(-time.Second) }, true,
			"before"},
		"newer than stored": {func(table *Table) { table.Date = table.Date.Add(time.Hour) }, false, ""},
	}
	stored := sample(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Validate(changed(t, c.change), &stored.Table, &stored.Table, saturday, c.moves)
			if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%v, want %q", err, c.wrong)
			}
		})
	}
	// The first table of a source has no stored date, and the first table of all has no reference.
	if err := Validate(changed(t, set("LKR", "9")), nil, nil, saturday, false); err != nil {
		t.Error(err)
	}
	if err := Validate(changed(t, func(table *Table) { table.Date = table.Date.AddDate(0, 0, -1) }), nil, &stored.Table,
		saturday, false); err != nil {
		t.Error(err)
	}
}

// rebase gives a table another base, whose own rate may be wrong at first.
func rebase(t *testing.T, table *Table, base, wrong string) {
	t.Helper()
	if wrong != "" {
		table.Rates[base] = dec(t, wrong)
	}
	other := map[string]Decimal{}
	for code := range table.Rates {
		other[code] = table.Rate(base, code)
	}
	table.Base, table.Rates = base, other
}

// Records are equal in every value, its day and its own digits.
func TestRecordEqual(t *testing.T) {
	one := Record{Buy: Quote{dec(t, "300.10"), "2026-11-19"}}
	for other, want := range map[Quote]bool{
		{dec(t, "300.10"), "2026-11-19"}: true, {dec(t, "300.10"), "2026-11-20"}: false,
		{dec(t, "300.11"), "2026-11-19"}: false, {dec(t, "300.1"), "2026-11-19"}: false,
	} {
		if got := one.Equal(Record{Buy: other}); got != want {
			t.Errorf("%v equals %v: %v", one.Buy, other, got)
		}
	}
}

// Update validates the central bank's values one by one: a value that is not valid or older does not replace the stored
// value.
func TestBankUpdate(t *testing.T) {
	reference := &sample(t).Table
	usd := func(buy, sell, central string, day Day) Bank {
		r := Record{}
		if buy != "" {
			r.Buy, r.Sell = Quote{dec(t, buy), day}, Quote{dec(t, sell), day}
		}
		if central != "" {
			r.Central = Quote{dec(t, central), day}
		}
		return Bank{"USD": r}
	}
	stored := usd("300.10", "308.20", "304.30", "2026-11-19")
	for name, c := range map[string]struct {
		stored, fetched Bank
		moves           bool
		want            Bank
		refused         int
	}{
		"newer": {stored, usd("301.10", "309.20", "305.30", "2026-11-20"), false,
			usd("301.10", "309.20", "305.30", "2026-11-20"), 0},
		"the same": {stored, stored, false, stored, 0},
		"nothing":  {stored, Bank{}, false, stored, 0},
		"first":    {nil, stored, false, stored, 0},
		"older":    {stored, usd("301.10", "309.20", "305.30", "2026-11-18"), false, stored, 2},
		"future":   {stored, usd("301.10", "309.20", "305.30", "2026-11-22"), false, stored, 2},
		"of today": {stored, usd("301.10", "309.20", "305.30", "2026-11-21"), false,
			usd("301.10", "309.20", "305.30", "2026-11-21"), 0},
		"zero, moves accepted": {stored, usd("0", "0", "0", "2026-11-20"), true, stored, 2},
		"no date":              {stored, usd("301.10", "309.20", "305.30", "20 Nov"), false, stored, 2},
		"a digit lost": {stored, usd("30.110", "309.20", "305.30", "2026-11-20"), false,
			Bank{"USD": {stored["USD"].Buy, stored["USD"].Sell, Quote{dec(t, "305.30"), "2026-11-20"}}}, 1},
		"a digit lost, first": {nil, usd("30.110", "30.920", "30.530", "2026-11-20"), false, Bank{}, 2},
		"a real move": {stored, usd("501.10", "509.20", "505.30", "2026-11-20"), true,
			usd("501.10", "509.20", "505.30", "2026-11-20"), 0},
		"buying at selling": {stored, usd("305.10", "305.10", "", "2026-11-20"), false,
			Bank{"USD": {Quote{dec(t, "305.10"), "2026-11-20"}, Quote{dec(t, "305.10"), "2026-11-20"},
				stored["USD"].Central}}, 0},
		"buying above selling": {stored, usd("309.20", "301.10", "", "2026-11-20"), false, stored, 1},
		"zero":                 {stored, usd("0", "0", "0", "2026-11-20"), false, stored, 2},
		"negative":             {stored, usd("-301", "-300", "-305", "2026-11-20"), false, stored, 2},
		"another currency":     {stored, Bank{"SGD": stored["USD"]}, false, stored, 0},
		"indicative alone": {stored, usd("", "", "305.30", "2026-11-20"), false,
			Bank{"USD": {stored["USD"].Buy, stored["USD"].Sell, Quote{dec(t, "305.30"), "2026-11-20"}}}, 0},
		"buying without selling": {stored, Bank{"USD": {Buy: Quote{dec(t, "301.10"), "2026-11-20"}}}, false, stored, 1},
		"buying, selling of days": {stored,
			Bank{"USD": {Buy: Quote{dec(t, "301.10"), "2026-11-20"},
				Sell: Quote{dec(t, "309.20"), "2026-11-19"}}}, false, stored, 1},
	} {
		got, refused := c.stored.Update(c.fetched, reference, saturday, c.moves)
		if !maps.EqualFunc(got, c.want, Record.Equal) || len(refused) != c.refused {
			t.Errorf("%s: %v with refusals %v, want %v with %d", name, got, refused, c.want, c.refused)
		}
	}
	if age, ok := stored.Age(saturday); !ok || age != 48*time.Hour {
		t.Errorf("age %s, %v", age, ok)
	}
}

package rates

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"svcapi/test/must"
)

// saturday is at noon in Colombo.
var saturday = time.Date(2026, 11, 21, 6, 30, 0, 0, time.UTC)

func sample(t testing.TB) *Set {
	t.Helper()
	set := &Set{Table: Table{Source: "made", Base: "USD", Date: saturday.Add(-time.Hour), Fetched: saturday,
		Rates: map[string]Decimal{}}, Bank: Bank{}}
	for code, rate := range map[string]string{
		"USD": "1", "EUR": "0.864128", "GBP": "0.761934", "JPY": "154.8315", "CNY": "7.11385", "AUD": "1.527319",
		"LKR": "304.718462", "CHF": "0.805432", "IDR": "16698", "XAU": "0.000247935401", "BTC": "0.0000105",
	} {
		set.Rates[code] = dec(t, rate)
	}
	for i, base := range BankBases() {
		day := Day("2026-11-20")
		tenth := string(rune('0' + i))
		set.Bank[base] = Record{
			Buy:  Quote{dec(t, "30"+tenth+".1250"), day},
			Sell: Quote{dec(t, "31"+tenth+".2500"), day}, Central: Quote{dec(t, "30"+tenth+".5000"), day},
		}
	}
	return set
}

// docs/decisions/currency.md#central-bank: direct values for six bases, the ordinary LKR rate for all else.
func TestPair(t *testing.T) {
	set := sample(t)
	type want struct{ rate, source string }
	cases := map[[2]string]want{
		{"USD", "LKR"}: {"304.718462", "made"}, // the source's own number
		{"LKR", "USD"}: {"0.003281717798", "made"},
		{"EUR", "LKR"}: {"352.6311634", "made"}, // 10 significant digits
		{"EUR", "EUR"}: {"1", "made"},
		{"IDR", "USD"}: {"0.00005988741167", "made"},
		{"XAU", "IDR"}: {"67348188.01", "made"},
		// Another base, and LKR itself.
		{"CHF", "LKR-SELL"}: {"378.3292221", "made"}, {"CHF", "LKR-BUY"}: {"378.3292221", "made"}, {"CHF",
			"LKR-CENTRAL"}: {"378.3292221", "made"},
		{"LKR", "LKR-SELL"}: {"1", "made"},
		// Unknown, inactive, not of ISO 4217, and the bank's codes as base.
		{"USD", "BTC"}: {}, {"BTC", "USD"}: {}, {"USD", "SEK"}: {}, {"SEK", "LKR-SELL"}: {}, {"XYZ",
			"USD"}: {}, {"LKR-SELL", "USD"}: {},
	}
	for i, base := range BankBases() {
		tenth := string(rune('0' + i))
		cases[[2]string{base, "LKR-BUY"}] = want{"30" + tenth + ".1250", BankSource}
		cases[[2]string{base, "LKR-SELL"}] = want{"31" + tenth + ".2500", BankSource}
		cases[[2]string{base, "LKR-CENTRAL"}] = want{"30" + tenth + ".5000", BankSource}
	}
	for pair, want := range cases {
		got, ok := set.Pair(pair[0], pair[1], saturday)
		if !ok {
			got.Rate = Decimal{}
		}
		if ok != (want.rate != "") || ok && (got.Rate.String() != want.rate || got.Source != want.source) {
			t.Errorf("%v is %s of %s, %v; want %v", pair, got.Rate, got.Source, ok, want)
		}
	}
	if got, _ := set.Pair("USD", "LKR-BUY", saturday); !got.Date.Equal(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the bank's date is %s", got.Date)
	}
}

// A record is usable while it is at most 7 days old, over weekends and holidays, as Colombo counts days.
func TestUsable(t *testing.T) {
	one := One()
	for _, c := range []struct {
		day  Day
		now  time.Time
		want bool
	}{
		{"2026-11-20", saturday, true},                                         // Friday's on Saturday
		{"2026-11-20", saturday.AddDate(0, 0, 1), true},                        // and on Sunday
		{"2026-11-14", saturday, true},                                         // 7 days
		{"2026-11-13", saturday, false},                                        // 8 days
		{"2026-11-14", time.Date(2026, 11, 21, 18, 29, 59, 0, time.UTC), true}, // still the 21st in Colombo
		{"2026-11-14", time.Date(2026, 11, 21, 18, 30, 0, 0, time.UTC), false}, // the 22nd there
		{"", saturday, false},
		{"soon", saturday, false},
	} {
		if got := (Quote{one, c.day}).Usable(c.now); got != c.want {
			t.Errorf("%s at %s: %v", c.day, c.now, got)
		}
	}
	if (Quote{Decimal{}, "2026-11-20"}).Usable(saturday) {
		t.Error("zero is usable")
	}
}

// Stale, missing and partly missing records fall back to the ordinary LKR rate.
func TestFallback(t *testing.T) {
	const cross = "304.718462"
	set := sample(t)
	usd := set.Bank["USD"]
	usd.Sell.Date, usd.Central = "2026-11-13", Quote{}
	set.Bank["USD"] = usd
	for target, want := range map[string]string{"LKR-BUY": "300.1250", "LKR-SELL": cross, "LKR-CENTRAL": cross} {
		if got, ok := set.Pair("USD", target, saturday); !ok || got.Rate.String() != want {
			t.Errorf("%s is %s, want %s", target, got.Rate, want)
		}
	}
	set.Bank = nil
	for _, base := range BankBases() {
		want, _ := set.Pair(base, "LKR", saturday)
		if got, ok := set.Pair(base, "LKR-BUY", saturday); !ok || got.Rate.String() != want.Rate.String() ||
			got.Source != want.Source {
			t.Errorf("%s: %v, want %v", base, got, want)
		}
	}
}

// docs/decisions/currency.md#currency-codes: the central bank's codes are listed when active, that is while one usable
// record is held.
func TestList(t *testing.T) {
	set := sample(t)
	codes := func(now time.Time) string {
		var list []string
		for _, c := range set.List(now) {
			if c.Name == "" {
				t.Errorf("%s has no name", c.Code)
			}
			list = append(list, c.Code)
		}
		return strings.Join(list, " ")
	}
	const plain = "AUD CHF CNY EUR GBP IDR JPY LKR USD XAU"
	for _, c := range []struct {
		change func()
		now    time.Time
		want   string
	}{
		{func() {}, saturday, strings.Replace(plain, "LKR", "LKR LKR-BUY LKR-CENTRAL LKR-SELL", 1)},
		{func() { maps.DeleteFunc(set.Bank, func(code string, _ Record) bool { return code != "AUD" }) }, saturday,
			strings.Replace(plain, "LKR", "LKR LKR-BUY LKR-CENTRAL LKR-SELL", 1)},
		{func() { set.Bank["AUD"] = Record{Central: set.Bank["AUD"].Central} }, saturday,
			strings.Replace(plain, "LKR", "LKR LKR-CENTRAL", 1)},
		{func() {}, saturday.AddDate(0, 0, 7), plain},
		{func() { set.Bank = nil }, saturday, plain},
	} {
		c.change()
		if got := codes(c.now); got != c.want {
			t.Errorf("the codes are %s, want %s", got, c.want)
		}
	}
	if got := new(Set).List(saturday); len(got) != 0 {
		t.Errorf("an empty set lists %v", got)
	}
}

func TestNames(t *testing.T) {
	for code, name := range names() {
		if len(code) != 3 || strings.ToUpper(code) != code || strings.TrimSpace(name) != name || name == "" {
			t.Errorf("%q: %q", code, name)
		}
	}
	if n := len(names()); n < 170 || n > 185 {
		t.Errorf("%d codes", n)
	}
}

// Numbers keep their digits in the store and in responses.
func TestJSONKeepsDigits(t *testing.T) {
	set := sample(t)
	text, err := json.Marshal(set.Bank["USD"], json.Deterministic(true))
	if err != nil || string(text) != `{"buy":{"rate":300.1250,"date":"2026-11-20"},"sell":{"rate":310.2500,`+
		`"date":"2026-11-20"},"central":{"rate":300.5000,"date":"2026-11-20"}}` {
		t.Errorf("%s, %v", text, err)
	}
	back := must.Get(decodeSet(item{"rates": jsonText(set)})).Or(t)
	for code, rate := range set.Rates {
		if back.Rates[code].String() != rate.String() {
			t.Errorf("%s: %s became %s", code, rate, back.Rates[code])
		}
	}
	if !maps.EqualFunc(back.Bank, set.Bank, Record.Equal) || back.Source != set.Source || back.Base != set.Base ||
		!back.Date.Equal(set.Date) {
		t.Errorf("%+v", back)
	}
}

// A day begins at midnight in Colombo, and Monday to Friday are working days.
func TestDay(t *testing.T) {
	for day, working := range map[Day]bool{
		"2026-11-20": true, "2026-11-21": false, "2026-11-22": false, "2026-11-23": true, "2026-11-25": true,
	} {
		want := must.Get(time.Parse(time.RFC3339, string(day)+"T00:00:00+05:30")).Or(t)
		start := day.Start()
		if !start.Equal(want) || day.Working() != working || DayOf(start) != day ||
			DayOf(start.Add(-time.Second)) != day.Back(1) {
			t.Errorf("%s begins at %s, working %v", day, start, day.Working())
		}
	}
}

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
	must.Succeed(t, Validate(changed(t, set("LKR", "9")), nil, nil, saturday, false))
	must.Succeed(t, Validate(changed(t, func(table *Table) { table.Date = table.Date.AddDate(0, 0, -1) }), nil,
		&stored.Table, saturday, false))
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

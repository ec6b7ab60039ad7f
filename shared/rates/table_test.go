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
	back, err := decodeSet(item{"rates": jsonText(set)})
	must.Succeed(t, err)
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
		want, err := time.Parse(time.RFC3339, string(day)+"T00:00:00+05:30")
		must.Succeed(t, err)
		start := day.Start()
		if !start.Equal(want) || day.Working() != working || DayOf(start) != day ||
			DayOf(start.Add(-time.Second)) != day.Back(1) {
			t.Errorf("%s begins at %s, working %v", day, start, day.Working())
		}
	}
}

package rates

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"svcapi/shared/project"
	"svcapi/test/enginetest"
	"svcapi/test/itemtest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func testStore(t *testing.T) *Store {
	t.Helper()
	db, tables := enginetest.Client(t)
	return NewStore(db, tables.Rates)
}

// TestCurrentIsReplacedWhole: of two writers with the same read one wins, and the other one wins after another read.
func TestCurrentIsReplacedWhole(t *testing.T) {
	s := testStore(t)
	if set, err := s.Current(t.Context()); set != nil || err != nil {
		t.Fatalf("%v, %v", set, err)
	}
	for version := range int64(3) {
		stored, err := s.Stored(t.Context())
		if err != nil || stored.version != version {
			t.Fatalf("version %d, %v", stored.version, err)
		}
		winner, loser := sample(t), sample(t)
		winner.Rates["LKR"], loser.Source = dec(t, fmt.Sprint(300+version)), "loser"
		must.Succeed(t, s.PutCurrent(t.Context(), stored, winner))
		if err := s.PutCurrent(t.Context(), stored, loser); !errors.Is(err, ErrChanged) {
			t.Errorf("the second writer: %v", err)
		}
		if set, err := s.Current(t.Context()); err != nil || set.Source != winner.Source ||
			set.Rates["LKR"].Cmp(winner.Rates["LKR"]) != 0 {
			t.Errorf("%+v, %v", set, err)
		}
	}
}

// TestSources: the last valid fetch of a source stays beside a failure, and an older fetch does not replace a newer
// one.
func TestSources(t *testing.T) {
	s, set := testStore(t), sample(t)
	put := func(name string, date, fetched time.Time) error {
		table := set.Table
		table.Date, table.Fetched = date, fetched
		return s.PutSource(t.Context(), name, Source{Table: &table, Fetched: fetched, Tried: fetched})
	}
	noon := saturday
	for _, c := range []struct {
		do   func() error
		want error
	}{
		{func() error { return s.PutFailure(t.Context(), "made", "no response", noon.Add(-time.Hour)) }, nil},
		{func() error { return put("made", noon, noon) }, nil},
		{func() error { return put("made", noon, noon.Add(time.Hour)) }, nil},
		{func() error { return put("made", noon.Add(-time.Hour), noon.Add(2*time.Hour)) }, ErrChanged},
		{func() error {
			return s.PutSource(t.Context(), BankSource, Source{Bank: set.Bank, Fetched: noon, Tried: noon})
		}, nil},
		{func() error {
			return s.PutSource(t.Context(), BankSource, Source{Bank: Bank{}, Fetched: noon.Add(-time.Hour), Tried: noon})
		}, ErrChanged},
		{func() error { return s.PutFailure(t.Context(), "made", "not valid", noon.Add(3*time.Hour)) }, nil},
		{func() error { return s.PutPin(t.Context(), &Pin{"made", "why", "who", noon}) }, nil},
	} {
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	stored := must.Get(s.Stored(t.Context())).Or(t)
	made := stored.Sources["made"]
	if made.Table == nil || !made.Table.Date.Equal(noon) || !made.Fetched.Equal(noon.Add(time.Hour)) ||
		made.Failure != "not valid" || !made.Tried.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("%+v", made)
	}
	if bank := stored.Sources[BankSource]; len(bank.Bank) != 6 || bank.Table != nil {
		t.Errorf("%+v", bank)
	}
	if stored.Pin == nil || *stored.Pin != (Pin{"made", "why", "who", noon}) || stored.Current != nil {
		t.Errorf("%+v", stored)
	}
	must.Succeed(t, s.PutPin(t.Context(), nil))
	if stored = must.Get(s.Stored(t.Context())).Or(t); stored.Pin != nil {
		t.Errorf("%+v", stored.Pin)
	}
}

func TestHistory(t *testing.T) {
	s, set := testStore(t), sample(t)
	for n := range 5 {
		e := Event{At: saturday.Add(time.Duration(n/2) * time.Hour), Source: "made", Outcome: "taken",
			Detail: fmt.Sprint(n), Actor: "schedule"}
		if n == 4 {
			e.Set = set
		}
		must.Succeed(t, s.PutEvent(t.Context(), e, n%2))
	}
	events, err := s.History(t.Context(), 4)
	if err != nil || len(events) != 4 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if e.Detail != fmt.Sprint(4-i) || e.Source != "made" || e.Outcome != "taken" || e.Actor != "schedule" ||
			(e.Set != nil) != (i == 0) {
			t.Errorf("%d: %+v", i, e)
		}
	}
	if !events[0].At.Equal(saturday.Add(2*time.Hour)) || events[0].Set.Rates["LKR"].String() != "304.718462" {
		t.Errorf("%+v", events[0])
	}
}

// TestUsedOn: a day has the newest set of the day or before it, within the life of the history.
func TestUsedOn(t *testing.T) {
	s := testStore(t)
	midnight := saturday.Truncate(24 * time.Hour)
	used := func(days int, now time.Time) string {
		t.Helper()
		set, first, err := s.UsedOn(t.Context(), midnight.AddDate(0, 0, days), now)
		switch {
		case err != nil:
			t.Fatal(err)
		case set != nil:
			return set.Source
		case first.IsZero():
			return "nothing"
		}
		return "from " + first.Format(time.DateOnly)
	}
	if got := used(0, saturday); got != "nothing" {
		t.Error(got)
	}
	for n, hours := range []int{-72, -49, -48, -24, -1} { // from midnight
		for place := range 6 {
			e := Event{At: midnight.Add(time.Duration(hours) * time.Hour), Source: "made", Outcome: "failed"}
			if place == 3 && hours != -24 { // a day on which every fetch failed
				e.Set = sample(t)
				e.Set.Source = fmt.Sprint("set ", n)
			}
			must.Succeed(t, s.PutEvent(t.Context(), e, place))
		}
	}
	first := "from " + midnight.AddDate(0, 0, -3).Format(time.DateOnly)
	for days, want := range map[int]string{
		-4: first, -3: "set 1", -2: "set 2", -1: "set 4", 0: "set 4", 1: first, 400: first, -400: first,
	} {
		if got := used(days, saturday); got != want {
			t.Errorf("day %d: %s, want %s", days, got, want)
		}
	}
	late := midnight.Add(historyLife - 50*time.Hour)
	if got := used(-3, late); got != "set 1" {
		t.Error(got)
	}
	if got := used(-4, late.Add(time.Hour+time.Second)); got != "from "+midnight.AddDate(0, 0, -2).Format(time.DateOnly) {
		t.Error(got)
	}
}

// TestClaim: one of several claimants gets the claim, and the next one only after the pause or a failure.
func TestClaim(t *testing.T) {
	s, set := testStore(t), sample(t)
	const id, env = "acme", project.Production
	claim := func(who string, now time.Time) bool {
		t.Helper()
		return must.Get(s.Claim(t.Context(), id, env, who, now, time.Minute, 10*time.Second)).Or(t)
	}
	if !claim("first", saturday) || claim("second", saturday) {
		t.Error("not one claim of two")
	}
	at := func(seconds int) time.Time { return saturday.Add(time.Duration(seconds) * time.Second) }
	if claim("late", at(59)) || !claim("later", at(60)) || !claim("later", at(61)) {
		t.Error("a claim within the pause, or no repeat of the same claim")
	}
	must.Succeed(t, s.FailProjectRates(t.Context(), id, env, at(62)))
	if claim("soon", at(71)) || !claim("again", at(72)) {
		t.Error("after a failure")
	}
	must.Succeed(t, s.PutProjectRates(t.Context(), id, env, set, at(72)))
	got, err := s.ProjectRates(t.Context(), id, env, true)
	if err != nil || got.Set == nil || got.Set.Rates["LKR"].String() != "304.718462" || !got.Tried.Equal(at(72)) ||
		!got.Failed.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	if other, err := s.ProjectRates(t.Context(), id, project.Development, true); err != nil || other.Set != nil {
		t.Errorf("%+v, %v", other, err)
	}
}

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

package rates

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/shared/project"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func testStore(t *testing.T) *Store {
	t.Helper()
	db, tables := enginetest.Client(t)
	return NewStore(db, tables.Rates)
}

// TestCurrentIsReplacedWhole: of several writers with the same read one wins, and readers see whole sets only.
func TestCurrentIsReplacedWhole(t *testing.T) {
	s := testStore(t)
	if set, err := s.Current(t.Context()); set != nil || err != nil {
		t.Fatalf("%v, %v", set, err)
	}
	// Set n has every rate and value equal to n, and so has no mixture.
	uniform := func(n int64) *Set {
		set := sample(t)
		value := dec(t, fmt.Sprint(n))
		for code := range set.Rates {
			if code != set.Base {
				set.Rates[code] = value
			}
		}
		for base := range set.Bank {
			set.Bank[base] = Record{Quote{value, "2026-11-20"}, Quote{value, "2026-11-20"}, Quote{value, "2026-11-20"}}
		}
		return set
	}
	const writers, rounds = 4, 15
	var wins, losses, number atomic.Int64
	done := make(chan struct{})
	var reading, writing sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				set, err := s.Current(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if set == nil {
					continue
				}
				want := set.Rates["LKR"].String()
				for code, rate := range set.Rates {
					if code != set.Base && rate.String() != want {
						t.Errorf("%s is %s in the set %s", code, rate, want)
					}
				}
				if got := set.Bank["JPY"].Sell.Rate.String(); got != want {
					t.Errorf("the bank's value is %s in the set %s", got, want)
				}
			}
		})
	}
	for range writers {
		writing.Go(func() {
			for range rounds {
				stored, err := s.Stored(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				switch err := s.PutCurrent(t.Context(), stored, uniform(number.Add(1))); {
				case err == nil:
					wins.Add(1)
				case errors.Is(err, ErrChanged):
					losses.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	stored, err := s.Stored(t.Context())
	if err != nil || stored.version != wins.Load() || wins.Load()+losses.Load() != writers*rounds {
		t.Errorf("version %d after %d wins and %d losses, %v", stored.version, wins.Load(), losses.Load(), err)
	}
}

// TestSources: the last valid fetch of a source stays beside a failure, and an older fetch does not replace a newer one.
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
	stored, err := s.Stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made := stored.Sources["made"]
	if made.Table == nil || !made.Table.Date.Equal(noon) || !made.Fetched.Equal(noon.Add(time.Hour)) || made.Failure != "not valid" || !made.Tried.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("%+v", made)
	}
	if bank := stored.Sources[BankSource]; len(bank.Bank) != 6 || bank.Table != nil {
		t.Errorf("%+v", bank)
	}
	if stored.Pin == nil || *stored.Pin != (Pin{"made", "why", "who", noon}) || stored.Current != nil {
		t.Errorf("%+v", stored)
	}
	if err := s.PutPin(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if stored, err = s.Stored(t.Context()); err != nil || stored.Pin != nil {
		t.Errorf("%+v, %v", stored.Pin, err)
	}
}

func TestHistory(t *testing.T) {
	s, set := testStore(t), sample(t)
	for n := range 5 {
		e := Event{At: saturday.Add(time.Duration(n/2) * time.Hour), Source: "made", Outcome: "taken", Detail: fmt.Sprint(n), Actor: "schedule"}
		if n == 4 {
			e.Set = set
		}
		if err := s.PutEvent(t.Context(), e, n%2); err != nil {
			t.Fatal(err)
		}
	}
	events, err := s.History(t.Context(), 4)
	if err != nil || len(events) != 4 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if e.Detail != fmt.Sprint(4-i) || e.Source != "made" || e.Outcome != "taken" || e.Actor != "schedule" || (e.Set != nil) != (i == 0) {
			t.Errorf("%d: %+v", i, e)
		}
	}
	if !events[0].At.Equal(saturday.Add(2*time.Hour)) || events[0].Set.Rates["LKR"].String() != "304.718462" {
		t.Errorf("%+v", events[0])
	}
}

// TestClaim: one of several claimants gets the claim, and the next one only after the pause or a failure.
func TestClaim(t *testing.T) {
	s, set := testStore(t), sample(t)
	const id, env = "acme", project.Production
	claim := func(who string, now time.Time) bool {
		t.Helper()
		claimed, err := s.Claim(t.Context(), id, env, who, now, time.Minute, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return claimed
	}
	var claimed atomic.Int64
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			if ok, err := s.Claim(t.Context(), id, env, fmt.Sprint(n), saturday, time.Minute, 10*time.Second); err != nil {
				t.Error(err)
			} else if ok {
				claimed.Add(1)
			}
		})
	}
	all.Wait()
	if claimed.Load() != 1 {
		t.Errorf("%d claims, want 1", claimed.Load())
	}
	at := func(seconds int) time.Time { return saturday.Add(time.Duration(seconds) * time.Second) }
	if claim("late", at(59)) || !claim("later", at(60)) || !claim("later", at(61)) {
		t.Error("a claim within the pause, or no repeat of the same claim")
	}
	if err := s.FailProjectRates(t.Context(), id, env, at(62)); err != nil {
		t.Fatal(err)
	}
	if claim("soon", at(71)) || !claim("again", at(72)) {
		t.Error("after a failure")
	}
	if err := s.PutProjectRates(t.Context(), id, env, set, at(72)); err != nil {
		t.Fatal(err)
	}
	got, err := s.ProjectRates(t.Context(), id, env, true)
	if err != nil || got.Set == nil || got.Set.Rates["LKR"].String() != "304.718462" || !got.Tried.Equal(at(72)) || !got.Failed.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	if other, err := s.ProjectRates(t.Context(), id, project.Development, true); err != nil || other.Set != nil {
		t.Errorf("%+v, %v", other, err)
	}
}

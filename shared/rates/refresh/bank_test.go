package refresh

import (
	"errors"
	"sync"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/rates"
	"svcapi/test/must"
)

// docs/decisions/currency.md#bank-schedule: two hours on a working day, a growing pause after failures, a daily limit.
func TestBankNext(t *testing.T) {
	at := func(text string) time.Time { // in Colombo
		when, err := time.Parse("Mon 2006-01-02 15:04 -0700", text+" +0530")
		must.Succeed(t, err)
		return when
	}
	hours := BankSchedule{12, 16}
	for name, c := range map[string]struct {
		schedule          BankSchedule
		tried             string
		failures, fetches int
		want              string // empty: at once
	}{
		"no schedule":                  {nil, "Wed 2026-11-18 12:20", 0, 1, ""},
		"never":                        {hours, "", 0, 0, ""},
		"before the first hour":        {hours, "Wed 2026-11-18 00:20", 0, 1, "Wed 2026-11-18 12:00"},
		"after the first hour":         {hours, "Wed 2026-11-18 12:20", 0, 1, "Wed 2026-11-18 16:00"},
		"at the hour":                  {hours, "Wed 2026-11-18 12:00", 0, 1, "Wed 2026-11-18 16:00"},
		"the day's limit":              {hours, "Wed 2026-11-18 12:20", 0, 2, "Thu 2026-11-19 12:00"},
		"after the last hour":          {hours, "Wed 2026-11-18 16:20", 0, 1, "Thu 2026-11-19 12:00"},
		"on Friday":                    {hours, "Fri 2026-11-20 16:20", 0, 2, "Mon 2026-11-23 12:00"},
		"on a weekend":                 {hours, "Sat 2026-11-21 03:20", 0, 1, "Mon 2026-11-23 12:00"},
		"one failure":                  {hours, "Wed 2026-11-18 12:20", 1, 1, "Wed 2026-11-18 13:20"},
		"two failures":                 {hours, "Wed 2026-11-18 13:20", 2, 2, "Thu 2026-11-19 00:00"},
		"two failures, late":           {hours, "Wed 2026-11-18 23:20", 2, 2, "Thu 2026-11-19 01:20"},
		"five failures":                {hours, "Thu 2026-11-19 04:20", 5, 1, "Thu 2026-11-19 20:20"},
		"many failures":                {hours, "Thu 2026-11-19 04:20", 500, 1, "Fri 2026-11-20 04:20"},
		"a failure before the weekend": {hours, "Fri 2026-11-20 16:20", 1, 2, "Sat 2026-11-21 00:00"},
	} {
		last := rates.Source{Failures: c.failures, FetchesToday: c.fetches}
		if c.tried != "" {
			last.Tried = at(c.tried)
		}
		var want time.Time
		if c.want != "" {
			want = at(c.want)
		}
		if got := c.schedule.next(last); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Of runs at once one asks the bank. A run that dies counts as a failure, and a failure is reported until a fetch
// succeeds.
func TestBankClaim(t *testing.T) {
	f := newFixture(t)
	scheduled := Options{Bank: BankSchedule{12, 16}}
	var runs sync.WaitGroup
	for range 3 {
		runs.Go(func() {
			if _, err := f.Run(t.Context(), scheduled); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	requests := 0
	for _, call := range f.sandbox.Calls() {
		if call.Vendor == rates.BankSource {
			requests++
		}
	}
	if requests != 4 {
		t.Errorf("%d requests of three runs", requests)
	}
	f.run(scheduled, nil, "openexchangerates taken", "cbsl skipped")
	stored, err := f.Store.Stored(t.Context())
	must.Succeed(t, err)
	before := stored.Sources[rates.BankSource]
	if before.Failures != 0 || before.FetchesToday != 1 || len(before.Bank) != 6 {
		t.Errorf("%+v", before)
	}

	f.clock.Store(int64(7 * 24 * time.Hour))
	claimed, err := f.Store.ClaimFetch(t.Context(), rates.BankSource, before, f.Now())
	if err != nil || claimed.Failures != 1 || claimed.FetchesToday != 1 || len(claimed.Bank) != 6 {
		t.Errorf("%+v, %v", claimed, err)
	}
	if _, err := f.Store.ClaimFetch(t.Context(), rates.BankSource, before,
		f.Now().Add(time.Second)); !errors.Is(err, rates.ErrChanged) {
		t.Errorf("a second claim: %v", err)
	}
	f.run(scheduled, nil, "openexchangerates taken", "cbsl skipped")
	f.clock.Add(int64(time.Hour))
	must.Succeed(t, f.sandbox.SetRules(sandbox.Rule{Vendor: rates.BankSource, Outcome: sandbox.Unparseable}))
	f.run(scheduled, nil, "openexchangerates taken", "cbsl failed")
	history := f.history()
	f.run(scheduled, nil, "openexchangerates taken", "cbsl waiting")
	if got := f.history(); got != history {
		t.Errorf("history %q, want %q", got, history)
	}
	// An operator's run asks at once.
	must.Succeed(t, f.sandbox.SetRules())
	f.run(Options{}, nil, "openexchangerates taken", bankTaken)
}

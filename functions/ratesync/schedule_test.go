package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/refresh"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/test/enginetest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

type noAccounts struct{}

func (noAccounts) Fields(context.Context, project.Kind, string, project.Environment,
	string) (upstream.SecretValues, error) {
	return nil, nil
}

// newFixture returns the function with a table, the sandbox of the sources and a clock.
func newFixture(t *testing.T, log io.Writer, now *time.Time) (*scheduled, *sandbox.Server) {
	t.Helper()
	db, tables := enginetest.Client(t)
	server, err := sandbox.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return &scheduled{
		refresher: &refresh.Refresher{
			Store: rates.NewStore(db, tables.Rates), Client: upstream.New(upstream.Config{TimeoutSeconds: 2, Local: true}),
			Secrets: noAccounts{}, Endpoint: server.URL, Now: func() time.Time { return *now },
		},
		log: telemetry.New(log, telemetry.Config{}),
	}, server
}

// docs/decisions/currency.md#rates-in-use: after a failed or rejected fetch the last good rates stay, and metrics raise
// an alarm. The function fails where it cannot read or write the table, and not where no source returned rates.
func TestHandle(t *testing.T) {
	now := time.Now()
	var log bytes.Buffer
	s, server := newFixture(t, &log, &now)
	type line struct {
		Level, Message                                             string
		RatesRefused, RatesFailed, RatesAge, RatesDateAge, BankAge *float64
	}
	run := func() (l line) {
		t.Helper()
		log.Reset()
		must.Succeed(t, s.handle(t.Context()))
		if err := json.Unmarshal(log.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", log.Bytes(), err)
		}
		return l
	}
	is := func(what string, got *float64, least, most float64) {
		t.Helper()
		if got == nil || *got < least || *got > most {
			t.Errorf("%s: %s", what, log.Bytes())
		}
	}
	fail := func(rules ...sandbox.Rule) {
		t.Helper()
		must.Succeed(t, server.SetRules(rules...))
	}

	fail(sandbox.Rule{Outcome: sandbox.ServerError})
	l := run()
	is("nothing held", l.RatesFailed, 2, 2)
	if l.Level != "ERROR" || l.RatesAge != nil || l.BankAge != nil {
		t.Errorf("%s", log.Bytes())
	}
	fail()
	l = run()
	is("good", l.RatesFailed, 0, 0)
	is("good", l.RatesRefused, 0, 0)
	is("good", l.RatesAge, 0, 0)
	is("good", l.RatesDateAge, 0, 4*86400) // the source has no weekends
	is("good", l.BankAge, 0, 4*86400)
	if l.Level != "INFO" {
		t.Errorf("%s", log.Bytes())
	}
	now = now.Add(48 * time.Hour)
	fail(sandbox.Rule{Outcome: sandbox.Rejected})
	l = run()
	is("failed", l.RatesFailed, 2, 2)
	is("failed", l.RatesAge, 48*3600, 48*3600+1)
	is("failed", l.BankAge, 48*3600, 7*86400)
	fail(sandbox.Rule{Vendor: "cbsl", Outcome: sandbox.Unparseable})
	l = run()
	is("the bank failed", l.RatesFailed, 1, 1)
	is("the bank failed", l.RatesAge, 0, 0)
	if l.Level != "WARN" {
		t.Errorf("%s", log.Bytes())
	}
	db, _ := enginetest.Client(t)
	s.refresher.Store = rates.NewStore(db, "no-such-table")
	log.Reset()
	if err := s.handle(t.Context()); err == nil || errors.Is(err, refresh.ErrNoRates) ||
		!bytes.Contains(log.Bytes(), []byte("rates not synced")) {
		t.Errorf("without a table: %v, %s", err, log.Bytes())
	}
}

// docs/decisions/currency.md#bank-schedule: the central bank gets at most four requests twice on a working day. Other
// days have none, unless the fetch before has failed.
func TestBankRequests(t *testing.T) {
	monday := rates.DayOf(time.Now())
	for !monday.Working() || monday.Back(1).Working() {
		monday = monday.Back(-1)
	}
	now := monday.Start().Add(20 * time.Minute) // the hourly runs are not at the full hour
	s, server := newFixture(t, io.Discard, &now)
	s.bankHours = refresh.BankSchedule{12, 16}
	for day, c := range []struct {
		fails   int // the number of requests from noon on that fail; a fetch that fails has two requests
		hours   string
		failing bool // at the end of the day
	}{
		{0, "0:4 12:4", false}, // Monday; a new stack asks at once, and the day's limit is two fetches
		{0, "12:4 16:4", false},
		{99, "12:2 13:2", true}, // Wednesday: a failure, and one more after an hour
		{2, "0:2 4:4", false},   // Thursday, the third failure, with a pause of four hours
		{99, "12:2 13:2", true}, // Friday
		{99, "0:2 4:2", true},   // Saturday, because Friday failed
		{0, "0:4", false},       // Sunday, because Saturday failed
		{0, "12:4 16:4", false}, // Monday
	} {
		var rules []sandbox.Rule
		if c.fails > 0 {
			rules = append(rules, sandbox.Rule{Vendor: "cbsl", Outcome: sandbox.Unparseable, Times: c.fails})
		}
		must.Succeed(t, server.SetRules(rules...))
		var hours []string
		total := 0
		for range 24 {
			server.Forget()
			must.Succeed(t, s.handle(t.Context()))
			requests := 0
			for _, call := range server.Calls() {
				if call.Vendor == "cbsl" {
					requests++
				}
			}
			if requests > 0 {
				hours = append(hours, fmt.Sprintf("%d:%d", int(now.Sub(rates.DayOf(now).Start()).Hours()), requests))
				total += requests
			}
			now = now.Add(time.Hour)
		}
		if got := strings.Join(hours, " "); got != c.hours || total > 8 {
			t.Errorf("day %d, %s: requests at %q, want %q", day, monday.Back(-day), got, c.hours)
		}
		stored, err := s.refresher.Store.Stored(t.Context())
		if source := stored.Sources[rates.BankSource]; err != nil || (source.Failures > 0) != c.failing ||
			len(source.Bank) != 6 {
			t.Errorf("day %d: %+v, %v", day, source, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Setenv("STAGE", "test")
	t.Setenv("RATES_TABLE", "")
	if _, err := settings.Read[config](); err == nil {
		t.Error("no table, no error")
	}
	t.Setenv("RATES_TABLE", "rates")
	t.Setenv("VENDOR_TIMEOUT_SECONDS", "0")
	if _, err := settings.Read[config](); err == nil {
		t.Error("no time, no error")
	}
	t.Setenv("VENDOR_TIMEOUT_SECONDS", "5")
	if c, err := settings.Read[config](); err != nil || c.RatesTable != "rates" || c.Endpoint != "" ||
		!slices.Equal(c.BankHours, []int{12, 16}) {
		t.Errorf("%+v, %v", c, err)
	}
	for hours, valid := range map[string]bool{
		"0": true, "0,6,12,23": true, "": true, "24": false, "-1,3": false, "16,12": false, "12,12": false,
		"1,2,3,4,5": false, "noon": false,
	} {
		t.Setenv("CENTRAL_BANK_HOURS", hours)
		if c, err := settings.Read[config](); (err == nil) != valid {
			t.Errorf("%q: %v, %v", hours, c.BankHours, err)
		}
	}
}

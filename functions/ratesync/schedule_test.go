package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
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

// docs/decisions/currency.md#rates-in-use: after a failed or rejected fetch the last good rates stay, and metrics raise
// an alarm. The function fails where it cannot read or write the table, and not where no source returned rates.
func TestHandle(t *testing.T) {
	now := time.Now()
	var log bytes.Buffer
	db, tables := enginetest.Client(t)
	server, err := sandbox.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = server.Close() })
	s := &scheduled{
		refresher: &refresh.Refresher{
			Store: rates.NewStore(db, tables.Rates), Client: upstream.New(upstream.Config{TimeoutSeconds: 2, Local: true}),
			Secrets: noAccounts{}, Endpoint: server.URL, Now: func() time.Time { return now },
		},
		log: telemetry.New(&log, telemetry.Config{}),
	}
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
	s.bankHours, now = refresh.BankSchedule{12, 16}, now.Add(time.Minute)
	fail()
	server.Forget()
	if l = run(); *l.RatesFailed != 1 || len(server.Calls()) != 1 {
		t.Errorf("within the pause after the bank's failure: %s, %+v", log.Bytes(), server.Calls())
	}
	s.refresher.Store = rates.NewStore(db, "no-such-table")
	log.Reset()
	if err := s.handle(t.Context()); err == nil || errors.Is(err, refresh.ErrNoRates) ||
		!bytes.Contains(log.Bytes(), []byte("rates not synced")) {
		t.Errorf("without a table: %v, %s", err, log.Bytes())
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

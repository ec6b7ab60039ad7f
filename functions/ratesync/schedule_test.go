package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/refresh"
	"svcapi/shared/secret"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

type noAccounts struct{}

func (noAccounts) Fields(context.Context, project.Kind, string, project.Environment, string) (secret.Values, error) {
	return nil, nil
}

// docs/decisions.md#rates-in-use: after a failed or rejected fetch the last good rates stay, and the metrics of the fetch raise
// an alarm. The function fails where it cannot read or write the table, and not where no source returned rates.
func TestHandle(t *testing.T) {
	db, tables := enginetest.Client(t)
	server, err := sandbox.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	now := time.Now()
	var log bytes.Buffer
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
		if err := s.handle(t.Context()); err != nil {
			t.Fatal(err)
		}
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
		if err := server.SetRules(rules...); err != nil {
			t.Fatal(err)
		}
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
	s.refresher.Store = rates.NewStore(db, "no-such-table")
	log.Reset()
	if err := s.handle(t.Context()); err == nil || errors.Is(err, refresh.ErrNoRates) || !bytes.Contains(log.Bytes(), []byte("rates not synced")) {
		t.Errorf("without a table: %v, %s", err, log.Bytes())
	}
}

func TestConfig(t *testing.T) {
	t.Setenv("STAGE", "test")
	t.Setenv("RATES_TABLE", "")
	if _, err := loadConfig(); err == nil {
		t.Error("no table, no error")
	}
	t.Setenv("RATES_TABLE", "rates")
	t.Setenv("VENDOR_TIMEOUT_SECONDS", "0")
	if _, err := loadConfig(); err == nil {
		t.Error("no time, no error")
	}
	t.Setenv("VENDOR_TIMEOUT_SECONDS", "5")
	if c, err := loadConfig(); err != nil || c.RatesTable != "rates" || c.Endpoint != "" {
		t.Errorf("%+v, %v", c, err)
	}
}

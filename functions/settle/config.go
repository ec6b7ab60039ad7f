package main

import (
	"fmt"
	"time"

	"svcapi/shared/telemetry"
)

// Config is the configuration that the function reads from the environment.
type Config struct {
	WalletsTable string `env:"WALLETS_TABLE,required,notEmpty"`
	LedgerTable  string `env:"LEDGER_TABLE,required,notEmpty"`
	// TransientTable holds what the projects spent in the week before.
	TransientTable string `env:"TRANSIENT_TABLE,required,notEmpty"`
	// UnusualSpending is the number of credits below which an hour of one project is never unusual.
	UnusualSpending int64 `env:"UNUSUAL_SPENDING_CREDITS" envDefault:"5000000"`
	// After is the age, in seconds, from which the request of a reservation is dead: longer than any function can live.
	// The parameter SettleAfterSeconds of template.yaml holds the value.
	After int `env:"SETTLE_AFTER_SECONDS,required"`
	// CapturedAfter is the age, in seconds, from which a captured reservation is removed: no late copy can follow then,
	// because a signed request stays valid for 15 minutes at most.
	CapturedAfter int `env:"SETTLE_CAPTURED_AFTER_SECONDS,required"`
	Log           telemetry.Config
}

// Validate returns the reason why the configuration is not valid.
func (c Config) Validate() error {
	if c.After < 1 || c.CapturedAfter < c.After {
		return fmt.Errorf("SETTLE_AFTER_SECONDS %d must be at least 1 and at most SETTLE_CAPTURED_AFTER_SECONDS %d", c.After, c.CapturedAfter)
	}
	return nil
}

// Ages returns the configured ages.
func (c Config) Ages() Ages {
	return Ages{Dead: time.Duration(c.After) * time.Second, Captured: time.Duration(c.CapturedAfter) * time.Second}
}

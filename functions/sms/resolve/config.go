package main

import (
	"errors"
	"fmt"
	"time"

	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
)

// Config is the configuration that the function reads from the environment.
type Config struct {
	Stage            string `env:"STAGE,required,notEmpty"`
	ProjectsTable    string `env:"PROJECTS_TABLE,required,notEmpty"`
	WalletsTable     string `env:"WALLETS_TABLE,required,notEmpty"`
	LedgerTable      string `env:"LEDGER_TABLE,required,notEmpty"`
	MovementsTable   string `env:"MOVEMENTS_TABLE,required,notEmpty"`
	ResolutionsTable string `env:"RESOLUTIONS_TABLE,required,notEmpty"`
	// Period is the time between two runs, in seconds, as the schedule in template.yaml has it.
	Period int `env:"RESOLVE_PERIOD_SECONDS,required"`
	// After is the age of a send at its first question, in seconds.
	After int `env:"RESOLVE_AFTER_SECONDS" envDefault:"120"`
	// Absent is the age of a send, in seconds, from which a vendor that does not know the send will never send it. It is the
	// age at the second question.
	Absent   int `env:"RESOLVE_ABSENT_SECONDS" envDefault:"600"`
	Upstream upstream.Config
	Log      telemetry.Config
}

// Validate returns the reasons why the configuration is not valid.
func (c Config) Validate() (err error) {
	if c.Period < 1 || c.After < 1 || c.Absent < c.After {
		err = fmt.Errorf("RESOLVE_PERIOD_SECONDS %d, RESOLVE_AFTER_SECONDS %d and RESOLVE_ABSENT_SECONDS %d do not fit together", c.Period, c.After, c.Absent)
	}
	return errors.Join(err, c.Upstream.Validate())
}

// Ages returns the configured ages.
func (c Config) Ages() Ages {
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return Ages{Period: seconds(c.Period), First: seconds(c.After), Absent: seconds(c.Absent)}
}

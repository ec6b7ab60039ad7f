// Command settle is the scheduled function that closes the leases that instances left in the wallets.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/ratelimit"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

func main() {
	cfg, err := settings.Read[Config]()
	if err != nil {
		telemetry.Exit(err)
	}
	db := dynamo.NewClient(dynamo.FromEnvironment())
	settler := &Settler{
		Store: wallet.NewStore(db, wallet.Tables{Wallets: cfg.WalletsTable, Ledger: cfg.LedgerTable}),
		After: time.Duration(cfg.After) * time.Second,
		Now:   cache.Clock{}.Now,
		Log:   telemetry.New(os.Stdout, cfg.Log),

		AtOnce: 8,

		Limiter:  ratelimit.New(db, cfg.TransientTable),
		Spending: &Spending{DB: db, Table: cfg.TransientTable, Least: cfg.UnusualSpending},
	}
	lambda.Start(settler.Handle)
}

// Config is the configuration that the function reads from the environment.
type Config struct {
	WalletsTable string `env:"WALLETS_TABLE,required,notEmpty"`
	LedgerTable  string `env:"LEDGER_TABLE,required,notEmpty"`
	// TransientTable holds what the projects spent in the week before.
	TransientTable string `env:"TRANSIENT_TABLE,required,notEmpty"`
	// UnusualSpending is the number of credits below which an hour of one project is never unusual.
	UnusualSpending int64 `env:"UNUSUAL_SPENDING_CREDITS" envDefault:"5000000"`
	// After is the Settler's, in seconds.
	After int `env:"SETTLE_AFTER_SECONDS,required"`
	Log   telemetry.Config
}

// Validate returns the reason why the configuration is not valid.
func (c Config) Validate() error {
	if c.After < 1 {
		return fmt.Errorf("SETTLE_AFTER_SECONDS is %d, not 1 or more", c.After)
	}
	return nil
}

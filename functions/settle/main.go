// Command settle is the scheduled function that closes the leases that instances left in the wallets.
package main

import (
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

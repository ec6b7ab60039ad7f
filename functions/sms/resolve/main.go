// Command resolve is the scheduled function that asks the vendors about Managed sends with an uncertain outcome.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"svcapi/functions/sms/ask"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/books"
	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

func main() {
	cfg, err := settings.Read[Config]()
	if err != nil {
		telemetry.Exit(err)
	}
	awsConfig := dynamo.FromEnvironment()
	db, log := dynamo.NewClient(awsConfig), telemetry.New(os.Stdout, cfg.Log)
	resolver := &Resolver{
		Asker: &ask.Asker{
			Credits: books.NewStore(db, books.Tables{
				Tables:    wallet.Tables{Wallets: cfg.WalletsTable, Ledger: cfg.LedgerTable},
				Movements: cfg.MovementsTable, Resolutions: cfg.ResolutionsTable,
			}),
			Projects: project.NewStore(db, cfg.ProjectsTable),
			Client:   upstream.New(cfg.Upstream),
			// no cache, because runs are far apart
			Secrets: upstream.NewSecretCache(upstream.NewSecretsClient(awsConfig), cfg.Stage, upstream.SecretConfig{}, log),
			Vendors: vendors.NewTable(awsConfig),
			Absent:  cfg.Ages.Absent,
			Now:     cache.Clock{}.Now,
			Actor:   actor,
		},
		Ages: cfg.Ages,
		Log:  log,
	}
	lambda.Start(resolver.Handle)
}

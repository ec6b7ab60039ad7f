// Command resolve is the scheduled function that asks the vendors about Managed sends with an uncertain outcome.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

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

// Config is the configuration that the function reads from the environment.
type Config struct {
	Stage            string `env:"STAGE,required,notEmpty"`
	ProjectsTable    string `env:"PROJECTS_TABLE,required,notEmpty"`
	WalletsTable     string `env:"WALLETS_TABLE,required,notEmpty"`
	LedgerTable      string `env:"LEDGER_TABLE,required,notEmpty"`
	MovementsTable   string `env:"MOVEMENTS_TABLE,required,notEmpty"`
	ResolutionsTable string `env:"RESOLUTIONS_TABLE,required,notEmpty"`
	Ages             Ages
	Upstream         upstream.Config
	Log              telemetry.Config
}

// Ages are the ages of a send at which Run asks its vendor: First, Absent, and each hour of the first day. A question
// is due in the run in which the send reaches such an age, so that no question is stored.
type Ages struct {
	Period time.Duration `env:"RESOLVE_PERIOD,required"` // between two runs, as the schedule in template.yaml has it
	First  time.Duration `env:"RESOLVE_FIRST" envDefault:"2m"`
	// Absent is the age from which a vendor that does not know the send will never send it.
	Absent time.Duration `env:"RESOLVE_ABSENT" envDefault:"10m"`
}

// Validate returns the reasons why the configuration is not valid.
func (c Config) Validate() (err error) {
	if a := c.Ages; a.Period <= 0 || a.First <= 0 || a.Absent < a.First {
		err = fmt.Errorf("RESOLVE_PERIOD, RESOLVE_FIRST and RESOLVE_ABSENT do not fit together: %v", a)
	}
	return errors.Join(err, c.Upstream.Validate())
}

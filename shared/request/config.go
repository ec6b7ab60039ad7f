package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/admit"
	"svcapi/shared/afterresponse"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

// Config is the configuration that the pipeline reads from the environment.
type Config struct {
	Stage               string        `env:"STAGE,required"`
	ProjectsTable       string        `env:"PROJECTS_TABLE,required"`
	TransientTable      string        `env:"TRANSIENT_TABLE,required"`
	WalletsTable        string        `env:"WALLETS_TABLE"` // functions with paid operations
	LedgerTable         string        `env:"LEDGER_TABLE"`  // functions with paid operations
	ProjectCacheSeconds int           `env:"PROJECT_CACHE_SECONDS" envDefault:"10"`
	PlaygroundOrigin    string        `env:"PLAYGROUND_ORIGIN"`                // of the page; empty: no such origin
	LogPayloads         string        `env:"LOG_PAYLOADS" envDefault:"masked"` // on, off or masked; empty: masked
	Prices              wallet.Prices `env:"-"`                                // of the paid operations; Main reads them
	Log                 telemetry.Config
}

// Validate returns the problems of the configuration.
func (c Config) Validate() error {
	err := settings.InRange("PROJECT_CACHE_SECONDS", c.ProjectCacheSeconds, 0, 60)
	if !slices.Contains([]string{payloadsOn, payloadsOff, payloadsMasked, ""}, c.LogPayloads) {
		err = errors.Join(err, fmt.Errorf("LOG_PAYLOADS is %q, wants on, off or masked", c.LogPayloads))
	}
	if (c.WalletsTable == "") != (c.LedgerTable == "") {
		err = errors.Join(err, errors.New("WALLETS_TABLE and LEDGER_TABLE go together"))
	}
	return err
}

// New returns a service on the tables of the configuration.
func New(cfg Config, db *dynamodb.Client, log *telemetry.Logger) *Service {
	s := &Service{
		cfg: cfg,
		db:  db,
		projects: project.NewCache(project.NewStore(db, cfg.ProjectsTable),
			time.Duration(cfg.ProjectCacheSeconds)*time.Second),
		guesses: newGuesses(),
		keys:    &keyStore{db, cfg.TransientTable, time.Now},
		log:     log,
		after:   afterresponse.New(log),
		now:     time.Now,
	}
	s.stores = &admit.Stores{
		Limiter: ratelimit.New(db, cfg.TransientTable),
		Wallet:  wallet.NewStore(db, wallet.Tables{Wallets: cfg.WalletsTable, Ledger: cfg.LedgerTable}),
		Log:     log, After: s.AfterResponse, Now: s.now,
	}
	return s
}

// DB returns the client of the tables, which shares its warm connections.
func (s *Service) DB() *dynamodb.Client { return s.db }

// AfterResponse runs work when the response to a request has been sent, with at most three seconds
// (docs/decisions/requests.md#after-response). The context is that of the request.
func (s *Service) AfterResponse(ctx context.Context, name string, work func(context.Context) error) {
	s.after.Do(ctx, afterresponse.Work{Name: name, RequestID: requestID(ctx), Run: work})
}

// Log returns the logger of the service.
func (s *Service) Log() *telemetry.Logger { return s.log }

// Wallet returns the store of the credits that the service charges.
func (s *Service) Wallet() *wallet.Store { return s.stores.Wallet }

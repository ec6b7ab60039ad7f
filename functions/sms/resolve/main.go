// Command resolve is the scheduled function that asks the vendors about Managed sends with an uncertain outcome.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"svcapi/functions/sms/uncertain"
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
		Asker: &uncertain.Asker{
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
			Actor:   "sms/resolve",
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

// due reports whether a question is due about a send of that age.
func (a Ages) due(age time.Duration) bool {
	since := func(at time.Duration) bool { return at <= age && age-a.Period < at }
	hour := min(age.Truncate(time.Hour), 24*time.Hour)
	return since(a.First) || since(a.Absent) || hour > 0 && since(hour)
}

// Resolver asks vendors about uncertain sends and resolves those (docs/decisions/extensions.md#resolver).
type Resolver struct {
	*uncertain.Asker
	Ages Ages
	Log  *telemetry.Logger
}

// failed is the result for a send whose vendors did not respond, or whose resolution was not stored.
const failed books.Verdict = "failed"

// Handle runs once and logs one line. A send that fails waits for its next question and is no error of the function.
func (r *Resolver) Handle(ctx context.Context) error {
	run, cancel := telemetry.BeforeLogging(ctx)
	defer cancel()
	results, err := r.Run(run)
	event := telemetry.Event{Level: slog.LevelInfo, Message: "uncertain sends resolved",
		Attributes: []slog.Attr{slog.Any("sends", results)}}
	if err != nil {
		event.Level, event.Message = slog.LevelError, "uncertain sends not read"
		event.Attributes = append(event.Attributes, slog.String("error", err.Error()))
	}
	r.Log.Emit(ctx, event)
	return err
}

// send is an uncertain send.
type send struct {
	project string
	books.Entry
}

// Run asks about every send that is due and returns the number of sends by their results. The order is random,
// so that a run without time for all sends does not leave out the same ones each time. After a vendor's failure Run
// sends no further question to that endpoint.
func (r *Resolver) Run(ctx context.Context) (map[books.Verdict]int, error) {
	var due []send
	results := map[books.Verdict]int{}
	err := r.Credits.VisitUncertain(ctx, func(project string, e books.Entry, err error) {
		if s := (send{project, e}); err != nil {
			r.fail(ctx, s, err)
			results[failed]++
		} else if r.Ages.due(r.Now().Sub(e.At)) {
			due = append(due, s)
		}
	})
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	failing := map[string]bool{} // vendors' endpoints
	for i, s := range due {
		if ctx.Err() != nil {
			results[failed] += len(due) - i
			break
		}
		result, _, err := r.Resolve(ctx, s.project, s.Entry, failing)
		if err != nil {
			r.fail(ctx, s, err)
			result = failed
		}
		results[result]++
	}
	return results, err
}

// fail logs a send for an operator, unless its vendor was not asked: the log has the send at which the vendor failed.
func (r *Resolver) fail(ctx context.Context, s send, err error) {
	if errors.Is(err, uncertain.ErrNotAsked) {
		return
	}
	r.Log.Emit(ctx, telemetry.Event{Level: slog.LevelWarn, Message: "uncertain send not resolved", Attributes: []slog.Attr{
		slog.String("project", s.project), slog.String("key", string(s.Key)), slog.String("error", err.Error()),
	}})
}

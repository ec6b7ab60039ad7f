// The function ratesync fetches exchange rates on a schedule and stores them for use.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/rates"
	"svcapi/shared/rates/refresh"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
)

func main() {
	cfg, err := settings.Read[config]()
	if err != nil {
		telemetry.Exit(err)
	}
	awsConfig := dynamo.FromEnvironment()
	log := telemetry.New(os.Stdout, cfg.Log)
	s := &scheduled{
		refresher: &refresh.Refresher{
			Store:  rates.NewStore(dynamo.NewClient(awsConfig), cfg.RatesTable),
			Client: upstream.New(cfg.Upstream),
			// no cache, because runs are far apart
			Secrets:  upstream.NewSecretCache(upstream.NewSecretsClient(awsConfig), cfg.Stage, upstream.SecretConfig{}, log),
			Endpoint: cfg.Endpoint,
			Contact:  cfg.Contact,
			Now:      cache.Clock{}.Now,
		},
		bankHours: cfg.BankHours,
		log:       log,
	}
	lambda.Start(s.handle)
}

// config is the configuration that the function reads from the environment.
type config struct {
	Stage      string `env:"STAGE,required,notEmpty"`
	RatesTable string `env:"RATES_TABLE,required,notEmpty"`
	Endpoint   string `env:"RATES_ENDPOINT_URL"` // of an emulator of the sources; empty: their own endpoints
	// BankHours are the hours in Colombo at which the function asks the central bank on a working day.
	BankHours refresh.BankSchedule `env:"CENTRAL_BANK_HOURS" envDefault:"12,16"`
	Contact   string               `env:"CONTACT_ADDRESS"` // in the User-Agent to the central bank; empty: none
	Upstream  upstream.Config
	Log       telemetry.Config
}

// Validate returns the problems of the configuration.
func (c config) Validate() error { return errors.Join(c.Upstream.Validate(), c.BankHours.Validate()) }

// scheduled runs the refresher on a schedule.
type scheduled struct {
	refresher *refresh.Refresher
	bankHours refresh.BankSchedule
	log       *telemetry.Logger
}

// handle runs the refresher once and logs one line. Sources without rates are no error of the function: the rates in
// use stay, an alarm watches their age, and the deployment of an unrelated change goes on.
func (s *scheduled) handle(ctx context.Context) error {
	run, cancel := telemetry.BeforeLogging(ctx)
	defer cancel()
	report, err := s.refresher.Run(run, refresh.Options{Actor: "schedule", Bank: s.bankHours})
	s.record(ctx, report, err)
	if errors.Is(err, refresh.ErrNoRates) {
		return nil
	}
	return err
}

// record logs one line with the metrics that alarms use. RatesAge is the age of the last good fetch, RatesDateAge that
// of the source's own date. BankAge, which no alarm reads and so is no metric, is that of the central bank's oldest
// value. RatesRefused and RatesFailed count sources; a source whose last fetch failed counts until a fetch succeeds.
func (s *scheduled) record(ctx context.Context, report *refresh.Report, err error) {
	refused, failed := report.Count(refresh.Refused), report.Count(refresh.Failed)+report.Count(refresh.Waiting)
	event := telemetry.Event{
		Level: slog.LevelInfo, Message: "rates synced",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: "ratesync"}},
		Metrics: []telemetry.Metric{
			{Name: "RatesRefused", Unit: telemetry.Count, Value: float64(refused), SkipZero: true},
			{Name: "RatesFailed", Unit: telemetry.Count, Value: float64(failed)},
		},
	}
	if refused+failed > 0 {
		event.Level = slog.LevelWarn
	}
	now := s.refresher.Now()
	if c := report.Current; c != nil {
		event.Metrics = append(event.Metrics,
			telemetry.Metric{Name: "RatesAge", Unit: telemetry.Seconds, Value: now.Sub(c.Fetched).Seconds()},
			telemetry.Metric{Name: "RatesDateAge", Unit: telemetry.Seconds, Value: now.Sub(c.Date).Seconds()})
		event.Attributes = append(event.Attributes, slog.String("source", c.Source), slog.Time("date", c.Date),
			slog.Int("rates", len(c.Rates)))
		if age, ok := c.Bank.Age(now); ok {
			event.Attributes = append(event.Attributes, slog.Float64("BankAge", age.Seconds()))
		}
	}
	for _, o := range report.Results {
		event.Attributes = append(event.Attributes,
			slog.Group(o.Source, slog.String("outcome", string(o.Outcome)), slog.String("detail", o.Detail)))
	}
	if err != nil {
		event.Level, event.Message = slog.LevelError, "rates not synced"
		event.Attributes = append(event.Attributes, slog.String("error", err.Error()))
	}
	s.log.Emit(ctx, event)
}

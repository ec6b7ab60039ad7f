// The function ratesync fetches exchange rates on a schedule and stores them for use.
package main

import (
	"errors"
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

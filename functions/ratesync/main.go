// The function ratesync fetches exchange rates on a schedule and stores them for use.
package main

import (
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

// The function currency serves exchange rates and currency codes.
package main

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/rates"
	"svcapi/shared/request"
	"svcapi/shared/settings"
	"svcapi/shared/upstream"
)

func main() {
	request.Main(
		func(c config) request.Config { return c.API },
		func(c config, s *request.Service, cfg aws.Config) ([]request.Route, error) {
			g := newGroup(
				rates.NewStore(dynamo.NewClient(cfg), c.RatesTable),
				upstream.New(c.Upstream),
				upstream.NewSecretCache(upstream.NewSecretsClient(cfg), c.API.Stage, c.Secrets, s.Stores.Log),
				time.Duration(c.RatesCacheSeconds)*time.Second, cache.Clock{},
			)
			return g.routes(), nil
		},
	)
}

// config is the configuration that the function reads from the environment.
type config struct {
	API               request.Config
	Upstream          upstream.Config
	Secrets           upstream.SecretConfig
	RatesTable        string `env:"RATES_TABLE,required,notEmpty"`
	RatesCacheSeconds int    `env:"RATES_CACHE_SECONDS" envDefault:"60"` // short: an operator can replace the set
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	return errors.Join(
		c.API.Validate(), c.Upstream.Validate(), c.Secrets.Validate(),
		settings.InRange("RATES_CACHE_SECONDS", c.RatesCacheSeconds, 0, 3600),
	)
}

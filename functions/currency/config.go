package main

import (
	"errors"

	"svcapi/shared/request"
	"svcapi/shared/settings"
	"svcapi/shared/upstream"
)

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

package main

import (
	"errors"
	"fmt"
	"time"

	"svcapi/shared/api"
	"svcapi/shared/upstream"
)

// config is what the function reads from the environment.
type config struct {
	API                api.Config
	Upstream           upstream.Config
	RatesTable         string `env:"RATES_TABLE,required,notEmpty"`
	SecretCacheSeconds int    `env:"SECRET_CACHE_SECONDS" envDefault:"300"`
	// RatesCacheSeconds is how long the set in use is kept. An operator can
	// replace it at any time.
	RatesCacheSeconds int `env:"RATES_CACHE_SECONDS" envDefault:"60"`
}

// Validate says what is wrong with the configuration.
func (c config) Validate() error {
	wrong := []error{c.API.Validate(), c.Upstream.Validate()}
	if c.SecretCacheSeconds < 0 || c.SecretCacheSeconds > 3600 {
		wrong = append(wrong, fmt.Errorf("SECRET_CACHE_SECONDS is %d, wants 0 to 3600", c.SecretCacheSeconds))
	}
	if c.RatesCacheSeconds < 0 || c.RatesCacheSeconds > 3600 {
		wrong = append(wrong, fmt.Errorf("RATES_CACHE_SECONDS is %d, wants 0 to 3600", c.RatesCacheSeconds))
	}
	return errors.Join(wrong...)
}

func (c config) secretLife() time.Duration {
	return time.Duration(c.SecretCacheSeconds) * time.Second
}

func (c config) setLife() time.Duration { return time.Duration(c.RatesCacheSeconds) * time.Second }

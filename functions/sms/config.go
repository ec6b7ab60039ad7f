package main

import (
	"errors"

	"svcapi/shared/api"
	"svcapi/shared/settings"
	"svcapi/shared/upstream"
)

// config is the configuration that the function reads from the environment.
type config struct {
	API                api.Config
	Upstream           upstream.Config
	SecretCacheSeconds int `env:"SECRET_CACHE_SECONDS" envDefault:"300"`
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	return errors.Join(c.API.Validate(), c.Upstream.Validate(), settings.InRange("SECRET_CACHE_SECONDS", c.SecretCacheSeconds, 0, 3600))
}

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
	SecretCacheSeconds int `env:"SECRET_CACHE_SECONDS" envDefault:"300"`
}

// Validate says what is wrong with the configuration.
func (c config) Validate() error {
	var wrong error
	if c.SecretCacheSeconds < 0 || c.SecretCacheSeconds > 3600 {
		wrong = fmt.Errorf("SECRET_CACHE_SECONDS is %d, wants 0 to 3600", c.SecretCacheSeconds)
	}
	return errors.Join(c.API.Validate(), c.Upstream.Validate(), wrong)
}

func (c config) secretLife() time.Duration {
	return time.Duration(c.SecretCacheSeconds) * time.Second
}

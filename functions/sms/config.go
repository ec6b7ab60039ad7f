package main

import (
	"errors"

	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

// config is the configuration that the function reads from the environment.
type config struct {
	API      request.Config
	Upstream upstream.Config
	Secrets  upstream.SecretConfig
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	return errors.Join(c.API.Validate(), c.Upstream.Validate(), c.Secrets.Validate())
}

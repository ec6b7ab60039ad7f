package main

import (
	"errors"

	"svcapi/shared/api"
	"svcapi/shared/iplookup"
	"svcapi/shared/upstream"
)

// config is what the function reads from the environment.
type config struct {
	API      api.Config
	Upstream upstream.Config
	Lookup   iplookup.Config
}

// Validate says what is wrong with the configuration.
func (c config) Validate() error {
	return errors.Join(c.API.Validate(), c.Upstream.Validate(), c.Lookup.Validate())
}

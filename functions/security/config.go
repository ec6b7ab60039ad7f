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

// Check says what is wrong with the configuration.
func (c config) Check() error {
	return errors.Join(c.API.Check(), c.Upstream.Check(), c.Lookup.Check())
}

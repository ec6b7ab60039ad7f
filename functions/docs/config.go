package main

import (
	"svcapi/shared/credit"
	"svcapi/shared/telemetry"
)

// config is what the function reads from the environment.
type config struct {
	Prices credit.Prices
	Log    telemetry.Config
}

// Validate says what is wrong with the configuration.
func (c config) Validate() error { return c.Prices.Validate() }

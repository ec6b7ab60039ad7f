package main

import (
	"fmt"

	"svcapi/shared/telemetry"
)

// config is what the function reads from the environment, beside the prices.
type config struct {
	Docs string `env:"DOCS" envDefault:"on"` // "off": every path is 404
	Log  telemetry.Config
}

// Validate returns an error unless the page is on or off.
func (c config) Validate() error {
	if c.Docs != "on" && c.Docs != "off" {
		return fmt.Errorf("DOCS is %q, wants on or off", c.Docs)
	}
	return nil
}

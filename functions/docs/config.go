package main

import (
	"errors"
	"fmt"

	"svcapi/shared/telemetry"
)

// config is what the function reads from the environment, beside the prices.
type config struct {
	Docs string `env:"DOCS" envDefault:"on"` // "off": every path is 404
	Demo demo
	Log  telemetry.Config
}

// demo holds credentials that the playground starts with. Only the local stack has them.
type demo struct {
	ID     string `env:"DEMO_CLIENT_ID"`
	Secret string `env:"DEMO_CLIENT_SECRET"`
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	if c.Docs != "on" && c.Docs != "off" {
		return fmt.Errorf("DOCS is %q, wants on or off", c.Docs)
	}
	if (c.Demo.ID == "") != (c.Demo.Secret == "") {
		return errors.New("DEMO_CLIENT_ID and DEMO_CLIENT_SECRET go together")
	}
	return nil
}

package main

import (
	"github.com/caarlos0/env/v11"

	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
)

// config is the configuration that the function reads from the environment.
type config struct {
	Stage      string `env:"STAGE,required,notEmpty"`
	RatesTable string `env:"RATES_TABLE,required,notEmpty"`
	Endpoint   string `env:"RATES_ENDPOINT_URL"` // of an emulator of the sources; empty: their own endpoints
	Upstream   upstream.Config
	Log        telemetry.Config
}

func loadConfig() (config, error) {
	cfg, err := env.ParseAs[config]()
	if err != nil {
		return cfg, err
	}
	return cfg, cfg.Upstream.Validate()
}

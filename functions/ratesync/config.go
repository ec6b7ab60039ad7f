package main

import (
	"errors"

	"svcapi/shared/rates/refresh"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
)

// config is the configuration that the function reads from the environment.
type config struct {
	Stage      string `env:"STAGE,required,notEmpty"`
	RatesTable string `env:"RATES_TABLE,required,notEmpty"`
	Endpoint   string `env:"RATES_ENDPOINT_URL"` // of an emulator of the sources; empty: their own endpoints
	// BankHours are the hours in Colombo at which the function asks the central bank on a working day.
	BankHours refresh.BankSchedule `env:"CENTRAL_BANK_HOURS" envDefault:"12,16"`
	Contact   string               `env:"CONTACT_ADDRESS"` // in the User-Agent to the central bank; empty: none
	Upstream  upstream.Config
	Log       telemetry.Config
}

// Validate returns the problems of the configuration.
func (c config) Validate() error { return errors.Join(c.Upstream.Validate(), c.BankHours.Validate()) }

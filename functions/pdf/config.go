package main

import (
	"errors"

	"svcapi/shared/api"
	"svcapi/shared/settings"
)

// config is the configuration that the function reads from the environment.
type config struct {
	API         api.Config
	Renderer    string `env:"PDF_RENDERER,required"` // the function pdfrender, with its alias
	ResultBytes int    `env:"PDF_RESULT_BYTES" envDefault:"33554432"`
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	return errors.Join(c.API.Validate(), settings.InRange("PDF_RESULT_BYTES", c.ResultBytes, maxBuffered, mostStreamed))
}

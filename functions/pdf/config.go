package main

import "svcapi/shared/api"

// config is the configuration that the function reads from the environment.
type config struct {
	API      api.Config
	Renderer string `env:"PDF_RENDERER,required"` // the function pdfrender, with its alias
}

// Validate returns the problems of the configuration.
func (c config) Validate() error { return c.API.Validate() }

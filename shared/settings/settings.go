// Package settings reads the configuration of a program from its environment.
package settings

import (
	"fmt"

	"github.com/caarlos0/env/v11"
)

// Validator is a configuration that can validate itself.
type Validator interface{ Validate() error }

// Read reads a configuration from the environment and validates it.
func Read[C Validator]() (C, error) {
	cfg, err := env.ParseAs[C]()
	if err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

// InRange returns an error unless the value of the variable is from low to high.
func InRange(variable string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s is %d, wants %d to %d", variable, value, low, high)
	}
	return nil
}

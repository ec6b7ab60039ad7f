// Package iplookup looks up IP addresses along the chain of a project's integrations, with a cache of results.
package iplookup

import (
	"errors"
	"net/netip"
	"time"

	"svcapi/shared/api"
	"svcapi/shared/ipaddr"
	"svcapi/shared/settings"
	"svcapi/shared/upstream"
)

// Address reads a required field with an IP address.
func Address(in *api.Input, name string) netip.Addr {
	text := in.Text(name, api.Text{Required: true, Min: 1})
	addr, ok := ipaddr.Parse(text)
	if !ok && text != "" {
		in.Problem(name, "must be an IPv4 or IPv6 address")
	}
	return addr
}

// Config is read once from the environment.
type Config struct {
	// CacheSeconds is the life of a result in the instance's cache, for the same project and integration; 0 for no cache.
	CacheSeconds int `env:"LOOKUP_CACHE_SECONDS" envDefault:"60"`
	// DatabaseDirectory is the folder of MaxMind's .mmdb files.
	DatabaseDirectory string `env:"MMDB_DIRECTORY" envDefault:"/opt/mmdb"`
	// SecretCacheSeconds is the life of a vendor's secret in the instance's cache.
	SecretCacheSeconds int `env:"SECRET_CACHE_SECONDS" envDefault:"300"`
}

// Validate returns the reasons why the configuration is not valid.
func (c Config) Validate() error {
	return errors.Join(
		settings.InRange("LOOKUP_CACHE_SECONDS", c.CacheSeconds, 0, 3600),
		settings.InRange("SECRET_CACHE_SECONDS", c.SecretCacheSeconds, 0, 3600),
	)
}

// SecretLife returns SecretCacheSeconds as a duration.
func (c Config) SecretLife() time.Duration { return time.Duration(c.SecretCacheSeconds) * time.Second }

// FunctionConfig is what a function that looks up IP addresses reads from the environment.
type FunctionConfig struct {
	API      api.Config
	Upstream upstream.Config
	Lookup   Config
}

// Validate returns the reasons why the configuration is not valid.
func (c FunctionConfig) Validate() error {
	return errors.Join(c.API.Validate(), c.Upstream.Validate(), c.Lookup.Validate())
}

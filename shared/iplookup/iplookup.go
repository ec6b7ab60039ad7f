// Package iplookup looks up IP addresses along the chain of a project's integrations, with a cache of results.
package iplookup

import (
	"errors"
	"net/netip"

	"svcapi/shared/ipaddr"
	"svcapi/shared/request"
	"svcapi/shared/settings"
	"svcapi/shared/upstream"
)

// Address reads a required field with an IP address.
func Address(in *request.Input, name string) netip.Addr {
	text := in.Text(name, request.Text{Required: true, Min: 1})
	addr, ok := ipaddr.Parse(text)
	if !ok && text != "" {
		in.Problem(name, "must be an IPv4 or IPv6 address")
	}
	return addr
}

// Config is what a function that looks up IP addresses reads from the environment.
type Config struct {
	API      request.Config
	Upstream upstream.Config
	Secrets  upstream.SecretConfig
	// CacheSeconds is the life of a result in the instance's cache, for the same project and integration; 0 for no cache.
	CacheSeconds int `env:"LOOKUP_CACHE_SECONDS" envDefault:"60"`
	// DatabaseDirectory is the folder of MaxMind's .mmdb files.
	DatabaseDirectory string `env:"MMDB_DIRECTORY" envDefault:"/opt/mmdb"`
}

// Validate returns the reasons why the configuration is not valid.
func (c Config) Validate() error {
	return errors.Join(c.API.Validate(), c.Upstream.Validate(), c.Secrets.Validate(),
		settings.InRange("LOOKUP_CACHE_SECONDS", c.CacheSeconds, 0, 3600))
}

// Package iplookup looks up IP addresses at vendors: the chain of a project's integrations, its cache, and the calls of the
// vendors that serve both IP risk and location.
package iplookup

import (
	"context"
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

// ErrUnknown reports that a vendor does not know the address.
var ErrUnknown = errors.New("the vendor does not know the address")

// Vendor is one row of a function's vendor table. T is the result of a look-up.
type Vendor[T any] struct {
	upstream.Spec
	// Ask makes one look-up. The errors are ErrUnknown and *upstream.Error.
	Ask func(ctx context.Context, c Caller, addr netip.Addr) (T, error)
	// Uncached means that results are not cached: the vendor's terms do not clearly permit a cache, or a look-up is free.
	Uncached bool
}

// OnDisk reports whether the vendor is a database file, without an account and a network address.
func (v Vendor[T]) OnDisk() bool { return v.Endpoint == "" }

// Find returns the row with that name, or nil.
func Find[T any](table []Vendor[T], name string) *Vendor[T] {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
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

// Package iplookup asks vendors about IP addresses: the chain over a project's
// integrations, with its cache, and what is common to the vendors that serve
// both IP risk and location.
package iplookup

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"svcapi/shared/api"
	"svcapi/shared/ipaddr"
	"svcapi/shared/upstream"
)

// Address takes a required field that holds an IP address.
func Address(in *api.Input, name string) netip.Addr {
	text := in.Text(name, api.Text{Required: true, Min: 1})
	addr, ok := ipaddr.Parse(text)
	if !ok && text != "" {
		in.Problem(name, "must be an IPv4 or IPv6 address")
	}
	return addr
}

// ErrUnknown says that a vendor has nothing on the address.
var ErrUnknown = errors.New("the vendor does not know the address")

// Vendor is one row of a function's vendor table. T is what a look-up tells.
type Vendor[T any] struct {
	upstream.Spec
	// Ask makes one look-up. Its errors are ErrUnknown and *upstream.Error.
	Ask func(ctx context.Context, c Caller, addr netip.Addr) (T, error)
	// Uncached vendors are asked anew each time: their terms do not clearly
	// permit keeping an answer, or asking costs nothing.
	Uncached bool
}

// OnDisk tells that the vendor is a file beside the function: it has no account and no address on the net.
func (v Vendor[T]) OnDisk() bool { return v.Endpoint == "" }

// Find returns the row of a name, or nil.
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
	// CacheSeconds is how long an answer is kept in the instance, for the same
	// project and integration only. 0: not at all.
	CacheSeconds int `env:"LOOKUP_CACHE_SECONDS" envDefault:"60"`
	// DatabaseDirectory is where MaxMind's .mmdb files lie.
	DatabaseDirectory string `env:"MMDB_DIRECTORY" envDefault:"/opt/mmdb"`
	// SecretCacheSeconds is how long a vendor's secret is kept.
	SecretCacheSeconds int `env:"SECRET_CACHE_SECONDS" envDefault:"300"`
}

// Validate says what is wrong with the configuration.
func (c Config) Validate() error {
	return errors.Join(
		api.InRange("LOOKUP_CACHE_SECONDS", c.CacheSeconds, 0, 3600),
		api.InRange("SECRET_CACHE_SECONDS", c.SecretCacheSeconds, 0, 3600),
	)
}

// SecretLife is how long a vendor's secret is kept.
func (c Config) SecretLife() time.Duration { return time.Duration(c.SecretCacheSeconds) * time.Second }

// FunctionConfig is what a function that looks up IP addresses reads from the environment.
type FunctionConfig struct {
	API      api.Config
	Upstream upstream.Config
	Lookup   Config
}

// Validate returns what is wrong with the configuration.
func (c FunctionConfig) Validate() error {
	return errors.Join(c.API.Validate(), c.Upstream.Validate(), c.Lookup.Validate())
}

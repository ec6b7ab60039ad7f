// Package iplookup looks up IP addresses along the chain of a project's integrations, with a cache of results.
package iplookup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"svcapi/shared/cache"
	"svcapi/shared/ipaddr"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
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

// Chain calls a project's vendors in their order until one returns a result. A Chain is safe for concurrent use.
type Chain[T any] struct {
	// ContinueOnUnknown makes the chain call the next vendor after a vendor that does not know the address.
	ContinueOnUnknown bool

	table     func() []vendors.Vendor[T]
	client    *upstream.Client
	secrets   *upstream.SecretCache
	databases *vendors.Databases
	breakers  *upstream.Breakers
	cache     *cache.Expiring[cacheKey, T]
	life      time.Duration // of a result in the cache
}

// maxResults bounds the results in an instance's cache.
const maxResults = 4096

// cacheKey identifies a result. Projects share no results, and a changed integration has new keys.
type cacheKey struct {
	project, integration string
	updated              int64 // Unix seconds
	addr                 netip.Addr
}

// NewChain returns a chain of the vendors of a table, which stops at a vendor that does not know the address.
func NewChain[T any](cfg Config, table func() []vendors.Vendor[T], secrets *upstream.SecretCache) *Chain[T] {
	return &Chain[T]{
		table: sync.OnceValue(table), client: upstream.New(cfg.Upstream), secrets: secrets,
		databases: vendors.NewDatabases(cfg.DatabaseDirectory),
		breakers:  upstream.NewBreakersOn(func(err error) bool { return !errors.Is(err, vendors.ErrUnknown) }),
		cache:     cache.NewExpiring[cacheKey, T](maxResults),
		life:      time.Duration(cfg.CacheSeconds) * time.Second,
	}
}

// Accounts returns the accounts of a project's complete integrations in their order. The errors are for the client; a
// project without a complete integration gets a 422.
func (c *Chain[T]) Accounts(ctx context.Context, call *request.Call,
	integrations []project.Integration) ([]upstream.Account, error) {
	spec := func(vendor string) *upstream.Spec {
		if v := upstream.Find(c.table(), vendor); v != nil {
			return &v.Spec
		}
		return nil
	}
	accounts, err := c.client.Accounts(ctx, call.Project.ID, integrations, spec, c.secrets)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		return nil, call.NoIntegration(err)
	case err != nil:
		return nil, request.ErrInternal.WithCause(err)
	}
	return accounts, nil
}

// Result is the result of a chain.
type Result[T any] struct {
	Value  T
	Vendor string
	Cached bool
	Failed []string // the vendors that failed before, as vendor:class
}

// Job returns the job that looks an address up along the integrations. The function respond returns data and meta of
// the response. An address that is not global needs no vendor: its result is the zero Result, and costs nothing. A
// chain that stops at a vendor that does not know the address has a zero value, too. For any other failure the response
// is unavailable.
func (c *Chain[T]) Job(
	ctx context.Context, call *request.Call, integrations []project.Integration, addr netip.Addr,
	unavailable *request.Error,
	respond func(Result[T]) *request.Result,
) (*request.Job, error) {
	accounts, err := c.Accounts(ctx, call, integrations)
	if err != nil {
		return nil, err
	}
	if !ipaddr.Global(addr) {
		return &request.Job{Run: func(context.Context) (*request.Result, error) { return respond(Result[T]{}), nil }}, nil
	}
	return &request.Job{Credits: call.Credits(1), Run: func(ctx context.Context) (*request.Result, error) {
		found, err := c.Ask(ctx, accounts, addr)
		unknown := !c.ContinueOnUnknown && errors.Is(err, vendors.ErrUnknown)
		if err != nil && !unknown {
			e := unavailable.WithCause(err)
			e.Vendor = found.Vendor
			return nil, e
		}
		result := respond(found)
		result.Vendor, result.NotCharged = found.Vendor, unknown
		result.Attributes = []slog.Attr{slog.Bool("cached", found.Cached)}
		if len(found.Failed) > 0 {
			result.Attributes = append(result.Attributes, slog.Any("vendors_failed", found.Failed))
		}
		return result, nil
	}}, nil
}

// Ask looks an address up along the accounts. Ask calls vendors with an open circuit last, and only when the other
// vendors have failed. The error joins the errors of all vendors; it is vendors.ErrUnknown where the chain stops at a
// vendor that does not know the address.
func (c *Chain[T]) Ask(ctx context.Context, accounts []upstream.Account, addr netip.Addr) (Result[T], error) {
	l, queue, breakers := lookUp[T]{chain: c, addr: addr}, slices.Clone(accounts), c.breakers
	for i := 0; i < len(queue); i++ {
		account := queue[i]
		if i == len(accounts) { // the rest are those with an open circuit
			breakers = nil
		}
		if err := ctx.Err(); breakers == nil && err != nil {
			l.result.Vendor, l.err = account.Integration.Vendor, errors.Join(l.err, fmt.Errorf("no time left: %w", err))
			break
		}
		if value, ok := c.cache.Get(l.key(account)); ok {
			l.result.Value, l.result.Vendor, l.result.Cached = value, account.Integration.Vendor, true
			return l.result, nil
		}
		done, open := l.try(ctx, account, len(queue)-i, breakers)
		if done {
			break
		}
		if open {
			queue = append(queue, account)
		}
	}
	return l.result, l.err
}

type lookUp[T any] struct {
	chain  *Chain[T]
	addr   netip.Addr
	result Result[T]
	err    error
}

func (l *lookUp[T]) key(a upstream.Account) cacheKey {
	return cacheKey{a.Project, a.Integration.ID, a.Integration.Updated.Unix(), l.addr}
}

// try calls one of the remaining vendors within its share of the remaining time. try reports whether the look-up is
// done, and whether the circuit is open, so that the vendor was not called. Without breakers try ignores the circuit.
func (l *lookUp[T]) try(ctx context.Context, account upstream.Account, remaining int,
	breakers *upstream.Breakers) (done, open bool) {
	vendor := upstream.Find(l.chain.table(), account.Integration.Vendor)
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(remaining))
		defer cancel()
	}
	value, err := upstream.Call(ctx, breakers, l.chain.secrets, account, func(a upstream.Account) (T, error) {
		return vendor.Ask(ctx, vendors.Caller{Client: l.chain.client, Databases: l.chain.databases, Account: a}, l.addr)
	})
	if errors.Is(err, upstream.ErrOpen) {
		return false, true
	}
	l.result.Vendor = vendor.Name
	switch {
	case err == nil:
		if !vendor.Uncached {
			l.chain.cache.Put(l.key(account), value, l.chain.life)
		}
		l.result.Value, l.err = value, nil
		return true, false
	case errors.Is(err, vendors.ErrUnknown) && !l.chain.ContinueOnUnknown:
		l.err = vendors.ErrUnknown
		return true, false
	case errors.Is(err, vendors.ErrUnknown):
		l.result.Failed = append(l.result.Failed, vendor.Name+":unknown")
	default:
		l.result.Failed = append(l.result.Failed, vendor.Name+":"+string(upstream.ClassOf(err)))
	}
	l.err = errors.Join(l.err, fmt.Errorf("%s: %w", vendor.Name, err))
	return false, false
}

package iplookup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"svcapi/shared/api"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Chain asks a project's vendors in turn until one answers. It is safe for
// concurrent use.
type Chain[T any] struct {
	table     []Vendor[T]
	goOn      bool
	client    *upstream.Client
	secrets   *secret.Cache
	databases *Databases
	breakers  *upstream.Breakers
	cache     *cache[T]
}

// NewChain makes a chain over a vendor table. goOn tells whether the next
// vendor is asked about an address that one does not know.
func NewChain[T any](cfg Config, table []Vendor[T], goOn bool, client *upstream.Client, secrets *secret.Cache) *Chain[T] {
	return &Chain[T]{
		table: table, goOn: goOn, client: client, secrets: secrets,
		databases: NewDatabases(cfg.DatabaseDirectory),
		breakers:  upstream.NewBreakersOn(func(err error) bool { return !errors.Is(err, ErrUnknown) }),
		cache:     newCache[T](time.Duration(cfg.CacheSeconds) * time.Second),
	}
}

// Accounts are the complete integrations among those of a project, in their
// order. Its errors are what the client gets: none is a 422.
func (c *Chain[T]) Accounts(ctx context.Context, projectID string, integrations []project.Integration) ([]upstream.Account, error) {
	spec := func(vendor string) *upstream.Spec {
		if v := Find(c.table, vendor); v != nil {
			return &v.Spec
		}
		return nil
	}
	accounts, err := c.client.Accounts(ctx, projectID, integrations, spec, c.secrets)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		return nil, api.ErrNoIntegration.WithCause(err)
	case err != nil:
		return nil, api.ErrInternal.WithCause(err)
	case len(accounts) == 0:
		return nil, api.ErrNoIntegration
	}
	return accounts, nil
}

// Answer is what a chain found.
type Answer[T any] struct {
	Value  T
	Vendor string
	Cached bool
	// Failed are the vendors that were asked before in vain, as vendor:class.
	Failed []string
}

// Attributes are what the log entry says of how the answer was found.
func (a Answer[T]) Attributes() []slog.Attr {
	attributes := []slog.Attr{slog.Bool("cached", a.Cached)}
	if len(a.Failed) > 0 {
		attributes = append(attributes, slog.Any("vendors_failed", a.Failed))
	}
	return attributes
}

// Ask goes along the accounts. Those that have just failed in a row are asked
// last: an open breaker spares the wait, it never leaves nobody to ask. The
// error holds every vendor's; it is ErrUnknown where the chain ends at a vendor
// that does not know the address.
func (c *Chain[T]) Ask(ctx context.Context, accounts []upstream.Account, addr netip.Addr) (Answer[T], error) {
	w := walk[T]{chain: c, addr: addr}
	var held []upstream.Account
	for i, account := range accounts {
		if value, ok := c.cache.get(w.key(account)); ok {
			w.answer.Value, w.answer.Vendor, w.answer.Cached = value, account.Integration.Vendor, true
			return w.answer, nil
		}
		over, open := w.ask(ctx, account, len(accounts)-i+len(held), c.breakers)
		if open {
			held = append(held, account)
		}
		if over {
			return w.answer, w.err
		}
	}
	for i, account := range held {
		if ctx.Err() != nil {
			break
		}
		if over, _ := w.ask(ctx, account, len(held)-i, nil); over {
			break
		}
	}
	return w.answer, w.err
}

// walk is one way along a chain.
type walk[T any] struct {
	chain  *Chain[T]
	addr   netip.Addr
	answer Answer[T]
	err    error
}

func (w *walk[T]) key(a upstream.Account) cacheKey {
	return cacheKey{a.Project, a.Integration.ID, a.Integration.Updated.Unix(), w.addr}
}

// ask asks one vendor, left being how many are left with it. It tells whether
// the walk is over, and whether the vendor was not asked because its circuit is
// open.
func (w *walk[T]) ask(ctx context.Context, account upstream.Account, left int, breakers *upstream.Breakers) (over, open bool) {
	vendor := Find(w.chain.table, account.Integration.Vendor)
	call := func() (T, error) { return w.call(ctx, vendor, account, left) }
	if breakers != nil {
		inner := call
		call = func() (T, error) { return upstream.Through(breakers, account, inner) }
	}
	value, err := call()
	if errors.Is(err, upstream.ErrOpen) {
		return false, true
	}
	w.answer.Vendor = vendor.Name
	switch {
	case err == nil:
		if !vendor.Uncached {
			w.chain.cache.put(w.key(account), value)
		}
		w.answer.Value, w.err = value, nil
		return true, false
	case errors.Is(err, ErrUnknown) && !w.chain.goOn:
		w.err = ErrUnknown
		return true, false
	case errors.Is(err, ErrUnknown):
		w.answer.Failed = append(w.answer.Failed, vendor.Name+":unknown")
	default:
		w.answer.Failed = append(w.answer.Failed, vendor.Name+":"+string(upstream.ClassOf(err)))
	}
	w.err = errors.Join(w.err, fmt.Errorf("%s: %w", vendor.Name, err))
	return false, false
}

// call makes one look-up in no more than its share of the time that is left.
func (w *walk[T]) call(ctx context.Context, vendor *Vendor[T], account upstream.Account, left int) (T, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return upstream.WithFresh(ctx, w.chain.secrets, account, func(a upstream.Account) (T, error) {
		return vendor.Ask(ctx, Caller{w.chain.client, w.chain.databases, a}, w.addr)
	})
}

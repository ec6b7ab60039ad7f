package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"svcapi/shared/api"
	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/sources"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// group holds the dependencies and the cache of the function's operations.
type group struct {
	store    *rates.Store
	client   *upstream.Client
	secrets  *secret.Cache
	breakers *upstream.Breakers
	life     time.Duration // of the set in use in this instance
	clock    cache.Clock
	cached   *cache.Map[string, rates.ProjectRates] // rates of projects with their own key, by project and environment

	mu      sync.Mutex
	current *rates.Set // in use; nil: none so far
	read    time.Time  // when current was read; zero: never
}

func newGroup(store *rates.Store, client *upstream.Client, secrets *secret.Cache, life time.Duration, clock cache.Clock) *group {
	return &group{
		store: store, client: client, secrets: secrets, breakers: upstream.NewBreakers(), life: life, clock: clock,
		cached: cache.New[string, rates.ProjectRates](maxCachedProjects),
	}
}

// resultData returns the data of a response from the set that the project uses. An error is an *api.Error.
type resultData func(set *rates.Set, now time.Time) (any, error)

// job returns the job of an operation, which is free. The set that the project uses is read beside the count of the request.
func (g *group) job(ctx context.Context, call *api.Call, data resultData) (*api.Job, error) {
	if call.Mode == project.BYOK {
		return g.projectJob(ctx, call, data)
	}
	var set *rates.Set
	return &api.Job{
		Prefetch: func(ctx context.Context) (err error) {
			set, err = g.inUse(ctx)
			return err
		},
		Run: func(context.Context) (*api.Result, error) {
			if set == nil {
				return nil, call.NoIntegration(errors.New("no rates are stored yet"))
			}
			return g.result(set, data)
		},
	}, nil
}

func (g *group) result(set *rates.Set, data resultData) (*api.Result, error) {
	content, err := data(set, g.clock.Now())
	if err != nil {
		return nil, err
	}
	return &api.Result{Data: content, Vendor: set.Source, Attributes: []slog.Attr{slog.Time("rates_date", set.Date)}}, nil
}

// inUse returns the set of the service, from the cache while the cached set is young.
func (g *group) inUse(ctx context.Context) (*rates.Set, error) {
	g.mu.Lock()
	set, read := g.current, g.read
	g.mu.Unlock()
	at := g.clock.Now()
	if set != nil && at.Sub(read) < g.life {
		return set, nil
	}
	set, err := g.store.Current(ctx)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current == nil || !at.Before(g.read) {
		g.current, g.read = set, at
	}
	return set, nil
}

// accounts returns the complete integrations of a call by priority (docs/decisions.md#modes).
func (g *group) accounts(ctx context.Context, call *api.Call) ([]upstream.Account, error) {
	accounts, err := g.client.Accounts(ctx, call.Project.ID, call.Integrations, sources.Spec, g.secrets)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		return nil, call.NoIntegration(err)
	case err != nil:
		return nil, api.ErrInternal.WithCause(err)
	}
	return accounts, nil
}

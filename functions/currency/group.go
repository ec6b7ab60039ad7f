package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"svcapi/shared/api"
	"svcapi/shared/bounded"
	"svcapi/shared/clock"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/vendors"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// group is what the operations of this function share.
type group struct {
	store    *rates.Store
	client   *upstream.Client
	secrets  *secret.Cache
	breakers *upstream.Breakers
	life     time.Duration // of the set in use in this instance
	clock    clock.Clock
	owns     *bounded.Map[string, rates.ProjectRates] // by project and environment

	mu      sync.Mutex
	current *rates.Set // in use; nil: none was there
	read    time.Time  // when current was read; zero: never
}

func newGroup(store *rates.Store, client *upstream.Client, secrets *secret.Cache, life time.Duration, clock clock.Clock) *group {
	return &group{
		store: store, client: client, secrets: secrets, breakers: upstream.NewBreakers(), life: life, clock: clock,
		owns: bounded.New[string, rates.ProjectRates](maxOwns),
	}
}

func (g *group) routes() []api.Route {
	return []api.Route{g.latest(), g.pair(), g.convert(), g.codes()}
}

// answering makes a job's answer from the set that the call's project uses. An
// error is an *api.Error.
type answering func(set *rates.Set, now time.Time) (any, error)

// job reads the set that the project uses beside the count of the request, and
// answers from it. Nothing is charged.
func (g *group) job(ctx context.Context, call *api.Call, answer answering) (*api.Job, error) {
	if call.Mode == project.BYOK {
		return g.ownJob(ctx, call, answer)
	}
	var set *rates.Set
	return &api.Job{
		Prefetch: func(ctx context.Context) (err error) {
			set, err = g.inUse(ctx)
			return err
		},
		Run: func(context.Context) (*api.Result, error) {
			if set == nil {
				return nil, api.ErrNoIntegration.WithCause(errors.New("no rates are held yet"))
			}
			return g.result(set, answer)
		},
	}, nil
}

func (g *group) result(set *rates.Set, answer answering) (*api.Result, error) {
	now := g.clock.Now()
	data, err := answer(set, now)
	if err != nil {
		return nil, err
	}
	return &api.Result{Data: data, Vendor: set.Source, Attributes: []slog.Attr{slog.Time("rates_date", set.Date)}}, nil
}

// inUse is the service's set, from memory while it is young.
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

// accounts are the complete integrations of a call, by priority. None is a 422 provider_selection_failed
// (docs/decisions.md#modes).
func (g *group) accounts(ctx context.Context, call *api.Call) ([]upstream.Account, error) {
	accounts, err := g.client.Accounts(ctx, call.Project.ID, call.Integrations, vendors.Spec, g.secrets)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		return nil, api.ErrNoIntegration.WithCause(err)
	case err != nil:
		return nil, api.ErrInternal.WithCause(err)
	}
	return accounts, nil
}

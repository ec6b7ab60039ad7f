package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/sources"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

// group holds the dependencies and the cache of the function's operations.
type group struct {
	store    *rates.Store
	client   *upstream.Client
	secrets  *upstream.SecretCache
	breakers *upstream.Breakers
	life     time.Duration // of the set in use in this instance
	clock    cache.Clock
	cached   *cache.Map[string, rates.ProjectRates] // rates of projects with their own key, by project and environment
	past     *cache.Map[time.Time, *rates.Set]      // sets of the service that were in use on earlier days in UTC
	current  *cache.Expiring[struct{}, *rates.Set]  // the set in use
}

func newGroup(store *rates.Store, client *upstream.Client, secrets *upstream.SecretCache, life time.Duration,
	clock cache.Clock) *group {
	current := cache.NewExpiring[struct{}, *rates.Set](1)
	current.Clock = clock
	return &group{
		current: current, store: store, client: client, secrets: secrets, breakers: upstream.NewBreakers(), life: life,
		clock:  clock,
		cached: cache.New[string, rates.ProjectRates](maxCachedProjects), past: cache.New[time.Time,
			*rates.Set](maxCachedDays),
	}
}

// resultData returns the data of a response from the set that the project uses. An error is an *request.Error.
type resultData func(r rateRequest, set *rates.Set, now time.Time) (any, error)

// job returns the job of an operation, which is free. The set that the project uses is read beside the count of the
// request.
func (g *group) job(ctx context.Context, call *request.Call, r rateRequest, data resultData) (*request.Job, error) {
	if call.Mode == project.BYOK {
		return g.projectJob(ctx, call, r, data)
	}
	var set *rates.Set
	var first time.Time
	return &request.Job{
		Prefetch: func(ctx context.Context) (err error) {
			if set, err = g.inUse(ctx); err == nil && set != nil && !r.day.IsZero() {
				r.sets, first, err = g.usedOnDays(ctx, r.from, r.day, set)
				set = last(r.sets)
			}
			return err
		},
		Run: func(context.Context) (*request.Result, error) {
			switch {
			case set == nil && !first.IsZero():
				return nil, g.errNotStored(first)
			case set == nil:
				return nil, call.NoIntegration(errors.New("no rates are stored yet"))
			}
			return g.result(set, r, data)
		},
	}, nil
}

// today returns the day in UTC.
func (g *group) today() time.Time { return g.clock.Now().UTC().Truncate(24 * time.Hour) }

// errNotStored returns the error for a day without rates (docs/decisions/currency.md#rates-by-date).
func (g *group) errNotStored(first time.Time) error {
	return &request.Error{
		Status: 400, Code: request.CodeHTTPError, Reason: request.ReasonDateNotStored,
		Message: fmt.Sprintf("Rates are stored from %s to %s.", first.Format(time.DateOnly), g.today().Format(time.DateOnly)),
	}
}

// parallelReads bounds the reads of one request.
const parallelReads = 8

// usedOnDays returns the service's set of each day, or nil and the first day that is stored. The current set is that of
// today.
func (g *group) usedOnDays(ctx context.Context, from, to time.Time,
	current *rates.Set) ([]*rates.Set, time.Time, error) {
	var sets []*rates.Set
	for day := from; !day.After(to); day = day.AddDate(0, 0, 1) {
		sets = append(sets, current)
	}
	var mu sync.Mutex
	var missing bool
	var first time.Time
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for i := range sets {
		day := from.AddDate(0, 0, i)
		if day.Equal(g.today()) {
			continue
		}
		reads.Go(func() error {
			set, stored, err := g.usedOn(ctx, day)
			if sets[i] = set; set == nil {
				mu.Lock()
				defer mu.Unlock()
				missing, first = true, stored
			}
			return err
		})
	}
	if err := reads.Wait(); err != nil || missing {
		return nil, first, err
	}
	return sets, from, nil
}

// last returns the last set, nil of none.
func last(sets []*rates.Set) *rates.Set {
	if len(sets) == 0 {
		return nil
	}
	return sets[len(sets)-1]
}

// usedOn returns the service's set of an earlier day, or nil and the first day that is stored.
func (g *group) usedOn(ctx context.Context, day time.Time) (*rates.Set, time.Time, error) {
	if set, ok := g.past.Get(day); ok {
		return set, day, nil
	}
	set, first, err := g.store.UsedOn(ctx, day, g.clock.Now())
	switch {
	case err != nil:
	case set == nil && first.IsZero():
		first = g.today()
	case set != nil && g.clock.Now().Sub(day) > 25*time.Hour: // the day's last fetch has ended
		g.past.Put(day, set)
	}
	return set, first, err
}

// result returns the data from a set, where the central bank's values are those of the day's end.
func (g *group) result(set *rates.Set, r rateRequest, data resultData) (*request.Result, error) {
	at := g.clock.Now()
	if !r.day.IsZero() && r.day.Before(g.today()) {
		at = r.day.AddDate(0, 0, 1).Add(-time.Nanosecond)
	}
	content, err := data(r, set, at)
	if err != nil {
		return nil, err
	}
	return &request.Result{Data: content, Vendor: set.Source, Attributes: []slog.Attr{slog.Time("rates_date", set.Date)}},
		nil
}

// inUse returns the set of the service, from the cache while the cached set is young.
func (g *group) inUse(ctx context.Context) (*rates.Set, error) {
	if set, ok := g.current.Get(struct{}{}); ok {
		return set, nil
	}
	set, err := g.store.Current(ctx)
	if set != nil && err == nil {
		g.current.Put(struct{}{}, set, g.life)
	}
	return set, err
}

// accounts returns the complete integrations of a call by priority (docs/decisions/money.md#modes).
func (g *group) accounts(ctx context.Context, call *request.Call) ([]upstream.Account, error) {
	accounts, err := g.client.Accounts(ctx, call.Project.ID, call.Integrations, sources.Spec, g.secrets)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		return nil, call.NoIntegration(err)
	case err != nil:
		return nil, request.ErrInternal.WithCause(err)
	}
	return accounts, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/sources"
	"svcapi/shared/request"
	"svcapi/shared/telemetry"
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
		clock: clock, cached: cache.New[string, rates.ProjectRates](maxCachedProjects),
		past: cache.New[time.Time, *rates.Set](maxCachedDays),
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
				if set = nil; len(r.sets) > 0 {
					set = r.sets[len(r.sets)-1]
				}
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
	first := make([]time.Time, len(sets)) // the first day that is stored, where a day has no set
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for i := range sets {
		if day := from.AddDate(0, 0, i); !day.Equal(g.today()) {
			reads.Go(func() (err error) {
				sets[i], first[i], err = g.usedOn(ctx, day)
				return err
			})
		}
	}
	err := reads.Wait()
	if i := slices.Index(sets, nil); err != nil || i >= 0 {
		return nil, first[max(i, 0)], err
	}
	return sets, from, nil
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

const (
	// fetchInterval is the least time between two fetches with a project's own key.
	fetchInterval = time.Hour
	// fetchLease is how long another request leaves a running fetch alone: longer than any request lives.
	fetchLease = 40 * time.Second
	// retryInterval is the time before a failed fetch is repeated while the project has no rates.
	retryInterval = 10 * time.Second
	// pollInterval is the pause of a request that waits for the fetch of another request.
	pollInterval = 150 * time.Millisecond
	// maxCachedProjects and maxCachedDays bound the sets of rates that an instance caches.
	maxCachedProjects, maxCachedDays = 200, 100
)

// fetchIsDue reports whether a project's rates must be fetched: there are none, the last attempt is an hour old, or the
// vendor of the rates is no longer among the accounts.
func fetchIsDue(own rates.ProjectRates, accounts []upstream.Account, now time.Time) bool {
	return own.Set == nil || now.Sub(own.Tried) >= fetchInterval || !contains(accounts, own.Set.Source)
}

func contains(accounts []upstream.Account, vendor string) bool {
	return slices.ContainsFunc(accounts, func(a upstream.Account) bool { return a.Integration.Vendor == vendor })
}

// projectJob returns the job for a project with its own vendor account. The project's rates are fetched on demand, at
// most once an hour, and stored for all instances without the sets of earlier days.
func (g *group) projectJob(ctx context.Context, call *request.Call, r rateRequest,
	data resultData) (*request.Job, error) {
	accounts, err := g.accounts(ctx, call)
	if err != nil {
		return nil, err
	}
	p := &projectRates{group: g, project: call.Project.ID, env: call.Environment,
		request: call.RequestID, accounts: accounts}
	return &request.Job{
		Prefetch: p.load,
		Run: func(ctx context.Context) (*request.Result, error) {
			var failure error
			if fetchIsDue(p.own, accounts, g.clock.Now()) {
				failure = p.refresh(ctx)
			}
			if p.own.Set == nil {
				return nil, call.NoIntegration(fmt.Errorf("no rates with the project's own key: %w", failure))
			}
			if first := p.own.Set.Date.Truncate(24 * time.Hour); !r.day.IsZero() &&
				(r.from.Before(first) || r.day.After(g.today())) {
				return nil, g.errNotStored(first)
			}
			for day := r.from; !r.day.IsZero() && !day.After(r.day); day = day.AddDate(0, 0, 1) {
				r.sets = append(r.sets, p.own.Set)
			}
			result, err := g.result(p.own.Set, r, data)
			if failure != nil && err == nil {
				result.Metrics = append(result.Metrics, telemetry.Metric{Name: "OwnRatesFailed", Unit: telemetry.Count, Value: 1})
				result.Attributes = append(result.Attributes, slog.String("rates_failure", failureClass(failure)))
			}
			return result, err
		},
	}, nil
}

// failureClass returns the class of a fetch failure without the vendor's text, which privacy mode forbids in the log.
func failureClass(failure error) string {
	if e, ok := errors.AsType[*upstream.Error](failure); ok {
		return string(e.Class)
	}
	return "rejected"
}

// projectRates is a request for the rates of a project with its own vendor account.
type projectRates struct {
	*group
	project, request string
	env              project.Environment
	accounts         []upstream.Account
	own              rates.ProjectRates
}

func (p *projectRates) key() string { return p.project + "/" + string(p.env) }

// load reads the project's rates, from the cache while no fetch is due.
func (p *projectRates) load(ctx context.Context) error {
	if cached, ok := p.cached.Get(p.key()); ok && !fetchIsDue(cached, p.accounts, p.clock.Now()) {
		p.own = cached
		return nil
	}
	return p.reload(ctx, false)
}

func (p *projectRates) reload(ctx context.Context, consistent bool) error {
	own, err := p.store.ProjectRates(ctx, p.project, p.env, consistent)
	if err != nil {
		return err
	}
	p.own = own
	p.cached.Put(p.key(), own)
	return nil
}

// refresh fetches the rates, unless another request has claimed the fetch. The error is why the rates are not new.
func (p *projectRates) refresh(ctx context.Context) error {
	pause, again := fetchInterval, fetchInterval
	if p.own.Set == nil {
		pause, again = fetchLease, retryInterval
	} else if !contains(p.accounts, p.own.Set.Source) {
		pause, again = fetchLease, fetchLease
	}
	tried := p.clock.Now()
	claimed, err := p.store.Claim(ctx, p.project, p.env, p.request, tried, pause, again)
	if err != nil {
		return fmt.Errorf("claim the fetch: %w", err)
	}
	if !claimed {
		return p.wait(ctx)
	}
	set, err := p.fetch(ctx)
	if err != nil {
		return errors.Join(err, p.store.FailProjectRates(ctx, p.project, p.env, p.clock.Now()))
	}
	if err := p.store.PutProjectRates(ctx, p.project, p.env, set, tried); err != nil {
		return fmt.Errorf("store the rates: %w", err)
	}
	return p.reload(ctx, true)
}

// wait waits for the fetch of another request while the project has no rates.
func (p *projectRates) wait(ctx context.Context) error {
	for p.own.Set == nil {
		if err := p.reload(ctx, true); err != nil || p.own.Set != nil {
			return err
		}
		if !p.own.Failed.Before(p.own.Tried) {
			return errors.New("the fetch of another request has just failed")
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return fmt.Errorf("the fetch of another request: %w", ctx.Err())
		}
	}
	return nil
}

// fetch calls the accounts in their order until one returns valid rates. The central bank's values are those of the
// service.
func (p *projectRates) fetch(ctx context.Context) (*rates.Set, error) {
	service, err := p.inUse(ctx)
	if err != nil {
		return nil, err
	}
	var previous, reference *rates.Table
	var bank rates.Bank
	if service != nil {
		reference, bank = &service.Table, service.Bank
	}
	if p.own.Set != nil {
		previous, reference = &p.own.Set.Table, &p.own.Set.Table
	}
	var failed []error
	for _, account := range p.accounts {
		vendor := sources.Find(account.Integration.Vendor) // accounts has found the vendor in the table
		table, err := upstream.Call(ctx, p.breakers, p.secrets, account, func(a upstream.Account) (*rates.Table, error) {
			return vendor.Fetch(ctx, p.client, a)
		})
		if err == nil {
			table.Fetched = p.clock.Now().UTC()
			before := previous
			if before != nil && before.Source != vendor.Name {
				before = nil // dates of two sources cannot be compared
			}
			err = rates.Validate(table, before, reference, p.clock.Now(), false)
		}
		if err == nil {
			return &rates.Set{Table: *table, Bank: bank}, nil
		}
		failed = append(failed, fmt.Errorf("%s: %w", vendor.Name, err))
	}
	return nil, errors.Join(failed...)
}

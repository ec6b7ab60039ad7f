package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"svcapi/shared/api"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/vendors"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
)

const (
	// ownEvery is how often a project's own vendor is asked, at most.
	ownEvery = time.Hour
	// ownLease is how long an attempt may be under way: longer than any request lives.
	ownLease = 40 * time.Second
	// ownAgain is how soon a failed attempt is repeated while there is no set to answer from.
	ownAgain = 10 * time.Second
	// ownPoll is the pause of a request that waits for another one's fetch.
	ownPoll = 150 * time.Millisecond
	// maxOwns bounds the projects whose sets an instance remembers.
	maxOwns = 200
)

// due tells whether a project's own vendor is to be asked: there is no set, or
// the last attempt at one is an hour old, or it is of a vendor that is not
// among the accounts any more.
func due(own rates.ProjectRates, accounts []upstream.Account, now time.Time) bool {
	return own.Set == nil || now.Sub(own.Tried) >= ownEvery || !among(accounts, own.Set.Source)
}

func among(accounts []upstream.Account, vendor string) bool {
	return slices.ContainsFunc(accounts, func(a upstream.Account) bool { return a.Integration.Vendor == vendor })
}

// ownJob answers a project that brings its own vendor account. Its rates are
// fetched on demand, at most hourly, and kept for all instances.
func (g *group) ownJob(ctx context.Context, call *api.Call, answer answering) (*api.Job, error) {
	accounts, err := g.accounts(ctx, call)
	if err != nil {
		return nil, err
	}
	o := &owner{group: g, project: call.Project.ID, env: call.Environment, request: call.RequestID, accounts: accounts}
	return &api.Job{
		Prefetch: o.load,
		Run: func(ctx context.Context) (*api.Result, error) {
			var trouble error
			if due(o.own, accounts, g.clock.Now()) {
				trouble = o.refresh(ctx)
			}
			if o.own.Set == nil {
				return nil, api.ErrNoIntegration.WithCause(fmt.Errorf("no rates with the project's own key: %w", trouble))
			}
			result, err := g.result(o.own.Set, answer)
			if trouble != nil && err == nil {
				result.Metrics = append(result.Metrics, telemetry.Metric{Name: "OwnRatesFailed", Unit: telemetry.Count, Value: 1})
				result.Attributes = append(result.Attributes, slog.String("rates_trouble", kindOf(trouble)))
			}
			return result, err
		},
	}, nil
}

// kindOf says what the trouble is without the vendor's words, which privacy mode forbids.
func kindOf(trouble error) string {
	if e, ok := errors.AsType[*upstream.Error](trouble); ok {
		return string(e.Class)
	}
	return "not_believed"
}

// owner is a request for a project's own rates.
type owner struct {
	*group
	project, request string
	env              project.Environment
	accounts         []upstream.Account
	own              rates.ProjectRates
}

func (o *owner) key() string { return o.project + "/" + string(o.env) }

// load reads the project's own set, from memory until the next fetch can have happened.
func (o *owner) load(ctx context.Context) error {
	kept, ok := o.owns.Get(o.key())
	if ok && !due(kept, o.accounts, o.clock.Now()) {
		o.own = kept
		return nil
	}
	return o.reload(ctx, false)
}

func (o *owner) reload(ctx context.Context, asItIsNow bool) error {
	own, err := o.store.ProjectRates(ctx, o.project, o.env, asItIsNow)
	if err != nil {
		return err
	}
	o.own = own
	o.owns.Put(o.key(), own)
	return nil
}

// refresh fetches the project's rates, or lets the one request do so that
// claimed it first. The error says why the set is not a new one; one that is
// held stays good.
func (o *owner) refresh(ctx context.Context) error {
	pause, again := ownEvery, ownEvery
	if o.own.Set == nil {
		pause, again = ownLease, ownAgain
	} else if !among(o.accounts, o.own.Set.Source) {
		pause, again = ownLease, ownLease
	}
	tried := o.clock.Now()
	mine, err := o.store.Claim(ctx, o.project, o.env, o.request, tried, pause, again)
	if err != nil {
		return fmt.Errorf("claim the fetch: %w", err)
	}
	if !mine {
		return o.wait(ctx)
	}
	set, err := o.fetch(ctx)
	if err != nil {
		return errors.Join(err, o.store.FailProjectRates(ctx, o.project, o.env, o.clock.Now()))
	}
	if err := o.store.PutProjectRates(ctx, o.project, o.env, set, tried); err != nil {
		return fmt.Errorf("keep the rates: %w", err)
	}
	return o.reload(ctx, true)
}

// wait is for a set that another request fetches, where there is none to answer from.
func (o *owner) wait(ctx context.Context) error {
	for o.own.Set == nil {
		if err := o.reload(ctx, true); err != nil {
			return err
		}
		if o.own.Set != nil {
			break
		}
		if !o.own.Failed.Before(o.own.Tried) {
			return errors.New("another request's fetch has failed a moment ago")
		}
		select {
		case <-time.After(ownPoll):
		case <-ctx.Done():
			return fmt.Errorf("another request's fetch: %w", ctx.Err())
		}
	}
	return nil
}

// fetch asks the accounts in their order until one gives a table that can be
// believed. The central bank's values are the service's.
func (o *owner) fetch(ctx context.Context) (*rates.Set, error) {
	service, err := o.inUse(ctx)
	if err != nil {
		return nil, err
	}
	var held, reference *rates.Table
	var bank rates.Bank
	if service != nil {
		reference, bank = &service.Table, service.Bank
	}
	if o.own.Set != nil {
		held, reference = &o.own.Set.Table, &o.own.Set.Table
	}
	var failed []error
	for _, account := range o.accounts {
		vendor := vendors.Find(account.Integration.Vendor) // accounts has found it in the table
		table, err := upstream.Call(o.breakers, account, func() (*rates.Table, error) {
			return upstream.WithSecretRefresh(ctx, o.secrets, account, func(a upstream.Account) (*rates.Table, error) {
				return vendor.Fetch(ctx, o.client, a)
			})
		})
		if err == nil {
			table.Fetched = o.clock.Now().UTC()
			before := held
			if before != nil && before.Source != vendor.Name {
				before = nil // dates compare within a source
			}
			err = rates.Validate(table, before, reference, o.clock.Now(), false)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", vendor.Name, err))
			continue
		}
		return &rates.Set{Table: *table, Bank: bank}, nil
	}
	return nil, errors.Join(failed...)
}

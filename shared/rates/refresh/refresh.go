// Package refresh fetches rates, validates them and replaces the set in use. The scheduled function and the operator's
// command line run a refresh.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/sources"
	"svcapi/shared/upstream"
)

// Refresher fetches rates for all projects.
type Refresher struct {
	Store    *rates.Store
	Client   *upstream.Client
	Secrets  upstream.Secrets
	Endpoint string // the base URL of an emulator with a path for each source; empty for the real sources
	Contact  string // the address that requests to the central bank name; empty for none
	Now      func() time.Time
}

// Options of one run.
type Options struct {
	Actor       string       // the name in the history: schedule, or an operator's ARN
	AcceptMoves bool         // moves of over 50 % are valid, after an operator has confirmed them
	Bank        BankSchedule // when to ask the central bank; without a schedule the run asks
}

// Outcome is the outcome of a fetch.
type Outcome string

// The outcomes.
const (
	Taken   Outcome = "taken"
	Refused Outcome = "refused" // the response is not valid rates
	Failed  Outcome = "failed"  // there was no usable response
	Skipped Outcome = "skipped" // the service has no account at the source, or no fetch is due
	Waiting Outcome = "waiting" // no fetch is due, because the last one has failed
)

// Result is the outcome of the fetch from one source. The JSON form is the output of "svc rates sync".
type Result struct {
	Source  string  `json:"source"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail"` // the reason, for people
}

// Report holds the results of one run.
type Report struct {
	Results []Result
	Current *rates.Set // in use after the run; nil before the first valid fetch
}

// Count returns the number of sources with an outcome.
func (r *Report) Count(outcome Outcome) (n int) {
	for _, result := range r.Results {
		if result.Outcome == outcome {
			n++
		}
	}
	return n
}

func (r *Report) add(source string, outcome Outcome, err error) {
	result := Result{Source: source, Outcome: outcome}
	if err != nil {
		result.Detail = err.Error()
	}
	r.Results = append(r.Results, result)
}

// ErrNoRates reports that no source returned a valid table. The table in use stays.
var ErrNoRates = errors.New("no source returned valid rates")

// Run fetches from the sources in their order until one returns a valid table, and from the central bank. Run replaces
// the set in use in one write; rates that are not valid do not replace the stored rates. Several runs may overlap.
func (r *Refresher) Run(ctx context.Context, o Options) (*Report, error) {
	report := &Report{}
	stored, err := r.Store.Stored(ctx)
	if err != nil {
		return report, err
	}
	report.Current = stored.Current
	table, err := r.table(ctx, stored, o, report)
	if err != nil {
		return report, err
	}
	bank, err := r.bank(ctx, stored, table, o, report)
	if err != nil {
		return report, err
	}
	if err := r.replace(ctx, stored, table, bank, o, report); err != nil {
		return report, err
	}
	if err := r.addHistory(ctx, stored, o, report); err != nil {
		return report, err
	}
	if table == nil {
		return report, ErrNoRates
	}
	return report, nil
}

// table asks the pinned source alone, or all vendors in their order, and returns the first valid table, or nil.
func (r *Refresher) table(ctx context.Context, stored *rates.Stored, o Options, report *Report) (*rates.Table, error) {
	names := sources.Names()
	if stored.Pin != nil {
		names = []string{stored.Pin.Source}
	}
	for _, name := range names {
		outcome, table, err := r.fetch(ctx, name, stored, o)
		report.add(name, outcome, err)
		if outcome == Skipped {
			continue
		}
		if outcome == Taken {
			err := r.Store.PutSource(ctx, name, rates.Source{Table: table, Fetched: table.Fetched, Tried: table.Fetched})
			if err != nil && !errors.Is(err, rates.ErrChanged) { // another run has a newer one
				return nil, err
			}
			return table, nil
		}
		if err := r.Store.PutFailure(ctx, name, err.Error(), r.Now()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (r *Refresher) fetch(ctx context.Context, name string, stored *rates.Stored,
	o Options) (Outcome, *rates.Table, error) {
	vendor := sources.Find(name)
	if vendor == nil {
		return Failed, nil, fmt.Errorf("%s is not a source of rates", name)
	}
	account, err := r.account(ctx, vendor)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		return Skipped, nil, err
	case err != nil:
		return Failed, nil, err
	}
	table, err := vendor.Fetch(ctx, r.Client, account)
	if err != nil {
		return Failed, nil, err
	}
	table.Fetched = r.Now().UTC()
	if err := rates.Validate(table, stored.Sources[name].Table, stored.Table(), r.Now(), o.AcceptMoves); err != nil {
		return Refused, nil, err
	}
	return Taken, table, nil
}

// account returns the service's own account at a vendor. The environments share the rates: the account is that of
// production, or else that of development.
func (r *Refresher) account(ctx context.Context, vendor *sources.Vendor) (account upstream.Account, err error) {
	settings := map[string]string{}
	if r.Endpoint != "" {
		settings[upstream.EndpointSetting] = r.Endpoint + "/" + vendor.Name
	}
	for _, env := range []project.Environment{project.Production, project.Development} {
		in := project.Integration{Kind: project.Currency, Environment: env, Vendor: vendor.Name,
			Mode: project.Managed, Settings: settings}
		account, err = r.Client.Resolve(ctx, "", in, &vendor.Spec, r.Secrets)
		if !errors.Is(err, upstream.ErrIncomplete) {
			return account, err
		}
	}
	return account, err
}

// attempts bounds the writes of a set that other runs replace at the same time.
const attempts = 5

// replace writes the new set in use. Of two runs the later fetch counts, and of the bank's values the newer ones.
func (r *Refresher) replace(ctx context.Context, stored *rates.Stored, table *rates.Table, bank rates.Bank, o Options,
	report *Report) error {
	for range attempts {
		set := &rates.Set{Bank: bank}
		switch {
		case table != nil:
			set.Table = *table
		case stored.Current != nil:
			set.Table = stored.Current.Table
		default:
			return nil // a set needs a table
		}
		err := r.Store.PutCurrent(ctx, stored, set)
		if err == nil {
			report.Current = set
			return nil
		}
		if !errors.Is(err, rates.ErrChanged) {
			return err
		}
		if stored, err = r.Store.Stored(ctx); err != nil {
			return err
		}
		if current := stored.Current; current != nil {
			if table != nil && current.Fetched.After(table.Fetched) {
				table = nil
			}
			report.Current = current
			bank, _ = current.Bank.Update(bank, &current.Table, r.Now(), o.AcceptMoves)
		}
	}
	return rates.ErrChanged
}

// addHistory stores the changes and the failures of the run in the history.
func (r *Refresher) addHistory(ctx context.Context, before *rates.Stored, o Options, report *Report) error {
	now := r.Now()
	for place, result := range report.Results {
		changed := changed(before.Current, report.Current, result.Source)
		if result.Outcome == Skipped || result.Outcome == Waiting || result.Outcome == Taken && !changed {
			continue
		}
		event := rates.Event{At: now, Source: result.Source, Outcome: string(result.Outcome),
			Detail: result.Detail, Actor: o.Actor}
		// A refused or failed fetch from the central bank can have changed some of its values.
		if result.Outcome == Taken || result.Source == rates.BankSource && changed {
			event.Set = report.Current
		}
		if err := r.Store.PutEvent(ctx, event, place); err != nil {
			return err
		}
	}
	return nil
}

// changed reports whether the rates of a source in the set have changed.
func changed(before, after *rates.Set, source string) bool {
	same := func(a, b rates.Decimal) bool { return a.String() == b.String() }
	switch {
	case after == nil:
		return false
	case before == nil:
		return true
	case source == rates.BankSource:
		return !maps.EqualFunc(before.Bank, after.Bank, rates.Record.Equal)
	}
	return before.Source != after.Source || !before.Date.Equal(after.Date) ||
		!maps.EqualFunc(before.Rates, after.Rates, same)
}

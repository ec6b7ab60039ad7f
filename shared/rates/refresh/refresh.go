// Package refresh fetches rates, judges them and puts them in use. The scheduled
// function runs it, and the operator's command line.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/rates/centralbank"
	"svcapi/shared/rates/vendors"
	"svcapi/shared/upstream"
)

// Refresher fetches rates for all projects.
type Refresher struct {
	Store   *rates.Store
	Client  *upstream.Client
	Secrets upstream.Secrets
	// Endpoint is where an emulator plays the sources, each below its name;
	// empty: every source's own.
	Endpoint string
	Now      func() time.Time
}

// Options of one run.
type Options struct {
	// Actor stands in the history: schedule, or an operator's ARN.
	Actor string
	// AcceptMoves takes moves of over 50 %, which an operator has seen to be real.
	AcceptMoves bool
}

// What became of asking a source.
type What string

// The outcomes.
const (
	Taken   What = "taken"
	Refused What = "refused" // answered, but not believed
	Failed  What = "failed"  // no usable answer
	Skipped What = "skipped" // the service has no account there
)

// Outcome is what became of asking one source.
type Outcome struct {
	Source string
	What   What
	Detail string // why, for people
}

// Report is what one run did.
type Report struct {
	Outcomes []Outcome
	Current  *rates.Set // in use after it; nil: none
}

// Count is how many sources met an outcome.
func (r *Report) Count(what What) (n int) {
	for _, o := range r.Outcomes {
		if o.What == what {
			n++
		}
	}
	return n
}

func (r *Report) add(source string, what What, err error) {
	o := Outcome{Source: source, What: what}
	if err != nil {
		o.Detail = err.Error()
	}
	r.Outcomes = append(r.Outcomes, o)
}

// ErrNoRates says that no source gave a table that can be believed. What was in use stays.
var ErrNoRates = errors.New("no source gave rates that can be used")

// Run asks the sources in their order until one gives a table that can be
// believed, and the central bank. What passes is put in use at once, in one
// item; what does not leaves what is held. Several runs may go on at once.
func (r *Refresher) Run(ctx context.Context, o Options) (*Report, error) {
	report := &Report{}
	held, err := r.Store.Held(ctx)
	if err != nil {
		return report, err
	}
	report.Current = held.Current
	table, err := r.table(ctx, held, o, report)
	if err != nil {
		return report, err
	}
	bank, err := r.bank(ctx, held, table, o, report)
	if err != nil {
		return report, err
	}
	if err := r.replace(ctx, held, table, bank, o, report); err != nil {
		return report, err
	}
	if err := r.remember(ctx, held, o, report); err != nil {
		return report, err
	}
	if table == nil {
		return report, ErrNoRates
	}
	return report, nil
}

// order is which sources are asked: an operator's choice alone, or all of the table.
func order(held *rates.Held) []string {
	if held.Pin != nil {
		return []string{held.Pin.Source}
	}
	var names []string
	for _, v := range vendors.Table() {
		names = append(names, v.Name)
	}
	return names
}

// table is the first believable one; nil: there is none.
func (r *Refresher) table(ctx context.Context, held *rates.Held, o Options, report *Report) (*rates.Table, error) {
	for _, name := range order(held) {
		what, table, err := r.ask(ctx, name, held, o)
		report.add(name, what, err)
		if what == Skipped {
			continue
		}
		if what == Taken {
			err := r.Store.PutSource(ctx, name, rates.Source{Table: table, Fetched: table.Fetched, Tried: table.Fetched})
			if err != nil && !errors.Is(err, rates.ErrChanged) { // another run has a newer one
				return nil, err
			}
			return table, nil
		}
		if err := r.Store.PutTrouble(ctx, name, err.Error(), r.Now()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// ask fetches one source's table and judges it.
func (r *Refresher) ask(ctx context.Context, name string, held *rates.Held, o Options) (What, *rates.Table, error) {
	vendor := vendors.Find(name)
	if vendor == nil {
		return Failed, nil, fmt.Errorf("%s is no source of rates", name)
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
	var reference *rates.Table
	if held.Current != nil {
		reference = &held.Current.Table
	}
	if err := rates.Validate(table, held.Sources[name].Table, reference, r.Now(), o.AcceptMoves); err != nil {
		return Refused, nil, err
	}
	return Taken, table, nil
}

// account is the service's own at a vendor: rates are the same in both
// environments, so it is production's, or development's where there is none.
func (r *Refresher) account(ctx context.Context, vendor *vendors.Vendor) (account upstream.Account, err error) {
	settings := map[string]string{}
	if r.Endpoint != "" {
		settings[upstream.EndpointSetting] = r.Endpoint + "/" + vendor.Name
	}
	for _, env := range []project.Environment{project.Production, project.Development} {
		in := project.Integration{Kind: project.Currency, Environment: env, Vendor: vendor.Name, Mode: project.Managed, Settings: settings}
		account, err = r.Client.Resolve(ctx, "", in, &vendor.Spec, r.Secrets)
		if !errors.Is(err, upstream.ErrIncomplete) {
			return account, err
		}
	}
	return account, err
}

// bank is the central bank's records as they are now known.
func (r *Refresher) bank(ctx context.Context, held *rates.Held, table *rates.Table, o Options, report *Report) (rates.Bank, error) {
	client := centralbank.Client{Upstream: r.Client, Endpoint: centralbank.Endpoint}
	if r.Endpoint != "" {
		client.Endpoint = r.Endpoint + "/" + rates.BankSource
	}
	if table == nil && held.Current != nil {
		table = &held.Current.Table
	}
	now := r.Now()
	fetched, failed := client.Fetch(ctx, now)
	before := held.Sources[rates.BankSource].Bank
	after, refused := before.Update(fetched, table, now, o.AcceptMoves)
	what, trouble := Taken, errors.Join(append(refused, failed)...)
	switch {
	case len(refused) > 0:
		what = Refused
	case failed != nil:
		what = Failed
	}
	report.add(rates.BankSource, what, trouble)
	if len(fetched) == 0 && trouble != nil {
		return before, r.Store.PutTrouble(ctx, rates.BankSource, trouble.Error(), now)
	}
	source := rates.Source{Bank: after, Fetched: now, Tried: now}
	if trouble != nil {
		source.Trouble = trouble.Error()
	}
	if err := r.Store.PutSource(ctx, rates.BankSource, source); err != nil && !errors.Is(err, rates.ErrChanged) {
		return nil, err
	}
	return after, nil
}

// attempts at replacing the set while other runs do so too.
const attempts = 5

// replace puts a new set in use where there is something new. Of two runs the
// later fetch counts, and of the bank's values the newer ones.
func (r *Refresher) replace(ctx context.Context, held *rates.Held, table *rates.Table, bank rates.Bank, o Options, report *Report) error {
	for range attempts {
		set := &rates.Set{Bank: bank}
		switch {
		case table != nil:
			set.Table = *table
		case held.Current != nil:
			set.Table = held.Current.Table
		default:
			return nil // the bank's values alone are no set
		}
		err := r.Store.PutCurrent(ctx, held, set)
		if err == nil {
			report.Current = set
			return nil
		}
		if !errors.Is(err, rates.ErrChanged) {
			return err
		}
		if held, err = r.Store.Held(ctx); err != nil {
			return err
		}
		if table != nil && held.Current != nil && held.Current.Fetched.After(table.Fetched) {
			table = nil
		}
		var reference *rates.Table
		if held.Current != nil {
			report.Current = held.Current
			reference = &held.Current.Table
			bank, _ = held.Current.Bank.Update(bank, reference, r.Now(), o.AcceptMoves)
		}
	}
	return rates.ErrChanged
}

// remember adds to the history what changed and what went wrong.
func (r *Refresher) remember(ctx context.Context, before *rates.Held, o Options, report *Report) error {
	now := r.Now()
	for place, outcome := range report.Outcomes {
		event := rates.Event{At: now, Source: outcome.Source, What: string(outcome.What), Detail: outcome.Detail, Actor: o.Actor}
		// Of the central bank's values some can be taken while others are not.
		if outcome.What == Taken || outcome.Source == rates.BankSource && changed(before.Current, report.Current, outcome.Source) {
			event.Set = report.Current
		}
		if outcome.What == Skipped || outcome.What == Taken && !changed(before.Current, report.Current, outcome.Source) {
			continue
		}
		if err := r.Store.PutEvent(ctx, event, place); err != nil {
			return err
		}
	}
	return nil
}

// changed tells whether a source's part of the set differs.
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
	return before.Source != after.Source || !before.Date.Equal(after.Date) || !maps.EqualFunc(before.Rates, after.Rates, same)
}

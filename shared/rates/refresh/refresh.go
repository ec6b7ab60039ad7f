// Package refresh fetches rates, validates them and replaces the set in use. The scheduled function and the operator's
// command line run a refresh.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// BankSchedule holds the full hours, in Colombo, at which runs ask the central bank on a working day. Without hours
// every run asks (docs/decisions/currency.md#bank-schedule).
type BankSchedule []int

const (
	// maxBankHours bounds the hours of a schedule, and so the requests to the bank on one day.
	maxBankHours = 4
	// maxBankPause bounds the pause after failures.
	maxBankPause = 24 * time.Hour
)

// Validate returns the reason why the schedule is not valid.
func (b BankSchedule) Validate() error {
	if len(b) < 1 || len(b) > maxBankHours || !slices.IsSorted(b) || len(slices.Compact(slices.Clone(b))) < len(b) ||
		b[0] < 0 || b[len(b)-1] > 23 {
		return fmt.Errorf("the hours of the central bank are %v, want 1 to %d ascending hours from 0 to 23",
			[]int(b), maxBankHours)
	}
	return nil
}

// next returns the earliest time of the next fetch after the last one, and the zero time where a fetch is due at once.
// After failures the pause doubles from one hour, also over days without an hour of the schedule. One day has at most
// as many fetches as the schedule has hours.
func (b BankSchedule) next(last rates.Source) time.Time {
	if len(b) == 0 || last.Tried.IsZero() {
		return time.Time{}
	}
	day := rates.DayOf(last.Tried)
	if last.FetchesToday >= len(b) {
		day = day.Back(-1)
	}
	if last.Failures > 0 {
		pause := min(time.Hour<<min(last.Failures-1, 10), maxBankPause)
		if next := last.Tried.Add(pause); day.Start().Before(next) {
			return next
		}
		return day.Start()
	}
	for ; ; day = day.Back(-1) {
		for _, hour := range b {
			if at := day.Start().Add(time.Duration(hour) * time.Hour); day.Working() && at.After(last.Tried) {
				return at
			}
		}
	}
}

// bank fetches and stores the central bank's records where a fetch is due, and returns the stored records.
func (r *Refresher) bank(ctx context.Context, stored *rates.Stored, table *rates.Table, o Options,
	report *Report) (rates.Bank, error) {
	now, before := r.Now(), stored.Sources[rates.BankSource]
	if next := o.Bank.next(before); next.After(now) {
		outcome, reason := Skipped, fmt.Errorf("the next fetch is at %s", next.UTC().Format(time.RFC3339))
		if before.Failure != "" {
			outcome, reason = Waiting, fmt.Errorf("%w: %s", reason, before.Failure)
		}
		report.add(rates.BankSource, outcome, reason)
		return before.Bank, nil
	}
	claimed, err := r.Store.ClaimFetch(ctx, rates.BankSource, before, now)
	if errors.Is(err, rates.ErrChanged) && len(o.Bank) > 0 {
		report.add(rates.BankSource, Skipped, errors.New("another run has begun a fetch"))
		return before.Bank, nil
	}
	if err != nil && !errors.Is(err, rates.ErrChanged) {
		return nil, err
	}
	client := sources.CentralBank{Upstream: r.Client, Endpoint: sources.CentralBankEndpoint, Contact: r.Contact}
	if r.Endpoint != "" {
		client.Endpoint = r.Endpoint + "/" + rates.BankSource
	}
	if table == nil {
		table = stored.Table()
	}
	fetched, failed := client.Fetch(ctx, now)
	after, refused := before.Bank.Update(fetched, table, now, o.AcceptMoves)
	outcome, failure := Taken, errors.Join(append(refused, failed)...)
	switch {
	case len(refused) > 0:
		outcome = Refused
	case failed != nil:
		outcome = Failed
	}
	report.add(rates.BankSource, outcome, failure)
	if len(fetched) == 0 && failure != nil {
		return before.Bank, r.Store.PutFailure(ctx, rates.BankSource, failure.Error(), now)
	}
	source := rates.Source{Bank: after, Fetched: now, Tried: now, FetchesToday: claimed.FetchesToday}
	if failure != nil {
		source.Failure, source.Failures = failure.Error(), claimed.Failures
	}
	if err := r.Store.PutSource(ctx, rates.BankSource, source); err != nil && !errors.Is(err, rates.ErrChanged) {
		return nil, err
	}
	return after, nil
}

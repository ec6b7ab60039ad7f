package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"svcapi/shared/rates"
	"svcapi/shared/rates/sources"
)

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

package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/shared/ratelimit"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

// Settler closes the leases that instances left in the wallets.
type Settler struct {
	Store *wallet.Store
	// After is the age from which no request of a lease is alive (docs/decisions/money.md#settle).
	After time.Duration
	Now   func() time.Time
	Log   *telemetry.Logger
	// AtOnce is the number of wallets that a run settles at the same time.
	AtOnce int
	// Limiter subtracts counts that requests have queued, unless it is nil.
	Limiter *ratelimit.Limiter
	// Spending watches the projects' charges, unless it is nil.
	Spending *Spending
}

// Report counts the results of one run.
type Report struct {
	Settled wallet.Settled      // in all
	Failed  int                 // leases and wallets left for the next run
	Oldest  time.Duration       // age of the oldest lease seen
	Low     []wallet.LowBalance // wallets below their alert
	// Subtracted is the number of queued subtractions (docs/decisions/requests.md#recipient-limit).
	Subtracted int
}

// Handle runs once and logs one line. Handle returns an error where the run has not seen every wallet.
func (s *Settler) Handle(ctx context.Context) error {
	run, cancel := telemetry.BeforeLogging(ctx)
	defer cancel()
	report, err := s.Run(run)
	metrics, spendingErr := s.spending(run)
	var countsErr error
	if s.Limiter != nil {
		report.Subtracted, countsErr = s.Limiter.SubtractQueued(run)
	}
	err = errors.Join(err, spendingErr, countsErr)
	s.log(ctx, report, metrics, err)
	return err
}

// Run settles every lease that is old enough. A lease or a wallet that cannot be read or settled is logged, counted and
// left to the next run; after a failed call so are the wallet's other leases. Run returns an error if it could not read
// the table, or had no time for all.
func (s *Settler) Run(ctx context.Context) (Report, error) {
	report := Report{}
	var mu sync.Mutex // guards report
	done := func(l wallet.Lease, settled wallet.Settled, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			report.Failed++
			s.failed(ctx, l, err)
		}
		report.Settled.Released += settled.Released
		report.Settled.Uncertain += settled.Uncertain
		report.Settled.Closed += settled.Closed
	}
	var wallets errgroup.Group
	wallets.SetLimit(s.AtOnce)
	var dead []wallet.Lease // of one wallet
	settle := func() {
		leases := dead
		wallets.Go(func() error { s.Store.Settle(ctx, leases, done); return nil })
		dead = nil
	}
	err := s.Store.VisitPending(ctx, func(l wallet.Lease, err error) error {
		if err != nil {
			done(l, wallet.Settled{}, err)
			return ctx.Err()
		}
		age := s.Now().Sub(l.Key.Time())
		report.Oldest = max(report.Oldest, age)
		if len(dead) > 0 && dead[0].Project != l.Project {
			settle()
		}
		if age >= s.After {
			dead = append(dead, l)
		}
		return ctx.Err()
	}, func(low wallet.LowBalance) { report.Low = append(report.Low, low) })
	settle()
	_ = wallets.Wait() // each function returns nil
	return report, cmp.Or(err, ctx.Err())
}

// failed logs a lease for an operator. The error names a lease or a wallet that cannot be read.
func (s *Settler) failed(ctx context.Context, l wallet.Lease, err error) {
	message, attributes := "lease or wallet not read", []slog.Attr{slog.String("error", err.Error())}
	if l.Key != "" {
		message = "lease not settled"
		attributes = append(attributes, slog.String("project", l.Project), slog.String("key", string(l.Key)))
	}
	s.Log.Emit(ctx, telemetry.Event{Level: slog.LevelWarn, Message: message, Attributes: attributes})
}

// log writes a line for each wallet below its alert, and the line of the run with its metrics.
func (s *Settler) log(ctx context.Context, report Report, metrics []telemetry.Metric, err error) {
	for _, low := range report.Low {
		s.Log.Emit(ctx, telemetry.Event{Level: slog.LevelWarn, Message: "wallet is low", Attributes: []slog.Attr{
			slog.String("project", low.Project), slog.Int64("balance", low.Balance), slog.Int64("alert", low.Alert),
		}})
	}
	event := telemetry.Event{
		Level:      slog.LevelInfo,
		Message:    "settled",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: "settle"}},
		Metrics: append([]telemetry.Metric{
			{Name: "SettledReleased", Unit: telemetry.Count, Value: float64(report.Settled.Released), SkipZero: true},
			{Name: "SettledUncertain", Unit: telemetry.Count, Value: float64(report.Settled.Uncertain), SkipZero: true},
			{Name: "SettledRemoved", Unit: telemetry.Count, Value: float64(report.Settled.Closed), SkipZero: true},
			{Name: "SettleFailed", Unit: telemetry.Count, Value: float64(report.Failed)},
			{Name: "SettleOldest", Unit: telemetry.Seconds, Value: report.Oldest.Seconds(), SkipZero: true},
			{Name: "LowWallets", Unit: telemetry.Count, Value: float64(len(report.Low)), SkipZero: true},
			{Name: "CountsSubtracted", Unit: telemetry.Count, Value: float64(report.Subtracted), SkipZero: true},
		}, metrics...),
	}
	if err != nil {
		event.Level, event.Message = slog.LevelError, "not everything was settled, compared or subtracted"
		event.Attributes = []slog.Attr{slog.String("error", err.Error()),
			slog.Bool("out_of_time", errors.Is(err, context.DeadlineExceeded))}
	}
	s.Log.Emit(ctx, event)
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
	"svcapi/shared/ratelimit"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

// Settler closes the leases that instances left in the wallets.
type Settler struct {
	Store *wallet.Store
	// After is the age from which no request of a lease is alive: the parameter SettleAfterSeconds of template.yaml
	// (docs/decisions/money.md#settle).
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
// left to the next run; after a failed call so are the wallet's other leases. An error says that not all was seen.
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
	err := s.Store.VisitPending(ctx, func(found wallet.Visited) error {
		for _, err := range found.Unreadable {
			done(wallet.Lease{}, wallet.Settled{}, err)
		}
		if found.Low != nil {
			report.Low = append(report.Low, *found.Low)
		}
		dead := slices.DeleteFunc(found.Leases, func(l wallet.Lease) bool {
			age := s.Now().Sub(l.Key.Time())
			report.Oldest = max(report.Oldest, age)
			return age < s.After
		})
		wallets.Go(func() error { s.Store.Settle(ctx, dead, done); return nil })
		return ctx.Err()
	})
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

const (
	// unusualTimes is how many times the largest hour of the week before an hour has to be, to be unusual.
	unusualTimes = 2
	// knownAfter is the number of hours after which a project has a week to be compared with.
	knownAfter = 24
	// spendingPages is the number of items with all weeks. A page of a million projects is well below the largest item.
	spendingPages = 256
	// spendingLife is how long a page outlives its last hour.
	spendingLife = 8 * 24 * time.Hour
)

// Spending compares each project's hour with its week before (docs/decisions/money.md#unusual-spending).
type Spending struct {
	DB    *dynamodb.Client
	Table string
	Least int64 // credits; an hour of less is never unusual
	done  int64 // the last hour that this instance has compared
}

// page holds the weeks of some projects, as of the beginning of an hour.
type page struct {
	Hour  int64           `json:"h"` // since 1970
	Weeks map[string]week `json:"w"` // by project
}

// week is what one project has spent.
type week struct {
	Spent int64    `json:"s"` // in all, at the beginning of the page's hour
	Since int64    `json:"f"` // the first hour
	Peaks [7]int64 `json:"p"` // the largest hour of each day; a day's index is its number modulo 7
}

// Unusual is a project that spent more in an hour than its week before suggests.
type Unusual struct {
	Project       string
	Credits, Peak int64 // of the hour, and of the largest hour of the week before
}

// Compare compares the hour that has ended, and reports whether this call has done so: each page once an hour.
func (s *Spending) Compare(ctx context.Context, now time.Time,
	spent func(context.Context) (map[string]int64, error)) (found []Unusual, compared bool, err error) {
	hour := now.Unix() / 3600
	if hour <= s.done {
		return nil, false, nil
	}
	totals, err := spent(ctx)
	if err != nil {
		return nil, false, err
	}
	pages := map[string]map[string]int64{}
	for project, total := range totals {
		name := pageOf(project)
		if pages[name] == nil {
			pages[name] = map[string]int64{}
		}
		pages[name][project] = total
	}
	for name, projects := range pages {
		unusual, err := s.page(ctx, name, hour, projects)
		if err != nil {
			return found, false, err
		}
		found = append(found, unusual...)
	}
	s.done = hour
	slices.SortFunc(found, func(a, b Unusual) int { return cmp.Compare(b.Credits, a.Credits) })
	return found, true, nil
}

func pageOf(project string) string {
	digest := fnv.New32a()
	digest.Write([]byte(project))
	return "spending#" + strconv.Itoa(int(digest.Sum32()%spendingPages))
}

// page compares the projects of one page, and stores the page.
func (s *Spending) page(ctx context.Context, name string, hour int64, totals map[string]int64) ([]Unusual, error) {
	key := dynamo.Item{"pk": dynamo.Text(name)}
	item, err := dynamo.Get(ctx, s.DB, s.Table, key)
	var before page
	if stored := dynamo.BytesOf(item["v"]); stored != nil {
		before, err = decodePage(stored)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if before.Hour >= hour {
		return nil, nil
	}
	after, unusual := before.next(hour, totals, s.Least)
	value, err := after.encode()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	key["v"] = dynamo.Bytes(value)
	key["expires"] = dynamo.Number(hour*3600 + int64(spendingLife/time.Second))
	if _, err := s.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.Table, Item: key}); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return unusual, nil
}

// next returns the page of an hour, and the unusual projects. Hours that no run compared count their average.
func (p page) next(hour int64, totals map[string]int64, least int64) (after page, found []Unusual) {
	after = page{Hour: hour, Weeks: make(map[string]week, len(totals))}
	hours := max(hour-p.Hour, 1)
	for project, total := range totals {
		w, known := p.Weeks[project]
		if !known {
			after.Weeks[project] = week{Spent: total, Since: hour}
			continue
		}
		// The hour that has ended belongs to the day of the comparison.
		for day := p.Hour/24 + 1; day <= hour/24; day++ {
			w.Peaks[day%7] = 0
		}
		credits, peak := max(total-w.Spent, 0)/hours, slices.Max(w.Peaks[:])
		if hour-w.Since > knownAfter && credits >= least && credits > unusualTimes*peak {
			found = append(found, Unusual{project, credits, peak})
		}
		today := &w.Peaks[hour/24%7]
		*today = max(*today, credits)
		w.Spent = total
		after.Weeks[project] = w
	}
	return after, found
}

// encode returns the page as compressed JSON.
func (p page) encode() ([]byte, error) {
	text, err := json.Marshal(p)
	return dynamo.Pack(text), err
}

func decodePage(b []byte) (p page, err error) {
	text, err := dynamo.Unpack(b, 16<<20) // more than a page of a million projects has
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

// spending compares the last hour where no run has done so, and logs each unusual project. A count of 0 ends the alarm.
func (s *Settler) spending(ctx context.Context) ([]telemetry.Metric, error) {
	if s.Spending == nil {
		return nil, nil
	}
	found, compared, err := s.Spending.Compare(ctx, s.Now(), s.Store.Spent)
	for _, u := range found {
		s.Log.Emit(ctx, telemetry.Event{Level: slog.LevelWarn, Message: "unusual spending", Attributes: []slog.Attr{
			slog.String("project", u.Project), slog.Int64("credits", u.Credits), slog.Int64("largest_hour", u.Peak),
		}})
	}
	if !compared && len(found) == 0 {
		return nil, err
	}
	return []telemetry.Metric{{Name: "UnusualSpending", Unit: telemetry.Count, Value: float64(len(found))}}, err
}

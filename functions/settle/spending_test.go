package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/insights"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// hours repeats what a project spends in an hour.
func hours(n int, credits int64) []int64 { return slices.Repeat([]int64{credits}, n) }

// TestUnusualHour checks which hours of a project are unusual (docs/decisions/money.md#unusual-spending). The last hour
// is the judged one; no hour before may be unusual.
func TestUnusualHour(t *testing.T) {
	for _, c := range []struct {
		name string
		gap  int64 // hours without a run before the last comparison
		week []int64
		last int64
		want bool
	}{
		{"as always", 0, hours(100, 50), 50, false},
		{"twice as much", 0, hours(100, 50), 100, false},
		{"more than twice as much", 0, hours(100, 50), 101, true},
		{"less than an alarm is worth", 0, hours(100, 20), 49, false},
		{"after a quiet week", 0, hours(100, 0), 50, true},
		{"a project of one day", 0, hours(24, 0), 50, true},
		{"a project of less than a day", 0, hours(23, 0), 5000, false},
		{"an hour like the largest of the week", 0, slices.Concat(hours(30, 40), hours(1, 49), hours(120, 0)), 98, false},
		{"the largest hour was more than a week ago", 0, slices.Concat(hours(30, 40), hours(1, 49), hours(170, 0)), 98, true},
		{"a grant and nothing spent", 0, hours(100, 50), -1000, false},
		{"hours without a run count their average", 3, hours(100, 50), 400, false},
		{"hours without a run, and much more", 3, hours(100, 50), 404, true},
		{"a week without a run", 24 * 8, hours(100, 50), 50 * (24*8 + 1), true},
	} {
		start := int64(24 * 1000)
		p, _ := page{}.next(start, map[string]int64{"acme": 7, "other": 0}, 50)
		total := int64(7)
		for i, credits := range c.week {
			total += credits
			var found []Unusual
			if p, found = p.next(start+1+int64(i), map[string]int64{"acme": total, "other": 0}, 50); len(found) > 0 {
				t.Errorf("%s: hour %d: %v", c.name, i, found)
			}
		}
		_, found := p.next(start+1+int64(len(c.week))+c.gap, map[string]int64{"acme": total + c.last, "other": 0}, 50)
		if got := len(found) == 1 && found[0].Project == "acme" && found[0].Credits == c.last/(c.gap+1); got != c.want ||
			len(found) > 1 {
			t.Errorf("%s: %v, want %v", c.name, found, c.want)
		}
	}
}

// TestLargestHourIsKept checks that the largest hour counts for six days, at whatever hour of the day it was.
func TestLargestHourIsKept(t *testing.T) {
	for at := range int64(24) {
		const start = 24 * 1000
		p, total := page{Hour: start, Weeks: map[string]week{"acme": {Since: 24 * 900}}}, int64(0)
		for hour := int64(start + 1); hour <= start+at+6*24; hour++ {
			if hour == start+1+at {
				total = 49
			}
			p, _ = p.next(hour, map[string]int64{"acme": total}, 50)
			w := p.Weeks["acme"]
			if largest := slices.Max(w.Peaks[:]); (largest == 49) != (hour > start+at) {
				t.Fatalf("spent in hour %d: the largest is %d in hour %d", at, largest, hour-start)
			}
		}
	}
}

// TestPageSize checks that a page of a million projects fits into an item of 400 KB.
func TestPageSize(t *testing.T) {
	p := page{Hour: 500_000, Weeks: map[string]week{}}
	for i := range 1_000_000 / spendingPages {
		w := week{Spent: int64(i) * 7_654_321, Since: 499_000}
		for day := range w.Peaks {
			w.Peaks[day] = int64(i*day) * 12_347 % 5_000_000
		}
		p.Weeks[fmt.Sprintf("customer-%d", i)] = w
	}
	names := map[string]bool{}
	for i := range 10_000 {
		names[pageOf(fmt.Sprintf("customer-%d", i))] = true
	}
	if len(names) != spendingPages {
		t.Errorf("%d pages, want %d", len(names), spendingPages)
	}
	b, err := p.encode()
	if err != nil || len(b) > 350_000 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	got, err := decodePage(b)
	if err != nil || got.Hour != p.Hour || len(got.Weeks) != len(p.Weeks) ||
		got.Weeks["customer-9"] != p.Weeks["customer-9"] {
		t.Errorf("%v, %v", got.Weeks["customer-9"], err)
	}
}

// TestSpending checks that each hour is compared once, by any instance, where one comparison fails by the next run.
func TestSpending(t *testing.T) {
	client, tables := enginetest.Client(t)
	now := time.Now().Truncate(time.Hour).Add(7 * time.Minute) // of today: the engine deletes what has expired
	totals := map[string]int64{}
	for i := range 20 {
		totals[fmt.Sprintf("p%d", i)] = 0
	}
	spent := func(context.Context) (map[string]int64, error) { return totals, nil }
	instance := func() *Spending { return &Spending{DB: client, Table: tables.Transient, Least: 100} }
	compare := func(s *Spending, want string) {
		t.Helper()
		found, compared, err := s.Compare(t.Context(), now, spent)
		if got := fmt.Sprint(found, compared, err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	first := instance()
	compare(first, "[] true <nil>")
	now = now.Add(30 * time.Hour)
	compare(first, "[] true <nil>")
	now = now.Add(time.Hour)
	totals["p3"], totals["p7"] = 500, 600
	failed := errors.New("no wallets")
	if _, compared, err := first.Compare(t.Context(), now,
		func(context.Context) (map[string]int64, error) { return nil, failed }); compared || !errors.Is(err, failed) {
		t.Errorf("%v, %v", compared, err)
	}
	lost := &Spending{DB: client, Table: "nowhere", Least: 100}
	if _, compared, err := lost.Compare(t.Context(), now, spent); compared || err == nil {
		t.Errorf("a page that cannot be read: %v, %v", compared, err)
	}
	compare(first, "[{p7 600 0} {p3 500 0}] true <nil>")
	compare(first, "[] false <nil>")
	totals["p7"] = 1900
	compare(instance(), "[] true <nil>") // another instance finds every page compared
	now = now.Add(time.Hour)
	compare(instance(), "[{p7 1300 600}] true <nil>")
	item, err := dynamo.Get(t.Context(), client, tables.Transient, dynamo.Item{"pk": dynamo.Text(pageOf("p7"))})
	if expires, _ := dynamo.NumberOf(item["expires"]); err != nil || expires < now.Add(7*24*time.Hour).Unix() {
		t.Errorf("expires %d, %v", expires, err)
	}
}

// TestSpendingOfWallets checks that the settler finds a project by what its wallet has spent, and neither by credits
// that operators moved nor by those that a request returned.
func TestSpendingOfWallets(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := wallettest.WithLimits(books.NewStore(client, tables.Tables), unhurried)
	now := time.Now()
	var log bytes.Buffer
	settler := &Settler{
		Store: store.Store, After: time.Hour, Now: func() time.Time { return now }, Log: telemetry.New(&log,
			telemetry.Config{}), AtOnce: 1,
		Spending: &Spending{DB: client, Table: tables.Transient, Least: 30},
	}
	prepare(t, store, "spends", now, "remove")
	prepare(t, store, "granted", now, "remove")
	runbook, err := os.ReadFile("../../docs/runbook.md")
	must.Succeed(t, err)
	queries := insights.Queries(string(runbook))
	query := queries[slices.IndexFunc(queries, func(q string) bool { return strings.Contains(q, "unusual spending") })]
	handle := func(want string) {
		t.Helper()
		log.Reset()
		must.Succeed(t, settler.Handle(t.Context()))
		var metric, named string
		rows, err := insights.Run(query, strings.Split(log.String(), "\n"))
		must.Succeed(t, err)
		for _, row := range rows {
			named += fmt.Sprint(row["project"], " ", row["credits"], " ")
		}
		for line := range strings.Lines(log.String()) {
			var got struct{ UnusualSpending *float64 }
			must.Succeed(t, json.Unmarshal([]byte(line), &got))
			if got.UnusualSpending != nil && strings.Contains(line, `"Name":"UnusualSpending"`) { // a metric also at 0
				metric += fmt.Sprint(*got.UnusualSpending)
			}
		}
		if got := named + metric; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	handle("0")
	handle("")
	for range 25 {
		now = now.Add(time.Hour)
		handle("0")
	}
	move := func(project string, credits int64, by func(context.Context, wallet.Entry) error) {
		t.Helper()
		must.Succeed(t, by(t.Context(), wallettest.Movement(project, now, fmt.Sprint(project, credits), credits)))
	}
	move("granted", 1000, store.Grant)
	move("granted", -900, store.Adjust)
	move("spends", 5, store.Refund)
	reserve := func(project, id string) *wallet.Reservation {
		t.Helper()
		r := &wallet.Reservation{Project: project, Began: now, RequestID: id, Credits: 40, Price: wallet.SMS}
		must.Succeed(t, store.Reserve(t.Context(), r))
		return r
	}
	reserve("spends", "pending")
	must.Succeed(t, store.Release(t.Context(), reserve("granted", "released")))
	now = now.Add(time.Hour)
	settler.After = 48 * time.Hour
	handle("spends 40 1")
}

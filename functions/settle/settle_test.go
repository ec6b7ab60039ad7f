package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/credit"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/test/enginetest"
)

// TestAges checks that a reservation is settled when its request cannot be alive, that a captured one is removed when no late
// copy can arrive, and that younger ones stay.
func TestAges(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	now := time.Now().Truncate(time.Microsecond) // as keys hold it: the ages are exact
	ages := Ages{Dead: time.Minute, Captured: 15 * time.Minute}
	for i, test := range []struct {
		name    string
		age     time.Duration
		reached string // the last step before the request died
		want    credit.Settled
		balance int64
	}{
		{"alive", 59 * time.Second, "reserve", "", 70},
		{"died working", time.Minute, "reserve", credit.SettledReleased, 100},
		{"alive and sending", 59 * time.Second, "mark", "", 70},
		{"died sending", time.Minute, "mark", credit.SettledUncertain, 70},
		{"died sending long ago", 15 * time.Minute, "mark", credit.SettledUncertain, 70},
		{"captured, copies may follow", 15*time.Minute - time.Second, "capture", credit.SettledWaiting, 70},
		{"captured", 15 * time.Minute, "capture", credit.SettledRemoved, 70},
		{"all done", time.Hour, "remove", "", 70},
	} {
		t.Run(test.name, func(t *testing.T) {
			project := fmt.Sprintf("p%d", i)
			prepare(t, store, project, now.Add(-test.age), test.reached)
			settler := &Settler{Store: store, Ages: ages, Now: func() time.Time { return now }, Log: telemetry.New(&bytes.Buffer{}, telemetry.Config{})}
			report, err := settler.Run(t.Context())
			if err != nil || report.Failed > 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			if test.want != "" && report.Settled[test.want] == 0 {
				t.Errorf("settled %v", report.Settled)
			}
			if balance, err := store.Balance(t.Context(), project); err != nil || balance != test.balance {
				t.Errorf("balance %d, %v", balance, err)
			}
			if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tables.Wallets, Key: wallet(project)}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// prepare leaves the state of an SMS request that died after the given step.
func prepare(t *testing.T, store *credit.Store, project string, at time.Time, reached string) {
	t.Helper()
	ctx := t.Context()
	r := &credit.Reservation{
		Project: project, Key: credit.NewKey(at, "r"), Credits: 30, Operation: credit.SMS,
		Environment: "production", RequestID: "r", Irrevocable: true,
	}
	steps := []struct {
		name string
		take func() error
	}{
		{"wallet", func() error { return store.CreateWallet(ctx, project) }},
		{"grant", func() error {
			return store.Grant(ctx, credit.Movement{Project: project, ID: credit.NewKey(at, "g"), Credits: 100, Actor: "test", Reason: "test"})
		}},
		{"reserve", func() error { return store.Reserve(ctx, r) }},
		{"mark", func() error { return store.Mark(ctx, r) }},
		{"capture", func() error { return store.Capture(ctx, r, credit.Outcome{}) }},
		{"remove", func() error { store.Remove(ctx, r); return nil }},
	}
	for _, step := range steps {
		if err := step.take(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if step.name == reached {
			return
		}
	}
}

// TestTwoSettlers checks runs at the same time, one of which has read the wallets and continues after others have settled
// them: every reservation is settled once, and no run fails.
func TestTwoSettlers(t *testing.T) {
	reached := map[string]int64{"reserve": 100, "mark": 70, "capture": 70} // the balance that each comes to
	for _, test := range []struct {
		name string
		run  func(t *testing.T, settle func(*credit.Store) error, db *dynamodb.Client, tables enginetest.Tables) error
	}{
		{name: "three at once", run: func(_ *testing.T, settle func(*credit.Store) error, db *dynamodb.Client, tables enginetest.Tables) error {
			var group errgroup.Group
			for range 3 {
				group.Go(func() error { return settle(storeOn(db, tables)) })
			}
			return group.Wait()
		}},
		{name: "one is late", run: func(t *testing.T, settle func(*credit.Store) error, db *dynamodb.Client, tables enginetest.Tables) error {
			// The run waits before its first call after the read of the wallets.
			read, proceed := make(chan struct{}), make(chan struct{})
			calls := 0
			late := dynamodb.New(db.Options(), func(o *dynamodb.Options) {
				o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
					return s.Initialize.Add(middleware.InitializeMiddlewareFunc("late", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
						if calls++; calls == 2 {
							close(read)
							<-proceed
						}
						return next.HandleInitialize(ctx, in)
					}), middleware.Before)
				})
			})
			ended := make(chan error, 1)
			go func() { ended <- settle(storeOn(late, tables)) }()
			<-read
			if err := settle(storeOn(db, tables)); err != nil {
				t.Error(err)
			}
			close(proceed)
			return <-ended
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, tables := enginetest.Client(t)
			store, now := storeOn(client, tables), time.Now()
			for step := range reached {
				for i := range 8 {
					prepare(t, store, fmt.Sprintf("%s%d", step, i), now.Add(-time.Hour), step)
				}
			}
			err := test.run(t, func(store *credit.Store) error {
				settler := &Settler{
					Store: store, Ages: Ages{Dead: time.Minute, Captured: 15 * time.Minute},
					Now: func() time.Time { return now }, Log: telemetry.New(t.Output(), telemetry.Config{}),
				}
				report, err := settler.Run(t.Context())
				if report.Failed > 0 {
					t.Errorf("a settler failed: %+v", report)
				}
				return err
			}, client, tables)
			if err != nil {
				t.Fatal(err)
			}
			for step, want := range reached {
				for i := range 8 {
					project := fmt.Sprintf("%s%d", step, i)
					if balance, err := store.Balance(t.Context(), project); err != nil || balance != want {
						t.Errorf("%s: balance %d, %v; want %d", project, balance, err, want)
					}
				}
			}
			left := 0
			err = store.VisitPending(t.Context(), func(*credit.Reservation, error) error { left++; return nil }, func(credit.LowBalance) {})
			if err != nil || left > 0 {
				t.Errorf("%d reservations are left, %v", left, err)
			}
			verified, err := store.Verify(t.Context(), func(int) {})
			if err != nil || len(verified.Findings) > 0 {
				t.Errorf("the ledger: %+v, %v", verified, err)
			}
		})
	}
}

func storeOn(db *dynamodb.Client, tables enginetest.Tables) *credit.Store {
	return credit.NewStore(db, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
}

func wallet(project string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: project}}
}

// TestHandle checks that a run writes one line with its metrics. A reservation that cannot be read is named and does not keep
// the others from being settled.
func TestHandle(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	now := time.Now()
	for i := range 40 {
		prepare(t, store, fmt.Sprintf("p%d", i), now.Add(-time.Hour), "reserve")
	}
	broken := wallet("broken")
	broken["balance"] = &types.AttributeValueMemberN{Value: "0"}
	broken["pending"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"nonsense": &types.AttributeValueMemberS{Value: ""}}}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Wallets, Item: broken}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	settler := &Settler{
		Store: store, Ages: Ages{Dead: time.Minute, Captured: time.Hour}, Now: func() time.Time { return now },
		Log: telemetry.New(&log, telemetry.Config{}),
	}
	if err := settler.Handle(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "nonsense of broken") {
		t.Fatalf("log\n%s", log.String())
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &line); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"SettledReleased": 40, "SettledUncertain": 0, "SettledRemoved": 0, "SettleFailed": 1, "SettleOldest": 3600,
	} {
		if got := line[name].(float64); got < want || got > want+1 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if line["_aws"] == nil {
		t.Error("no metrics")
	}
}

// TestNotSettled checks that a reservation with an invalid entry is left for the next run, is named, and does not keep the
// others from being settled.
func TestNotSettled(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	now := time.Now()
	for _, project := range []string{"a", "b", "c"} {
		prepare(t, store, project, now.Add(-time.Hour), "reserve")
	}
	key := credit.NewKey(now.Add(-time.Hour), "r")
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Ledger, Item: map[string]types.AttributeValue{
		"pk": text("b#" + key.Day()), "sk": text(string(key)), "st": text("lent"),
		"cr": &types.AttributeValueMemberN{Value: "30"}, "ts": text(now.UTC().Format(time.RFC3339Nano)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	settler := &Settler{
		Store: store, Ages: Ages{Dead: time.Minute, Captured: time.Hour}, Now: func() time.Time { return now },
		Log: telemetry.New(&log, telemetry.Config{}),
	}
	report, err := settler.Run(t.Context())
	if err != nil || report.Failed != 1 || report.Settled[credit.SettledReleased] != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	for _, word := range []string{"lent", `"project":"b"`, string(key)} {
		if !strings.Contains(log.String(), word) {
			t.Errorf("%s is not in %s", word, log.String())
		}
	}
	for project, want := range map[string]int64{"a": 100, "b": 70, "c": 100} {
		if got, err := store.Balance(t.Context(), project); err != nil || got != want {
			t.Errorf("balance of %s: %d, %v; want %d", project, got, err, want)
		}
	}
}

// TestUnreadableWallets checks that wallets which cannot be read, whatever is wrong with them, are named and counted, and
// do not keep the settler from the wallets behind them.
func TestUnreadableWallets(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	now, text, number := time.Now(), &types.AttributeValueMemberS{Value: "nonsense"}, &types.AttributeValueMemberN{Value: "1"}
	empty := &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
	put := func(id string, attributes map[string]types.AttributeValue) {
		item := wallet(id)
		maps.Copy(item, attributes)
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Wallets, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	broken := map[string]map[string]types.AttributeValue{
		"balance-text":    {"balance": text, "pending": empty, "alert": number},
		"balance-missing": {"pending": empty},
		"balance-half":    {"balance": &types.AttributeValueMemberN{Value: "0.5"}, "pending": empty, "alert": number},
		"alert-text":      {"balance": number, "pending": empty, "alert": text},
		"pending-text":    {"balance": number, "pending": text},
		"pending-number":  {"balance": number, "pending": number},
		"pending-missing": {"balance": number},
		"part-text":       {"balance": &types.AttributeValueMemberN{Value: "0"}, "pending": empty, "alert": number, "parts": &types.AttributeValueMemberN{Value: "2"}},
		"no-key": {"balance": number, "pending": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"nonsense": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
		}}},
	}
	for id, attributes := range broken {
		put(id, attributes)
	}
	put("part-text#1", map[string]types.AttributeValue{"balance": text, "pending": empty})
	const good = 40
	for i := range good {
		prepare(t, store, fmt.Sprintf("good%d", i), now.Add(-time.Hour), "reserve")
	}
	prepare(t, store, "low", now.Add(-time.Hour), "grant")
	if err := store.SetAlert(t.Context(), "low", 1000); err != nil {
		t.Fatal(err)
	}
	scan, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tables.Wallets})
	if err != nil {
		t.Fatal(err)
	}
	id := func(item map[string]types.AttributeValue) string {
		return item["pk"].(*types.AttributeValueMemberS).Value
	}
	first := slices.IndexFunc(scan.Items, func(item map[string]types.AttributeValue) bool { return broken[id(item)] != nil })
	if !slices.ContainsFunc(scan.Items[first:], func(item map[string]types.AttributeValue) bool { return strings.HasPrefix(id(item), "good") }) {
		t.Fatal("no good wallet is behind a broken one")
	}

	var log bytes.Buffer
	settler := &Settler{
		Store: store, Ages: Ages{Dead: time.Minute, Captured: time.Hour}, Now: func() time.Time { return now },
		Log: telemetry.New(&log, telemetry.Config{}),
	}
	if err := settler.Handle(t.Context()); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for id := range broken {
		named := slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, `"WARN"`) && regexp.MustCompile(`\b(wallet|of) `+id+`\b`).MatchString(line)
		})
		if !named {
			t.Errorf("no line names %s", id)
		}
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		t.Fatal(err)
	}
	// The second shard of parts-text cannot be read either.
	if line["SettledReleased"] != float64(good) || line["SettleFailed"] != float64(len(broken)+1) || line["LowWallets"] != 1.0 {
		t.Errorf("released %v, failed %v, low %v\n%s", line["SettledReleased"], line["SettleFailed"], line["LowWallets"], log.String())
	}
}

// TestOutOfTime checks that a run without time left reports that in its log line and to its caller.
func TestOutOfTime(t *testing.T) {
	client, tables := enginetest.Client(t)
	var log bytes.Buffer
	settler := &Settler{
		Store: credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger}),
		Now:   time.Now, Log: telemetry.New(&log, telemetry.Config{}),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // what a run keeps back for its log line
	defer cancel()
	if err := settler.Handle(ctx); err == nil || !strings.Contains(log.String(), `"out_of_time":true`) {
		t.Errorf("%v\n%s", err, log.String())
	}
}

// TestConfig checks that ages which would settle a living request are refused.
func TestConfig(t *testing.T) {
	for _, test := range []struct {
		after, captured string
		valid           bool
	}{
		{"90", "900", true},
		{"10", "10", true},
		{"1", "1", true},
		{"0", "900", false},
		{"90", "89", false},
		{"", "900", false},
		{"soon", "900", false},
	} {
		for name, value := range map[string]string{
			"WALLETS_TABLE": "w", "LEDGER_TABLE": "l", "TRANSIENT_TABLE": "t", "SETTLE_AFTER_SECONDS": test.after, "SETTLE_CAPTURED_AFTER_SECONDS": test.captured,
		} {
			t.Setenv(name, value)
		}
		cfg, err := settings.Read[Config]()
		if (err == nil) != test.valid {
			t.Errorf("%s, %s: %v", test.after, test.captured, err)
		}
		if err == nil && (cfg.Ages().Dead.Seconds() != float64(cfg.After) || cfg.Ages().Captured.Seconds() != float64(cfg.CapturedAfter)) {
			t.Errorf("ages %+v", cfg.Ages())
		}
	}
}

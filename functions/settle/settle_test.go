package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/credit"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// TestAges checks that a reservation is settled when its request cannot be alive, that a captured one is removed when no late
// copy can arrive, and that younger ones stay.
func TestAges(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, tables.Tables)
	now := time.Now().Truncate(time.Microsecond) // as keys hold it: the ages are exact
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
			report, err := newSettler(store, now, 15*time.Minute, io.Discard).Run(t.Context())
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
		Project: project, Key: credit.NewKey(at, "r"), Credits: 30, Price: credit.SMS,
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

// newSettler returns a settler over the store at one time.
func newSettler(store *credit.Store, now time.Time, captured time.Duration, log io.Writer) *Settler {
	return &Settler{
		Store: store, Ages: Ages{Dead: time.Minute, Captured: captured}, Now: func() time.Time { return now },
		Log: telemetry.New(log, telemetry.Config{}), AtOnce: 8,
	}
}

func wallet(project string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: project}}
}

// TestHandle checks that a run writes one line with its metrics, and one for each wallet below its alert. A reservation that
// cannot be read is named and does not keep the others from being settled.
func TestHandle(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, tables.Tables)
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
	prepare(t, store, "low", now, "grant")
	if err := store.SetAlert(t.Context(), "low", 1000); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := newSettler(store, now, time.Hour, &log).Handle(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	const low = `"project":"low","balance":100,"alert":1000`
	if len(lines) != 3 || !strings.Contains(lines[0], "nonsense of broken") || !strings.Contains(lines[1], low) {
		t.Fatalf("log\n%s", log.String())
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[2]), &line); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"SettledReleased": 40, "SettledUncertain": 0, "SettledRemoved": 0, "SettleFailed": 1, "SettleOldest": 3600, "LowWallets": 1,
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
	store := credit.NewStore(client, tables.Tables)
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
	report, err := newSettler(store, now, time.Hour, &log).Run(t.Context())
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

// TestOutOfTime checks that a run without time left reports that in its log line and to its caller.
func TestOutOfTime(t *testing.T) {
	client, tables := enginetest.Client(t)
	var log bytes.Buffer
	store := credit.NewStore(client, tables.Tables)
	settler := newSettler(store, time.Now(), time.Hour, &log)
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

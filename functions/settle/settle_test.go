package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// TestAges checks that a lease is settled when none of its requests can be alive, and that younger ones stay.
func TestAges(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := wallettest.WithLimits(books.NewStore(client, tables.Tables), unhurried)
	now := time.Now().Truncate(time.Microsecond) // as keys hold it: the ages are exact
	for i, test := range []struct {
		name    string
		age     time.Duration
		reached string // the last step before the request died
		want    wallet.Settled
		balance int64
	}{
		{"alive", 59 * time.Second, "reserve", wallet.Settled{}, 70},
		{"died working", time.Minute, "reserve", wallet.Settled{Released: 1}, 100},
		{"died sending", time.Minute, "mark", wallet.Settled{Uncertain: 1, Closed: 1}, 70},
	} {
		t.Run(test.name, func(t *testing.T) {
			project := fmt.Sprintf("p%d", i)
			prepare(t, store, project, now.Add(-test.age), test.reached)
			report, err := newSettler(store, now, io.Discard).Run(t.Context())
			if err != nil || report.Failed > 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			if report.Settled != test.want {
				t.Errorf("settled %+v", report.Settled)
			}
			if balance, err := store.Balance(t.Context(), project); err != nil || balance != test.balance {
				t.Errorf("balance %d, %v", balance, err)
			}
			_, err = client.DeleteItem(t.Context(),
				&dynamodb.DeleteItemInput{TableName: &tables.Wallets, Key: dynamo.Item{"pk": dynamo.Text(project)}})
			must.Succeed(t, err)
		})
	}
}

// prepare leaves the state of an SMS request that died after the given step; "grant": before its first one.
func prepare(t *testing.T, store *books.Store, project string, at time.Time, reached string) {
	t.Helper()
	must.Succeed(t, errors.Join(store.CreateWallet(t.Context(), project),
		store.Grant(t.Context(), wallettest.Movement(project, at, "g", 100))))
	r := wallettest.Reservation(30, true)
	r.Project, r.Began, r.RequestID = project, at, "r"
	steps := []string{"reserve", "mark", "capture", "remove"}
	must.Succeed(t, wallettest.Take(t, store, r, steps[:slices.Index(steps, reached)+1]...))
}

// newSettler returns a settler over the store at one time.
func newSettler(store *books.Store, now time.Time, log io.Writer) *Settler {
	return &Settler{
		Store: store.Store, After: time.Minute, Now: func() time.Time { return now },
		Log: telemetry.New(log, telemetry.Config{}), AtOnce: 8,
	}
}

// TestHandle checks that a run writes one line with its metrics, and one for each wallet below its alert. A lease that
// cannot be read, or that has an invalid entry, is named and does not keep the others from being settled.
func TestHandle(t *testing.T) {
	client, tables := enginetest.Client(t)
	store := wallettest.WithLimits(books.NewStore(client, tables.Tables), unhurried)
	now := time.Now()
	for i := range 40 {
		prepare(t, store, fmt.Sprintf("p%d", i), now.Add(-time.Hour), "reserve")
	}
	broken := dynamo.Item{"pk": dynamo.Text("broken"), "balance": dynamo.Number(0),
		"pending": &types.AttributeValueMemberM{Value: dynamo.Item{"nonsense": dynamo.Text("")}}}
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Wallets, Item: broken})
	must.Succeed(t, err)
	key := wallet.NewKey(now.Add(-time.Hour), "r")
	invalid := enginetest.LedgerKey("p7", key)
	invalid["st"], invalid["cr"] = dynamo.Text("lent"), dynamo.Number(30)
	invalid["ts"] = dynamo.Text(now.UTC().Format(time.RFC3339Nano))
	_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Ledger, Item: invalid})
	must.Succeed(t, err)
	prepare(t, store, "low", now, "grant")
	must.Succeed(t, store.SetAlert(t.Context(), "low", 1000))
	var log bytes.Buffer
	must.Succeed(t, newSettler(store, now, &log).Handle(t.Context()))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("log\n%s", log.String())
	}
	for _, named := range []string{"nonsense of broken", `lent\"","project":"p7","key":"` + string(key),
		`"project":"low","balance":100,"alert":1000`} {
		if !strings.Contains(strings.Join(lines[:3], "\n"), named) {
			t.Errorf("%s is not in\n%s", named, log.String())
		}
	}
	if got, err := store.Balance(t.Context(), "p7"); err != nil || got != 70 {
		t.Errorf("balance of an invalid entry: %d, %v", got, err)
	}
	var line map[string]any
	must.Succeed(t, json.Unmarshal([]byte(lines[3]), &line))
	for name, want := range map[string]float64{
		"SettledReleased": 39, "SettledUncertain": 0, "SettledRemoved": 0, "SettleFailed": 2, "SettleOldest": 3600,
		"LowWallets": 1,
	} {
		if got := line[name].(float64); got < want || got > want+1 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if line["_aws"] == nil {
		t.Error("no metrics")
	}
}

// TestOutOfTime checks that a run without time left reports that in its log line and to its caller.
func TestOutOfTime(t *testing.T) {
	client, tables := enginetest.Client(t)
	var log bytes.Buffer
	store := wallettest.WithLimits(books.NewStore(client, tables.Tables), unhurried)
	settler := newSettler(store, time.Now(), &log)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // what a run keeps back for its log line
	defer cancel()
	if err := settler.Handle(ctx); err == nil || !strings.Contains(log.String(), `"out_of_time":true`) {
		t.Errorf("%v\n%s", err, log.String())
	}
}

// TestConfig checks that an age which would settle a living request is refused.
func TestConfig(t *testing.T) {
	for after, valid := range map[string]bool{"90": true, "1": true, "0": false, "": false, "soon": false} {
		for name, value := range map[string]string{"WALLETS_TABLE": "w", "LEDGER_TABLE": "l", "TRANSIENT_TABLE": "t",
			"SETTLE_AFTER_SECONDS": after} {
			t.Setenv(name, value)
		}
		if cfg, err := settings.Read[Config](); (err == nil) != valid {
			t.Errorf("%s: %+v, %v", after, cfg, err)
		}
	}
}

// TestThrottledWallet checks that a wallet without capacity costs a run one settlement, however many of its requests
// died, and that wallets are settled at the same time, but not more than AtOnce (docs/decisions/money.md#settle).
func TestThrottledWallet(t *testing.T) {
	direct, proxied, calls := counting(t, func(r *faultproxy.Request) faultproxy.Fault {
		if strings.Contains(string(r.Body), `"hot`) && r.Operation != "Query" {
			return faultproxy.Throttle
		}
		return faultproxy.Deliver
	})
	now := time.Now()
	for i := range 30 {
		prepare(t, direct, fmt.Sprintf("p%d", i), now.Add(-time.Hour), "reserve")
	}
	prepare(t, direct, "hot", now.Add(-time.Hour), "grant")
	for i := range 12 {
		r := &wallet.Reservation{Project: "hot", Began: now.Add(-time.Hour), RequestID: fmt.Sprint(i), Credits: 1,
			Price: wallet.Barcode}
		must.Succeed(t, direct.Reserve(t.Context(), r))
	}
	each := time.Since(now) / 30 // four writes of this machine
	proxied.Limits.Remove = max(time.Second, 10*each)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // for a run without end
	defer cancel()
	report, err := newSettler(proxied, now, io.Discard).Run(ctx)
	if err != nil || report.Settled.Released != 30 || report.Failed != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	if n := calls.most; n < 2 || n > 8 {
		t.Errorf("%d wallets at once", n)
	}
}

// TestTimeEnds checks that a run whose time ends says so, and visits no further wallets.
func TestTimeEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	direct, proxied, _ := counting(t, func(r *faultproxy.Request) faultproxy.Fault {
		if r.Operation == "PutItem" {
			cancel()
		}
		return faultproxy.Deliver
	})
	now := time.Now()
	for i := range 20 {
		prepare(t, direct, fmt.Sprintf("p%d", i), now.Add(-time.Hour), "reserve")
	}
	settler := newSettler(proxied, now, io.Discard)
	settler.AtOnce = 1
	if report, err := settler.Run(ctx); !errors.Is(err, context.Canceled) || report.Failed > 3 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestSettlingCosts checks that the leases of an instance that died take a run one query and one close each, and a
// write for each slot that no request used.
func TestSettlingCosts(t *testing.T) {
	direct, proxied, calls := counting(t, func(*faultproxy.Request) faultproxy.Fault { return faultproxy.Deliver })
	now := time.Now()
	prepare(t, direct, "busy", now.Add(-2*time.Minute), "grant")
	must.Succeed(t, direct.Grant(t.Context(), wallettest.Movement("busy", now, "more", 999_900)))
	for i := range 40 { // 3 single ones, then 2, 4, 8, 16 and 32 slots, 7 of them used
		r := &wallet.Reservation{Project: "busy", Began: now.Add(-2 * time.Minute), RequestID: fmt.Sprint(i), Credits: 1,
			Price: wallet.Barcode}
		must.Succeed(t, direct.Reserve(t.Context(), r))
		must.Succeed(t, direct.Capture(t.Context(), r, wallet.Outcome{}))
	}
	report, err := newSettler(proxied, now, io.Discard).Run(t.Context())
	if err != nil || report.Settled != (wallet.Settled{Closed: 4}) {
		t.Errorf("%+v, %v", report, err)
	}
	if got := fmt.Sprint(calls.of); got != "map[PutItem:25 Query:4 Scan:1 UpdateItem:4]" {
		t.Error(got)
	}
	if balance, err := direct.Balance(t.Context(), "busy"); err != nil || balance != 1_000_000-40 {
		t.Errorf("balance %d, %v", balance, err)
	}
}

// unhurried limits no write by time, so that the machine's speed decides nothing.
var unhurried = wallet.Limits{Write: time.Hour, Remove: time.Minute, Leasing: wallet.DefaultLimits.Leasing}

// calls counts what passes a proxy.
type calls struct {
	mu            sync.Mutex
	of            map[string]int
	running, most int
}

// counting returns a store, and the same store behind a proxy that counts its calls.
func counting(t *testing.T, decide func(*faultproxy.Request) faultproxy.Fault) (direct,
	proxied *books.Store, c *calls) {
	t.Helper()
	client, tables := enginetest.Client(t)
	c = &calls{of: map[string]int{}}
	proxy := enginetest.Faulty(t, func(r *faultproxy.Request) faultproxy.Fault {
		c.mu.Lock()
		c.of[r.Operation]++
		c.running++
		c.most = max(c.most, c.running)
		c.mu.Unlock()
		time.Sleep(10 * time.Millisecond) // others arrive meanwhile
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
		return decide(r)
	})
	direct = wallettest.WithLimits(books.NewStore(client, tables.Tables), unhurried)
	proxied = books.NewStore(enginetest.ClientOf(proxy.URL("test")), tables.Tables)
	return direct, wallettest.WithLimits(proxied, unhurried), c
}

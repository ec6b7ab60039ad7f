package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"svcapi/shared/books"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

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
	store := proxied.WithLimits(wallet.Limits{Write: time.Hour, Remove: max(time.Second, 10*each),
		Leasing: wallet.DefaultLimits.Leasing})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // for a run without end
	defer cancel()
	report, err := newSettler(store, now, io.Discard).Run(ctx)
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
	prepare(t, direct, "busy", now.Add(-2*time.Minute), "wallet")
	must.Succeed(t, direct.Grant(t.Context(),
		books.Movement{Project: "busy", ID: wallet.NewKey(now, "g"), Credits: 1_000_000, Actor: "test", Reason: "test"}))
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
var unhurried = wallet.Limits{Write: time.Hour, Remove: time.Hour, Leasing: wallet.DefaultLimits.Leasing}

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
	direct = books.NewStore(client, tables.Tables).WithLimits(unhurried)
	return direct, books.NewStore(enginetest.ClientOf(proxy.URL("test")), tables.Tables).WithLimits(unhurried), c
}

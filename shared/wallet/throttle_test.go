package wallet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"svcapi/shared/wallet"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// TestThrottled checks that a write which DynamoDB turned away for lack of capacity takes no effect, so that it is not
// ambiguous and leaves nothing in the wallet: every write pays for the whole wallet, and what overload leaves there
// would keep the project down until it is settled (docs/decisions/money.md#write-retries).
func TestThrottled(t *testing.T) {
	t.Parallel()
	const had, price = 100, 30
	always := strings.Repeat("t", 1000)
	for _, test := range []struct {
		name       string
		with       string // in the calls that the faults are of
		faults     string
		fails      bool  // Reserve
		updates    int64 // of those calls, in all; 0: as many as the time allows
		balance    int64
		anyPending bool
	}{
		{"not at all", "", "", false, 2, had - price, false},
		{"a reservation, twice", "", "tt", false, 4, had - price, false},
		{"a reservation, always: nothing is there to be given back", "", always, true, 0, had, false},
		{"a reservation, and one attempt was lost: its key stays for the settling function", "", "xt",
			false, 3, had - price, true},
		{"a reservation, and one attempt had a server's error: the same", "", "t5", false, 3, had - price, true},
		{"a reservation, always, but for one attempt that was lost: it is given back", "balance - ",
			"tx" + always, true, 0, had, false},
		{"a reservation of a hot wallet, three times: nothing is there to be given back", "", "hthh", true, 4, had, false},
		{"a reservation of a hot wallet, twice", "", "hth", false, 5, had - price, false},
		{"the removal from a hot wallet, many times", "", ".hhhhhhhh", false, 10, had - price, false},
		{"the removal, many times", "", ".tttttttt", false, 10, had - price, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			direct := wallettest.New(t, had)
			f := &wallettest.Faults{Of: "UpdateItem", With: test.with, List: test.faults}
			store := direct.Over(f)
			if test.fails {
				store = store.WithLimits(wallet.Limits{Write: 500 * time.Millisecond, Leasing: wallet.DefaultLimits.Leasing})
			}

			r := wallettest.Reservation(price, false)
			if err := store.Reserve(t.Context(), r); (err != nil) != test.fails {
				t.Errorf("reserve: %v", err)
			}
			if !test.fails {
				must.Succeed(t, store.Capture(t.Context(), r, wallet.Outcome{}))
				store.Remove(t.Context(), r)
			}
			wallettest.WantBalance(t, direct.Store, test.balance)
			left := wallettest.Pending(t, direct.Store)
			if calls := f.Calls.Load(); (len(left) > 0) != test.anyPending || test.updates > 0 && calls != test.updates ||
				calls == 0 {
				t.Errorf("%d updates; pending: %+v", calls, left)
			}
		})
	}
}

// TestThrottledSteps checks that the longest burst of throttles, before each write of a request, changes neither the
// end of the request nor its charge (docs/decisions/money.md#write-retries).
func TestThrottledSteps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		end     string
		balance int64
		state   wallet.State
	}{{"capture", 70, wallet.Captured}, {"release", 100, wallet.Released}} {
		t.Run(test.end, func(t *testing.T) {
			t.Parallel()
			direct := wallettest.New(t, 100)
			f := &wallettest.Faults{Of: "UpdateItem PutItem", List: strings.Repeat(strings.Repeat("t", 20)+".", 4)}
			r := wallettest.Reservation(30, true)
			if err := wallettest.Take(t, direct.Over(f), r, "reserve", "mark", test.end); err != nil {
				t.Error(err)
			}
			wallettest.WantBalance(t, direct.Store, test.balance)
			if got := wallettest.Entry(t, direct.Store, r); got.State != test.state || f.Calls.Load() < 3*21 {
				t.Errorf("entry %q after %d calls", got.State, f.Calls.Load())
			}
		})
	}
}

// TestRemovalEnds checks that a removal without capacity ends before the response (docs/decisions/money.md#remove).
func TestRemovalEnds(t *testing.T) {
	direct := wallettest.New(t, 100)
	limits := wallet.Limits{Write: time.Second, Remove: 300 * time.Millisecond}
	r := wallettest.Reservation(30, false)
	must.Succeed(t, errors.Join(direct.Reserve(t.Context(), r), direct.Capture(t.Context(), r, wallet.Outcome{})))
	endless := &wallettest.Faults{Of: "UpdateItem", List: strings.Repeat("t", 1000)}
	began := time.Now()
	direct.Over(endless).WithLimits(limits).Remove(context.WithoutCancel(t.Context()), r)
	if took := time.Since(began); took < limits.Remove/2 || endless.Calls.Load() >= 1000 {
		t.Errorf("the removal took %s and %d calls, its limit is %s", took, endless.Calls.Load(), limits.Remove)
	}
}

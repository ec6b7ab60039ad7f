package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// TestLow checks that VisitPending reports a wallet below its alert, and none at its alert or without one.
func TestLow(t *testing.T) {
	t.Parallel()
	f := wallettest.New(t, 100)
	for project, alert := range map[string]int64{"none": 0, "above": 99, "at": 100, "below": 101} {
		f.Project(project, 100)
		f.Must(f.SetAlert(t.Context(), project, alert))
	}
	var low []wallet.LowBalance
	err := f.VisitPending(t.Context(), func(v wallet.Visited) error {
		if v.Low != nil {
			low = append(low, *v.Low)
		}
		return nil
	})
	if err != nil || fmt.Sprint(low) != "[{below 100 101}]" {
		t.Errorf("%v, %v", low, err)
	}
}

// TestVisitPending checks that a wallet's leases come oldest first, and that the first error of visit ends the pass.
func TestVisitPending(t *testing.T) {
	t.Parallel()
	f := wallettest.New(t, 100)
	f.Project("q", 100)
	var want []wallet.Lease
	for i := range 4 {
		r := wallettest.Reservation(1, false)
		r.Began, r.RequestID = time.Now().Add(time.Duration(i-4)*time.Minute), fmt.Sprint(i)
		must.Succeed(t, wallettest.Take(t, f.Store, r, "reserve"))
		want = append(want, wallettest.LeaseOf(r))
	}
	other := wallettest.Reservation(1, false)
	other.Project = "q"
	must.Succeed(t, wallettest.Take(t, f.Store, other, "reserve"))
	if got := wallettest.Pending(t, f.Store); !slices.Equal(slices.DeleteFunc(got,
		func(l wallet.Lease) bool { return l.Project == "q" }), want) {
		t.Errorf("%v, want %v", got, want)
	}
	stop, visits := errors.New("enough"), 0
	err := f.VisitPending(t.Context(), func(wallet.Visited) error { visits++; return stop })
	if !errors.Is(err, stop) || visits != 1 {
		t.Errorf("%d visits, %v", visits, err)
	}
}

// TestVisitUnreadable checks that VisitPending names each wallet that cannot be read, whatever is wrong with the
// wallet, and that other wallets are visited all the same.
func TestVisitUnreadable(t *testing.T) {
	t.Parallel()
	f := wallettest.New(t, 100)
	none, text, number := &types.AttributeValueMemberM{Value: dynamo.Item{}}, dynamo.Text("nonsense"), dynamo.Number(1)
	r := wallettest.Reservation(30, false)
	must.Succeed(t, errors.Join(wallettest.Take(t, f.Store, r, "reserve"), f.SetAlert(t.Context(), "p", 71)))
	broken := map[string]dynamo.Item{
		"balance-text":    {"pending": none, "balance": text, "alert": number},
		"balance-plain":   {"pending": none, "balance": text},
		"balance-missing": {"pending": none},
		"balance-half":    {"pending": none, "balance": &types.AttributeValueMemberN{Value: "0.5"}, "alert": number},
		"alert-text":      {"pending": none, "balance": number, "alert": text},
		"pending-text":    {"pending": text, "balance": number},
		"pending-number":  {"pending": number, "balance": number},
		"pending-missing": {"balance": number},
		"pending-low":     {"pending": number, "balance": dynamo.Number(0), "alert": number},
		"no-key":          {"pending": &types.AttributeValueMemberM{Value: dynamo.Item{"nonsense": none}}, "balance": number},
	}
	for id, item := range broken {
		item["pk"] = dynamo.Text(id)
		f.Put(f.Names.Wallets, item)
	}
	var named, lows []string
	visited := 0
	err := f.VisitPending(t.Context(), func(v wallet.Visited) error {
		visited += len(v.Leases)
		for _, err := range v.Unreadable {
			id, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "wallet: wallet "),
				"wallet: lease nonsense of "), ": ")
			named = append(named, id)
		}
		if v.Low != nil {
			lows = append(lows, v.Low.Project)
		}
		return nil
	})
	slices.Sort(named)
	slices.Sort(lows)
	if want := slices.Sorted(maps.Keys(broken)); err != nil || !slices.Equal(named, want) || visited != 1 ||
		!slices.Equal(lows, []string{"p", "pending-low"}) {
		t.Errorf("%q, %v; want %q; %d reservations, low %q", named, err, want, visited, lows)
	}
}

// TestSpent checks what projects have spent by their wallets' items: without wallets that cannot be read
// (docs/decisions/money.md#unusual-spending).
func TestSpent(t *testing.T) {
	t.Parallel()
	f := wallettest.New(t, 0)
	for name, item := range map[string]dynamo.Item{
		"one":     {"balance": dynamo.Number(70), "granted": dynamo.Number(100)},
		"new":     {"balance": dynamo.Number(0)},
		"balance": {"balance": dynamo.Text("9"), "granted": dynamo.Number(100)},
		"granted": {"balance": dynamo.Number(9), "granted": dynamo.Text("100")},
	} {
		item["pk"] = dynamo.Text(name)
		f.Put(f.Names.Wallets, item)
	}
	got, err := f.Spent(t.Context())
	if want := map[string]int64{"p": 0, "one": 30, "new": 0}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

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
				store.Limits.Write = 500 * time.Millisecond
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
	store := wallettest.WithLimits(direct.Over(endless), limits)
	store.Remove(context.WithoutCancel(t.Context()), r)
	if took := time.Since(began); took < limits.Remove/2 || endless.Calls.Load() >= 1000 {
		t.Errorf("the removal took %s and %d calls, its limit is %s", took, endless.Calls.Load(), limits.Remove)
	}
}

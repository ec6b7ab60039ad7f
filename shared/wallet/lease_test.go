package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// base is the time of the first request of a test, a few minutes ago. No day ends in the minute after it.
var base = time.Now().UTC().Add(-3 * time.Minute).Truncate(2 * time.Minute)

// after returns a request of one credit that begins some time after base.
func after(d time.Duration) *wallet.Reservation {
	r := wallettest.Request(1, d.String())
	r.Began = base.Add(d)
	return r
}

// leased reserves for twelve requests: three with a lease of their own, six in leases of two and of four slots, and
// three in a lease of eight slots, whose key leased returns. The last request fails.
func leased(t *testing.T, store *books.Store) wallet.Key {
	t.Helper()
	var r *wallet.Reservation
	for i := range 11 {
		r = after(time.Duration(i) * time.Millisecond)
		must.Succeed(t, wallettest.Take(t, store, r, "reserve", "capture", "remove"))
	}
	lease, slot, _ := strings.Cut(string(r.Key), ".")
	if slot != "01" {
		t.Fatalf("the eleventh request has the key %s", r.Key)
	}
	failed := after(11 * time.Millisecond) // a release that is repeated returns the credits once
	must.Succeed(t, wallettest.Take(t, store, failed, "reserve", "release", "release"))
	return wallet.Key(lease)
}

// TestLeaseSizes checks how many writes of the wallet a busy instance makes, and that requests without others in 40
// seconds reserve and remove, each by a write of its own.
func TestLeaseSizes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		requests int
		every    time.Duration
		price    int64
		lent     int64 // in the wallet beforehand
		want     int64 // writes
	}{
		{"thin traffic", 4, 14 * time.Second, 1, 0, 8},
		{"the fourth request in 40 s takes 2 slots, the next ones 4 and 8", 11, 100 * time.Millisecond, 1, 0, 9},
		{"then 16, 32, 64 and 128", 258, 100 * time.Millisecond, 1, 0, 14},
		{"the second request of a busy project takes 3 slots, then 21, 64 and 128", 90, 100 * time.Millisecond, 1, 16 * 256, 6},
		{"the second request of a hot project takes 128", 129, 100 * time.Millisecond, 1, 16 * 2048, 3},
		{"of one that is not busy yet", 65, 100 * time.Millisecond, 1, 16*256 - 1 - 3*16, 10},
		{"of one that has as few slots of twice the price", 65, 100 * time.Millisecond, 2, 2 * (16*256 - 1 - 3*16), 10},
	} {
		direct, through := wallettest.New(t, 1_000_000), &wallettest.Faults{Of: "UpdateItem"}
		direct.Change(direct.Names.Wallets, dynamo.Item{"pk": dynamo.Text("p")}, "SET lent = :l",
			dynamo.Item{":l": dynamo.Number(test.lent)})
		store := direct.Over(through)
		for i := range test.requests {
			r := after(time.Duration(i) * test.every)
			r.Credits = test.price
			must.Succeed(t, wallettest.Take(t, store, r, "reserve", "capture", "remove"))
		}
		if got := through.Calls.Load(); got != test.want {
			t.Errorf("%s: %d writes, want %d", test.name, got, test.want)
		}
		wallettest.WantBalance(t, direct.Store, 1_000_000-test.price*int64(test.requests))
	}
}

// TestBurst checks that a burst costs hardly more with leases than without, the writes of the settling function
// included, and that a small wallet has leases, too (docs/decisions/money.md#leases).
func TestBurst(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		requests              int
		balance, price, lent  int64
		writes, walletsWrites int64 // at most
	}{
		{2, 1e6, 1, 0, 8, 8}, {4, 1e6, 1, 0, 13, 8}, {12, 1e6, 1, 0, 40, 12}, {40, 1e6, 1, 0, 95, 16},
		{2, 1e6, 1, 16 * 1024, 8, 5}, {4, 1e6, 1, 16 * 1024, 13, 5}, {12, 1e6, 1, 16 * 1024, 40, 6},
		{40, 1e6, 1, 16 * 1024, 95, 7},
		{150, 10_000_000, 10_000, 0, 225, 37},
	} {
		direct, through := wallettest.New(t, test.balance), &wallettest.Faults{Of: "UpdateItem PutItem"}
		ofWallet := &atomic.Int64{}
		through.Before = func(operation string) {
			if operation == "UpdateItem" {
				ofWallet.Add(1)
			}
		}
		direct.Change(direct.Names.Wallets, dynamo.Item{"pk": dynamo.Text("p")}, "SET lent = :l",
			dynamo.Item{":l": dynamo.Number(test.lent)})
		limits := wallet.Limits{Write: time.Hour, Remove: time.Hour, Leasing: wallet.DefaultLimits.Leasing}
		store := wallettest.WithLimits(direct.Over(through), limits)
		for i := range test.requests {
			r := after(time.Duration(i) * 100 * time.Millisecond)
			r.Credits = test.price
			must.Succeed(t, wallettest.Take(t, store, r, "reserve", "capture", "remove"))
		}
		wallettest.SettleAll(t, store)
		if all, some := through.Calls.Load(), ofWallet.Load(); all > test.writes || some > test.walletsWrites {
			t.Errorf("%+v: %d writes, %d of the wallet", test, all, some)
		}
	}
}

// TestLeaseEnds checks which requests use the lease of their instance.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	request := func(at time.Duration, change func(*wallet.Reservation)) *wallet.Reservation {
		r := after(at)
		if change != nil {
			change(r)
		}
		return r
	}
	for _, test := range []struct {
		name string
		r    *wallet.Reservation
		uses bool
		next bool // the request after it uses the lease
	}{
		{"at once", request(time.Second, nil), true, true},
		{"before the end", request(40*time.Second, nil), true, false},
		{"at the end", request(40*time.Second+9*time.Millisecond, nil), false, false},
		{"after the end by the gateway's clock",
			request(time.Second, func(r *wallet.Reservation) { r.Received = base.Add(41 * time.Second) }), false, false},
		{"before the lease by this clock", request(-5*time.Second, nil), true, true},
		{"of more credits than the lease has",
			request(time.Second, func(r *wallet.Reservation) { r.Credits = 7 }), false, false},
		{"of all credits that are left", request(time.Second, func(r *wallet.Reservation) { r.Credits = 989 }), false, false},
		{"of all the credits of the lease", request(time.Second, func(r *wallet.Reservation) { r.Credits = 6 }), true, false},
	} {
		store := wallettest.NewStore(t, 1000)
		lease := leased(t, store)
		for _, step := range []struct {
			r    *wallet.Reservation
			uses bool
		}{{test.r, test.uses}, {request(40*time.Second+2*time.Millisecond, nil), test.next}} {
			if test.name == "before the end" && step.r != test.r {
				step.r = request(41*time.Second, nil)
			}
			if err := store.Reserve(t.Context(), step.r); err != nil && step.r == test.r {
				t.Fatalf("%s: %v", test.name, err)
			}
			if uses := strings.HasPrefix(string(step.r.Key), string(lease)); uses != step.uses {
				t.Errorf("%s: the request has the key %s, the lease %s", test.name, step.r.Key, lease)
			}
		}
	}
}

// TestLeaseDay checks that a lease has requests of one day: a charge belongs to the day of its request.
func TestLeaseDay(t *testing.T) {
	t.Parallel()
	store, midnight := wallettest.NewStore(t, 1000), base.Truncate(24*time.Hour)
	for i := range 8 {
		r := after(time.Duration(i))
		at := midnight.Add(time.Duration(i-5) * time.Second)
		r.Began = at
		if err := wallettest.Take(t, store, r, "reserve", "capture", "remove"); err != nil ||
			r.Key.Day() != at.Format(time.DateOnly) {
			t.Errorf("the request of %s has the key %s of %s, %v", at, r.Key, r.Key.Day(), err)
		}
	}
}

// TestLeaseShares checks that a lease with several slots leaves 64 times its credits in the wallet, and that all leases
// together have at most a sixteenth: a lease has as many slots as that allows, by what the instance knows of the
// wallet, and where another instance has changed the wallet by what the refused write returns.
func TestLeaseShares(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		balance, lent, taken int64 // taken by others before the fourth request
		requests             int
		writes               int64
	}{
		{3 + 65*2, 0, 0, 5, 7},
		{3 + 65*2 - 1, 0, 0, 5, 10},
		{1003, 1000, 0, 5, 7},
		{1003, 1001, 0, 5, 10},
		{3 + 65*2, 0, 1, 4, 9},    // refused, then one slot
		{9 + 65*8, 0, 65, 17, 11}, // the lease of 8 slots is refused, and has 7
	} {
		direct, through := wallettest.New(t, test.balance), &wallettest.Faults{Of: "UpdateItem"}
		direct.Change(direct.Names.Wallets, dynamo.Item{"pk": dynamo.Text("p")}, "SET lent = :l",
			dynamo.Item{":l": dynamo.Number(test.lent)})
		store := direct.Over(through)
		for i := range test.requests {
			if i == min(test.requests-1, 9) && test.taken > 0 {
				direct.Must(direct.Adjust(t.Context(), wallettest.Movement("p", time.Now(), "taken", -test.taken)))
			}
			must.Succeed(t, wallettest.Take(t, store, after(time.Duration(i)*time.Millisecond), "reserve", "capture", "remove"))
		}
		if got := through.Calls.Load(); got != test.writes {
			t.Errorf("%+v: %d writes", test, got)
		}
	}
}

// TestSettledWhileAlive checks that a request whose slot is settled while the request is alive is not charged, that the
// next request of the instance has a lease of its own, and that a request which the gateway received later than this
// instance's late clock says has a lease of the later time.
func TestSettledWhileAlive(t *testing.T) {
	t.Parallel()
	for step, sms := range map[string]bool{"capture": false, "mark": true} {
		store, r := wallettest.NewStore(t, 1000), after(time.Second)
		leased(t, store)
		r.Irrevocable = sms
		must.Succeed(t, store.Reserve(t.Context(), r))
		wallettest.SettleAll(t, store)
		if err := wallettest.Take(t, store, r, step); !errors.Is(err, wallet.ErrSettled) {
			t.Errorf("%s: %v", step, err)
		}
		must.Succeed(t, wallettest.Take(t, store, after(2*time.Second), "reserve", "capture"))
		wallettest.WantBalance(t, store, 988)
		wallettest.WantSound(t, store)
	}
	store, r := wallettest.NewStore(t, 1000), after(-10*time.Minute)
	r.Received = base
	if err := store.Reserve(t.Context(), r); err != nil || !r.Key.Time().Equal(base) {
		t.Errorf("a request of an instance that stood still has the key %s, %v", r.Key, err)
	}
}

// TestExactUnderLoad checks that a wallet pays for exactly as many requests as it suffices for, under many at once:
// none is paid beyond the balance, none is refused by a single instance while the balance suffices, and what other
// instances have not used is in the wallet again once their leases are settled.
func TestExactUnderLoad(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		instances, atOnce, requests int
		balance, price              int64
	}{
		{1, 64, 300, 100 * 100, 100},
		{64, 64, 300, 100 * 100, 100},
		{64, 64, 300, 100*100 + 99, 100}, // the remaining 99 credits buy nothing
		{1, 24, 2100, 2000, 1},
		{8, 24, 2100, 2000, 1},
	} {
		t.Run(fmt.Sprintf("%d credits, %d instances", test.balance, test.instances), func(t *testing.T) {
			direct := wallettest.New(t, test.balance)
			stores := make([]*books.Store, test.instances)
			for i := range stores {
				stores[i] = direct.Over(&wallettest.Faults{})
			}
			var paid atomic.Int64
			var group errgroup.Group
			group.SetLimit(test.atOnce)
			for i := range test.requests {
				group.Go(func() error {
					store, r := stores[i%len(stores)], wallettest.Request(test.price, fmt.Sprint(i))
					if err := store.Reserve(context.Background(), r); errors.Is(err, wallet.ErrInsufficientCredits) {
						return nil
					} else if err != nil {
						return err
					}
					paid.Add(1)
					if err := store.Capture(context.Background(), r, wallet.Outcome{}); err != nil {
						return err
					}
					store.Remove(context.Background(), r)
					return nil
				})
			}
			direct.Must(group.Wait())
			can := test.balance / test.price
			if got := paid.Load(); got > can || got < can && (test.instances == 1 || test.price > 1) {
				t.Errorf("%d are paid, the wallet suffices for %d", got, can)
			}
			wallettest.SettleAll(t, direct.Store)
			if left := wallettest.Pending(t, direct.Store); len(left) > 0 {
				t.Errorf("%+v are left", left)
			}
			wallettest.WantBalance(t, direct.Store, test.balance-paid.Load()*test.price)
			wallettest.WantSound(t, direct.Store)
		})
	}
}

// TestShownBalance checks that the balance which is shown counts what a lease has not spent: it falls by a request's
// price when the request is captured, and not when the lease is acquired. A marked request counts as spent. A refusal
// has that balance, and the oldest lease where its credits suffice (docs/decisions/money.md#leases).
func TestShownBalance(t *testing.T) {
	t.Parallel()
	direct := wallettest.New(t, 1000)
	lease := leased(t, direct.Store)
	wallettest.WantBalance(t, direct.Store, 989)
	r := after(time.Second)
	r.Irrevocable = true
	for _, step := range []struct {
		name string
		want int64
	}{{"reserve", 989}, {"mark", 988}, {"capture", 988}} {
		direct.Must(wallettest.Take(t, direct.Store, r, step.name))
		wallettest.WantBalance(t, direct.Store, step.want)
	}
	w, err := direct.Wallet(t.Context(), "p")
	if err != nil || w.Balance != 988 || w.Reserved != 0 || !w.Oldest.Equal(lease.Time()) {
		t.Fatalf("%+v, %v", w, err)
	}
	for over, refused := range []bool{false, true} { // an adjustment takes all but what the lease holds
		by := -w.Free - int64(over)
		want := w.ValidateAdjustment(by)
		err := direct.Adjust(t.Context(), wallettest.Movement("p", time.Now(), "all", by))
		if fmt.Sprint(err) != fmt.Sprint(want) || errors.Is(err, books.ErrOutOfRange) != refused {
			t.Errorf("by %d: %v, want %v", by, err, want)
		}
		w.Free = 0 // after the first
	}
	wallettest.WantSound(t, direct.Store)
	shown, err := direct.Balance(t.Context(), "p")
	if err != nil || shown == 0 {
		t.Fatal(shown, err)
	}
	for credits, oldest := range map[int64]time.Time{shown: lease.Time(), shown + 1: {}} {
		r := after(2 * time.Second)
		r.Credits = credits
		lacking, _ := errors.AsType[*wallet.InsufficientError](direct.Over(&wallettest.Faults{}).Reserve(t.Context(), r))
		if lacking == nil || lacking.Balance != shown || !lacking.Oldest.Equal(oldest) {
			t.Errorf("%d of %d credits: %+v; want the oldest lease %s", credits, shown, lacking, oldest)
		}
	}
}

// TestNewestEntry checks that the balance is read from the newest entry of a lease where that tells, and from all where
// the outcome of another request was not known when that entry was written.
func TestNewestEntry(t *testing.T) {
	t.Parallel()
	direct, through := wallettest.New(t, 1000), &wallettest.Faults{}
	leased(t, direct.Store)
	requests := map[string]*wallet.Reservation{}
	for i, step := range []struct {
		of, steps   string
		want, calls int64
	}{
		{"a", "reserve mark", 988, 2},
		{"a", "capture", 988, 2},
		{"b", "reserve", 988, 2},
		{"c", "reserve mark", 987, 3},
		{"b", "mark capture", 986, 3},
		{"c", "release", 987, 2},
		{"c", "release", 987, 3}, // a repeat
		{"d", "reserve", 987, 3},
		{"e", "reserve mark capture", 986, 3},
		{"d", "mark capture", 985, 3},
		{"f", "reserve mark capture", 984, 2}, // the first of its lease
		{"g", "reserve mark capture", 983, 2},
	} {
		if requests[step.of] == nil {
			requests[step.of] = after(time.Second + time.Duration(i)*time.Millisecond)
			requests[step.of].Irrevocable = true
		}
		must.Succeed(t, wallettest.Take(t, direct.Store, requests[step.of], strings.Fields(step.steps)...))
		before := through.Calls.Load()
		got, err := direct.Over(through).Balance(t.Context(), "p")
		if calls := through.Calls.Load() - before; err != nil || got != step.want || calls != step.calls {
			t.Errorf("%+v: the balance is %d after %d calls, %v", step, got, calls, err)
		}
	}
}

// TestFence checks that no late copy acquires a lease again once it is settled, in whatever order leases are settled.
func TestFence(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		direct := wallettest.New(t, 1000)
		lost := &wallettest.Faults{Of: "UpdateItem", List: ".xx"}
		store := direct.Over(lost)
		for i := range 2 {
			direct.Must(wallettest.Take(t, store, after(time.Duration(i)*time.Second), "reserve", "capture"))
		}
		leases := wallettest.Pending(t, direct.Store)
		for _, i := range order {
			if _, err := wallettest.Settle(t.Context(), direct.Store, leases[i]); err != nil {
				t.Fatal(err)
			}
		}
		lost.DeliverLate(t)
		if left := wallettest.Pending(t, direct.Store); len(left) > 0 {
			t.Errorf("%v: a late copy has acquired %+v again", order, left)
		}
		wallettest.WantBalance(t, direct.Store, 998)
		if err := direct.Reserve(t.Context(), after(-time.Second)); err != nil {
			t.Errorf("%v: a request whose clock is late: %v", order, err)
		}
	}
}

// TestLateLeases checks that late copies of writes which acquire a lease and close the one before neither take nor
// return credits twice, whatever became of the request.
func TestLateLeases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		balance int64
		before  []int64 // the credits of requests before, the fourth of which acquires a lease of two slots
		taken   int64   // by another instance then
		faults  string  // of the write of the next one
		credits int64
		follow  int64 // credits of the request after it; 0: none
		err     error
	}{
		{"every response lost: no slot of the old lease may be used", 10_000, []int64{1, 1, 1, 1}, 0, "xxx", 3, 1, errAny},
		{"a response lost, then refused: the same", 200, []int64{1, 1, 1, 1}, 0, "x", 197, 1,
			wallet.ErrInsufficientCredits},
		{"a response lost, then one slot in place of two: under another key", 3 + 65*2, []int64{1, 1, 1}, 1, "x", 1, 0, nil},
		{"a response lost, then two slots: no lease closes them", 10_000, []int64{1, 1, 1}, 0, "x", 1, 3, nil},
	} {
		direct := wallettest.New(t, test.balance)
		lost := &wallettest.Faults{Of: "UpdateItem"}
		store, n := direct.Over(lost), 0
		reserve := func(credits int64) error {
			r := after(time.Duration(n) * time.Millisecond)
			n, r.Credits = n+1, credits
			err := store.Reserve(t.Context(), r)
			if err == nil {
				err = wallettest.Take(t, store, r, "capture", "remove")
			}
			return err
		}
		for _, credits := range test.before {
			direct.Must(reserve(credits))
		}
		if test.taken > 0 {
			direct.Must(direct.Adjust(t.Context(), wallettest.Movement("p", time.Now(), "taken", -test.taken)))
		}
		lost.List = strings.Repeat(".", int(lost.Calls.Load())) + test.faults
		if err := reserve(test.credits); (err == nil) != (test.err == nil) ||
			!errors.Is(test.err, errAny) && !errors.Is(err, test.err) {
			t.Errorf("%s: %v", test.name, err)
		}
		if test.follow > 0 {
			direct.Must(reserve(test.follow))
		}
		direct.Must(direct.Grant(t.Context(), wallettest.Movement("p", time.Now(), "more", 10_000_000)))
		lost.DeliverLate(t)
		wallettest.SettleAll(t, direct.Store)
		wallettest.WantSound(t, direct.Store)
	}
}

// TestManyLeases checks that the balance of 256 leases takes 17 calls, 33 around midnight, and that an entry which
// cannot be read makes its lease count as spent and keeps no other lease from being closed.
func TestManyLeases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		leases int
		begin  time.Time
		calls  int64
	}{{8, base, 17}, {256, base, 17}, {256, base.Truncate(24 * time.Hour).Add(-128 * time.Millisecond), 33}} {
		direct, through, pending := wallettest.New(t, 1000), &wallettest.Faults{}, dynamo.Item{}
		put := func(key wallet.Key, credits types.AttributeValue) {
			item := enginetest.LedgerKey("p", key)
			item["st"], item["cr"] = dynamo.Text("captured"), credits
			item["ts"] = dynamo.Text(test.begin.Format(time.RFC3339Nano))
			direct.Put(direct.Names.Ledger, item)
		}
		for i := range test.leases {
			key := wallet.NewKey(test.begin.Add(time.Duration(i)*time.Millisecond), fmt.Sprint(i))
			pending[wallet.Lease{Project: "p", Key: key, Slots: 8, Credits: 8}.Name()] = dynamo.Number(8)
			put(key+".07", dynamo.Number(1))
			if i == 2 {
				put(key+".02", dynamo.Text("nonsense"))
			}
		}
		direct.Change(direct.Names.Wallets, dynamo.Item{"pk": dynamo.Text("p")}, "SET pending = :p, lent = :l",
			dynamo.Item{":p": &types.AttributeValueMemberM{Value: pending}, ":l": dynamo.Number(int64(test.leases * 16 * 8))})
		want := int64(1000 + (test.leases-1)*7)
		balance, err := direct.Over(through).Balance(t.Context(), "p")
		if got := through.Calls.Load(); err != nil || balance != want || got > test.calls {
			t.Errorf("the balance is %d after %d calls, want %d after %d: %v", balance, got, want, test.calls, err)
		}
		closed, limits := 0, wallet.DefaultLimits
		limits.Remove = time.Hour
		wallettest.WithLimits(direct.Store, limits).Settle(t.Context(), wallettest.Pending(t, direct.Store)[:5],
			func(_ wallet.Lease, settled wallet.Settled, err error) { closed += settled.Closed })
		if wallettest.WantBalance(t, direct.Store, want); closed != 4 {
			t.Errorf("%d of 4 leases are closed", closed)
		}
	}
}

package credit_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/shared/credit"
)

// newSharded returns a store with a project "p" of that balance and that number of shards.
func newSharded(t testing.TB, shards int, balance int64) *credit.Store {
	t.Helper()
	return newTabled(t, shards, balance).Store
}

func inShards(shards int, credits int64, id string) *credit.Reservation {
	return &credit.Reservation{
		Project: "p", Shards: shards, Key: credit.NewKey(time.Now(), id), Credits: credits,
		Operation: credit.Barcode, Environment: "production", RequestID: id,
	}
}

// spread reserves and releases until half of a project's credits in shard 0, of 2, has moved to shard 1.
func spread(t testing.TB, store *credit.Store, project string) {
	t.Helper()
	for shard, i := project, 0; shard == project; i++ {
		r := inShards(2, 10, fmt.Sprint(i))
		r.Project = project
		if err := errors.Join(store.Reserve(t.Context(), r), store.Release(t.Context(), r)); err != nil {
			t.Fatal(err)
		}
		shard = r.Wallet
	}
}

// wantSound checks that the ledger explains the balance of every shard.
func wantSound(t testing.TB, store *credit.Store) {
	t.Helper()
	verified, err := store.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range verified.Findings {
		t.Errorf("%+v", finding)
	}
}

// TestExactInShards checks that a wallet with shards pays for exactly as many requests as its total suffices for: no request
// is refused while the total suffices, and none is paid beyond it.
func TestExactInShards(t *testing.T) {
	for _, test := range []struct {
		shards   int
		balance  int64
		price    int64
		requests int
	}{
		{2, 100 * 100, 100, 150},
		{16, 100*100 + 99, 100, 150}, // what is left over buys nothing
		{16, 50 * 700, 700, 100},     // more than an even share at the end
		{64, 10 * 100, 100, 40},      // fewer requests than shards
		{64, 99, 100, 20},
	} {
		t.Run(fmt.Sprintf("%d credits in %d shards", test.balance, test.shards), func(t *testing.T) {
			limits := credit.DefaultLimits
			limits.Rebalance = time.Minute // a busy machine may take long over what is exact all the same
			store := newSharded(t, test.shards, test.balance).WithLimits(limits)
			var paid, refused atomic.Int64
			var group errgroup.Group
			group.SetLimit(24)
			for i := range test.requests {
				group.Go(func() error {
					r := inShards(test.shards, test.price, fmt.Sprint(i))
					err := store.Reserve(context.Background(), r)
					if errors.Is(err, credit.ErrInsufficientCredits) {
						refused.Add(1)
						return nil
					}
					if err == nil {
						err = store.Capture(context.Background(), r, credit.Outcome{})
						store.Remove(context.Background(), r)
						paid.Add(1)
					}
					return err
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			can := min(test.balance/test.price, int64(test.requests))
			if paid.Load() != can || refused.Load() != int64(test.requests)-can {
				t.Errorf("%d paid, %d refused; want %d paid", paid.Load(), refused.Load(), can)
			}
			wantBalance(t, store, test.balance-can*test.price)
			wantSound(t, store)
		})
	}
}

// TestAddShards checks that shards are created once, stay when fewer are wanted, and need an existing wallet.
func TestAddShards(t *testing.T) {
	t.Parallel()
	store := newStore(t, 1000)
	for _, step := range []struct{ split, want int }{{1, 1}, {4, 4}, {4, 4}, {2, 4}, {1, 4}, {64, 64}} {
		if err := store.AddShards(t.Context(), "p", step.split); err != nil {
			t.Fatal(err)
		}
		wallet, err := store.Wallet(t.Context(), "p")
		if err != nil || wallet.Shards != step.want || wallet.Balance != 1000 {
			t.Errorf("after %d: %+v, %v; want %d shards", step.split, wallet, err, step.want)
		}
		if verified, err := store.Verify(t.Context(), nil); err != nil || verified.Wallets != step.want {
			t.Errorf("after %d: %+v, %v; want as many wallets", step.split, verified, err)
		}
	}
	for _, shards := range []int{0, -1, 65} {
		if err := store.AddShards(t.Context(), "p", shards); err == nil {
			t.Errorf("%d shards were made", shards)
		}
	}
	if err := store.AddShards(t.Context(), "nobody", 2); !errors.Is(err, credit.ErrNoWallet) {
		t.Errorf("a project without a wallet: %v", err)
	}
}

// TestOldRecord checks that an instance with a record from before the change, in either direction, can spend the whole
// wallet.
func TestOldRecord(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                 string
		shards, before, then int
	}{
		{"sharded after the record was read", 8, 8, 1},
		{"shards given up", 8, 8, 2},
		{"more shards than the record says", 8, 2, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store := newSharded(t, test.shards, 1000)
			for i := range 80 { // spreads the credits over the shards that were used before
				r := inShards(test.before, 10, fmt.Sprint(test.before, "-", i))
				if err := store.Reserve(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if err := store.Release(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Reserve(t.Context(), inShards(test.then, 1000, "all")); err != nil {
				t.Error(err)
			}
			wantBalance(t, store, 0)
		})
	}
}

// TestEvenShares checks that a shard which lacks credits gets an even share, so that the next requests find credits.
func TestEvenShares(t *testing.T) {
	store := newSharded(t, 4, 4000)
	for i := range 40 {
		r := inShards(4, 10, fmt.Sprint(i))
		if err := store.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if err := store.Capture(t.Context(), r, credit.Outcome{}); err != nil {
			t.Fatal(err)
		}
	}
	perShard := map[string]int{}
	err := store.VisitPending(t.Context(), func(r *credit.Reservation, err error) error {
		perShard[r.Wallet]++
		return err
	}, nil)
	if err != nil || len(perShard) != 4 {
		t.Errorf("reservations per shard %v, %v", perShard, err)
	}
	wantBalance(t, store, 3600)
	wantSound(t, store)
}

// TestOperatorsInShards checks that operators' commands count for all shards: lists, refunds, resolutions, adjustments and
// the alert.
func TestOperatorsInShards(t *testing.T) {
	ctx := t.Context()
	store := newSharded(t, 8, 8000)
	var charges []credit.Key
	for i := range 16 {
		r := inShards(8, 100, fmt.Sprint(i))
		r.Irrevocable = true
		if err := errors.Join(store.Reserve(ctx, r), store.Mark(ctx, r), store.Capture(ctx, r, credit.Outcome{Uncertain: i < 8})); err != nil {
			t.Fatal(err)
		}
		store.Remove(ctx, r)
		charges = append(charges, r.Key)
	}
	uncertain, err := store.Uncertain(ctx, "p")
	if err != nil || len(uncertain) != 8 {
		t.Errorf("%d uncertain, %v", len(uncertain), err)
	}
	entries, err := store.Entries(ctx, "p", charges[0].Day())
	if err != nil || len(entries) != 16 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	for i, e := range entries {
		if e.Key != charges[i] {
			t.Errorf("entry %d is %s, want %s: the day reads in order", i, e.Key, charges[i])
		}
	}
	for i, verdict := range []credit.Verdict{credit.VerdictConfirmed, credit.VerdictRefunded} {
		for range 2 { // it may be repeated
			if _, err := store.Resolve(ctx, "p", charges[i], credit.Resolution{Verdict: verdict, Reason: "asked the vendor", Actor: "operator"}); err != nil {
				t.Errorf("%s: %v", verdict, err)
			}
		}
	}
	for range 2 {
		if _, err := store.RefundCharge(ctx, "p", charges[9], "a complaint", "operator"); err != nil {
			t.Error(err)
		}
	}
	wantBalance(t, store, 8000-14*100)

	adjust := func(credits int64, id string) error {
		return store.Adjust(ctx, credit.Movement{Project: "p", ID: credit.NewKey(time.Now(), id), Credits: credits, Actor: "operator", Reason: "moved"})
	}
	if err := adjust(-6600, "beyond the first shard"); err != nil {
		t.Error(err)
	}
	wantBalance(t, store, 0)
	if err := adjust(-1, "beyond all"); !errors.Is(err, credit.ErrOutOfRange) {
		t.Errorf("below 0: %v", err)
	}
	if err := adjust(50, "back"); err != nil {
		t.Error(err)
	}

	low := func() (lows []credit.LowBalance) {
		t.Helper()
		err := store.VisitPending(ctx, func(*credit.Reservation, error) error { return nil }, func(l credit.LowBalance) { lows = append(lows, l) })
		if err != nil {
			t.Fatal(err)
		}
		return lows
	}
	for alert, want := range map[int64]int{50: 0, 51: 1} {
		if err := store.SetAlert(ctx, "p", alert); err != nil {
			t.Fatal(err)
		}
		if got := low(); len(got) != want || want == 1 && got[0] != (credit.LowBalance{Project: "p", Balance: 50, Alert: 51}) {
			t.Errorf("alert at %d: %v", alert, got)
		}
	}
	wantSound(t, store)
}

// TestSettleInShards checks that the reservations of dead requests in any shard are settled as in a wallet with one shard.
func TestSettleInShards(t *testing.T) {
	ctx := t.Context()
	store := newSharded(t, 8, 8000)
	for i := range 24 {
		r := inShards(8, 100, fmt.Sprint(i))
		r.Irrevocable = i%3 == 2
		err := store.Reserve(ctx, r)
		switch i % 3 {
		case 1:
			err = errors.Join(err, store.Capture(ctx, r, credit.Outcome{}))
		case 2:
			err = errors.Join(err, store.Mark(ctx, r))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	did := map[credit.Settled]int{}
	for range 2 {
		err := store.VisitPending(ctx, func(r *credit.Reservation, err error) error {
			if err != nil {
				return err
			}
			settled, err := store.Settle(ctx, r, false)
			did[settled]++
			return err
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	if did[credit.SettledReleased] != 8 || did[credit.SettledRemoved] != 8 || did[credit.SettledUncertain] != 8 {
		t.Errorf("settled %v", did)
	}
	wantBalance(t, store, 8000-16*100)
	wantSound(t, store)
}

// TestChargeAmongReleases checks that a charge is found in any shard, also where other shards hold releases of the same key.
func TestChargeAmongReleases(t *testing.T) {
	t.Parallel()
	const shards = 3
	store := newSharded(t, shards, 1_000)
	charged := map[string]bool{}
	for i := range 100 {
		r := inShards(shards, 10, fmt.Sprint(i))
		if err := store.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if charged[r.Wallet] { // its reservation stays, which is nobody's concern here
			continue
		}
		charged[r.Wallet] = true
		for _, shard := range []string{"p", "p#1", "p#2"} {
			copied := *r
			copied.Wallet = shard
			if shard != r.Wallet {
				if got, err := store.Settle(t.Context(), &copied, false); err != nil || got != credit.SettledReleased {
					t.Fatal(got, err)
				}
			}
		}
		if _, err := store.RefundCharge(t.Context(), "p", r.Key, "x", "anne"); !errors.Is(err, credit.ErrNotCharged) {
			t.Errorf("shard %s, before the charge: %v", r.Wallet, err)
		}
		if err := take(t, store, r, "capture", "remove"); err != nil {
			t.Fatal(err)
		}
		if _, err := store.RefundCharge(t.Context(), "p", r.Key, "x", "anne"); err != nil {
			t.Errorf("shard %s: %v", r.Wallet, err)
		}
		if len(charged) == shards {
			return
		}
	}
	t.Errorf("charges in shards %v of %d", charged, shards)
}

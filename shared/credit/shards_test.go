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

// TestExactUnderLoad checks that a wallet pays for exactly as many requests as its shards together suffice for: no request is
// refused while the total suffices, none is paid beyond it, and the balance is never negative.
func TestExactUnderLoad(t *testing.T) {
	for _, test := range []struct {
		shards, atOnce int
		balance        int64
		price          int64
		requests       int
	}{
		{1, 64, 100 * 100, 100, 300},
		{2, 24, 100 * 100, 100, 150},
		{16, 24, 100*100 + 99, 100, 150}, // the remaining 99 credits buy nothing
		{16, 24, 50 * 700, 700, 100},     // more than an even share at the end
		{64, 24, 10 * 100, 100, 40},      // fewer requests than shards
		{64, 24, 99, 100, 20},
	} {
		t.Run(fmt.Sprintf("%d credits in %d shards", test.balance, test.shards), func(t *testing.T) {
			limits := credit.DefaultLimits
			limits.Rebalance = time.Minute // a busy machine may take long over what is exact all the same
			store, at := newSharded(t, test.shards, test.balance).WithLimits(limits), time.Now()
			var paid, refused atomic.Int64
			var group errgroup.Group
			group.SetLimit(test.atOnce)
			for i := range test.requests {
				group.Go(func() error {
					r := inShards(test.shards, test.price, fmt.Sprint(i))
					r.Key = credit.NewKey(at, r.RequestID)
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
			if all, left := entries(t, store, credit.NewKey(at, "")), pending(t, store); len(all) != int(can) || len(left) > 0 {
				t.Errorf("%d ledger entries, want %d; %d pending", len(all), can, len(left))
			}
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

// TestOperatorsInShards checks that operators' commands count for all shards: lists, refunds, resolutions and
// adjustments.
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
	entries, err := store.Entries(ctx, "p", charges[0].Time(), charges[15].Time())
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
		return store.Adjust(ctx, movementOf("p", time.Now(), id, credits))
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
				if got, err := settle(t.Context(), store, &copied, false); err != nil || got != credit.SettledReleased {
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

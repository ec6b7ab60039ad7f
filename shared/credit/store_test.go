package credit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/local/enginetest"
	"svcapi/shared/credit"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newStore gives a store on its own tables, and a project "p" with that balance.
func newStore(t testing.TB, balance int64) *credit.Store {
	t.Helper()
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	if err := store.CreateWallet(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if balance > 0 {
		grant := credit.Movement{Project: "p", ID: credit.NewKey(time.Now().AddDate(0, 0, -3), "grant"), Credits: balance, Reason: "test", Actor: "test"}
		if err := store.Grant(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func wantBalance(t testing.TB, store *credit.Store, want int64) {
	t.Helper()
	if got, err := store.Balance(t.Context(), "p"); err != nil || got != want {
		t.Errorf("balance %d, %v; want %d", got, err, want)
	}
}

// TestExactUnderLoad: the balance is never negative, and of many requests exactly as many succeed as
// the wallet can pay for.
func TestExactUnderLoad(t *testing.T) {
	const price, can, requests = 100, 100, 300
	store := newStore(t, price*can)
	at := time.Now()
	var mu sync.Mutex
	var paid, refused int
	var group errgroup.Group
	group.SetLimit(64)
	for i := range requests {
		group.Go(func() error {
			id := string(rune('a'+i%26)) + time.Duration(i).String()
			r := &credit.Reservation{Project: "p", Key: credit.NewKey(at, id), Credits: price, Operation: credit.Barcode, Environment: "production", RequestID: id}
			err := store.Reserve(context.Background(), r)
			if err == nil {
				err = store.Capture(context.Background(), r, credit.Outcome{})
				store.Remove(context.Background(), r)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				paid++
			case errors.Is(err, credit.ErrInsufficientCredits):
				refused++
			default:
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if paid != can || refused != requests-can {
		t.Errorf("%d paid, %d refused; want %d, %d", paid, refused, can, requests-can)
	}
	wantBalance(t, store, 0)
	entries, err := store.Entries(t.Context(), "p", credit.NewKey(at, "").Day())
	if err != nil || len(entries) != can {
		t.Errorf("%d ledger entries, %v; want %d", len(entries), err, can)
	}
	err = store.InFlight(t.Context(), func(r *credit.Reservation, err error) error {
		t.Errorf("still in flight: %v, %v", r, err)
		return nil
	}, nil)
	if err != nil {
		t.Error(err)
	}
}

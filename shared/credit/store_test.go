package credit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// tabled is a store on its own tables, and the way to them.
type tabled struct {
	*credit.Store
	client *dynamodb.Client
	names  credit.Tables
}

// newTabled gives a store with a project "p" of that balance in so many shards.
func newTabled(t testing.TB, shards int, balance int64) *tabled {
	t.Helper()
	client, tables := enginetest.Client(t)
	names := credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger}
	s := &tabled{credit.NewStore(client, names), client, names}
	if err := errors.Join(s.CreateWallet(t.Context(), "p"), s.AddShards(t.Context(), "p", shards)); err != nil {
		t.Fatal(err)
	}
	if balance > 0 {
		grant := credit.Movement{Project: "p", ID: credit.NewKey(time.Now().AddDate(0, 0, -3), "grant"), Credits: balance, Reason: "test", Actor: "test"}
		if err := s.Grant(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// over is the same store when its calls go by another way.
func (s *tabled) over(way aws.HTTPClient) *credit.Store {
	o := s.client.Options()
	return credit.NewStore(dynamo.NewClient(aws.Config{Region: o.Region, Credentials: o.Credentials, BaseEndpoint: o.BaseEndpoint},
		func(o *dynamodb.Options) { o.HTTPClient = way }), s.names)
}

// newStore gives a store with a project "p" of that balance, whole.
func newStore(t testing.TB, balance int64) *credit.Store {
	t.Helper()
	return newTabled(t, 1, balance).Store
}

func wantBalance(t testing.TB, store *credit.Store, want int64) {
	t.Helper()
	if got, err := store.Balance(t.Context(), "p"); err != nil || got != want {
		t.Errorf("balance %d, %v; want %d", got, err, want)
	}
}

// TestExactUnderLoad checks that the balance is never negative, and that exactly as many requests succeed as the wallet can
// pay for.
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
	err = store.VisitPending(t.Context(), func(r *credit.Reservation, err error) error {
		t.Errorf("still pending: %v, %v", r, err)
		return nil
	}, nil)
	if err != nil {
		t.Error(err)
	}
}

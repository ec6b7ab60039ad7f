// Package wallettest gives tests a wallet on DynamoDB Local, the steps of a request, and the faults of a network.
package wallettest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

// Fixture is a store on tables of its own, and the way to them.
type Fixture struct {
	*books.Store
	T      testing.TB
	Client *dynamodb.Client
	Names  books.Tables
}

// unhurried limits no write by time, so that the machine's speed decides nothing.
var unhurried = wallet.Limits{Write: time.Hour, Remove: wallet.DefaultLimits.Remove,
	Leasing: wallet.DefaultLimits.Leasing}

// New returns a store with a project "p" of that balance.
func New(t testing.TB, balance int64) *Fixture {
	t.Helper()
	client, tables := enginetest.Client(t)
	names := tables.Tables
	f := &Fixture{WithLimits(books.NewStore(client, names), unhurried), t, client, names}
	f.Project("p", balance)
	return f
}

// WithLimits returns a copy of a store with other limits.
func WithLimits(s *books.Store, l wallet.Limits) *books.Store {
	other, inner := *s, *s.Store
	inner.Limits, other.Store = l, &inner
	return &other
}

// NewStore returns a store with a project "p" of that balance.
func NewStore(t testing.TB, balance int64) *books.Store {
	t.Helper()
	return New(t, balance).Store
}

// Must ends the test on an error.
func (f *Fixture) Must(err error) {
	f.T.Helper()
	must.Succeed(f.T, err)
}

// Project creates a project's wallet.
func (f *Fixture) Project(id string, balance int64) {
	f.T.Helper()
	f.Must(f.CreateWallet(f.T.Context(), id))
	if balance > 0 {
		f.Must(f.Grant(f.T.Context(), Movement(id, time.Now().AddDate(0, 0, -3), "grant", balance)))
	}
}

// Movement returns a movement whose ID is generated from the time and the name.
func Movement(project string, at time.Time, name string, credits int64) wallet.Entry {
	return wallet.Entry{Project: project, Key: wallet.NewKey(at, name), Credits: credits, Reason: "test", Actor: "test"}
}

// Put writes an item past the store.
func (f *Fixture) Put(table string, item dynamo.Item) {
	f.T.Helper()
	_, err := f.Client.PutItem(f.T.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	f.Must(err)
}

// Change updates an item past the store. The only name of an expression is #k.
func (f *Fixture) Change(table string, key dynamo.Item, expression string, values dynamo.Item, names ...string) {
	f.T.Helper()
	in := &dynamodb.UpdateItemInput{TableName: &table, Key: key, UpdateExpression: &expression,
		ExpressionAttributeValues: values}
	if len(names) > 0 {
		in.ExpressionAttributeNames = map[string]string{"#k": names[0]}
	}
	_, err := f.Client.UpdateItem(f.T.Context(), in)
	f.Must(err)
}

// Drop deletes an item past the store.
func (f *Fixture) Drop(table string, key dynamo.Item) {
	f.T.Helper()
	_, err := f.Client.DeleteItem(f.T.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
	f.Must(err)
}

// Over returns the same store behind a proxy with faults.
func (f *Fixture) Over(faults *Faults) *books.Store {
	return WithLimits(books.NewStore(faults.Client(f.T), f.Names), unhurried)
}

// Faults are the network faults of the named calls, in turn, each by its letter. All other calls pass.
type Faults struct {
	Of     string // operations; empty: every call
	With   string // what the body of a call must contain to be counted
	List   string
	Before func(operation string) // runs before each call; may be nil
	Calls  atomic.Int64

	mu   sync.Mutex            // guards lost
	lost []*faultproxy.Request // the calls that did not arrive
}

// letters are those of the faults of a list. Any other letter is no fault.
var letters = map[byte]faultproxy.Fault{
	't': faultproxy.Throttle, 'h': faultproxy.ThrottleKey, '5': faultproxy.Fail, 'x': faultproxy.DropRequest,
	'd': faultproxy.DropResponse, 'u': faultproxy.CutResponse,
}

// Client returns a client of the engine behind a proxy with the faults.
func (f *Faults) Client(t testing.TB) *dynamodb.Client {
	return enginetest.ClientOf(enginetest.Faulty(t, f.decide).URL("test"))
}

// decide returns the fault of a call.
func (f *Faults) decide(r *faultproxy.Request) (fault faultproxy.Fault) {
	if f.Before != nil {
		f.Before(r.Operation)
	}
	if strings.Contains(cmp.Or(f.Of, r.Operation), r.Operation) && bytes.Contains(r.Body, []byte(f.With)) {
		if n := int(f.Calls.Add(1)); n <= len(f.List) {
			fault = letters[f.List[n-1]]
			if all := faultproxy.Throttles(r.Operation); fault == faultproxy.Throttle {
				fault = all[n%len(all)]
			}
		}
	}
	if fault == faultproxy.DropRequest {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lost = append(f.lost, r)
	}
	return cmp.Or(fault, faultproxy.Deliver)
}

// DeliverLate lets every lost call arrive after all.
func (f *Faults) DeliverLate(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.lost {
		must.Succeed(t, r.Deliver(context.WithoutCancel(t.Context())))
	}
	f.lost = nil
}

// Steps are the steps of a reservation. A test names them in the order in which they are taken.
var Steps = map[string]func(ctx context.Context, s *books.Store, r *wallet.Reservation) error{
	"reserve": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error { return s.Reserve(ctx, r) },
	"mark":    func(ctx context.Context, s *books.Store, r *wallet.Reservation) error { return s.Mark(ctx, r) },
	"capture": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error {
		return s.Capture(ctx, r, wallet.Outcome{Vendor: "vendor"})
	},
	"capture uncertain": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error {
		return s.Capture(ctx, r, wallet.Outcome{Uncertain: true})
	},
	"capture after the work was cancelled": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error {
		return s.Capture(cancelled(ctx), r, wallet.Outcome{})
	},
	"remove": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error {
		return removeWithin(ctx, s, r, time.Hour)
	},
	"remove in under a second": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error {
		return removeWithin(ctx, s, r, 900*time.Millisecond)
	},
	"release": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error { return s.Release(ctx, r) },
	"release after the work was cancelled": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error {
		return s.Release(cancelled(ctx), r)
	},
	"settle": func(ctx context.Context, s *books.Store, r *wallet.Reservation) error {
		_, err := Settle(ctx, s, LeaseOf(r))
		return err
	},
}

func cancelled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// removeWithin removes a reservation's key in a request that has so much time left.
func removeWithin(ctx context.Context, s *books.Store, r *wallet.Reservation, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	s.Remove(ctx, r)
	return nil
}

// Take takes steps in their order; the last one may fail.
func Take(t *testing.T, store *books.Store, r *wallet.Reservation, names ...string) error {
	t.Helper()
	for i, name := range names {
		if err := Steps[name](t.Context(), store, r); i == len(names)-1 {
			return err
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return nil
}

// Settle settles one lease.
func Settle(ctx context.Context, s *books.Store, l wallet.Lease) (got wallet.Settled, err error) {
	s.Settle(ctx, []wallet.Lease{l},
		func(_ wallet.Lease, settled wallet.Settled, failed error) { got, err = settled, failed })
	return got, err
}

// LeaseOf returns the lease of a single request as the settling function finds it in the wallet.
func LeaseOf(r *wallet.Reservation) wallet.Lease {
	return wallet.Lease{Project: r.Project, Key: r.Key, Slots: 1, Credits: r.Credits}
}

// Reservation returns the reservation of a request of that price.
func Reservation(price int64, sms bool) *wallet.Reservation {
	r := Request(price, "request")
	if sms {
		r.Price, r.Irrevocable = wallet.SMS, true
	}
	return r
}

// Request returns the reservation of a request that begins now.
func Request(credits int64, id string) *wallet.Reservation {
	return &wallet.Reservation{
		Project: "p", Began: time.Now(), Credits: credits, Price: wallet.Barcode, Environment: "production", RequestID: id,
	}
}

// Entry returns the reservation's own entry, and the zero Entry where there is none.
func Entry(t *testing.T, store *books.Store, r *wallet.Reservation) (found books.Entry) {
	t.Helper()
	if r.Key == "" { // nothing was reserved
		return found
	}
	for _, e := range Entries(t, store, r.Key) {
		if e.Key == r.Key {
			found = e
		}
	}
	return found
}

// Entries returns the entries of p of the day of a key.
func Entries(t *testing.T, store *books.Store, key wallet.Key) []books.Entry {
	t.Helper()
	return must.Get(store.Entries(t.Context(), "p", key.Time(), key.Time())).Or(t)
}

// Pending returns the leases that the wallets hold.
func Pending(t *testing.T, store *books.Store) (found []wallet.Lease) {
	t.Helper()
	err := store.VisitPending(t.Context(), func(v wallet.Visited) error {
		found = append(found, v.Leases...)
		return errors.Join(v.Unreadable...)
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// SettleAll settles the leases that the wallets hold.
func SettleAll(t *testing.T, store *books.Store) {
	t.Helper()
	for _, l := range Pending(t, store) {
		_, err := Settle(t.Context(), store, l)
		must.Succeed(t, err)
	}
}

// WantBalance checks the balance of p.
func WantBalance(t testing.TB, store *books.Store, want int64) {
	t.Helper()
	if got, err := store.Balance(t.Context(), "p"); err != nil || got != want {
		t.Errorf("balance %d, %v; want %d", got, err, want)
	}
}

// WantSound checks that the ledger explains every balance.
func WantSound(t testing.TB, store *books.Store) {
	t.Helper()
	for _, finding := range must.Get(store.Verify(t.Context(), nil)).Or(t).Findings {
		t.Errorf("%+v", finding)
	}
}

package credit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a store on tables of its own, and the way to them.
type fixture struct {
	*credit.Store
	t      testing.TB
	client *dynamodb.Client
	names  credit.Tables
}

// newFixture returns a store with a project "p" of that balance.
func newFixture(t testing.TB, balance int64) *fixture {
	t.Helper()
	client, tables := enginetest.Client(t)
	names := tables.Tables
	f := &fixture{credit.NewStore(client, names), t, client, names}
	f.project("p", balance)
	return f
}

// newStore returns a store with a project "p" of that balance.
func newStore(t testing.TB, balance int64) *credit.Store {
	t.Helper()
	return newFixture(t, balance).Store
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// project creates a project's wallet.
func (f *fixture) project(id string, balance int64) {
	f.t.Helper()
	f.must(f.CreateWallet(f.t.Context(), id))
	if balance > 0 {
		f.must(f.Grant(f.t.Context(), movementOf(id, time.Now().AddDate(0, 0, -3), "grant", balance)))
	}
}

// movementOf returns a movement whose ID is generated from the time and the name.
func movementOf(project string, at time.Time, name string, credits int64) credit.Movement {
	return credit.Movement{Project: project, ID: credit.NewKey(at, name), Credits: credits, Reason: "test", Actor: "test"}
}

// put writes an item past the store.
func (f *fixture) put(table string, item dynamo.Item) {
	f.t.Helper()
	_, err := f.client.PutItem(f.t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	f.must(err)
}

// change updates an item past the store. The only name of an expression is #k.
func (f *fixture) change(table string, key dynamo.Item, expression string, values dynamo.Item, names ...string) {
	f.t.Helper()
	in := &dynamodb.UpdateItemInput{TableName: &table, Key: key, UpdateExpression: &expression,
		ExpressionAttributeValues: values}
	if len(names) > 0 {
		in.ExpressionAttributeNames = map[string]string{"#k": names[0]}
	}
	_, err := f.client.UpdateItem(f.t.Context(), in)
	f.must(err)
}

// drop deletes an item past the store.
func (f *fixture) drop(table string, key dynamo.Item) {
	f.t.Helper()
	_, err := f.client.DeleteItem(f.t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
	f.must(err)
}

// over returns the same store, whose calls go through another HTTP client.
func (f *fixture) over(through aws.HTTPClient) *credit.Store {
	o := f.client.Options()
	return credit.NewStore(dynamo.NewClient(aws.Config{Region: o.Region, Credentials: o.Credentials,
		BaseEndpoint: o.BaseEndpoint},
		func(o *dynamodb.Options) { o.HTTPClient = through }), f.names)
}

// faults are the network faults of the named calls, in turn: t is throttled, h because of the key, c is a cancelled
// transaction, 5 gets the response 500, x is lost before it arrives, d loses its response, u loses half of its
// response. Any other call passes, as do all calls after the last fault.
type faults struct {
	of     string // operations; empty: every call
	with   string // what the body of a call must contain to be counted
	list   string
	before func(operation string) // runs before each call; may be nil
	calls  atomic.Int64
	lost   []*http.Request // copies of the calls that did not arrive
}

func (f *faults) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if f.before != nil {
		f.before(operation)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if f.of != "" && !strings.Contains(f.of, operation) || !bytes.Contains(body, []byte(f.with)) {
		return http.DefaultClient.Do(r)
	}
	n := int(f.calls.Add(1))
	if n > len(f.list) {
		return http.DefaultClient.Do(r)
	}
	const prefix = "com.amazonaws.dynamodb.v20120810#"
	refuse := func(status int, kind, reason string) (*http.Response, error) {
		text := `{"__type":"` + prefix + kind +
			`","message":"m","CancellationReasons":[{"Code":"ConditionalCheckFailed"},{"Code":"None"}],` +
			`"ThrottlingReasons":[{"reason":"` + reason + `","resource":"table"}]}`
		return &http.Response{StatusCode: status, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
	switch f.list[n-1] {
	case 't':
		return refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException", "")
	case 'h':
		return refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException", "TableWriteKeyRangeThroughputExceeded")
	case 'c':
		return refuse(http.StatusBadRequest, "TransactionCanceledException", "")
	case '5':
		return refuse(http.StatusInternalServerError, "InternalServerError", "")
	case 'x':
		again := r.Clone(context.Background())
		again.Body = io.NopCloser(bytes.NewReader(body))
		f.lost = append(f.lost, again)
		return nil, errors.New("connection lost")
	case 'd', 'u':
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil || f.list[n-1] == 'd' {
			return nil, errors.Join(errors.New("connection lost"), err)
		}
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text[:len(text)/2]), broken{}))
		return response, nil
	}
	return http.DefaultClient.Do(r)
}

// broken is the end of a connection that was closed too early.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// deliverLate lets every lost call arrive after all.
func (f *faults) deliverLate(t *testing.T) {
	t.Helper()
	for _, r := range f.lost {
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			err = response.Body.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	f.lost = nil
}

// The steps of a reservation. A test names them in the order in which they are taken.
var steps = map[string]func(ctx context.Context, s *credit.Store, r *credit.Reservation) error{
	"reserve": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error { return s.Reserve(ctx, r) },
	"mark":    func(ctx context.Context, s *credit.Store, r *credit.Reservation) error { return s.Mark(ctx, r) },
	"capture": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		return s.Capture(ctx, r, credit.Outcome{Vendor: "vendor"})
	},
	"capture uncertain": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		return s.Capture(ctx, r, credit.Outcome{Uncertain: true})
	},
	"capture after the work was cancelled": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		return s.Capture(cancelled(ctx), r, credit.Outcome{})
	},
	"remove": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		return removeWithin(ctx, s, r, time.Hour)
	},
	"remove in under a second": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		return removeWithin(ctx, s, r, 900*time.Millisecond)
	},
	"release": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error { return s.Release(ctx, r) },
	"release after the work was cancelled": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		return s.Release(cancelled(ctx), r)
	},
	"settle": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		_, err := settle(ctx, s, leaseOf(r))
		return err
	},
}

func cancelled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// removeWithin removes a reservation's key in a request that has so much time left.
func removeWithin(ctx context.Context, s *credit.Store, r *credit.Reservation, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	s.Remove(ctx, r)
	return nil
}

// take takes steps in their order; the last one may fail.
func take(t *testing.T, store *credit.Store, r *credit.Reservation, names ...string) error {
	t.Helper()
	for i, name := range names {
		if err := steps[name](t.Context(), store, r); i == len(names)-1 {
			return err
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return nil
}

// settle settles one lease.
func settle(ctx context.Context, s *credit.Store, l credit.Lease) (got credit.Settled, err error) {
	s.Settle(ctx, []credit.Lease{l},
		func(_ credit.Lease, settled credit.Settled, failed error) { got, err = settled, failed })
	return got, err
}

// leaseOf returns the lease of a single request as the settling function finds it in the wallet.
func leaseOf(r *credit.Reservation) credit.Lease {
	return credit.Lease{Project: r.Project, Key: r.Key, Slots: 1, Credits: r.Credits}
}

func reservation(price int64, sms bool) *credit.Reservation {
	r := request(price, "request")
	if sms {
		r.Price, r.Irrevocable = credit.SMS, true
	}
	return r
}

func request(credits int64, id string) *credit.Reservation {
	return &credit.Reservation{
		Project: "p", Key: credit.NewKey(time.Now(),
			id), Credits: credits, Price: credit.Barcode, Environment: "production", RequestID: id,
	}
}

// entry returns the reservation's own entry, and the zero Entry where there is none.
func entry(t *testing.T, store *credit.Store, r *credit.Reservation) (found credit.Entry) {
	t.Helper()
	for _, e := range entries(t, store, r.Key) {
		if e.Key == r.Key {
			found = e
		}
	}
	return found
}

func entries(t *testing.T, store *credit.Store, key credit.Key) []credit.Entry {
	t.Helper()
	found, err := store.Entries(t.Context(), "p", key.Time(), key.Time())
	must.Succeed(t, err)
	return found
}

// pending returns the leases that the wallets hold.
func pending(t *testing.T, store *credit.Store) (found []credit.Lease) {
	t.Helper()
	err := store.VisitPending(t.Context(), func(l credit.Lease, err error) error {
		found = append(found, l)
		return err
	}, nil)
	if err != nil {
		t.Error(err)
	}
	return found
}

func wantBalance(t testing.TB, store *credit.Store, want int64) {
	t.Helper()
	if got, err := store.Balance(t.Context(), "p"); err != nil || got != want {
		t.Errorf("balance %d, %v; want %d", got, err, want)
	}
}

// wantSound checks that the ledger explains every balance.
func wantSound(t testing.TB, store *credit.Store) {
	t.Helper()
	verified, err := store.Verify(t.Context(), nil)
	must.Succeed(t, err)
	for _, finding := range verified.Findings {
		t.Errorf("%+v", finding)
	}
}

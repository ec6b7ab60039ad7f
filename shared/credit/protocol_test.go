package credit_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
)

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
	"remove": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		s.Remove(ctx, r)
		return nil
	},
	"release": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error { return s.Release(ctx, r) },
	"settle": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		_, err := s.Settle(ctx, asStored(r), false)
		return err
	},
	"settle early": func(ctx context.Context, s *credit.Store, r *credit.Reservation) error {
		_, err := s.Settle(ctx, asStored(r), true)
		return err
	},
}

// TestTransitions checks every step from every state: released work costs nothing, captured work its price, whether
// the request or the settling function ends the work, and each step may be repeated.
func TestTransitions(t *testing.T) {
	t.Parallel()
	const had, price = 100, 30
	const held, charged = had - price, had - price
	for _, test := range []struct {
		steps      []string
		sms        bool
		err        error // of the last step
		state      credit.State
		uncertain  bool
		actor      string
		balance    int64
		anyPending bool
	}{
		{steps: []string{"reserve"}, balance: held, anyPending: true},
		{steps: []string{"reserve", "capture"}, state: credit.Captured, balance: charged, anyPending: true},
		{steps: []string{"reserve", "capture", "capture"}, state: credit.Captured, balance: charged, anyPending: true},
		{steps: []string{"reserve", "capture", "remove"}, state: credit.Captured, balance: charged},
		{steps: []string{"reserve", "capture", "remove", "remove"}, state: credit.Captured, balance: charged},
		{steps: []string{"reserve", "remove"}, balance: held, anyPending: true},
		{steps: []string{"reserve", "release"}, balance: had},
		{steps: []string{"reserve", "release", "release"}, balance: had},
		{steps: []string{"reserve", "settle"}, state: credit.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "settle early"}, state: credit.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "settle", "settle"}, state: credit.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "settle", "capture"}, err: credit.ErrSettled, state: credit.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "settle", "release"}, state: credit.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "capture", "settle"}, state: credit.Captured, balance: charged},
		{steps: []string{"reserve", "capture", "settle early"}, state: credit.Captured, balance: charged, anyPending: true},
		{steps: []string{"reserve", "capture", "settle early", "settle"}, state: credit.Captured, balance: charged},
		{steps: []string{"reserve", "release", "settle"}, state: credit.Released, actor: "settle", balance: had},

		{sms: true, steps: []string{"reserve", "mark"}, state: credit.Sending, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "mark"}, state: credit.Sending, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "capture"}, state: credit.Captured, balance: charged, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "capture", "remove"}, state: credit.Captured, balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "capture uncertain", "remove"}, state: credit.Captured, uncertain: true, balance: charged},
		{sms: true, steps: []string{"reserve", "capture"}, err: credit.ErrSettled, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "release"}, state: credit.Released, balance: had},
		{sms: true, steps: []string{"reserve", "release", "mark"}, err: credit.ErrSettled, state: credit.Released, balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release"}, state: credit.Released, balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release", "release"}, state: credit.Released, balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release", "capture"}, err: credit.ErrSettled, state: credit.Released, balance: had},
		{sms: true, steps: []string{"reserve", "settle"}, state: credit.Released, actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "settle", "mark"}, err: credit.ErrSettled, state: credit.Released, actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "mark", "settle"}, state: credit.Captured, uncertain: true, actor: "settle", balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "settle early"}, state: credit.Captured, uncertain: true, actor: "settle", balance: charged, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "settle early", "settle"}, state: credit.Captured, uncertain: true, actor: "settle", balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "capture", "settle"}, state: credit.Captured, balance: charged},
	} {
		t.Run(fmt.Sprint(test.steps, test.sms), func(t *testing.T) {
			store := newStore(t, had)
			r := reservation(price, test.sms)
			for i, step := range test.steps {
				err := steps[step](t.Context(), store, r)
				if last := i == len(test.steps)-1; !last && err != nil || last && !errors.Is(err, test.err) {
					t.Fatalf("%s: %v", step, err)
				}
			}
			wantBalance(t, store, test.balance)
			var got credit.Entry
			for _, e := range entries(t, store, r.Key) {
				got = e
			}
			if got.State != test.state || got.Uncertain != test.uncertain || got.Actor != test.actor {
				t.Errorf("entry %+v", got)
			}
			if test.state != "" && (got.Key != r.Key || got.Credits != price || time.Since(got.At) > time.Minute) {
				t.Errorf("entry %+v", got)
			}
			request := [3]string{r.Operation, "request", "production"}
			if test.state == "" || test.state == credit.Released && test.actor != "" { // the settler knows only the wallet's amount
				request = [3]string{}
			}
			if [3]string{got.Operation, got.RequestID, got.Environment} != request {
				t.Errorf("entry %+v", got)
			}
			uncertain, err := store.Uncertain(t.Context(), "p")
			if err != nil || (len(uncertain) == 1) != test.uncertain || len(uncertain) > 1 {
				t.Errorf("uncertain %v, %v", uncertain, err)
			}
			anyPending := false
			err = store.VisitPending(t.Context(), func(found *credit.Reservation, err error) error {
				if anyPending = true; !reflect.DeepEqual(found, asStored(r)) {
					t.Errorf("pending %+v, want %+v", found, asStored(r))
				}
				return err
			}, nil)
			if err != nil || anyPending != test.anyPending {
				t.Errorf("pending: %t, %v", anyPending, err)
			}
		})
	}
}

// asStored returns the reservation as the settling function finds it in the wallet.
func asStored(r *credit.Reservation) *credit.Reservation {
	return &credit.Reservation{Project: r.Project, Wallet: r.Wallet, Key: r.Key, Credits: r.Credits}
}

func reservation(price int64, sms bool) *credit.Reservation {
	r := &credit.Reservation{
		Project: "p", Key: credit.NewKey(time.Now(), "request"), Credits: price,
		Operation: credit.Barcode, Environment: "production", RequestID: "request",
	}
	if sms {
		r.Operation, r.Irrevocable = credit.SMS, true
	}
	return r
}

func entries(t *testing.T, store *credit.Store, key credit.Key) []credit.Entry {
	t.Helper()
	found, err := store.Entries(t.Context(), "p", key.Day())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestReserveRefuses checks that Reserve takes no credits that are missing, and accepts no invalid reservation.
func TestReserveRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		project string
		key     credit.Key
		credits int64
		want    error
	}{
		{"one credit short", "p", reservation(1, false).Key, 101, credit.ErrInsufficientCredits},
		{"project without a wallet", "q", reservation(1, false).Key, 1, credit.ErrInsufficientCredits},
		{"nothing to pay", "p", reservation(1, false).Key, 0, credit.ErrInvalidReservation},
		{"negative", "p", reservation(1, false).Key, -1, credit.ErrInvalidReservation},
		{"no project", "", reservation(1, false).Key, 1, credit.ErrInvalidReservation},
		{"no key", "p", "", 1, credit.ErrInvalidReservation},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newStore(t, 100)
			r := reservation(test.credits, false)
			r.Project, r.Key = test.project, test.key
			if err := store.Reserve(t.Context(), r); !errors.Is(err, test.want) {
				t.Errorf("got %v", err)
			}
			wantBalance(t, store, 100)
		})
	}
}

// lossy is a store whose calls are numbered from 1, by operation, and lost as the test says.
func lossy(t *testing.T, balance int64, decide func(operation string, n int64) faultproxy.Fault) (behind, direct *credit.Store) {
	t.Helper()
	client, tables := enginetest.Client(t)
	var updates, puts atomic.Int64
	proxy, err := faultproxy.Start(enginetest.URL(t), func(r *faultproxy.Request) faultproxy.Fault {
		switch r.Operation {
		case "UpdateItem":
			return decide(r.Operation, updates.Add(1))
		case "PutItem":
			return decide(r.Operation, puts.Add(1))
		}
		return decide(r.Operation, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	names := credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger}
	direct = credit.NewStore(client, names)
	if err := direct.CreateWallet(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	grant := credit.Movement{Project: "p", ID: credit.NewKey(time.Now().AddDate(0, 0, -3), "grant"), Credits: balance}
	if err := direct.Grant(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	db := dynamo.NewClient(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(proxy.URL("test")) })
	return credit.NewStore(db, names), direct
}

// lose loses the calls of one operation with the numbers from first to last.
func lose(operation string, first, last int64, fault faultproxy.Fault) func(string, int64) faultproxy.Fault {
	return func(called string, n int64) faultproxy.Fault {
		if called == operation && n >= first && n <= last {
			return fault
		}
		return faultproxy.Deliver
	}
}

// TestRetriedReserve checks that Reserve recognises a retried write that took effect, that the project pays once, and that
// the key stays for the settling function, also for the last credits.
func TestRetriedReserve(t *testing.T) {
	for _, fault := range []faultproxy.Fault{faultproxy.DropRequest, faultproxy.DropResponse, faultproxy.CutResponse} {
		for _, losses := range []int64{1, 2} {
			t.Run(fmt.Sprint(fault, losses), func(t *testing.T) {
				store, direct := lossy(t, 30, lose("UpdateItem", 1, losses, fault))
				r := reservation(30, false)
				if err := store.Reserve(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if r.Attempts < 2 {
					t.Errorf("%d attempts", r.Attempts)
				}
				if err := store.Capture(t.Context(), r, credit.Outcome{}); err != nil {
					t.Fatal(err)
				}
				store.Remove(t.Context(), r)
				wantBalance(t, direct, 0)
				left := 0
				err := direct.VisitPending(t.Context(), func(*credit.Reservation, error) error { left++; return nil }, nil)
				if err != nil || left != 1 {
					t.Errorf("%d left for the settling function, %v", left, err)
				}
			})
		}
	}
}

// TestLostResponses checks that a request whose write loses every response returns its credits at once, that an entry forbids
// a later capture of an SMS, and that a capture without a response leaves its reservation in place.
func TestLostResponses(t *testing.T) {
	for _, test := range []struct {
		name      string
		sms       bool
		operation string
		first     int64
		fail      string
		balance   int64
		state     credit.State
	}{
		{"reserve", false, "UpdateItem", 1, "reserve", 100, ""},
		{"reserve of an SMS", true, "UpdateItem", 1, "reserve", 100, credit.Released},
		{"mark", true, "PutItem", 1, "mark", 100, credit.Released},
		{"capture", false, "PutItem", 1, "capture", 70, credit.Captured},
		{"capture of an SMS", true, "PutItem", 2, "capture", 70, credit.Captured},
	} {
		t.Run(test.name, func(t *testing.T) {
			store, direct := lossy(t, 100, lose(test.operation, test.first, test.first+2, faultproxy.DropResponse))
			r := reservation(30, test.sms)
			plan := []string{"reserve", "capture"}
			if test.sms {
				plan = []string{"reserve", "mark", "capture"}
			}
			for _, step := range plan {
				err := steps[step](t.Context(), store, r)
				if (err != nil) != (step == test.fail) || errors.Is(err, credit.ErrSettled) || errors.Is(err, credit.ErrInsufficientCredits) {
					t.Fatalf("%s: %v", step, err)
				}
				if err != nil {
					break
				}
			}
			store.Remove(t.Context(), r) // does nothing
			wantBalance(t, direct, test.balance)
			var state credit.State
			for _, e := range entries(t, direct, r.Key) {
				state = e.State
			}
			if state != test.state {
				t.Errorf("entry %q, want %q", state, test.state)
			}
		})
	}
}

// TestCancelledWork checks that a request whose work was cancelled still releases or captures its credits.
func TestCancelledWork(t *testing.T) {
	for _, test := range []struct {
		step    string
		balance int64
	}{{"release", 100}, {"capture", 70}} {
		t.Run(test.step, func(t *testing.T) {
			store := newStore(t, 100)
			r := reservation(30, false)
			if err := store.Reserve(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := steps[test.step](ctx, store, r); err != nil {
				t.Error(err)
			}
			wantBalance(t, store, test.balance)
		})
	}
}

// TestRemoveWithoutTime checks that Remove leaves the key to the settling function with under a second left.
func TestRemoveWithoutTime(t *testing.T) {
	for _, test := range []struct {
		remains time.Duration
		left    int
	}{{900 * time.Millisecond, 1}, {20 * time.Second, 0}} {
		t.Run(test.remains.String(), func(t *testing.T) {
			store := newStore(t, 100)
			r := reservation(30, false)
			for _, step := range []string{"reserve", "capture"} {
				if err := steps[step](t.Context(), store, r); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.remains)
			defer cancel()
			store.Remove(ctx, r)
			left := 0
			err := store.VisitPending(t.Context(), func(*credit.Reservation, error) error { left++; return nil }, nil)
			if err != nil || left != test.left {
				t.Errorf("%d left, %v", left, err)
			}
		})
	}
}

// TestMovements checks that an operator's movement takes effect once, however often it is repeated, and never takes the
// balance below 0.
func TestMovements(t *testing.T) {
	at := time.Now()
	id := func(name string) credit.Key { return credit.NewKey(at, name) }
	store := newStore(t, 0)
	for _, test := range []struct {
		name    string
		move    func(context.Context, credit.Movement) error
		of      credit.Movement
		want    error
		invalid bool
		balance int64
	}{
		{"grant", store.Grant, credit.Movement{ID: id("1"), Credits: 100}, nil, false, 100},
		{"the same again", store.Grant, credit.Movement{ID: id("1"), Credits: 100}, nil, false, 100},
		{"its ID with another amount", store.Grant, credit.Movement{ID: id("1"), Credits: 101}, credit.ErrOtherMovement, false, 100},
		{"its ID as a refund", store.Refund, credit.Movement{ID: id("1"), Credits: 100}, credit.ErrOtherMovement, false, 100},
		{"another grant of the same amount", store.Grant, credit.Movement{ID: id("2"), Credits: 100}, nil, false, 200},
		{"refund", store.Refund, credit.Movement{ID: id("3"), Credits: 5, RequestID: "request", Operation: credit.SMS}, nil, false, 205},
		{"refund again", store.Refund, credit.Movement{ID: id("3"), Credits: 5}, nil, false, 205},
		{"its ID for another charge", store.Refund, credit.Movement{ID: id("3"), Credits: 5, Refunds: id("x")}, credit.ErrOtherMovement, false, 205},
		{"adjustment down", store.Adjust, credit.Movement{ID: id("4"), Credits: -200}, nil, false, 5},
		{"adjustment down again", store.Adjust, credit.Movement{ID: id("4"), Credits: -200}, nil, false, 5},
		{"adjustment below 0", store.Adjust, credit.Movement{ID: id("5"), Credits: -6}, credit.ErrOutOfRange, false, 5},
		{"adjustment to 0", store.Adjust, credit.Movement{ID: id("6"), Credits: -5}, nil, false, 0},
		{"adjustment up", store.Adjust, credit.Movement{ID: id("7"), Credits: 7}, nil, false, 7},
		{"nothing", store.Adjust, credit.Movement{ID: id("8")}, credit.ErrOutOfRange, false, 7},
		{"negative grant", store.Grant, credit.Movement{ID: id("8"), Credits: -1}, credit.ErrOutOfRange, false, 7},
		{"negative refund", store.Refund, credit.Movement{ID: id("8"), Credits: -1}, credit.ErrOutOfRange, false, 7},
		{"beyond what fits", store.Grant, credit.Movement{ID: id("8"), Credits: 1 << 62}, credit.ErrOutOfRange, false, 7},
		{"beyond what fits with the balance", store.Grant, credit.Movement{ID: id("8"), Credits: 1<<61 - 1}, credit.ErrOutOfRange, false, 7},
		{"no wallet", store.Grant, credit.Movement{Project: "q", ID: id("9"), Credits: 1}, credit.ErrNoWallet, false, 7},
		{"no ID", store.Grant, credit.Movement{Credits: 1}, nil, true, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.of.Project == "" {
				test.of.Project = "p"
			}
			test.of.Actor, test.of.Reason = "arn:aws:iam::123456789012:user/operator", "why"
			err := test.move(t.Context(), test.of)
			if test.invalid != (err != nil && test.want == nil) || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v", err)
			}
			wantBalance(t, store, test.balance)
			if spent, err := store.Spent(t.Context()); err != nil || spent["p"] != 0 {
				t.Errorf("%v spent by movements of the operator, %v", spent, err)
			}
		})
	}
	var sum int64
	for _, e := range entries(t, store, id("")) {
		sum += e.Credits
		if e.Actor == "" || e.Reason != "why" {
			t.Errorf("entry %+v", e)
		}
	}
	wantBalance(t, store, sum)
	if err := store.CreateWallet(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	wantBalance(t, store, sum) // left as it was
}

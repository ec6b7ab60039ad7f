package credit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"svcapi/shared/credit"
	"svcapi/test/must"
)

// errAny represents an error that has no exported value.
var errAny = errors.New("any error")

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
		{steps: []string{"reserve", "reserve"}, balance: held, anyPending: true},
		{steps: []string{"reserve", "reserve", "release"}, balance: had},
		{steps: []string{"reserve", "release after the work was cancelled"}, balance: had},
		{steps: []string{"reserve", "capture after the work was cancelled"}, state: credit.Captured,
			balance: charged, anyPending: true},
		{steps: []string{"reserve", "capture", "remove in under a second"}, state: credit.Captured,
			balance: charged, anyPending: true},
		{steps: []string{"reserve", "mark", "capture"}, err: credit.ErrSettled, state: credit.Sending,
			balance: held, anyPending: true},
		{steps: []string{"reserve", "release"}, balance: had},
		{steps: []string{"reserve", "release", "release"}, balance: had},
		{steps: []string{"reserve", "settle"}, state: credit.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "settle", "settle"}, state: credit.Released, actor: "settle", balance: had},
		// reserved again
		{steps: []string{"reserve", "settle", "capture"}, state: credit.Captured, balance: charged, anyPending: true},
		{steps: []string{"reserve", "settle", "release"}, state: credit.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "capture", "settle"}, state: credit.Captured, balance: charged},
		{steps: []string{"reserve", "release", "settle"}, state: credit.Released, actor: "settle", balance: had},

		{sms: true, steps: []string{"reserve", "mark"}, state: credit.Sending, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "mark"}, state: credit.Sending, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "capture"}, state: credit.Captured,
			balance: charged, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "capture", "remove"}, state: credit.Captured, balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "capture uncertain", "remove"}, state: credit.Captured,
			uncertain: true, balance: charged},
		{sms: true, steps: []string{"reserve", "capture"}, err: credit.ErrSettled, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "release"}, balance: had}, // never marked: no entry
		{sms: true, steps: []string{"reserve", "release", "reserve", "settle"}, state: credit.Released,
			actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release"}, state: credit.Released, balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release", "release"}, state: credit.Released, balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release", "capture"}, err: credit.ErrSettled,
			state: credit.Released, balance: had},
		{sms: true, steps: []string{"reserve", "settle"}, state: credit.Released, actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "settle", "mark"}, state: credit.Sending, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "settle", "mark", "settle", "mark"}, err: credit.ErrSettled,
			state: credit.Captured, uncertain: true, actor: "settle", balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "settle"}, state: credit.Captured, uncertain: true,
			actor: "settle", balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "capture", "settle"}, state: credit.Captured, balance: charged},

		// A capture replaces a mark of its own work, and no other entry. A late release returns no credits of a charge.
		{sms: true, steps: []string{"capture"}, err: credit.ErrSettled, balance: had},
		{sms: true, steps: []string{"reserve", "release", "capture"}, err: credit.ErrSettled, balance: had},
		{sms: true, steps: []string{"reserve", "settle", "capture"}, err: credit.ErrSettled, state: credit.Released,
			actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "mark", "settle", "capture"}, state: credit.Captured, uncertain: true,
			actor: "settle", balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "capture", "release"}, err: errAny, state: credit.Captured,
			balance: charged, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "capture uncertain", "release"}, err: errAny, state: credit.Captured,
			uncertain: true, balance: charged, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "settle", "release"}, err: errAny, state: credit.Captured,
			uncertain: true, actor: "settle", balance: charged},
	} {
		t.Run(fmt.Sprint(test.steps, test.sms), func(t *testing.T) {
			t.Parallel()
			store := newStore(t, had)
			r := reservation(price, test.sms)
			switch err := take(t, store, r, test.steps...); {
			case errors.Is(test.err, errAny) && err == nil, !errors.Is(test.err, errAny) && !errors.Is(err, test.err):
				t.Fatal(err)
			case errors.Is(err, credit.ErrSettled):
				store.Remove(t.Context(), r) // does nothing, because nothing was captured
			}
			wantBalance(t, store, test.balance)
			got := entry(t, store, r)
			if got.State != test.state || got.Uncertain != test.uncertain || got.Actor != test.actor {
				t.Errorf("entry %+v", got)
			}
			if test.state != "" && (got.Credits != price || time.Since(got.At) > time.Minute) {
				t.Errorf("entry %+v", got)
			}
			request := [3]string{r.Price, "request", "production"}
			// the settler knows only the wallet's amount
			if test.state == "" || test.state == credit.Released && test.actor != "" {
				request = [3]string{}
			}
			if [3]string{got.Price, got.RequestID, got.Environment} != request {
				t.Errorf("entry %+v", got)
			}
			uncertain, err := store.Uncertain(t.Context(), "p")
			if err != nil || (len(uncertain) == 1) != test.uncertain || len(uncertain) > 1 {
				t.Errorf("uncertain %v, %v", uncertain, err)
			}
			found := pending(t, store)
			var want []credit.Lease
			if test.anyPending {
				want = append(want, leaseOf(r))
			}
			if !slices.Equal(found, want) {
				t.Errorf("%d pending: %+v", len(found), found)
			}
		})
	}
}

// TestReserveRefuses checks missing credits and invalid reservations (docs/decisions/money.md#reserve).
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
		{"no time in the key", "p", "x", 1, credit.ErrInvalidReservation},
		{"a short key", "p", "5-x", 1, credit.ErrInvalidReservation},
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

// TestRetriedReserve checks that Reserve recognises a retried write that took effect, that the project pays once, and
// that the key stays for the settling function, also for the last credits
// (docs/decisions/money.md#one-conditional-write).
func TestRetriedReserve(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"x", "xx", "d", "dd", "u", "uu"} {
		direct := newFixture(t, 30)
		store, r := direct.over(&faults{of: "UpdateItem", list: list}), reservation(30, false)
		must.Succeed(t, take(t, store, r, "reserve", "capture", "remove"))
		wantBalance(t, direct.Store, 0)
		if left := pending(t, direct.Store); len(left) != 1 {
			t.Errorf("%s: %d left for the settling function", list, len(left))
		}
	}
}

// TestLostResponses checks that a request whose write loses every response returns its credits at once, that an entry
// forbids a later capture of an SMS, and that a lost capture leaves its reservation (docs/decisions/money.md#release).
func TestLostResponses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		sms       bool
		operation string
		list      string
		steps     []string // the last one fails
		balance   int64
		state     credit.State
	}{
		{"reserve", false, "UpdateItem", "ddd", []string{"reserve"}, 100, ""},
		{"reserve of an SMS", true, "UpdateItem", "ddd", []string{"reserve"}, 100, ""},
		{"mark", true, "PutItem", "ddd", []string{"reserve", "mark"}, 100, credit.Released},
		{"capture", false, "PutItem", "ddd", []string{"reserve", "capture"}, 70, credit.Captured},
		{"capture of an SMS", true, "PutItem", ".ddd", []string{"reserve", "mark", "capture"}, 70, credit.Captured},
	} {
		direct := newFixture(t, 100)
		store, r := direct.over(&faults{of: test.operation, list: test.list}), reservation(30, test.sms)
		err := take(t, store, r, test.steps...)
		if err == nil || errors.Is(err, credit.ErrSettled) || errors.Is(err, credit.ErrInsufficientCredits) {
			t.Errorf("%s: %v", test.name, err)
		}
		store.Remove(t.Context(), r) // does nothing
		wantBalance(t, direct.Store, test.balance)
		if got := entry(t, direct.Store, r); got.State != test.state {
			t.Errorf("%s: entry %q, want %q", test.name, got.State, test.state)
		}
	}
}

// TestVendorOfEntry checks that the mark, and so the charge of a dead request, has the vendor and the reference that
// the request has given it, and that a capture has those of its own outcome (docs/decisions/money.md#capture).
func TestVendorOfEntry(t *testing.T) {
	t.Parallel()
	store := newStore(t, 100)
	for end, want := range map[string]credit.Outcome{
		"capture": {Uncertain: true, Vendor: "twilio", VendorID: "SM1", Reference: "own"}, "settle": {Uncertain: true,
			Vendor: "dialogv2", Reference: "died"},
	} {
		r := reservation(1, true)
		r.Died = credit.Outcome{Vendor: "dialogv2", Reference: "died"}
		must.Succeed(t, take(t, store, r, "reserve", "mark"))
		var err error
		if end == "settle" {
			_, err = settle(t.Context(), store, leaseOf(r))
		} else {
			err = store.Capture(t.Context(), r, want)
		}
		must.Succeed(t, err)
		e := entry(t, store, r)
		if got := (credit.Outcome{Uncertain: e.Uncertain, Vendor: e.Vendor, VendorID: e.VendorID,
			Reference: e.Reference}); got != want {
			t.Errorf("%s: the charge has %+v, want %+v", end, got, want)
		}
	}
}

// TestSettle checks what Settle returns, and that a settler which another one overtakes between read and write follows
// the entry of the other one.
func TestSettle(t *testing.T) {
	t.Parallel()
	closed, uncertain, released := credit.Settled{Closed: 1}, credit.Settled{Closed: 1, Uncertain: 1},
		credit.Settled{Released: 1}
	for _, test := range []struct {
		before, overtakes []string
		want              credit.Settled // zero: an error
		state             credit.State
		uncertain         bool
		balance           int64
	}{
		{[]string{"reserve"}, nil, released, credit.Released, false, 100},
		{[]string{"reserve", "mark"}, nil, uncertain, credit.Captured, true, 70},
		{[]string{"reserve", "mark", "capture"}, nil, closed, credit.Captured, false, 70},
		{[]string{"reserve", "mark", "release"}, nil, released, credit.Released, false, 100},

		{[]string{"reserve"}, []string{"settle"}, released, credit.Released, false, 100},
		// neither charged nor returned yet
		{[]string{"reserve"}, []string{"mark"}, credit.Settled{}, credit.Sending, false, 70},
		{[]string{"reserve", "mark"}, []string{"settle"}, uncertain, credit.Captured, true, 70},
		{[]string{"reserve", "mark"}, []string{"capture"}, closed, credit.Captured, false, 70},
		{[]string{"reserve", "mark"}, []string{"release"}, released, credit.Released, false, 100},
	} {
		direct := newFixture(t, 100)
		r := reservation(30, true)
		must.Succeed(t, take(t, direct.Store, r, test.before...))
		overtaken := len(test.overtakes) == 0
		store := direct.over(&faults{before: func(operation string) {
			if operation == "PutItem" && !overtaken {
				overtaken = true
				if err := take(t, direct.Store, r, test.overtakes...); err != nil {
					t.Error(err)
				}
			}
		}})
		got, err := settle(t.Context(), store, leaseOf(r))
		if got != test.want || (err != nil) != (test.want == credit.Settled{}) || !overtaken {
			t.Errorf("%v, then %v: %+v, %v; want %+v", test.before, test.overtakes, got, err, test.want)
		}
		if e := entry(t, direct.Store, r); e.State != test.state || e.Uncertain != test.uncertain {
			t.Errorf("%v, then %v: %+v", test.before, test.overtakes, e)
		}
		wantBalance(t, direct.Store, test.balance)
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
		{"its ID with another amount", store.Grant, credit.Movement{ID: id("1"), Credits: 101},
			credit.ErrOtherMovement, false, 100},
		{"its ID as a refund", store.Refund, credit.Movement{ID: id("1"), Credits: 100}, credit.ErrOtherMovement, false, 100},
		{"another grant of the same amount", store.Grant, credit.Movement{ID: id("2"), Credits: 100}, nil, false, 200},
		{"refund", store.Refund, credit.Movement{ID: id("3"), Credits: 5, RequestID: "request", Price: credit.SMS}, nil,
			false, 205},
		{"refund again", store.Refund, credit.Movement{ID: id("3"), Credits: 5}, nil, false, 205},
		{"its ID for another charge", store.Refund, credit.Movement{ID: id("3"), Credits: 5, Refunds: id("x")},
			credit.ErrOtherMovement, false, 205},
		{"adjustment down", store.Adjust, credit.Movement{ID: id("4"), Credits: -200}, nil, false, 5},
		{"adjustment down again", store.Adjust, credit.Movement{ID: id("4"), Credits: -200}, nil, false, 5},
		{"adjustment below 0", store.Adjust, credit.Movement{ID: id("5"), Credits: -6}, credit.ErrOutOfRange, false, 5},
		{"adjustment to 0", store.Adjust, credit.Movement{ID: id("6"), Credits: -5}, nil, false, 0},
		{"adjustment up", store.Adjust, credit.Movement{ID: id("7"), Credits: 7}, nil, false, 7},
		{"nothing", store.Adjust, credit.Movement{ID: id("8")}, credit.ErrOutOfRange, false, 7},
		{"negative grant", store.Grant, credit.Movement{ID: id("8"), Credits: -1}, credit.ErrOutOfRange, false, 7},
		{"negative refund", store.Refund, credit.Movement{ID: id("8"), Credits: -1}, credit.ErrOutOfRange, false, 7},
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

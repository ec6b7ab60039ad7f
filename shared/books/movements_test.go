package books_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"svcapi/shared/books"
	"svcapi/shared/wallet"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// most is the largest balance.
const most = 1<<61 - 1

// TestBounds checks that a balance and an alert reach the largest value and 0, and no value beyond.
func TestBounds(t *testing.T) {
	t.Parallel()
	store, n := wallettest.NewStore(t, 0), 0
	move := func(do func(context.Context, books.Movement) error, credits int64) error {
		n++
		return do(t.Context(), wallettest.Movement("p", time.Now(), fmt.Sprint(n), credits))
	}
	for _, step := range []struct {
		do      func(context.Context, books.Movement) error
		credits int64
		refused bool
		balance int64
	}{
		{store.Grant, most + 1, true, 0},
		{store.Grant, most, false, most},
		{store.Grant, 1, true, most},
		{store.Refund, 1, true, most},
		{store.Adjust, 1, true, most},
		{store.Adjust, -most - 1, true, most},
		{store.Adjust, -most, false, 0},
		{store.Adjust, -1, true, 0},
		{store.Grant, 1, false, 1},
		{store.Adjust, most, true, 1},
		{store.Adjust, most - 1, false, most},
	} {
		if err := move(step.do, step.credits); errors.Is(err, books.ErrOutOfRange) != step.refused ||
			!step.refused && err != nil {
			t.Errorf("%d credits: %v", step.credits, err)
		}
		wallettest.WantBalance(t, store, step.balance)
	}
	for alert, refused := range map[int64]bool{-1: true, 0: false, 1: false, most: false, most + 1: true} {
		if err := store.SetAlert(t.Context(), "p", alert); errors.Is(err, books.ErrOutOfRange) != refused ||
			!refused && err != nil {
			t.Errorf("an alert at %d: %v", alert, err)
		}
	}
	if err := store.SetAlert(t.Context(), "q", 1); !errors.Is(err, books.ErrNoWallet) {
		t.Errorf("an alert without a wallet: %v", err)
	}
	if got, err := store.Wallet(t.Context(), "q"); got != nil || err != nil {
		t.Errorf("a wallet of nobody: %+v, %v", got, err)
	}
	if got, err := store.Balance(t.Context(), "q"); got != 0 || err != nil {
		t.Errorf("a balance of nobody: %d, %v", got, err)
	}
}

// TestWallet checks that a wallet reports its pending credits, the begin of the oldest reservation, and its alert.
func TestWallet(t *testing.T) {
	t.Parallel()
	store, now, want := wallettest.NewStore(t, 100), time.Now(), books.Wallet{Balance: 100}
	check := func() {
		t.Helper()
		got, err := store.Wallet(t.Context(), "p")
		want.Free = want.Balance
		if err != nil || got == nil || *got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	check()
	for i, age := range []time.Duration{time.Minute, time.Hour, time.Second} {
		r := wallettest.Reservation(int64(i+1), false)
		r.Began, r.RequestID = now.Add(-age), fmt.Sprint(i)
		must.Succeed(t, wallettest.Take(t, store, r, "reserve"))
		want.Balance, want.Reserved = want.Balance-r.Credits, want.Reserved+r.Credits
		if want.Oldest.IsZero() || r.Key.Time().Before(want.Oldest) {
			want.Oldest = r.Key.Time()
		}
		check()
	}
	for _, alert := range []int64{50, 0} {
		must.Succeed(t, store.SetAlert(t.Context(), "p", alert))
		want.Alert = alert
		check()
	}
}

// TestMovements checks that an operator's movement takes effect once, however often it is repeated, and never takes the
// balance below 0.
func TestMovements(t *testing.T) {
	at := time.Now()
	id := func(name string) wallet.Key { return wallet.NewKey(at, name) }
	store := wallettest.NewStore(t, 0)
	for _, test := range []struct {
		name    string
		move    func(context.Context, books.Movement) error
		of      books.Movement
		want    error
		invalid bool
		balance int64
	}{
		{"grant", store.Grant, books.Movement{ID: id("1"), Credits: 100}, nil, false, 100},
		{"the same again", store.Grant, books.Movement{ID: id("1"), Credits: 100}, nil, false, 100},
		{"its ID with another amount", store.Grant, books.Movement{ID: id("1"), Credits: 101},
			books.ErrOtherMovement, false, 100},
		{"its ID as a refund", store.Refund, books.Movement{ID: id("1"), Credits: 100}, books.ErrOtherMovement, false, 100},
		{"another grant of the same amount", store.Grant, books.Movement{ID: id("2"), Credits: 100}, nil, false, 200},
		{"refund", store.Refund, books.Movement{ID: id("3"), Credits: 5, RequestID: "request", Price: wallet.SMS}, nil,
			false, 205},
		{"refund again", store.Refund, books.Movement{ID: id("3"), Credits: 5}, nil, false, 205},
		{"its ID for another charge", store.Refund, books.Movement{ID: id("3"), Credits: 5, Refunds: id("x")},
			books.ErrOtherMovement, false, 205},
		{"adjustment down", store.Adjust, books.Movement{ID: id("4"), Credits: -200}, nil, false, 5},
		{"adjustment down again", store.Adjust, books.Movement{ID: id("4"), Credits: -200}, nil, false, 5},
		{"adjustment below 0", store.Adjust, books.Movement{ID: id("5"), Credits: -6}, books.ErrOutOfRange, false, 5},
		{"adjustment to 0", store.Adjust, books.Movement{ID: id("6"), Credits: -5}, nil, false, 0},
		{"adjustment up", store.Adjust, books.Movement{ID: id("7"), Credits: 7}, nil, false, 7},
		{"nothing", store.Adjust, books.Movement{ID: id("8")}, books.ErrOutOfRange, false, 7},
		{"negative grant", store.Grant, books.Movement{ID: id("8"), Credits: -1}, books.ErrOutOfRange, false, 7},
		{"negative refund", store.Refund, books.Movement{ID: id("8"), Credits: -1}, books.ErrOutOfRange, false, 7},
		{"no wallet", store.Grant, books.Movement{Project: "q", ID: id("9"), Credits: 1}, books.ErrNoWallet, false, 7},
		{"no ID", store.Grant, books.Movement{Credits: 1}, nil, true, 7},
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
			wallettest.WantBalance(t, store, test.balance)
			if spent, err := store.Spent(t.Context()); err != nil || spent["p"] != 0 {
				t.Errorf("%v spent by movements of the operator, %v", spent, err)
			}
		})
	}
	var sum int64
	for _, e := range wallettest.Entries(t, store, id("")) {
		sum += e.Credits
		if e.Actor == "" || e.Reason != "why" {
			t.Errorf("entry %+v", e)
		}
	}
	wallettest.WantBalance(t, store, sum)
	if err := store.CreateWallet(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	wallettest.WantBalance(t, store, sum) // left as it was
}

// TestCosts checks that a movement and a refused reservation are one call.
func TestCosts(t *testing.T) {
	t.Parallel()
	direct := wallettest.New(t, 100)
	reserve := func(s *books.Store, ctx context.Context, m books.Movement) error {
		return s.Reserve(ctx, wallettest.Request(m.Credits, "request"))
	}
	for i, test := range []struct {
		do      func(*books.Store, context.Context, books.Movement) error
		credits int64
		err     error
	}{
		{reserve, 101, wallet.ErrInsufficientCredits},
		{(*books.Store).Grant, 5, nil},
		{(*books.Store).Grant, most, books.ErrOutOfRange},
		{(*books.Store).Adjust, 5, nil},
		{(*books.Store).Adjust, most, books.ErrOutOfRange},
		{(*books.Store).Adjust, -5, nil},
		{(*books.Store).Adjust, -106, books.ErrOutOfRange},
	} {
		through := &wallettest.Faults{}
		m := wallettest.Movement("p", time.Now(), fmt.Sprint(i), test.credits)
		if err := test.do(direct.Over(through), t.Context(), m); !errors.Is(err, test.err) || through.Calls.Load() != 1 {
			t.Errorf("%d: %d calls, %v; want 1, %v", i, through.Calls.Load(), err, test.err)
		}
	}
}

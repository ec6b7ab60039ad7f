package books_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// most is the largest balance.
const most = 1<<61 - 1

// TestBounds checks that a balance and an alert reach the largest value and 0, and no value beyond.
func TestBounds(t *testing.T) {
	t.Parallel()
	store, n := wallettest.NewStore(t, 0), 0
	move := func(do func(context.Context, wallet.Entry) error, credits int64) error {
		n++
		return do(t.Context(), wallettest.Movement("p", time.Now(), fmt.Sprint(n), credits))
	}
	for _, step := range []struct {
		do      func(context.Context, wallet.Entry) error
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

// TestMovements checks that a movement takes effect once, however often repeated, and takes no balance below 0.
func TestMovements(t *testing.T) {
	at := time.Now()
	id := func(name string) wallet.Key { return wallet.NewKey(at, name) }
	store := wallettest.NewStore(t, 0)
	for _, test := range []struct {
		name    string
		move    func(context.Context, wallet.Entry) error
		of      wallet.Entry
		want    error
		invalid bool
		balance int64
	}{
		{"grant", store.Grant, wallet.Entry{Key: id("1"), Credits: 100}, nil, false, 100},
		{"the same again", store.Grant, wallet.Entry{Key: id("1"), Credits: 100}, nil, false, 100},
		{"its ID with another amount", store.Grant, wallet.Entry{Key: id("1"), Credits: 101},
			books.ErrOtherMovement, false, 100},
		{"its ID as a refund", store.Refund, wallet.Entry{Key: id("1"), Credits: 100}, books.ErrOtherMovement, false, 100},
		{"another grant of the same amount", store.Grant, wallet.Entry{Key: id("2"), Credits: 100}, nil, false, 200},
		{"refund", store.Refund, wallet.Entry{Key: id("3"), Credits: 5, RequestID: "request", Price: wallet.SMS}, nil,
			false, 205},
		{"refund again", store.Refund, wallet.Entry{Key: id("3"), Credits: 5}, nil, false, 205},
		{"its ID for another charge", store.Refund, wallet.Entry{Key: id("3"), Credits: 5, Refunds: id("x")},
			books.ErrOtherMovement, false, 205},
		{"adjustment down", store.Adjust, wallet.Entry{Key: id("4"), Credits: -200}, nil, false, 5},
		{"adjustment down again", store.Adjust, wallet.Entry{Key: id("4"), Credits: -200}, nil, false, 5},
		{"adjustment below 0", store.Adjust, wallet.Entry{Key: id("5"), Credits: -6}, books.ErrOutOfRange, false, 5},
		{"adjustment to 0", store.Adjust, wallet.Entry{Key: id("6"), Credits: -5}, nil, false, 0},
		{"adjustment up", store.Adjust, wallet.Entry{Key: id("7"), Credits: 7}, nil, false, 7},
		{"nothing", store.Adjust, wallet.Entry{Key: id("8")}, books.ErrOutOfRange, false, 7},
		{"negative grant", store.Grant, wallet.Entry{Key: id("8"), Credits: -1}, books.ErrOutOfRange, false, 7},
		{"negative refund", store.Refund, wallet.Entry{Key: id("8"), Credits: -1}, books.ErrOutOfRange, false, 7},
		{"no wallet", store.Grant, wallet.Entry{Project: "q", Key: id("9"), Credits: 1}, books.ErrNoWallet, false, 7},
		{"no ID", store.Grant, wallet.Entry{Credits: 1}, nil, true, 7},
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
	reserve := func(s *books.Store, ctx context.Context, m wallet.Entry) error {
		return s.Reserve(ctx, wallettest.Request(m.Credits, "request"))
	}
	for i, test := range []struct {
		do      func(*books.Store, context.Context, wallet.Entry) error
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

// TestEmpty checks that an emptied wallet has neither credits nor leases nor an alert, and that what requests and
// operators do between the read and the transaction is neither lost nor taken
// (docs/decisions/money.md#closed-projects).
func TestEmpty(t *testing.T) {
	for _, test := range []struct {
		name, steps string // of a request of 600 credits
		adjust      int64  // credits
		faults      string // of the transaction
		want, left  int64  // credits; -1: refused
	}{
		{"nothing", "", 0, "", 900, 0},
		{"a request", "reserve", 0, "", -1, 300},
		{"a request and as many credits", "reserve", 600, "", -1, 900},
		{"a request that fails", "reserve release", 0, "", 900, 0},
		{"a charge", "reserve capture remove", 0, "", 300, 0},
		{"more credits", "", 1, "", -1, 901},
		{"fewer credits", "", -400, "", 500, 0},
		{"a lost response", "", 0, "dddddddd", 0, 0},
		{"a late copy", "", 0, "xxxxxxxx", 900, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, f, done := t.Context(), wallettest.New(t, 900), false
			f.Must(f.SetAlert(ctx, "p", 5000))
			network := &wallettest.Faults{Of: "TransactWriteItems", With: "size(pending)", List: test.faults}
			network.Before = func(operation string) {
				if done || operation != "TransactWriteItems" {
					return
				}
				if done = true; test.steps != "" {
					f.Must(wallettest.Take(t, f.Store, wallettest.Request(600, "meanwhile"), strings.Fields(test.steps)...))
				}
				if test.adjust != 0 {
					f.Must(f.Adjust(ctx, wallettest.Movement("p", time.Now(), "meanwhile", test.adjust)))
				}
			}
			got, err := f.Over(network).Empty(ctx, wallettest.Movement("p", time.Now(), "closed", 900))
			if len(test.faults) > dynamo.Attempts {
				if err == nil {
					t.Fatal("a response came")
				}
				got, err = f.Empty(ctx, wallettest.Movement("p", time.Now(), "again", 900))
			}
			if test.want < 0 != errors.Is(err, books.ErrNotEmpty) || test.want >= 0 && (err != nil || got != test.want) {
				t.Errorf("%d, %v; want %d", got, err, test.want)
			}
			wallettest.WantBalance(t, f.Store, test.left)
			wallettest.WantSound(t, f.Store)
			if test.want < 0 {
				return
			}
			if w, err := f.Wallet(ctx, "p"); err != nil || w.Alert != 0 || len(wallettest.Pending(t, f.Store)) != 0 {
				t.Errorf("%+v, %v", w, err)
			}
			if err := f.Reserve(ctx, wallettest.Request(1, "afterwards")); !errors.Is(err, wallet.ErrInsufficientCredits) {
				t.Errorf("a request of the emptied wallet: %v", err)
			}
			repeated := wallettest.Movement("p", time.Now(), "repeated", 900)
			got, err = f.Empty(ctx, repeated)
			put := slices.ContainsFunc(wallettest.Entries(t, f.Store, repeated.Key),
				func(e books.Entry) bool { return e.Key == repeated.Key })
			if err != nil || got != 0 || put {
				t.Errorf("an empty wallet is emptied of %d credits, %v, by an entry: %t", got, err, put)
			}
			f.Must(f.Grant(ctx, wallettest.Movement("p", time.Now(), "reopened", 900))) // a late copy does not take it
			network.DeliverLate(t)
			wallettest.WantBalance(t, f.Store, 900)
			wallettest.WantSound(t, f.Store)
		})
	}
}

// TestStatement checks that a statement adds up to ledger and wallet in any days, and
// that a changed wallet and a lost charge are an error with both sums (docs/decisions/money.md#usage).
func TestStatement(t *testing.T) {
	t.Parallel()
	b := newAccount(t)
	ago := func(days int) time.Time { return time.Now().AddDate(0, 0, -days) }
	charged := []books.Charge{{Operation: wallet.Barcode, Credits: 90}, {Operation: wallet.SMS, Credits: 30}}
	for _, test := range []struct {
		first, last int
		want        books.Statement
	}{
		{60, 0, books.Statement{Grants: 1000, Adjustments: -50, Charges: charged, Refunds: 60, Closing: 890}},
		{40, 3, books.Statement{Grants: 1000, Charges: []books.Charge{}, Closing: 1000}},
		{39, 2, books.Statement{Opening: 1000, Adjustments: -50, Charges: []books.Charge{}, Closing: 950}},
		{1, 0, books.Statement{Opening: 950, Charges: charged, Refunds: 60, Closing: 890}},
		{90, 80, books.Statement{Charges: []books.Charge{}}},
	} {
		read := books.Reading{}
		st, err := b.Statement(t.Context(), &read, "p", ago(test.first), ago(test.last), func() {})
		b.Must(err)
		if got := (books.Statement{Opening: st.Opening, Grants: st.Grants, Adjustments: st.Adjustments, Charges: st.Charges,
			Refunds: st.Refunds, Closing: st.Closing}); !reflect.DeepEqual(got, test.want) || read.Entries < 6 ||
			read.Units <= 0 {
			t.Errorf("from %d to %d days ago: %+v by %+v, want %+v", test.first, test.last, got, read, test.want)
		}
	}
	for name, plant := range map[string]func(by int64){
		"a wallet": func(by int64) { b.wallet("SET balance = balance + :v", dynamo.Item{":v": dynamo.Number(by)}) },
		"a charge": func(by int64) { b.change("captured", "SET cr = cr + :v", dynamo.Item{":v": dynamo.Number(by)}) },
	} {
		sound, err := b.Statement(t.Context(), &books.Reading{}, "p", ago(0), ago(0), func() {})
		b.Must(err)
		plant(1)
		_, err = b.Statement(t.Context(), &books.Reading{}, "p", ago(0), ago(0), func() {})
		if !errors.Is(err, books.ErrUnbalanced) || strings.Count(err.Error(), wallet.Grouped(sound.Closing)) != 1 {
			t.Errorf("%s of one credit more: %v", name, err)
		}
		plant(-1)
	}
}

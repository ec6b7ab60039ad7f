package credit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/must"
)

// most is the largest balance.
const most = 1<<61 - 1

// TestBounds checks that a balance and an alert reach the largest value and 0, and no value beyond.
func TestBounds(t *testing.T) {
	t.Parallel()
	store, n := newStore(t, 0), 0
	move := func(do func(context.Context, credit.Movement) error, credits int64) error {
		n++
		return do(t.Context(), movementOf("p", time.Now(), fmt.Sprint(n), credits))
	}
	for _, step := range []struct {
		do      func(context.Context, credit.Movement) error
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
		if err := move(step.do, step.credits); errors.Is(err, credit.ErrOutOfRange) != step.refused ||
			!step.refused && err != nil {
			t.Errorf("%d credits: %v", step.credits, err)
		}
		wantBalance(t, store, step.balance)
	}
	for alert, refused := range map[int64]bool{-1: true, 0: false, 1: false, most: false, most + 1: true} {
		if err := store.SetAlert(t.Context(), "p", alert); errors.Is(err, credit.ErrOutOfRange) != refused ||
			!refused && err != nil {
			t.Errorf("an alert at %d: %v", alert, err)
		}
	}
	if err := store.SetAlert(t.Context(), "q", 1); !errors.Is(err, credit.ErrNoWallet) {
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
	store, now, want := newStore(t, 100), time.Now(), credit.Wallet{Balance: 100}
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
		r := reservation(int64(i+1), false)
		r.Key = credit.NewKey(now.Add(-age), fmt.Sprint(i))
		must.Succeed(t, take(t, store, r, "reserve"))
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

// TestLow checks that the pass over reservations reports a wallet below its alert, and none at its alert or without
// one.
func TestLow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 100)
	for project, alert := range map[string]int64{"none": 0, "above": 99, "at": 100, "below": 101} {
		f.project(project, 100)
		f.must(f.SetAlert(t.Context(), project, alert))
	}
	var low []credit.LowBalance
	err := f.VisitPending(t.Context(), func(credit.Lease, error) error { return nil },
		func(l credit.LowBalance) { low = append(low, l) })
	if err != nil || fmt.Sprint(low) != "[{below 100 101}]" {
		t.Errorf("%v, %v", low, err)
	}
}

// TestVisitPending checks that the reservations of a wallet come oldest first, and that the first error of visit ends
// the pass.
func TestVisitPending(t *testing.T) {
	t.Parallel()
	store := newStore(t, 100)
	var want, got []credit.Key
	for i := range 4 {
		r := reservation(1, false)
		r.Key = credit.NewKey(time.Now().Add(time.Duration(i-4)*time.Minute), fmt.Sprint(i))
		must.Succeed(t, take(t, store, r, "reserve"))
		want = append(want, r.Key)
	}
	stop := errors.New("enough")
	err := store.VisitPending(t.Context(), func(l credit.Lease, err error) error {
		if got = append(got, l.Key); len(got) == 3 {
			return stop
		}
		return err
	}, nil)
	if !errors.Is(err, stop) || !slices.Equal(got, want[:3]) {
		t.Errorf("%v, %v; want %v", got, err, want[:3])
	}
}

// TestVisitUnreadable checks that VisitPending names each wallet that cannot be read, whatever is wrong with the
// wallet, that other wallets are visited all the same, and that an error of visit about such a wallet ends the pass.
func TestVisitUnreadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 100)
	none, text, number := &types.AttributeValueMemberM{Value: dynamo.Item{}}, dynamo.Text("nonsense"), dynamo.Number(1)
	r := reservation(30, false)
	must.Succeed(t, errors.Join(take(t, f.Store, r, "reserve"), f.SetAlert(t.Context(), "p", 71)))
	broken := map[string]dynamo.Item{
		"balance-text":    {"pending": none, "balance": text, "alert": number},
		"balance-plain":   {"pending": none, "balance": text},
		"balance-missing": {"pending": none},
		"balance-half":    {"pending": none, "balance": &types.AttributeValueMemberN{Value: "0.5"}, "alert": number},
		"alert-text":      {"pending": none, "balance": number, "alert": text},
		"pending-text":    {"pending": text, "balance": number},
		"pending-number":  {"pending": number, "balance": number},
		"pending-missing": {"balance": number},
		"no-key":          {"pending": &types.AttributeValueMemberM{Value: dynamo.Item{"nonsense": none}}, "balance": number},
	}
	for id, item := range broken {
		item["pk"] = dynamo.Text(id)
		f.put(f.names.Wallets, item)
	}
	var named, lows []string
	visited := 0
	err := f.VisitPending(t.Context(), func(_ credit.Lease, err error) error {
		if err == nil {
			visited++
			return nil
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "credit: wallet "),
			"credit: lease nonsense of "), ": ")
		named = append(named, id)
		return nil
	}, func(low credit.LowBalance) { lows = append(lows, low.Project) })
	slices.Sort(named)
	if want := slices.Sorted(maps.Keys(broken)); err != nil || !slices.Equal(named, want) || visited != 1 ||
		!slices.Equal(lows, []string{"p"}) {
		t.Errorf("%q, %v; want %q; %d reservations, low %q", named, err, want, visited, lows)
	}
	for id := range broken {
		f.drop(f.names.Wallets, dynamo.Item{"pk": dynamo.Text(id)})
	}
	f.put(f.names.Wallets, dynamo.Item{"pk": dynamo.Text("p"), "pending": number,
		"balance": dynamo.Number(0), "alert": number})
	stop := errors.New("stop")
	for _, want := range []error{stop, nil} {
		low := 0
		err := f.VisitPending(t.Context(), func(credit.Lease, error) error { return want }, func(credit.LowBalance) { low++ })
		if !errors.Is(err, want) || (low == 1) != (want == nil) {
			t.Errorf("visit returns %v: %v, %d low balances", want, err, low)
		}
	}
}

// TestSpent checks what projects have spent by their wallets' items: without wallets that cannot be read
// (docs/decisions/money.md#unusual-spending).
func TestSpent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	for name, item := range map[string]dynamo.Item{
		"one":     {"balance": dynamo.Number(70), "granted": dynamo.Number(100)},
		"new":     {"balance": dynamo.Number(0)},
		"balance": {"balance": dynamo.Text("9"), "granted": dynamo.Number(100)},
		"granted": {"balance": dynamo.Number(9), "granted": dynamo.Text("100")},
	} {
		item["pk"] = dynamo.Text(name)
		f.put(f.names.Wallets, item)
	}
	got, err := f.Spent(t.Context())
	if want := map[string]int64{"p": 0, "one": 30, "new": 0}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

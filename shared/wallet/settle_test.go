package wallet_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// TestLow checks that the pass over reservations reports a wallet below its alert, and none at its alert or without
// one.
func TestLow(t *testing.T) {
	t.Parallel()
	f := wallettest.New(t, 100)
	for project, alert := range map[string]int64{"none": 0, "above": 99, "at": 100, "below": 101} {
		f.Project(project, 100)
		f.Must(f.SetAlert(t.Context(), project, alert))
	}
	var low []wallet.LowBalance
	err := f.VisitPending(t.Context(), func(wallet.Lease, error) error { return nil },
		func(l wallet.LowBalance) { low = append(low, l) })
	if err != nil || fmt.Sprint(low) != "[{below 100 101}]" {
		t.Errorf("%v, %v", low, err)
	}
}

// TestVisitPending checks that the reservations of a wallet come oldest first, and that the first error of visit ends
// the pass.
func TestVisitPending(t *testing.T) {
	t.Parallel()
	store := wallettest.NewStore(t, 100)
	var want, got []wallet.Key
	for i := range 4 {
		r := wallettest.Reservation(1, false)
		r.Began, r.RequestID = time.Now().Add(time.Duration(i-4)*time.Minute), fmt.Sprint(i)
		must.Succeed(t, wallettest.Take(t, store, r, "reserve"))
		want = append(want, r.Key)
	}
	stop := errors.New("enough")
	err := store.VisitPending(t.Context(), func(l wallet.Lease, err error) error {
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
	f := wallettest.New(t, 100)
	none, text, number := &types.AttributeValueMemberM{Value: dynamo.Item{}}, dynamo.Text("nonsense"), dynamo.Number(1)
	r := wallettest.Reservation(30, false)
	must.Succeed(t, errors.Join(wallettest.Take(t, f.Store, r, "reserve"), f.SetAlert(t.Context(), "p", 71)))
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
		f.Put(f.Names.Wallets, item)
	}
	var named, lows []string
	visited := 0
	err := f.VisitPending(t.Context(), func(_ wallet.Lease, err error) error {
		if err == nil {
			visited++
			return nil
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "wallet: wallet "),
			"wallet: lease nonsense of "), ": ")
		named = append(named, id)
		return nil
	}, func(low wallet.LowBalance) { lows = append(lows, low.Project) })
	slices.Sort(named)
	if want := slices.Sorted(maps.Keys(broken)); err != nil || !slices.Equal(named, want) || visited != 1 ||
		!slices.Equal(lows, []string{"p"}) {
		t.Errorf("%q, %v; want %q; %d reservations, low %q", named, err, want, visited, lows)
	}
	for id := range broken {
		f.Drop(f.Names.Wallets, dynamo.Item{"pk": dynamo.Text(id)})
	}
	f.Put(f.Names.Wallets, dynamo.Item{"pk": dynamo.Text("p"), "pending": number,
		"balance": dynamo.Number(0), "alert": number})
	stop := errors.New("stop")
	for _, want := range []error{stop, nil} {
		low := 0
		err := f.VisitPending(t.Context(), func(wallet.Lease, error) error { return want }, func(wallet.LowBalance) { low++ })
		if !errors.Is(err, want) || (low == 1) != (want == nil) {
			t.Errorf("visit returns %v: %v, %d low balances", want, err, low)
		}
	}
}

// TestSpent checks what projects have spent by their wallets' items: without wallets that cannot be read
// (docs/decisions/money.md#unusual-spending).
func TestSpent(t *testing.T) {
	t.Parallel()
	f := wallettest.New(t, 0)
	for name, item := range map[string]dynamo.Item{
		"one":     {"balance": dynamo.Number(70), "granted": dynamo.Number(100)},
		"new":     {"balance": dynamo.Number(0)},
		"balance": {"balance": dynamo.Text("9"), "granted": dynamo.Number(100)},
		"granted": {"balance": dynamo.Number(9), "granted": dynamo.Text("100")},
	} {
		item["pk"] = dynamo.Text(name)
		f.Put(f.Names.Wallets, item)
	}
	got, err := f.Spent(t.Context())
	if want := map[string]int64{"p": 0, "one": 30, "new": 0}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

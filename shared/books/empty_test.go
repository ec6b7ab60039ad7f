package books_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/wallettest"
)

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
		{"conflicts", "", 0, "cc", 900, 0},
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
			put := slices.ContainsFunc(wallettest.Entries(t, f.Store, repeated.ID),
				func(e books.Entry) bool { return e.Key == repeated.ID })
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

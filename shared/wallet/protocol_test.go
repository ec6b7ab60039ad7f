package wallet_test

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// TestKeys checks that keys sort by time, distinguish requests and replays, and return their time and day.
func TestKeys(t *testing.T) {
	at := time.Date(2026, 1, 2, 23, 59, 59, 999_999_000, time.UTC)
	keys := []wallet.Key{
		wallet.NewKey(time.UnixMicro(1), "z"),
		wallet.NewKey(at, "a"),
		wallet.NewKey(at.Add(time.Microsecond), "a"), // the same event replayed
		wallet.NewKey(at.AddDate(200, 0, 0), "a"),
	}
	if !sort.SliceIsSorted(keys, func(i, j int) bool { return keys[i] < keys[j] }) {
		t.Errorf("not in order: %v", keys)
	}
	if wallet.NewKey(at, "a") == wallet.NewKey(at, "b") {
		t.Error("two requests at the same time share a key")
	}
	for i, day := range []string{"1970-01-01", "2026-01-02", "2026-01-03", "2226-01-02"} {
		if keys[i].Day() != day {
			t.Errorf("%s is of %s, want %s", keys[i], keys[i].Day(), day)
		}
		if parsed, err := wallet.ParseKey(string(keys[i])); err != nil || parsed != keys[i] {
			t.Errorf("%s: %v", keys[i], err)
		}
	}
	if got := keys[1].Time(); !got.Equal(at) || got.Location() != time.UTC {
		t.Errorf("time %s", got)
	}
	if east := wallet.NewKey(at.In(time.FixedZone("", 19800)), "a"); east != keys[1] {
		t.Errorf("the zone changes the key: %s", east)
	}
	for _, bad := range []string{
		"", "-", "1767398399999999", "1767398399999999-", "176739839999999-aaaaaaa", "17673983999999999-aaaaaaa",
		"1767398399999999-aaaaaa",
		"1767398399999999-aaaaaaaa", "1767398399999999aaaaaaa", "1767398399999999-aaaaaa!", "1767398399999999-aaaaaag",
		"1767398399999999-AAAAAAA", "x767398399999999-aaaaaaa", "-767398399999999-aaaaaaa",
		"1767398399999999-aaaaaaa.", "1767398399999999-aaaaaaa.7", "1767398399999999-aaaaaaa.80",
		"1767398399999999-aaaaaaa.7A", "1767398399999999-aaaaaaa.007",
	} {
		if _, err := wallet.ParseKey(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestPrices checks that every price has a row with its variable; an operation without a row or a text is free.
func TestPrices(t *testing.T) {
	t.Setenv("PRICE_PDF", "2000")
	t.Setenv("PRICE_BURNER_EMAIL_SHIELD", "100")
	prices, err := wallet.ReadPrices(wallet.FromEnvironment)
	must.Succeed(t, err)
	for operation, want := range map[string]int64{wallet.PDF: 2_000, wallet.BurnerEmailShield: 100,
		wallet.SMS: 0, "currency": 0} {
		if got := prices[operation]; got != want {
			t.Errorf("%s costs %d, want %d", operation, got, want)
		}
	}
	for text, valid := range map[string]bool{
		"0": true, "1": true, "-1": false, "1000000000000": true, "1000000000001": false, "4611686018427387904": false,
		"99999999999999999999": false, "": false, "1.5": false, "1e3": false,
	} {
		for _, row := range wallet.PriceList() {
			prices, err := wallet.ReadPrices(func(p wallet.Price) (string, bool) { return text, p == row })
			if (err == nil) != valid || valid && len(prices) != 1 || err != nil && !strings.Contains(err.Error(), row.Name) {
				t.Errorf("price %q of %s: %v %v", text, row.Name, prices, err)
			}
		}
	}
}

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
		state      wallet.State
		uncertain  bool
		actor      string
		balance    int64
		anyPending bool
	}{
		{steps: []string{"reserve"}, balance: held, anyPending: true},
		{steps: []string{"reserve", "capture"}, state: wallet.Captured, balance: charged, anyPending: true},
		{steps: []string{"reserve", "capture", "capture"}, state: wallet.Captured, balance: charged, anyPending: true},
		{steps: []string{"reserve", "capture", "remove"}, state: wallet.Captured, balance: charged},
		{steps: []string{"reserve", "capture", "remove", "remove"}, state: wallet.Captured, balance: charged},
		{steps: []string{"reserve", "remove"}, balance: held, anyPending: true},
		{steps: []string{"reserve", "reserve"}, balance: held, anyPending: true},
		{steps: []string{"reserve", "reserve", "release"}, balance: had},
		{steps: []string{"reserve", "release after the work was cancelled"}, balance: had},
		{steps: []string{"reserve", "capture after the work was cancelled"}, state: wallet.Captured,
			balance: charged, anyPending: true},
		{steps: []string{"reserve", "capture", "remove in under a second"}, state: wallet.Captured,
			balance: charged, anyPending: true},
		{steps: []string{"reserve", "mark", "capture"}, err: wallet.ErrSettled, state: wallet.Sending,
			balance: held, anyPending: true},
		{steps: []string{"reserve", "release"}, balance: had},
		{steps: []string{"reserve", "release", "release"}, balance: had},
		{steps: []string{"reserve", "settle"}, state: wallet.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "settle", "settle"}, state: wallet.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "settle", "capture"}, err: wallet.ErrSettled, state: wallet.Released, actor: "settle",
			balance: had},
		{steps: []string{"reserve", "settle", "release"}, state: wallet.Released, actor: "settle", balance: had},
		{steps: []string{"reserve", "capture", "settle"}, state: wallet.Captured, balance: charged},
		{steps: []string{"reserve", "release", "settle"}, state: wallet.Released, actor: "settle", balance: had},

		{sms: true, steps: []string{"reserve", "mark"}, state: wallet.Sending, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "mark"}, state: wallet.Sending, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "capture"}, state: wallet.Captured,
			balance: charged, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "capture", "remove"}, state: wallet.Captured, balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "capture uncertain", "remove"}, state: wallet.Captured,
			uncertain: true, balance: charged},
		{sms: true, steps: []string{"reserve", "capture"}, err: wallet.ErrSettled, balance: held, anyPending: true},
		{sms: true, steps: []string{"reserve", "release"}, balance: had}, // never marked: no entry
		{sms: true, steps: []string{"reserve", "release", "reserve", "settle"}, state: wallet.Released,
			actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release"}, state: wallet.Released, balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release", "release"}, state: wallet.Released, balance: had},
		{sms: true, steps: []string{"reserve", "mark", "release", "capture"}, err: wallet.ErrSettled,
			state: wallet.Released, balance: had},
		{sms: true, steps: []string{"reserve", "settle"}, state: wallet.Released, actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "settle", "mark"}, err: wallet.ErrSettled, state: wallet.Released,
			actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "mark", "settle"}, state: wallet.Captured, uncertain: true,
			actor: "settle", balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "capture", "settle"}, state: wallet.Captured, balance: charged},

		// A capture replaces a mark of its own work, and no other entry. A late release returns no credits of a charge.
		{sms: true, steps: []string{"reserve", "release", "capture"}, err: wallet.ErrSettled, balance: had},
		{sms: true, steps: []string{"reserve", "settle", "capture"}, err: wallet.ErrSettled, state: wallet.Released,
			actor: "settle", balance: had},
		{sms: true, steps: []string{"reserve", "mark", "settle", "capture"}, state: wallet.Captured, uncertain: true,
			actor: "settle", balance: charged},
		{sms: true, steps: []string{"reserve", "mark", "capture", "release"}, err: errAny, state: wallet.Captured,
			balance: charged, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "capture uncertain", "release"}, err: errAny, state: wallet.Captured,
			uncertain: true, balance: charged, anyPending: true},
		{sms: true, steps: []string{"reserve", "mark", "settle", "release"}, err: errAny, state: wallet.Captured,
			uncertain: true, actor: "settle", balance: charged},
	} {
		t.Run(fmt.Sprint(test.steps, test.sms), func(t *testing.T) {
			t.Parallel()
			store := wallettest.NewStore(t, had)
			r := wallettest.Reservation(price, test.sms)
			switch err := wallettest.Take(t, store, r, test.steps...); {
			case errors.Is(test.err, errAny) && err == nil, !errors.Is(test.err, errAny) && !errors.Is(err, test.err):
				t.Fatal(err)
			case errors.Is(err, wallet.ErrSettled):
				store.Remove(t.Context(), r) // does nothing, because nothing was captured
			}
			wallettest.WantBalance(t, store, test.balance)
			got := wallettest.Entry(t, store, r)
			if got.State != test.state || got.Uncertain != test.uncertain || got.Actor != test.actor {
				t.Errorf("entry %+v", got)
			}
			if test.state != "" && (got.Credits != price || time.Since(got.At) > time.Minute) {
				t.Errorf("entry %+v", got)
			}
			request := [3]string{r.Price, "request", "production"}
			// the settler knows only the wallet's amount
			if test.state == "" || test.state == wallet.Released && test.actor != "" {
				request = [3]string{}
			}
			if [3]string{got.Price, got.RequestID, got.Environment} != request {
				t.Errorf("entry %+v", got)
			}
			uncertain, err := store.Uncertain(t.Context(), "p")
			if err != nil || (len(uncertain) == 1) != test.uncertain || len(uncertain) > 1 {
				t.Errorf("uncertain %v, %v", uncertain, err)
			}
			found := wallettest.Pending(t, store)
			var want []wallet.Lease
			if test.anyPending {
				want = append(want, wallettest.LeaseOf(r))
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
		credits int64
		want    error
	}{
		{"one credit short", "p", 101, wallet.ErrInsufficientCredits},
		{"project without a wallet", "q", 1, wallet.ErrInsufficientCredits},
		{"nothing to pay", "p", 0, errAny},
		{"negative", "p", -1, errAny},
		{"no project", "", 1, errAny},
		{"no time", "p", 2, errAny},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := wallettest.NewStore(t, 100)
			r := wallettest.Reservation(test.credits, false)
			if r.Project = test.project; test.name == "no time" {
				r.Began = time.Time{}
			}
			err := store.Reserve(t.Context(), r)
			if lacking := errors.Is(err, wallet.ErrInsufficientCredits); err == nil || lacking == errors.Is(test.want, errAny) {
				t.Errorf("got %v", err)
			}
			wallettest.WantBalance(t, store, 100)
		})
	}
}

// TestRetriedReserve checks that Reserve recognises a retried write that took effect, that the project pays once, and
// that the key stays for the settling function, also for the last credits
// (docs/decisions/money.md#one-conditional-write).
func TestRetriedReserve(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"x", "xx", "d", "dd", "u", "uu"} {
		direct := wallettest.New(t, 30)
		store, r := direct.Over(&wallettest.Faults{Of: "UpdateItem", List: list}), wallettest.Reservation(30, false)
		must.Succeed(t, wallettest.Take(t, store, r, "reserve", "capture", "remove"))
		wallettest.WantBalance(t, direct.Store, 0)
		if left := wallettest.Pending(t, direct.Store); len(left) != 1 {
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
		state     wallet.State
	}{
		{"reserve", false, "UpdateItem", "ddd", []string{"reserve"}, 100, ""},
		{"reserve of an SMS", true, "UpdateItem", "ddd", []string{"reserve"}, 100, ""},
		{"mark", true, "PutItem", "ddd", []string{"reserve", "mark"}, 100, wallet.Released},
		{"capture", false, "PutItem", "ddd", []string{"reserve", "capture"}, 70, wallet.Captured},
		{"capture of an SMS", true, "PutItem", ".ddd", []string{"reserve", "mark", "capture"}, 70, wallet.Captured},
	} {
		direct := wallettest.New(t, 100)
		store, r := direct.Over(&wallettest.Faults{Of: test.operation, List: test.list}), wallettest.Reservation(30, test.sms)
		err := wallettest.Take(t, store, r, test.steps...)
		if err == nil || errors.Is(err, wallet.ErrSettled) || errors.Is(err, wallet.ErrInsufficientCredits) {
			t.Errorf("%s: %v", test.name, err)
		}
		store.Remove(t.Context(), r) // does nothing
		wallettest.WantBalance(t, direct.Store, test.balance)
		if got := wallettest.Entry(t, direct.Store, r); got.State != test.state {
			t.Errorf("%s: entry %q, want %q", test.name, got.State, test.state)
		}
	}
}

// TestVendorOfEntry checks that the mark, and so the charge of a dead request, has the vendor and the reference that
// the request has given it, and that a capture has those of its own outcome (docs/decisions/money.md#capture).
func TestVendorOfEntry(t *testing.T) {
	t.Parallel()
	store := wallettest.NewStore(t, 100)
	for end, want := range map[string]wallet.Outcome{
		"capture": {Uncertain: true, Vendor: "twilio", VendorID: "SM1", Reference: "own"}, "settle": {Uncertain: true,
			Vendor: "dialogv2", Reference: "died"},
	} {
		r := wallettest.Reservation(1, true)
		r.Died = wallet.Outcome{Vendor: "dialogv2", Reference: "died"}
		must.Succeed(t, wallettest.Take(t, store, r, "reserve", "mark"))
		var err error
		if end == "settle" {
			_, err = wallettest.Settle(t.Context(), store, wallettest.LeaseOf(r))
		} else {
			err = store.Capture(t.Context(), r, want)
		}
		must.Succeed(t, err)
		e := wallettest.Entry(t, store, r)
		if got := (wallet.Outcome{Uncertain: e.Uncertain, Vendor: e.Vendor, VendorID: e.VendorID,
			Reference: e.Reference}); got != want {
			t.Errorf("%s: the charge has %+v, want %+v", end, got, want)
		}
	}
}

// TestSettle checks what Settle returns, also where another settler is first between its read and its write.
func TestSettle(t *testing.T) {
	t.Parallel()
	closed, uncertain, released := wallet.Settled{Closed: 1}, wallet.Settled{Closed: 1, Uncertain: 1},
		wallet.Settled{Released: 1}
	for _, test := range []struct {
		before, overtakes []string
		want              wallet.Settled // zero: an error
		state             wallet.State
		uncertain         bool
		balance           int64
	}{
		{[]string{"reserve"}, nil, released, wallet.Released, false, 100},
		{[]string{"reserve", "mark"}, nil, uncertain, wallet.Captured, true, 70},
		{[]string{"reserve", "mark", "capture"}, nil, closed, wallet.Captured, false, 70},
		{[]string{"reserve", "mark", "release"}, nil, released, wallet.Released, false, 100},

		{[]string{"reserve"}, []string{"settle"}, released, wallet.Released, false, 100},
		// neither charged nor returned yet
		{[]string{"reserve"}, []string{"mark"}, wallet.Settled{}, wallet.Sending, false, 70},
		{[]string{"reserve", "mark"}, []string{"settle"}, uncertain, wallet.Captured, true, 70},
		{[]string{"reserve", "mark"}, []string{"capture"}, closed, wallet.Captured, false, 70},
		{[]string{"reserve", "mark"}, []string{"release"}, released, wallet.Released, false, 100},
	} {
		direct := wallettest.New(t, 100)
		r := wallettest.Reservation(30, true)
		must.Succeed(t, wallettest.Take(t, direct.Store, r, test.before...))
		overtaken := len(test.overtakes) == 0
		store := direct.Over(&wallettest.Faults{Before: func(operation string) {
			if operation == "PutItem" && !overtaken {
				overtaken = true
				if err := wallettest.Take(t, direct.Store, r, test.overtakes...); err != nil {
					t.Error(err)
				}
			}
		}})
		got, err := wallettest.Settle(t.Context(), store, wallettest.LeaseOf(r))
		if got != test.want || (err != nil) != (test.want == wallet.Settled{}) || !overtaken {
			t.Errorf("%v, then %v: %+v, %v; want %+v", test.before, test.overtakes, got, err, test.want)
		}
		if e := wallettest.Entry(t, direct.Store, r); e.State != test.state || e.Uncertain != test.uncertain {
			t.Errorf("%v, then %v: %+v", test.before, test.overtakes, e)
		}
		wallettest.WantBalance(t, direct.Store, test.balance)
	}
}

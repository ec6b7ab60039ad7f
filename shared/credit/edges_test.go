package credit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
)

// most is the largest balance.
const most = 1<<61 - 1

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

// entry is the reservation's own entry; the zero one where there is none.
func entry(t *testing.T, store *credit.Store, r *credit.Reservation) (found credit.Entry) {
	t.Helper()
	for _, e := range entries(t, store, r.Key) {
		if e.Key == r.Key {
			found = e
		}
	}
	return found
}

// TestCaptureChargesNothingElse checks that a capture replaces a mark of its own work and no other entry: neither a missing
// entry nor a release, of a request or of the settling function.
func TestCaptureChargesNothingElse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		sms     bool
		before  []string
		err     error
		state   credit.State
		balance int64
	}{
		{"SMS without a mark", true, []string{"reserve"}, credit.ErrSettled, "", 70},
		{"SMS without a reservation", true, nil, credit.ErrSettled, "", 100},
		{"SMS that the settler released", true, []string{"reserve", "settle"}, credit.ErrSettled, credit.Released, 100},
		{"SMS that the settler released early", true, []string{"reserve", "settle early"}, credit.ErrSettled, credit.Released, 100},
		{"SMS that its request released", true, []string{"reserve", "mark", "release"}, credit.ErrSettled, credit.Released, 100},
		{"SMS that was given back without a mark", true, []string{"reserve", "release"}, credit.ErrSettled, credit.Released, 100},
		{"SMS that the settler charged", true, []string{"reserve", "mark", "settle"}, nil, credit.Captured, 70},
		{"other work that the settler released", false, []string{"reserve", "settle"}, credit.ErrSettled, credit.Released, 100},
		{"other work with a mark", false, []string{"reserve", "mark"}, credit.ErrSettled, credit.Sending, 70},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t, 100)
			r := reservation(30, test.sms)
			if err := take(t, store, r, test.before...); err != nil {
				t.Fatal(err)
			}
			before := entry(t, store, r)
			if err := take(t, store, r, "capture"); !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
			store.Remove(t.Context(), r) // does nothing where nothing was captured
			if after := entry(t, store, r); after != before || after.State != test.state {
				t.Errorf("the entry is %+v, was %+v", after, before)
			}
			wantBalance(t, store, test.balance)
		})
	}
}

// TestReleaseAfterCapture checks that a late release returns no credits of an SMS that was charged.
func TestReleaseAfterCapture(t *testing.T) {
	t.Parallel()
	for _, charged := range []string{"capture", "capture uncertain", "settle", "settle early"} {
		store := newStore(t, 100)
		r := reservation(30, true)
		if err := take(t, store, r, "reserve", "mark", charged, "release"); err == nil {
			t.Errorf("released after %s", charged)
		}
		if got := entry(t, store, r); got.State != credit.Captured {
			t.Errorf("after %s the entry is %+v", charged, got)
		}
		wantBalance(t, store, 70)
	}
}

// TestVendorOfEntry checks that an entry names the vendor that did the work, else the vendor that was about to be called.
func TestVendorOfEntry(t *testing.T) {
	t.Parallel()
	store := newStore(t, 100)
	for _, test := range []struct{ about, did, want string }{
		{"quicksend", "twilio", "twilio"}, {"quicksend", "", "quicksend"}, {"", "twilio", "twilio"}, {"", "", ""},
	} {
		r := reservation(1, true)
		r.Vendor = test.about
		if err := take(t, store, r, "reserve", "mark"); err != nil {
			t.Fatal(err)
		}
		if got := entry(t, store, r); got.Vendor != test.about {
			t.Errorf("the mark names %q, want %q", got.Vendor, test.about)
		}
		if err := store.Capture(t.Context(), r, credit.Outcome{Vendor: test.did}); err != nil {
			t.Fatal(err)
		}
		if got := entry(t, store, r); got.Vendor != test.want {
			t.Errorf("the charge names %q, want %q", got.Vendor, test.want)
		}
	}
}

// TestReserveNeedsAKey checks that an invalid key or a missing project reserves nothing.
func TestReserveNeedsAKey(t *testing.T) {
	t.Parallel()
	store := newStore(t, 100)
	for _, key := range []credit.Key{"", "x", "5-x"} {
		r := reservation(30, false)
		r.Key = key
		if err := store.Reserve(t.Context(), r); err == nil {
			t.Errorf("key %q is accepted", key)
		}
	}
	r := reservation(30, false)
	r.Project = ""
	if err := store.Reserve(t.Context(), r); err == nil {
		t.Error("no project is accepted")
	}
	wantBalance(t, store, 100)
}

// TestSettleSays checks the result that Settle returns.
func TestSettleSays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		before     []string
		lateCopies bool
		want       credit.Settled
	}{
		{[]string{"reserve"}, false, credit.SettledReleased},
		{[]string{"reserve"}, true, credit.SettledReleased},
		{[]string{"reserve", "mark"}, false, credit.SettledUncertain},
		{[]string{"reserve", "mark"}, true, credit.SettledUncertain},
		{[]string{"reserve", "mark", "capture"}, true, credit.SettledWaiting},
		{[]string{"reserve", "mark", "capture"}, false, credit.SettledRemoved},
		{[]string{"reserve", "mark", "settle early"}, true, credit.SettledWaiting},
		{[]string{"reserve", "mark", "settle early"}, false, credit.SettledRemoved},
		{[]string{"reserve", "mark", "release"}, false, credit.SettledReleased},
	} {
		store := newStore(t, 100)
		r := reservation(30, true)
		if err := take(t, store, r, test.before...); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Settle(t.Context(), r, test.lateCopies); err != nil || got != test.want {
			t.Errorf("%v, late copies %t: %q, %v; want %q", test.before, test.lateCopies, got, err, test.want)
		}
	}
}

// TestSettleBesideAnother checks that a settler which another one overtakes between read and write follows the entry of the
// other one.
func TestSettleBesideAnother(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		before, overtakes []string
		want              credit.Settled
		state             credit.State
		uncertain         bool
		balance           int64
	}{
		{[]string{"reserve"}, []string{"settle"}, credit.SettledReleased, credit.Released, false, 100},
		{[]string{"reserve"}, []string{"mark"}, "", credit.Sending, false, 70}, // neither charged nor given back yet
		{[]string{"reserve", "mark"}, []string{"settle"}, credit.SettledUncertain, credit.Captured, true, 70},
		{[]string{"reserve", "mark"}, []string{"capture"}, credit.SettledUncertain, credit.Captured, false, 70},
		{[]string{"reserve", "mark"}, []string{"release"}, credit.SettledReleased, credit.Released, false, 100},
	} {
		var ready atomic.Bool
		var overtake func()
		behind, direct := lossy(t, 100, func(operation string, _ int64) faultproxy.Fault {
			if operation == "PutItem" && ready.CompareAndSwap(true, false) {
				overtake()
			}
			return faultproxy.Deliver
		})
		r := reservation(30, true)
		if err := take(t, direct, r, test.before...); err != nil {
			t.Fatal(err)
		}
		overtake = func() {
			if err := take(t, direct, r, test.overtakes...); err != nil {
				t.Error(err)
			}
		}
		ready.Store(true)
		got, err := behind.Settle(t.Context(), r, false)
		if got != test.want || (err != nil) != (test.want == "") || ready.Load() {
			t.Errorf("%v, then %v: %q, %v; want %q", test.before, test.overtakes, got, err, test.want)
		}
		if e := entry(t, direct, r); e.State != test.state || e.Uncertain != test.uncertain {
			t.Errorf("%v, then %v: %+v", test.before, test.overtakes, e)
		}
		wantBalance(t, direct, test.balance)
	}
}

// TestBounds checks that a balance and an alert reach the largest value and 0, and no value beyond.
func TestBounds(t *testing.T) {
	t.Parallel()
	store, n := newStore(t, 0), 0
	move := func(do func(context.Context, credit.Movement) error, credits int64) error {
		n++
		return do(t.Context(), credit.Movement{
			Project: "p", ID: credit.NewKey(time.Now(), fmt.Sprint(n)), Credits: credits, Actor: "test", Reason: "bounds",
		})
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
		if err := move(step.do, step.credits); errors.Is(err, credit.ErrOutOfRange) != step.refused || !step.refused && err != nil {
			t.Errorf("%d credits: %v", step.credits, err)
		}
		wantBalance(t, store, step.balance)
	}
	for alert, refused := range map[int64]bool{-1: true, 0: false, 1: false, most: false, most + 1: true} {
		if err := store.SetAlert(t.Context(), "p", alert); errors.Is(err, credit.ErrOutOfRange) != refused || !refused && err != nil {
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
	store := newStore(t, 100)
	now := time.Now()
	want := credit.Wallet{Shards: 1, Balance: 100}
	check := func() {
		t.Helper()
		got, err := store.Wallet(t.Context(), "p")
		if err != nil || got == nil || *got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	check()
	for i, age := range []time.Duration{time.Minute, time.Hour, time.Second} {
		r := reservation(int64(i+1), false)
		r.Key = credit.NewKey(now.Add(-age), fmt.Sprint(i))
		if err := take(t, store, r, "reserve"); err != nil {
			t.Fatal(err)
		}
		want.Balance, want.Reserved = want.Balance-r.Credits, want.Reserved+r.Credits
		if want.Oldest.IsZero() || r.Key.Time().Before(want.Oldest) {
			want.Oldest = r.Key.Time()
		}
		check()
	}
	for _, alert := range []int64{50, 0} {
		if err := store.SetAlert(t.Context(), "p", alert); err != nil {
			t.Fatal(err)
		}
		want.Alert = alert
		check()
	}
}

// TestResolveKeepsTheBooks checks that a charge is not resolved as refunded where its credits cannot be paid, or where the
// charge has changed since the read.
func TestResolveKeepsTheBooks(t *testing.T) {
	t.Parallel()
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	for project, want := range map[string]error{"full": credit.ErrOutOfRange, "gone": credit.ErrNoWallet} {
		err := store.CreateWallet(t.Context(), project)
		if err == nil {
			err = store.Grant(t.Context(), credit.Movement{Project: project, ID: credit.NewKey(time.Now(), "g"), Credits: most})
		}
		r := reservation(30, true)
		r.Project = project
		if err = errors.Join(err, take(t, store, r, "reserve", "mark", "capture uncertain", "remove")); err == nil && project == "full" {
			err = store.Grant(t.Context(), credit.Movement{Project: project, ID: credit.NewKey(time.Now(), "more"), Credits: 1})
		}
		if err == nil && project == "gone" {
			_, err = client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tables.Wallets, Key: dynamo.Item{"pk": dynamo.Text(project)}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Resolve(t.Context(), project, r.Key, by("anne", credit.VerdictRefunded)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", project, err, want)
		}
		if open, err := store.Uncertain(t.Context(), project); err != nil || len(open) != 1 || open[0].Key != r.Key {
			t.Errorf("%s: open %v, %v", project, open, err)
		}
	}
}

// TestRefundChargeRefuses checks that an uncertain charge is resolved and not refunded, and that a missing charge is not
// refunded. A confirmed charge is refunded as all others are.
func TestRefundChargeRefuses(t *testing.T) {
	t.Parallel()
	c := newCharge(t)
	refund := func(key credit.Key) error {
		_, err := c.RefundCharge(t.Context(), "p", key, "late", "anne")
		return err
	}
	r := reservation(smsPrice, true)
	if err := take(t, c.Store, r, "reserve", "mark"); err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]struct {
		key  credit.Key
		want error
	}{
		"an uncertain charge": {c.key, credit.ErrUncertain},
		"nothing":             {credit.NewKey(time.Now(), "x"), credit.ErrNotCharged},
		"a mark":              {r.Key, credit.ErrNotCharged},
	} {
		if err := refund(refused.key); !errors.Is(err, refused.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := take(t, c.Store, r, "capture", "remove"); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, c.Store, granted-2*smsPrice)
	if _, err := c.Resolve(t.Context(), "p", c.key, by("anne", credit.VerdictConfirmed)); err != nil {
		t.Fatal(err)
	}
	if err := refund(c.key); err != nil {
		t.Error(err)
	}
	wantBalance(t, c.Store, granted-smsPrice)
}

// TestRefundChargeOnce checks that a charge which its resolution refunded is not refunded again.
func TestRefundChargeOnce(t *testing.T) {
	t.Parallel()
	c := newCharge(t)
	if _, err := c.Resolve(t.Context(), "p", c.key, by("anne", credit.VerdictRefunded)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RefundCharge(t.Context(), "p", c.key, "late", "anne"); !errors.Is(err, credit.ErrResolved) {
		t.Errorf("%v", err)
	}
	wantBalance(t, c.Store, granted)
}

// TestPendingInOrder checks that the reservations of a wallet come oldest first, and that the first error of a visit ends
// the pass.
func TestPendingInOrder(t *testing.T) {
	t.Parallel()
	store := newStore(t, 100)
	var want []credit.Key
	for i := range 4 {
		r := reservation(1, false)
		r.Key = credit.NewKey(time.Now().Add(time.Duration(i-4)*time.Minute), fmt.Sprint(i))
		if err := take(t, store, r, "reserve"); err != nil {
			t.Fatal(err)
		}
		want = append(want, r.Key)
	}
	var got []credit.Key
	stop := errors.New("enough")
	err := store.VisitPending(t.Context(), func(r *credit.Reservation, err error) error {
		if got = append(got, r.Key); len(got) == 3 {
			return stop
		}
		return err
	}, nil)
	if !errors.Is(err, stop) || !slices.Equal(got, want[:3]) {
		t.Errorf("%v, %v; want %v", got, err, want[:3])
	}
}

// TestVerifyEdges checks the limits of Verify: the smallest damage is found, and values at the limits are no damage.
func TestVerifyEdges(t *testing.T) {
	t.Parallel()
	text, now := dynamo.Text, time.Now()
	old, young := credit.NewKey(now.Add(-31*time.Minute), "old"), credit.NewKey(now.Add(-20*time.Minute), "young")
	item := func(project string, key credit.Key, state credit.State, credits int64, more dynamo.Item) dynamo.Item {
		made := dynamo.Item{
			"pk": text(project + "#" + key.Day()), "sk": text(string(key)), "st": text(string(state)), "cr": dynamo.Number(credits),
			"ts": text(now.UTC().Format(time.RFC3339Nano)), "by": text("test"), "why": text("test"),
		}
		maps.Copy(made, more)
		return made
	}
	verdict := func(v credit.Verdict, actor string) dynamo.Item {
		return dynamo.Item{"res": &types.AttributeValueMemberM{Value: dynamo.Item{
			"v": text(string(v)), "by": text(actor), "why": text("test"), "ts": text(now.UTC().Format(time.RFC3339Nano)),
		}}}
	}
	pending := func(credits int64) dynamo.Item {
		return dynamo.Item{":v": dynamo.Number(credits)}
	}
	named := func(key credit.Key) map[string]string { return map[string]string{"#k": string(key)} }
	for _, c := range []struct {
		name  string
		plant func(*books)
		want  []credit.Damage
	}{
		{"a young mark", func(b *books) { b.put(item("p", young, credit.Sending, 1, nil)) }, nil},
		{"an old mark", func(b *books) { b.put(item("p", old, credit.Sending, 1, nil)) }, []credit.Damage{credit.Stuck}},
		{"an old mark with its reservation", func(b *books) {
			b.put(item("p", old, credit.Sending, 1, nil))
			b.wallet("SET pending.#k = :v", pending(1), named(old))
		}, []credit.Damage{credit.Stuck, credit.Unbalanced}},
		{"a reservation of nothing", func(b *books) { b.wallet("SET pending.#k = :v", pending(0), named(young)) }, []credit.Damage{credit.Unreadable}},
		{"a reservation of one credit", func(b *books) { b.wallet("SET pending.#k = :v", pending(1), named(young)) }, []credit.Damage{credit.Unbalanced}},
		{"a charge in a shard that the wallet does not name", func(b *books) { b.put(item("p#5", young, credit.Captured, 1, nil)) }, []credit.Damage{credit.Unbalanced}},
		{"credits in a shard that the wallet does not name", func(b *books) {
			_, err := b.client.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: &b.tables.Wallets, Item: dynamo.Item{
				"pk": text("p#5"), "balance": dynamo.Number(5), "pending": &types.AttributeValueMemberM{Value: dynamo.Item{}},
			}})
			b.must(err)
		}, []credit.Damage{credit.Unbalanced}},
		{"a charge of the day after tomorrow", func(b *books) {
			b.put(item("p", credit.NewKey(now.Add(48*time.Hour), "late"), credit.Captured, 1, nil))
		}, []credit.Damage{credit.Unbalanced}},
		{"a request that was charged in two shards", func(b *books) {
			b.put(item("p", young, credit.Captured, 1, nil))
			b.put(item("p#1", young, credit.Captured, 1, nil))
		}, []credit.Damage{credit.Unbalanced, credit.Repeated}},
		{"a charge of nothing", func(b *books) { b.put(item("p", young, credit.Captured, 0, nil)) }, []credit.Damage{credit.Unreadable}},
		{"an adjustment of nothing", func(b *books) { b.put(item("p", young, credit.Adjustment, 0, nil)) }, nil},
		{"an entry under no key", func(b *books) {
			odd := item("p", young, credit.Captured, 1, nil)
			odd["sk"] = text("x")
			b.put(odd)
		}, []credit.Damage{credit.Unreadable}},
		{"a state of no version", func(b *books) { b.put(item("p", young, "lent", 1, nil)) }, []credit.Damage{credit.Unreadable}},
		{"a release", func(b *books) { b.put(item("p", young, credit.Released, 1, nil)) }, nil},
		{"an uncertain release", func(b *books) { b.put(item("p", young, credit.Released, 1, dynamo.Item{"uncertain": text("p")})) }, []credit.Damage{credit.Unexplained}},
		{"a release with a verdict", func(b *books) { b.put(item("p", young, credit.Released, 1, verdict(credit.VerdictConfirmed, "test"))) }, []credit.Damage{credit.Unexplained}},
		{"no balance", func(b *books) { b.wallet("REMOVE balance", nil, nil) }, []credit.Damage{credit.Unreadable}},
		{"no reservations at all", func(b *books) { b.wallet("REMOVE pending", nil, nil) }, []credit.Damage{credit.Unbalanced}},
		{"reservations that are no map", func(b *books) { b.wallet("SET pending = :v", dynamo.Item{":v": text("x")}, nil) }, []credit.Damage{credit.Unreadable, credit.Unbalanced}},
		{"an adjustment without its actor", func(b *books) {
			nobodys := item("p", young, credit.Adjustment, 0, nil)
			delete(nobodys, "by")
			b.put(nobodys)
		}, []credit.Damage{credit.Unexplained}},
		{"an adjustment without its reason", func(b *books) { b.change("adjustment", "REMOVE why", nil) }, []credit.Damage{credit.Unexplained}},
		{"a verdict without its actor", func(b *books) { b.change("captured", "SET res = :res", values(verdict(credit.VerdictConfirmed, ""))) }, []credit.Damage{credit.Unexplained}},
		{"a verdict on what is uncertain", func(b *books) {
			b.change("uncertain", "SET uncertain = :v", dynamo.Item{":v": text("p")})
		}, []credit.Damage{credit.Unexplained}},
		{"a verdict with its actor", func(b *books) {
			b.change("captured", "SET res = :res", values(verdict(credit.VerdictConfirmed, "test")))
		}, nil},
		{"a refund that is gone", func(b *books) {
			b.change("captured", "SET res = :res", values(verdict(credit.VerdictRefunded, "test")))
		}, []credit.Damage{credit.Overpaid}},
		{"a refund of one credit too many", func(b *books) { b.change("to refund", "SET cr = :v", dynamo.Item{":v": dynamo.Number(29)}) }, []credit.Damage{credit.Overpaid, credit.Unbalanced}},
		{"a refund of nothing that was charged", func(b *books) {
			b.put(item("p", young, credit.Refunded, 1, dynamo.Item{"of": text(string(old))}))
		}, []credit.Damage{credit.Overpaid, credit.Unbalanced}},
		{"a refund of no certain charge", func(b *books) { b.put(item("p", young, credit.Refunded, 1, nil)) }, []credit.Damage{credit.Unbalanced}},
		{"a ledger of 0 without a wallet", func(b *books) { b.put(item("nobody", young, credit.Released, 1, nil)) }, nil},
		{"a balance of 0", func(b *books) {
			balance, err := b.store.Balance(b.t.Context(), "p")
			b.must(err)
			b.must(b.store.Adjust(b.t.Context(), credit.Movement{Project: "p", ID: young, Credits: -balance, Actor: "test", Reason: "test"}))
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBooks(t)
			c.plant(b)
			items := 0
			got, err := b.store.Verify(t.Context(), func(read int) {
				if items++; read != items {
					t.Errorf("item %d is said to be %d", items, read)
				}
			})
			if err != nil || got.Wallets+got.Entries != items {
				t.Fatalf("%+v of %d items, %v", got, items, err)
			}
			var found []credit.Damage
			for _, f := range got.Findings {
				found = append(found, f.Damage)
			}
			slices.Sort(found)
			slices.Sort(c.want)
			if found = slices.Compact(found); !slices.Equal(found, c.want) {
				t.Errorf("%+v, want %v", got.Findings, c.want)
			}
		})
	}
}

// values are an item's attributes under the names that an expression gives its values.
func values(item dynamo.Item) dynamo.Item {
	named := dynamo.Item{}
	for name, value := range item {
		named[":"+name] = value
	}
	return named
}

// TestReserveOnce checks that a repeated reservation takes its credits once, also where the balance suffices for two.
func TestReserveOnce(t *testing.T) {
	t.Parallel()
	store := newStore(t, 100)
	r := reservation(30, false)
	if err := take(t, store, r, "reserve", "reserve"); err != nil {
		t.Error(err)
	}
	wantBalance(t, store, 70)
	if err := take(t, store, r, "release"); err != nil {
		t.Error(err)
	}
	wantBalance(t, store, 100)
}

package books_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// books is a wallettest.Fixture with two projects that have every kind of movement, to plant damage in them.
type account struct {
	*wallettest.Fixture
	keys map[string]wallet.Key // by name
}

func newAccount(t *testing.T) *account {
	b := &account{wallettest.New(t, 0), map[string]wallet.Key{}}
	for _, project := range []string{"untouched", "p"} {
		b.fill(project)
	}
	return b
}

// fill gives a project every kind of movement.
func (b *account) fill(project string) {
	ctx, now := context.Background(), time.Now()
	b.Project(project, 0)
	movement := func(name string, at time.Time, credits int64) wallet.Entry {
		m := wallettest.Movement(project, at, name, credits)
		b.keys[name] = m.Key
		return m
	}
	b.Must(b.Grant(ctx, movement("grant", now.AddDate(0, 0, -40), 1000)))
	b.Must(b.Adjust(ctx, movement("adjustment", now.AddDate(0, 0, -2), -50)))
	for _, name := range []string{"captured", "to refund"} {
		r := b.reserve(project, name, false)
		b.Must(b.Capture(ctx, r, wallet.Outcome{}))
		b.Remove(ctx, r)
	}
	_, err := b.RefundCharge(ctx, project, b.keys["to refund"], "broken", "test")
	b.Must(err)
	b.Must(b.Release(ctx, b.reserve(project, "failed", false)))
	b.uncertain(project, "uncertain", books.VerdictRefunded)
	b.reserve(project, "pending", false)
	b.Must(b.Capture(ctx, b.reserve(project, "captured and pending", false), wallet.Outcome{}))
}

func (b *account) reserve(project, name string, irrevocable bool) *wallet.Reservation {
	r := wallettest.Reservation(30, irrevocable)
	r.Project, r.RequestID = project, name
	b.Must(b.Reserve(b.T.Context(), r))
	b.keys[name] = r.Key
	return r
}

// uncertain charges an uncertain SMS, and resolves the charge unless the verdict is empty.
func (b *account) uncertain(project, name string, verdict books.Verdict) {
	r := b.reserve(project, name, true)
	b.Must(b.Mark(b.T.Context(), r))
	b.Must(b.Capture(b.T.Context(), r, wallet.Outcome{Uncertain: true}))
	b.Remove(b.T.Context(), r)
	if verdict != "" {
		_, err := b.Resolve(b.T.Context(), project, r.Key, by("anne", verdict))
		b.Must(err)
	}
}

// wallet updates the wallet of p.
func (b *account) wallet(expression string, values dynamo.Item, names ...string) {
	b.T.Helper()
	b.Fixture.Change(b.Names.Wallets, dynamo.Item{"pk": dynamo.Text("p")}, expression, values, names...)
}

// change updates an entry of p in the ledger.
func (b *account) change(name, expression string, values dynamo.Item) {
	b.T.Helper()
	b.Fixture.Change(b.Names.Ledger, b.entry(name), expression, values)
}

// byOperator returns the key of an operator's entry of p.
func (b *account) byOperator(name string) dynamo.Item {
	return dynamo.Item{"pk": dynamo.Text("p"), "sk": dynamo.Text(string(b.keys[name]))}
}

func (b *account) entry(name string) dynamo.Item { return enginetest.LedgerKey("p", b.keys[name]) }

// Lease returns the name of a lease in the wallet.
func lease(key wallet.Key, slots int) string { return wallet.Lease{Key: key, Slots: slots}.Name() }

// TestVerify checks that sound wallets have no finding, that each planted damage is found in its project and in no
// other, that the smallest damage is found, and that values at the limits are no damage.
func TestVerify(t *testing.T) {
	t.Parallel()
	text, now := dynamo.Text, time.Now()
	amount := func(n int64) dynamo.Item { return dynamo.Item{":v": dynamo.Number(n)} }
	old, young := wallet.NewKey(now.Add(-31*time.Minute), "old"), wallet.NewKey(now.Add(-20*time.Minute), "young")
	item := func(project string, key wallet.Key, state wallet.State, credits int64, more dynamo.Item) dynamo.Item {
		made := dynamo.Item{
			"st": text(string(state)), "cr": dynamo.Number(credits),
			"ts": text(now.UTC().Format(time.RFC3339Nano)), "by": text("test"), "why": text("test"),
		}
		maps.Copy(made, enginetest.LedgerKey(project, key))
		maps.Copy(made, more)
		return made
	}
	operators := func(key wallet.Key, state wallet.State, credits int64, more dynamo.Item) dynamo.Item {
		return item("p", key, state, credits, both(more, dynamo.Item{"pk": text("p")}))
	}
	charge := func(key wallet.Key, state wallet.State, credits int64, more dynamo.Item) func(*account) {
		return func(b *account) { b.Put(b.Names.Ledger, item("p", key, state, credits, more)) }
	}
	movement := func(key wallet.Key, state wallet.State, credits int64, more dynamo.Item) func(*account) {
		return func(b *account) { b.Put(b.Names.Movements, operators(key, state, credits, more)) }
	}
	resolution := func(key wallet.Key, state wallet.State, credits int64, more dynamo.Item) func(*account) {
		return func(b *account) { b.Put(b.Names.Resolutions, operators(key, state, credits, more)) }
	}
	update := func(expression string, by int64) func(*account) {
		return func(b *account) { b.wallet(expression, amount(by)) }
	}
	const confirmed, refunded = wallet.State(books.VerdictConfirmed), wallet.State(books.VerdictRefunded)
	for _, c := range []struct {
		name  string
		plant func(*account)
		want  string // the kinds of damage, sorted
	}{
		{"clean", func(*account) {}, ""},
		{"a balance that was raised", update("SET balance = balance + :v", 1), "unbalanced"},
		{"a negative balance", update("SET balance = :v", -5), "overdrawn, unbalanced"},
		{"a lost charge", func(b *account) { b.Drop(b.Names.Ledger, b.entry("captured")) }, "unbalanced"},
		{"a lost grant", func(b *account) { b.Drop(b.Names.Movements, b.byOperator("grant")) }, "unbalanced"},
		{"a changed charge", func(b *account) { b.change("captured", "SET cr = :v", amount(3)) }, "unbalanced"},
		{"a charge of another amount than reserved",
			func(b *account) { b.change("captured and pending", "SET cr = :v", amount(31)) },
			"mismatched, unbalanced"},
		{"a lost reservation", func(b *account) {
			b.wallet("REMOVE pending.#k", nil, lease(b.keys["pending"], 1))
		}, "unbalanced"},
		{"a lost wallet", func(b *account) { b.Drop(b.Names.Wallets, dynamo.Item{"pk": text("p")}) }, "no wallet"},
		{"an entry that cannot be read", func(b *account) {
			b.Put(b.Names.Ledger, dynamo.Item{"pk": text("p#0#2026-01-01"), "sk": text("x"), "st": text("captured")})
		}, "unreadable"},
		{"a reservation that cannot be read", func(b *account) {
			b.wallet("SET pending.#k = :v", dynamo.Item{":v": text("x")}, "0") // the first one
		}, "unreadable"},
		{"an entry under another day", func(b *account) {
			item := b.entry("captured")
			got, err := b.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.Names.Ledger, Key: item})
			b.Must(err)
			b.Drop(b.Names.Ledger, item)
			got.Item["pk"] = text("p#0#" + time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly))
			b.Put(b.Names.Ledger, got.Item)
		}, "misplaced"},
		{"a grant without its reason",
			func(b *account) { b.Fixture.Change(b.Names.Movements, b.byOperator("grant"), "REMOVE why", nil) },
			"unexplained"},
		{"a charge refunded twice", func(b *account) {
			b.Put(b.Names.Movements, operators(young, wallet.Refunded, 30, dynamo.Item{"of": text(string(b.keys["to refund"]))}))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(30))
		}, "overpaid"},
		{"a changed grant", func(b *account) {
			b.Fixture.Change(b.Names.Movements, b.byOperator("grant"), "SET cr = :v", amount(1001))
		}, "unbalanced"},
		{"a changed sum of grants", update("SET granted = granted + :v", 1), "unbalanced"},
		// What a function that is taken over can write: docs/threat-model.md.
		{"a forged grant, with its balance", func(b *account) {
			b.Put(b.Names.Ledger, item("p", young, wallet.Granted, 7, nil))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(7))
		}, "forged, unbalanced"},
		{"a forged refund", func(b *account) {
			b.Put(b.Names.Ledger, item("p", young, wallet.Refunded, 30, dynamo.Item{"of": text(string(b.keys["captured"]))}))
		}, "forged"},
		{"a forged adjustment", charge(young, wallet.Adjustment, -7, nil), "forged"},
		{"a forged confirmation", charge(young, confirmed, 30, nil), "forged"},
		{"a forged resolution in place of a charge",
			func(b *account) { b.change("captured", "SET st = :v", dynamo.Item{":v": text(string(refunded))}) },
			"forged, unbalanced"},
		{"a charge that was lowered after its resolution", func(b *account) {
			b.uncertain("p", "open", books.VerdictConfirmed)
			b.change("open", "SET cr = :v", amount(1))
			b.wallet("SET balance = balance + :v", amount(29))
		}, "mismatched"},
		{"charges whose sum overflows to 0", func(b *account) {
			for i := range 4 {
				b.Put(b.Names.Ledger, item("p", wallet.NewKey(now, fmt.Sprint(i)), wallet.Captured, 1<<62, nil))
			}
		}, "unbalanced"},
		{"credits that were moved to a wallet that no request finds", func(b *account) {
			b.Put(b.Names.Wallets, dynamo.Item{"pk": text("p#5"), "balance": dynamo.Number(5)})
			b.wallet("SET balance = balance - :v", amount(5))
		}, "misplaced, unbalanced"},
		{"a wallet without a fence", func(b *account) { b.wallet("REMOVE fence", nil) }, "unreadable"},
		{"a wallet that lends less than its leases", update("SET lent = lent + :v", 1), "unbalanced"},
		{"a lease that charged more than it has", func(b *account) {
			key := wallet.NewKey(now, "lease")
			b.wallet("SET balance = balance - :v, lent = lent + :lent, pending.#k = :v",
				both(amount(64), dynamo.Item{":lent": dynamo.Number(64 * 16)}),
				lease(key, 64))
			for slot := range 2 {
				b.Put(b.Names.Ledger, item("p", wallet.Key(fmt.Sprintf("%s.%02d", key, slot)), wallet.Captured, 33, nil))
			}
		}, "mismatched"},
		{"credits that are reserved in the future", func(b *account) {
			ahead := wallet.NewKey(now.Add(time.Hour), "ahead")
			b.wallet("SET balance = balance - :v, pending.#k = :v", amount(5), lease(ahead, 1))
		}, "stuck"},
		{"a mark of the future", charge(wallet.NewKey(now.Add(time.Hour), "ahead"), wallet.Sending, 1, nil), "stuck"},
		{"an uncertain charge on another's list", func(b *account) {
			b.uncertain("p", "open", "")
			b.change("open", "SET uncertain = :v", dynamo.Item{":v": text("untouched")})
		}, "unexplained"},
		{"a charge that was erased with its balance, which nothing finds", func(b *account) {
			b.change("captured", "SET st = :v", dynamo.Item{":v": text(string(wallet.Released))})
			b.wallet("SET balance = balance + :v", amount(30))
		}, ""},
		// What a writer of resolutions alone can write.
		{"a grant among the resolutions", resolution(young, wallet.Granted, 7, nil), "forged"},
		{"a refund of nothing among the resolutions", resolution(young, wallet.Refunded, 7, nil), "forged"},
		{"a refund without its resolution", func(b *account) {
			b.Put(b.Names.Resolutions, operators(young, wallet.Refunded, 30,
				dynamo.Item{"of": text(string(b.keys["captured"]))}))
		}, "forged, unbalanced"},
		{"a resolution of nothing", resolution(young, confirmed, 7, nil), "mismatched"},
		{"a resolution among the movements", movement(young, confirmed, 7, nil), "forged"},
		{"a grant under a name that no command reads", func(b *account) {
			b.Put(b.Names.Movements, operators(young, wallet.Granted, 7, dynamo.Item{"pk": text("p#1")}))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(7))
		}, "misplaced"},
		{"a young mark", charge(young, wallet.Sending, 1, nil), ""},
		{"an old mark", charge(old, wallet.Sending, 1, nil), "stuck"},
		{"an old mark with its reservation", func(b *account) {
			b.Put(b.Names.Ledger, item("p", old, wallet.Sending, 1, nil))
			b.wallet("SET pending.#k = :v", amount(1), lease(old, 1))
		}, "stuck, unbalanced"},
		{"a reservation of nothing", func(b *account) { b.wallet("SET pending.#k = :v", amount(0), lease(young, 1)) },
			"unreadable"},
		{"a reservation of one credit", func(b *account) { b.wallet("SET pending.#k = :v", amount(1), lease(young, 1)) },
			"unbalanced"},
		{"a charge of the day after tomorrow", charge(wallet.NewKey(now.Add(48*time.Hour), "late"), wallet.Captured, 1, nil),
			"unbalanced"},
		{"a charge in two partitions", func(b *account) {
			b.Put(b.Names.Ledger, item("p", young, wallet.Captured, 1, nil))
			b.Put(b.Names.Ledger, item("p", young, wallet.Captured, 1, dynamo.Item{"pk": text("p#2026-11-21")}))
		}, "misplaced, unbalanced"},
		{"a charge of nothing", charge(young, wallet.Captured, 0, nil), "unreadable"},
		{"an adjustment of nothing", movement(young, wallet.Adjustment, 0, nil), ""},
		{"an entry under no key", func(b *account) {
			odd := item("p", young, wallet.Captured, 1, nil)
			odd["sk"] = text("x")
			b.Put(b.Names.Ledger, odd)
		}, "unreadable"},
		{"a state of no version", charge(young, "lent", 1, nil), "forged"},
		{"a release", charge(young, wallet.Released, 1, nil), ""},
		{"an uncertain release", charge(young, wallet.Released, 1, dynamo.Item{"uncertain": text("p")}), "unexplained"},
		{"no balance", func(b *account) { b.wallet("REMOVE balance", nil) }, "unreadable"},
		{"no reservations at all", func(b *account) { b.wallet("REMOVE pending", nil) }, "unbalanced"},
		{"reservations that are no map", func(b *account) { b.wallet("SET pending = :v", dynamo.Item{":v": text("x")}) },
			"unbalanced, unreadable"},
		{"an adjustment without its actor", func(b *account) {
			anonymous := operators(young, wallet.Adjustment, 0, nil)
			delete(anonymous, "by")
			b.Put(b.Names.Movements, anonymous)
		}, "unexplained"},
		{"a verdict without its actor", func(b *account) {
			b.Put(b.Names.Resolutions, operators(b.keys["captured"], confirmed, 30, dynamo.Item{"by": text("")}))
		}, "unexplained"},
		{"a verdict on what is uncertain", func(b *account) {
			b.change("uncertain", "SET uncertain = :v", dynamo.Item{":v": text("p#0")})
		}, "unexplained"},
		{"a verdict with its actor", func(b *account) {
			b.Put(b.Names.Resolutions, operators(b.keys["captured"], confirmed, 30, nil))
		}, ""},
		{"a refund that is gone", func(b *account) {
			b.Put(b.Names.Resolutions, operators(b.keys["captured"], refunded, 30, nil))
		}, "overpaid"},
		{"a refund of one credit too many",
			func(b *account) { b.change("to refund", "SET cr = :v", dynamo.Item{":v": dynamo.Number(29)}) },
			"overpaid, unbalanced"},
		{"a refund of nothing that was charged", movement(young, wallet.Refunded, 1, dynamo.Item{"of": text(string(old))}),
			"overpaid, unbalanced"},
		{"a refund of no certain charge", movement(young, wallet.Refunded, 1, nil), "unbalanced"},
		{"a ledger of 0 without a wallet",
			func(b *account) { b.Put(b.Names.Ledger, item("nobody", young, wallet.Released, 1, nil)) }, ""},
		{"a forged grant without a wallet",
			func(b *account) { b.Put(b.Names.Ledger, item("nobody", young, wallet.Granted, 1, nil)) },
			"forged"},
		{"a balance of 0", func(b *account) {
			balance, err := b.Balance(b.T.Context(), "p")
			b.Must(err)
			b.Must(b.Adjust(b.T.Context(), wallettest.Movement("p", now, "all", -balance)))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newAccount(t)
			c.plant(b)
			items := 0
			got, err := b.Verify(t.Context(), func() { items++ })
			if err != nil || got.Wallets+got.Entries != items || got.Wallets == 0 || got.Entries == 0 {
				t.Fatalf("%+v of %d items, %v", got, items, err)
			}
			if found := kinds(got); found != c.want {
				t.Errorf("%+v, want %s", got.Findings, c.want)
			}
			for _, f := range got.Findings {
				if f.Project != "p" && f.Project != "nobody" || f.Detail == "" {
					t.Errorf("finding %+v", f)
				}
			}
		})
	}
}

// kinds returns the kinds of the findings, each once.
func kinds(of *books.Verified) string {
	found := map[string]bool{}
	for _, f := range of.Findings {
		found[string(f.Damage)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// both returns the attributes of both items.
func both(one, other dynamo.Item) dynamo.Item {
	all := maps.Clone(other)
	maps.Copy(all, one)
	return all
}

// TestVerifyWhileMoving checks that Verify ends with the true findings although requests, operators and the settling
// function write the wallet before each of its calls (docs/decisions/money.md#ledger).
func TestVerifyWhileMoving(t *testing.T) {
	t.Parallel()
	const much = 1_000_000 // more than moves meanwhile
	by := func(n int64) dynamo.Item { return dynamo.Item{":v": dynamo.Number(n)} }
	hour := time.Now().Add(-2 * time.Hour)
	for _, test := range []struct {
		name    string
		plant   func(*account)
		settled int // the call before which the old lease is settled
		want    string
	}{
		{"nothing", nil, 0, ""},
		{"a lease that the settler left, settled before the second read of the wallet", nil, 7, ""},
		{"the same, during the second read of charges", nil, 14, "stuck"},
		{"a raised balance", func(b *account) { b.wallet("SET balance = balance + :v", by(much)) }, 0, "unbalanced"},
		{"a lost charge that was old", func(b *account) { b.Drop(b.Names.Ledger, b.entry("old")) }, 0, "unbalanced"},
		{"a changed charge that was young", func(b *account) { b.change("captured", "SET cr = :v", by(much)) }, 0,
			"unbalanced"},
		{"a lost grant", func(b *account) { b.Drop(b.Names.Movements, b.byOperator("much")) }, 0, "unbalanced"},
		{"a charge refunded twice, and an old mark", func(b *account) {
			b.change("to refund", "SET cr = :v", by(29))
			b.change("old", "SET st = :v", dynamo.Item{":v": dynamo.Text(string(wallet.Sending))})
		}, 0, "overpaid, stuck, unbalanced"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newAccount(t)
			grant := wallettest.Movement("p", hour, "much", 4*much)
			b.keys["much"] = grant.Key
			b.Must(b.Grant(t.Context(), grant))
			old := wallettest.Reservation(much, false)
			old.Began = hour
			b.Must(wallettest.Take(t, b.Store, old, "reserve", "capture", "remove"))
			b.keys["old"] = old.Key
			left := wallettest.Reservation(old.Credits, true)
			left.Began = hour.Add(time.Second)
			b.Must(wallettest.Take(t, b.Store, left, "reserve", "mark"))
			if test.plant != nil {
				test.plant(b)
			}
			var mu sync.Mutex
			calls := 0
			store := b.Over(&wallettest.Faults{Before: func(string) {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls >= test.settled && left != nil {
					_, err := wallettest.Settle(t.Context(), b.Store, wallettest.LeaseOf(left))
					b.Must(err)
					left = nil
				}
				b.move(calls)
			}})
			verified, err := store.Verify(t.Context(), nil)
			must.Succeed(t, err)
			if kinds(verified) != test.want || calls < 30 {
				t.Errorf("%+v after %d calls, want %s", verified.Findings, calls, test.want)
			}
			_, err = store.Statement(t.Context(), &books.Reading{}, "p", time.Now(), time.Now(), func() {})
			if errors.Is(err, books.ErrUnbalanced) != strings.Contains(test.want, "unbalanced") {
				t.Errorf("the statement: %v", err)
			}
		})
	}
}

// move changes the wallet of p, each time in another way.
func (b *account) move(n int) {
	ctx, name := b.T.Context(), fmt.Sprint("moved ", n)
	movement := wallettest.Movement("p", time.Now(), name, 7)
	switch n % 7 {
	case 0:
		b.Must(b.Grant(ctx, movement))
	case 1:
		movement.Credits = -5
		b.Must(b.Adjust(ctx, movement))
	case 2:
		b.uncertain("p", name, books.VerdictRefunded)
	case 3:
		b.uncertain("p", name, books.VerdictConfirmed)
	case 4:
		b.Must(b.Release(ctx, b.reserve("p", name, false)))
	case 5:
		b.reserve("p", name, false)
	default:
		r := b.reserve("p", name, false)
		b.Must(b.Capture(ctx, r, wallet.Outcome{}))
		if b.Remove(ctx, r); n%2 == 0 {
			_, err := b.RefundCharge(ctx, "p", r.Key, "broken", "test")
			b.Must(err)
		}
	}
}

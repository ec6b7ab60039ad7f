package books_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	movement := func(name string, at time.Time, credits int64) books.Movement {
		m := wallettest.Movement(project, at, name, credits)
		b.keys[name] = m.ID
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
	r.Project, r.RequestID, r.Key = project, name, wallet.NewKey(time.Now(), name)
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
	const confirmed, refunded = wallet.State(books.VerdictConfirmed), wallet.State(books.VerdictRefunded)
	for _, c := range []struct {
		name  string
		plant func(*account)
		want  []books.Damage // nil: nothing
	}{
		{"clean", func(*account) {}, nil},
		{"a balance that was raised", func(b *account) { b.wallet("SET balance = balance + :v", amount(1)) },
			[]books.Damage{books.Unbalanced}},
		{"a negative balance", func(b *account) { b.wallet("SET balance = :v", amount(-5)) },
			[]books.Damage{books.Overdrawn, books.Unbalanced}},
		{"a lost charge", func(b *account) { b.Drop(b.Names.Ledger, b.entry("captured")) }, []books.Damage{books.Unbalanced}},
		{"a lost grant", func(b *account) { b.Drop(b.Names.Movements, b.byOperator("grant")) },
			[]books.Damage{books.Unbalanced}},
		{"a changed charge", func(b *account) { b.change("captured", "SET cr = :v", amount(3)) },
			[]books.Damage{books.Unbalanced}},
		{"a charge of another amount than reserved",
			func(b *account) { b.change("captured and pending", "SET cr = :v", amount(31)) },
			[]books.Damage{books.Unbalanced, books.Mismatched}},
		{"a lost reservation", func(b *account) {
			b.wallet("REMOVE pending.#k", nil, lease(b.keys["pending"], 1))
		}, []books.Damage{books.Unbalanced}},
		{"a lost wallet", func(b *account) {
			b.Drop(b.Names.Wallets, dynamo.Item{"pk": text("p")})
		}, []books.Damage{books.NoWallet}},
		{"an entry that cannot be read", func(b *account) {
			b.Put(b.Names.Ledger, dynamo.Item{"pk": text("p#0#2026-01-01"), "sk": text("x"), "st": text("captured")})
		}, []books.Damage{books.Unreadable}},
		{"a reservation that cannot be read", func(b *account) {
			b.wallet("SET pending.#k = :v", dynamo.Item{":v": text("x")}, "0") // the first one
		}, []books.Damage{books.Unreadable}},
		{"an entry under another day", func(b *account) {
			item := b.entry("captured")
			got, err := b.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.Names.Ledger, Key: item})
			b.Must(err)
			b.Drop(b.Names.Ledger, item)
			got.Item["pk"] = text("p#0#" + time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly))
			b.Put(b.Names.Ledger, got.Item)
		}, []books.Damage{books.Misplaced}},
		{"a grant without its reason",
			func(b *account) { b.Fixture.Change(b.Names.Movements, b.byOperator("grant"), "REMOVE why", nil) },
			[]books.Damage{books.Unexplained}},
		{"a charge refunded twice", func(b *account) {
			b.Put(b.Names.Movements, operators(young, wallet.Refunded, 30, dynamo.Item{"of": text(string(b.keys["to refund"]))}))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(30))
		}, []books.Damage{books.Overpaid}},
		{"a changed grant", func(b *account) {
			b.Fixture.Change(b.Names.Movements, b.byOperator("grant"), "SET cr = :v", amount(1001))
		}, []books.Damage{books.Unbalanced}},
		{"a changed sum of grants", func(b *account) { b.wallet("SET granted = granted + :v", amount(1)) },
			[]books.Damage{books.Unbalanced}},
		// What a function that is taken over can write: docs/threat-model.md.
		{"a forged grant, with its balance", func(b *account) {
			b.Put(b.Names.Ledger, item("p", young, wallet.Granted, 7, nil))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(7))
		}, []books.Damage{books.Forged, books.Unbalanced}},
		{"a forged refund", func(b *account) {
			b.Put(b.Names.Ledger, item("p", young, wallet.Refunded, 30, dynamo.Item{"of": text(string(b.keys["captured"]))}))
		}, []books.Damage{books.Forged}},
		{"a forged adjustment", func(b *account) { b.Put(b.Names.Ledger, item("p", young, wallet.Adjustment, -7, nil)) },
			[]books.Damage{books.Forged}},
		{"a forged confirmation", func(b *account) { b.Put(b.Names.Ledger, item("p", young, confirmed, 30, nil)) },
			[]books.Damage{books.Forged}},
		{"a forged resolution in place of a charge",
			func(b *account) { b.change("captured", "SET st = :v", dynamo.Item{":v": text(string(refunded))}) },
			[]books.Damage{books.Forged, books.Unbalanced}},
		{"a charge that was lowered after its resolution", func(b *account) {
			b.uncertain("p", "open", books.VerdictConfirmed)
			b.change("open", "SET cr = :v", amount(1))
			b.wallet("SET balance = balance + :v", amount(29))
		}, []books.Damage{books.Mismatched}},
		{"charges whose sum overflows to 0", func(b *account) {
			for i := range 4 {
				b.Put(b.Names.Ledger, item("p", wallet.NewKey(now, fmt.Sprint(i)), wallet.Captured, 1<<62, nil))
			}
		}, []books.Damage{books.Unbalanced}},
		{"credits that were moved to a wallet that no request finds", func(b *account) {
			b.Put(b.Names.Wallets, dynamo.Item{"pk": text("p#5"), "balance": dynamo.Number(5)})
			b.wallet("SET balance = balance - :v", amount(5))
		}, []books.Damage{books.Misplaced, books.Unbalanced}},
		{"a wallet without a fence", func(b *account) { b.wallet("REMOVE fence", nil) }, []books.Damage{books.Unreadable}},
		{"a wallet that lends less than its leases", func(b *account) { b.wallet("SET lent = lent + :v", amount(1)) },
			[]books.Damage{books.Unbalanced}},
		{"a lease that charged more than it has", func(b *account) {
			key := wallet.NewKey(now, "lease")
			b.wallet("SET balance = balance - :v, lent = lent + :lent, pending.#k = :v",
				both(amount(64), dynamo.Item{":lent": dynamo.Number(64 * 16)}),
				lease(key, 64))
			for slot := range 2 {
				b.Put(b.Names.Ledger, item("p", wallet.Key(fmt.Sprintf("%s.%02d", key, slot)), wallet.Captured, 33, nil))
			}
		}, []books.Damage{books.Mismatched}},
		{"credits that are reserved in the future", func(b *account) {
			ahead := wallet.NewKey(now.Add(time.Hour), "ahead")
			b.wallet("SET balance = balance - :v, pending.#k = :v", amount(5), lease(ahead, 1))
		}, []books.Damage{books.Stuck}},
		{"a mark of the future", func(b *account) {
			b.Put(b.Names.Ledger, item("p", wallet.NewKey(now.Add(time.Hour), "ahead"), wallet.Sending, 1, nil))
		}, []books.Damage{books.Stuck}},
		{"an uncertain charge on another's list", func(b *account) {
			b.uncertain("p", "open", "")
			b.change("open", "SET uncertain = :v", dynamo.Item{":v": text("untouched")})
		}, []books.Damage{books.Unexplained}},
		{"a charge that was erased with its balance, which nothing finds", func(b *account) {
			b.change("captured", "SET st = :v", dynamo.Item{":v": text(string(wallet.Released))})
			b.wallet("SET balance = balance + :v", amount(30))
		}, nil},
		// What a writer of resolutions alone can write.
		{"a grant among the resolutions",
			func(b *account) { b.Put(b.Names.Resolutions, operators(young, wallet.Granted, 7, nil)) },
			[]books.Damage{books.Forged}},
		{"a refund of nothing among the resolutions",
			func(b *account) { b.Put(b.Names.Resolutions, operators(young, wallet.Refunded, 7, nil)) },
			[]books.Damage{books.Forged}},
		{"a refund without its resolution", func(b *account) {
			b.Put(b.Names.Resolutions, operators(young, wallet.Refunded, 30,
				dynamo.Item{"of": text(string(b.keys["captured"]))}))
		}, []books.Damage{books.Forged, books.Unbalanced}},
		{"a resolution of nothing", func(b *account) { b.Put(b.Names.Resolutions, operators(young, confirmed, 7, nil)) },
			[]books.Damage{books.Mismatched}},
		{"a resolution among the movements",
			func(b *account) { b.Put(b.Names.Movements, operators(young, confirmed, 7, nil)) },
			[]books.Damage{books.Forged}},
		{"a grant under a name that no command reads", func(b *account) {
			b.Put(b.Names.Movements, operators(young, wallet.Granted, 7, dynamo.Item{"pk": text("p#1")}))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(7))
		}, []books.Damage{books.Misplaced}},
		{"a young mark", func(b *account) { b.Put(b.Names.Ledger, item("p", young, wallet.Sending, 1, nil)) }, nil},
		{"an old mark", func(b *account) { b.Put(b.Names.Ledger, item("p", old, wallet.Sending, 1, nil)) },
			[]books.Damage{books.Stuck}},
		{"an old mark with its reservation", func(b *account) {
			b.Put(b.Names.Ledger, item("p", old, wallet.Sending, 1, nil))
			b.wallet("SET pending.#k = :v", amount(1), lease(old, 1))
		}, []books.Damage{books.Stuck, books.Unbalanced}},
		{"a reservation of nothing", func(b *account) { b.wallet("SET pending.#k = :v", amount(0), lease(young, 1)) },
			[]books.Damage{books.Unreadable}},
		{"a reservation of one credit", func(b *account) { b.wallet("SET pending.#k = :v", amount(1), lease(young, 1)) },
			[]books.Damage{books.Unbalanced}},
		{"a charge of the day after tomorrow", func(b *account) {
			b.Put(b.Names.Ledger, item("p", wallet.NewKey(now.Add(48*time.Hour), "late"), wallet.Captured, 1, nil))
		}, []books.Damage{books.Unbalanced}},
		{"a charge in two partitions", func(b *account) {
			b.Put(b.Names.Ledger, item("p", young, wallet.Captured, 1, nil))
			b.Put(b.Names.Ledger, item("p", young, wallet.Captured, 1, dynamo.Item{"pk": text("p#2026-11-21")}))
		}, []books.Damage{books.Unbalanced, books.Misplaced}},
		{"a charge of nothing", func(b *account) { b.Put(b.Names.Ledger, item("p", young, wallet.Captured, 0, nil)) },
			[]books.Damage{books.Unreadable}},
		{"an adjustment of nothing", func(b *account) {
			b.Put(b.Names.Movements,
				operators(young, wallet.Adjustment, 0, nil))
		},
			nil},
		{"an entry under no key", func(b *account) {
			odd := item("p", young, wallet.Captured, 1, nil)
			odd["sk"] = text("x")
			b.Put(b.Names.Ledger, odd)
		}, []books.Damage{books.Unreadable}},
		{"a state of no version", func(b *account) { b.Put(b.Names.Ledger, item("p", young, "lent", 1, nil)) },
			[]books.Damage{books.Forged}},
		{"a release", func(b *account) { b.Put(b.Names.Ledger, item("p", young, wallet.Released, 1, nil)) }, nil},
		{"an uncertain release", func(b *account) {
			b.Put(b.Names.Ledger, item("p", young, wallet.Released, 1, dynamo.Item{"uncertain": text("p")}))
		}, []books.Damage{books.Unexplained}},
		{"no balance", func(b *account) { b.wallet("REMOVE balance", nil) }, []books.Damage{books.Unreadable}},
		{"no reservations at all", func(b *account) { b.wallet("REMOVE pending", nil) }, []books.Damage{books.Unbalanced}},
		{"reservations that are no map", func(b *account) { b.wallet("SET pending = :v", dynamo.Item{":v": text("x")}) },
			[]books.Damage{books.Unreadable, books.Unbalanced}},
		{"an adjustment without its actor", func(b *account) {
			anonymous := operators(young, wallet.Adjustment, 0, nil)
			delete(anonymous, "by")
			b.Put(b.Names.Movements, anonymous)
		}, []books.Damage{books.Unexplained}},
		{"a verdict without its actor", func(b *account) {
			b.Put(b.Names.Resolutions, operators(b.keys["captured"], confirmed, 30, dynamo.Item{"by": text("")}))
		}, []books.Damage{books.Unexplained}},
		{"a verdict on what is uncertain", func(b *account) {
			b.change("uncertain", "SET uncertain = :v", dynamo.Item{":v": text("p#0")})
		}, []books.Damage{books.Unexplained}},
		{"a verdict with its actor", func(b *account) {
			b.Put(b.Names.Resolutions, operators(b.keys["captured"], confirmed, 30, nil))
		}, nil},
		{"a refund that is gone", func(b *account) {
			b.Put(b.Names.Resolutions, operators(b.keys["captured"], refunded, 30, nil))
		}, []books.Damage{books.Overpaid}},
		{"a refund of one credit too many",
			func(b *account) { b.change("to refund", "SET cr = :v", dynamo.Item{":v": dynamo.Number(29)}) },
			[]books.Damage{books.Overpaid, books.Unbalanced}},
		{"a refund of nothing that was charged", func(b *account) {
			b.Put(b.Names.Movements, operators(young, wallet.Refunded, 1, dynamo.Item{"of": text(string(old))}))
		}, []books.Damage{books.Overpaid, books.Unbalanced}},
		{"a refund of no certain charge",
			func(b *account) { b.Put(b.Names.Movements, operators(young, wallet.Refunded, 1, nil)) },
			[]books.Damage{books.Unbalanced}},
		{"a ledger of 0 without a wallet",
			func(b *account) { b.Put(b.Names.Ledger, item("nobody", young, wallet.Released, 1, nil)) }, nil},
		{"a balance of 0", func(b *account) {
			balance, err := b.Balance(b.T.Context(), "p")
			b.Must(err)
			b.Must(b.Adjust(b.T.Context(), wallettest.Movement("p", now, "all", -balance)))
		}, nil},
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
			var found []books.Damage
			for _, f := range got.Findings {
				if found = append(found, f.Damage); f.Project != "p" || f.Detail == "" {
					t.Errorf("finding %+v", f)
				}
			}
			slices.Sort(found)
			slices.Sort(c.want)
			if found = slices.Compact(found); !slices.Equal(found, c.want) {
				t.Errorf("%+v, want %v", got.Findings, c.want)
			}
		})
	}
}

// both returns the attributes of both items.
func both(one, other dynamo.Item) dynamo.Item {
	all := maps.Clone(other)
	maps.Copy(all, one)
	return all
}

// TestVerifyWhileMoving checks that Verify reads a project again that changes between the reads of its wallet and of
// its ledger, and reports a project that always changes as busy.
func TestVerifyWhileMoving(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		queries int // how many of them, after the scan of the ledger, find a grant made just before
		want    string
	}{
		{"once", 0, "[]"},
		{"twice", 1, "[]"},
		{"all the time", 1000, "[busy]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			direct := wallettest.New(t, 1000)
			for i := range 5 {
				must.Succeed(t, wallettest.Take(t, direct.Store, wallettest.Request(10, fmt.Sprint(i)),
					"reserve", "capture", "remove"))
			}
			calls, granted := map[string]int{}, 0
			grant := func() {
				granted++
				if err := direct.Grant(context.Background(),
					wallettest.Movement("p", time.Now().AddDate(0, 0, -1), fmt.Sprint(granted), 1)); err != nil {
					t.Error(err)
				}
			}
			grant()
			store := direct.Over(&wallettest.Faults{Before: func(call string) {
				calls[call]++
				if call == "Scan" && calls[call] == 2 || call == "Query" && calls[call] <= test.queries {
					grant()
				}
			}})
			verified, err := store.Verify(t.Context(), nil)
			must.Succeed(t, err)
			found := []books.Damage{}
			for _, f := range verified.Findings {
				found = append(found, f.Damage)
			}
			if fmt.Sprint(found) != test.want || granted < 2+min(test.queries, 3) {
				t.Errorf("%+v after %d grants, want %s", verified.Findings, granted, test.want)
			}
		})
	}
}

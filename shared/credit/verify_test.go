package credit_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
	"svcapi/test/must"
)

// books is a fixture with two projects that have every kind of movement, to plant damage in them.
type books struct {
	*fixture
	keys map[string]credit.Key // by name
}

func newBooks(t *testing.T) *books {
	b := &books{newFixture(t, 0), map[string]credit.Key{}}
	for _, project := range []string{"untouched", "p"} {
		b.fill(project)
	}
	return b
}

// fill gives a project every kind of movement.
func (b *books) fill(project string) {
	ctx, now := context.Background(), time.Now()
	b.project(project, 0)
	movement := func(name string, at time.Time, credits int64) credit.Movement {
		m := movementOf(project, at, name, credits)
		b.keys[name] = m.ID
		return m
	}
	b.must(b.Grant(ctx, movement("grant", now.AddDate(0, 0, -40), 1000)))
	b.must(b.Adjust(ctx, movement("adjustment", now.AddDate(0, 0, -2), -50)))
	for _, name := range []string{"captured", "to refund"} {
		r := b.reserve(project, name, false)
		b.must(b.Capture(ctx, r, credit.Outcome{}))
		b.Remove(ctx, r)
	}
	_, err := b.RefundCharge(ctx, project, b.keys["to refund"], "broken", "test")
	b.must(err)
	b.must(b.Release(ctx, b.reserve(project, "failed", false)))
	b.uncertain(project, "uncertain", credit.VerdictRefunded)
	b.reserve(project, "pending", false)
	b.must(b.Capture(ctx, b.reserve(project, "captured and pending", false), credit.Outcome{}))
}

func (b *books) reserve(project, name string, irrevocable bool) *credit.Reservation {
	r := reservation(30, irrevocable)
	r.Project, r.RequestID, r.Key = project, name, credit.NewKey(time.Now(), name)
	b.must(b.Reserve(b.t.Context(), r))
	b.keys[name] = r.Key
	return r
}

// uncertain charges an uncertain SMS, and resolves the charge unless the verdict is empty.
func (b *books) uncertain(project, name string, verdict credit.Verdict) {
	r := b.reserve(project, name, true)
	b.must(b.Mark(b.t.Context(), r))
	b.must(b.Capture(b.t.Context(), r, credit.Outcome{Uncertain: true}))
	b.Remove(b.t.Context(), r)
	if verdict != "" {
		_, err := b.Resolve(b.t.Context(), project, r.Key, by("anne", verdict))
		b.must(err)
	}
}

// wallet updates the wallet of p.
func (b *books) wallet(expression string, values dynamo.Item, names ...string) {
	b.t.Helper()
	b.fixture.change(b.names.Wallets, dynamo.Item{"pk": dynamo.Text("p")}, expression, values, names...)
}

// change updates an entry of p in the ledger.
func (b *books) change(name, expression string, values dynamo.Item) {
	b.t.Helper()
	b.fixture.change(b.names.Ledger, b.entry(name), expression, values)
}

// byOperator returns the key of an operator's entry of p.
func (b *books) byOperator(name string) dynamo.Item {
	return dynamo.Item{"pk": dynamo.Text("p"), "sk": dynamo.Text(string(b.keys[name]))}
}

func (b *books) entry(name string) dynamo.Item { return enginetest.LedgerKey("p", b.keys[name]) }

// lease returns the name of a lease in the wallet.
func lease(key credit.Key, slots int) string { return credit.Lease{Key: key, Slots: slots}.Name() }

// TestVerify checks that sound wallets have no finding, that each planted damage is found in its project and in no
// other, that the smallest damage is found, and that values at the limits are no damage.
func TestVerify(t *testing.T) {
	t.Parallel()
	text, now := dynamo.Text, time.Now()
	amount := func(n int64) dynamo.Item { return dynamo.Item{":v": dynamo.Number(n)} }
	old, young := credit.NewKey(now.Add(-31*time.Minute), "old"), credit.NewKey(now.Add(-20*time.Minute), "young")
	item := func(project string, key credit.Key, state credit.State, credits int64, more dynamo.Item) dynamo.Item {
		made := dynamo.Item{
			"st": text(string(state)), "cr": dynamo.Number(credits),
			"ts": text(now.UTC().Format(time.RFC3339Nano)), "by": text("test"), "why": text("test"),
		}
		maps.Copy(made, enginetest.LedgerKey(project, key))
		maps.Copy(made, more)
		return made
	}
	operators := func(key credit.Key, state credit.State, credits int64, more dynamo.Item) dynamo.Item {
		return item("p", key, state, credits, both(more, dynamo.Item{"pk": text("p")}))
	}
	const confirmed, refunded = credit.State(credit.VerdictConfirmed), credit.State(credit.VerdictRefunded)
	for _, c := range []struct {
		name  string
		plant func(*books)
		want  []credit.Damage // nil: nothing
	}{
		{"clean", func(*books) {}, nil},
		{"a balance that was raised", func(b *books) { b.wallet("SET balance = balance + :v", amount(1)) },
			[]credit.Damage{credit.Unbalanced}},
		{"a negative balance", func(b *books) { b.wallet("SET balance = :v", amount(-5)) },
			[]credit.Damage{credit.Overdrawn, credit.Unbalanced}},
		{"a lost charge", func(b *books) { b.drop(b.names.Ledger, b.entry("captured")) }, []credit.Damage{credit.Unbalanced}},
		{"a lost grant", func(b *books) { b.drop(b.names.Movements, b.byOperator("grant")) },
			[]credit.Damage{credit.Unbalanced}},
		{"a changed charge", func(b *books) { b.change("captured", "SET cr = :v", amount(3)) },
			[]credit.Damage{credit.Unbalanced}},
		{"a charge of another amount than reserved",
			func(b *books) { b.change("captured and pending", "SET cr = :v", amount(31)) },
			[]credit.Damage{credit.Unbalanced, credit.Mismatched}},
		{"a lost reservation", func(b *books) {
			b.wallet("REMOVE pending.#k", nil, lease(b.keys["pending"], 1))
		}, []credit.Damage{credit.Unbalanced}},
		{"a lost wallet", func(b *books) {
			b.drop(b.names.Wallets, dynamo.Item{"pk": text("p")})
		}, []credit.Damage{credit.NoWallet}},
		{"an entry that cannot be read", func(b *books) {
			b.put(b.names.Ledger, dynamo.Item{"pk": text("p#0#2026-01-01"), "sk": text("x"), "st": text("captured")})
		}, []credit.Damage{credit.Unreadable}},
		{"a reservation that cannot be read", func(b *books) {
			b.wallet("SET pending.#k = :v", dynamo.Item{":v": text("x")}, "0") // the first one
		}, []credit.Damage{credit.Unreadable}},
		{"an entry under another day", func(b *books) {
			item := b.entry("captured")
			got, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.names.Ledger, Key: item})
			b.must(err)
			b.drop(b.names.Ledger, item)
			got.Item["pk"] = text("p#0#" + time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly))
			b.put(b.names.Ledger, got.Item)
		}, []credit.Damage{credit.Misplaced}},
		{"a grant without its reason",
			func(b *books) { b.fixture.change(b.names.Movements, b.byOperator("grant"), "REMOVE why", nil) },
			[]credit.Damage{credit.Unexplained}},
		{"a charge refunded twice", func(b *books) {
			b.put(b.names.Movements, operators(young, credit.Refunded, 30, dynamo.Item{"of": text(string(b.keys["to refund"]))}))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(30))
		}, []credit.Damage{credit.Overpaid}},
		{"a changed grant", func(b *books) {
			b.fixture.change(b.names.Movements, b.byOperator("grant"), "SET cr = :v", amount(1001))
		}, []credit.Damage{credit.Unbalanced}},
		{"a changed sum of grants", func(b *books) { b.wallet("SET granted = granted + :v", amount(1)) },
			[]credit.Damage{credit.Unbalanced}},
		// What a function that is taken over can write: docs/threat-model.md.
		{"a forged grant, with its balance", func(b *books) {
			b.put(b.names.Ledger, item("p", young, credit.Granted, 7, nil))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(7))
		}, []credit.Damage{credit.Forged, credit.Unbalanced}},
		{"a forged refund", func(b *books) {
			b.put(b.names.Ledger, item("p", young, credit.Refunded, 30, dynamo.Item{"of": text(string(b.keys["captured"]))}))
		}, []credit.Damage{credit.Forged}},
		{"a forged adjustment", func(b *books) { b.put(b.names.Ledger, item("p", young, credit.Adjustment, -7, nil)) },
			[]credit.Damage{credit.Forged}},
		{"a forged confirmation", func(b *books) { b.put(b.names.Ledger, item("p", young, confirmed, 30, nil)) },
			[]credit.Damage{credit.Forged}},
		{"a forged resolution in place of a charge",
			func(b *books) { b.change("captured", "SET st = :v", dynamo.Item{":v": text(string(refunded))}) },
			[]credit.Damage{credit.Forged, credit.Unbalanced}},
		{"a charge that was lowered after its resolution", func(b *books) {
			b.uncertain("p", "open", credit.VerdictConfirmed)
			b.change("open", "SET cr = :v", amount(1))
			b.wallet("SET balance = balance + :v", amount(29))
		}, []credit.Damage{credit.Mismatched}},
		{"charges whose sum overflows to 0", func(b *books) {
			for i := range 4 {
				b.put(b.names.Ledger, item("p", credit.NewKey(now, fmt.Sprint(i)), credit.Captured, 1<<62, nil))
			}
		}, []credit.Damage{credit.Unbalanced}},
		{"credits that were moved to a wallet that no request finds", func(b *books) {
			b.put(b.names.Wallets, dynamo.Item{"pk": text("p#5"), "balance": dynamo.Number(5)})
			b.wallet("SET balance = balance - :v", amount(5))
		}, []credit.Damage{credit.Misplaced, credit.Unbalanced}},
		{"a wallet without a fence", func(b *books) { b.wallet("REMOVE fence", nil) }, []credit.Damage{credit.Unreadable}},
		{"a wallet that lends less than its leases", func(b *books) { b.wallet("SET lent = lent + :v", amount(1)) },
			[]credit.Damage{credit.Unbalanced}},
		{"a lease that charged more than it has", func(b *books) {
			key := credit.NewKey(now, "lease")
			b.wallet("SET balance = balance - :v, lent = lent + :lent, pending.#k = :v",
				both(amount(64), dynamo.Item{":lent": dynamo.Number(64 * 16)}),
				lease(key, 64))
			for slot := range 2 {
				b.put(b.names.Ledger, item("p", credit.Key(fmt.Sprintf("%s.%02d", key, slot)), credit.Captured, 33, nil))
			}
		}, []credit.Damage{credit.Mismatched}},
		{"credits that are reserved in the future", func(b *books) {
			ahead := credit.NewKey(now.Add(time.Hour), "ahead")
			b.wallet("SET balance = balance - :v, pending.#k = :v", amount(5), lease(ahead, 1))
		}, []credit.Damage{credit.Stuck}},
		{"a mark of the future", func(b *books) {
			b.put(b.names.Ledger, item("p", credit.NewKey(now.Add(time.Hour), "ahead"), credit.Sending, 1, nil))
		}, []credit.Damage{credit.Stuck}},
		{"an uncertain charge on another's list", func(b *books) {
			b.uncertain("p", "open", "")
			b.change("open", "SET uncertain = :v", dynamo.Item{":v": text("untouched")})
		}, []credit.Damage{credit.Unexplained}},
		{"a charge that was erased with its balance, which nothing finds", func(b *books) {
			b.change("captured", "SET st = :v", dynamo.Item{":v": text(string(credit.Released))})
			b.wallet("SET balance = balance + :v", amount(30))
		}, nil},
		// What a writer of resolutions alone can write.
		{"a grant among the resolutions",
			func(b *books) { b.put(b.names.Resolutions, operators(young, credit.Granted, 7, nil)) },
			[]credit.Damage{credit.Forged}},
		{"a refund of nothing among the resolutions",
			func(b *books) { b.put(b.names.Resolutions, operators(young, credit.Refunded, 7, nil)) },
			[]credit.Damage{credit.Forged}},
		{"a refund without its resolution", func(b *books) {
			b.put(b.names.Resolutions, operators(young, credit.Refunded, 30,
				dynamo.Item{"of": text(string(b.keys["captured"]))}))
		}, []credit.Damage{credit.Forged, credit.Unbalanced}},
		{"a resolution of nothing", func(b *books) { b.put(b.names.Resolutions, operators(young, confirmed, 7, nil)) },
			[]credit.Damage{credit.Mismatched}},
		{"a resolution among the movements", func(b *books) { b.put(b.names.Movements, operators(young, confirmed, 7, nil)) },
			[]credit.Damage{credit.Forged}},
		{"a grant under a name that no command reads", func(b *books) {
			b.put(b.names.Movements, operators(young, credit.Granted, 7, dynamo.Item{"pk": text("p#1")}))
			b.wallet("SET balance = balance + :v, granted = granted + :v", amount(7))
		}, []credit.Damage{credit.Misplaced}},
		{"a young mark", func(b *books) { b.put(b.names.Ledger, item("p", young, credit.Sending, 1, nil)) }, nil},
		{"an old mark", func(b *books) { b.put(b.names.Ledger, item("p", old, credit.Sending, 1, nil)) },
			[]credit.Damage{credit.Stuck}},
		{"an old mark with its reservation", func(b *books) {
			b.put(b.names.Ledger, item("p", old, credit.Sending, 1, nil))
			b.wallet("SET pending.#k = :v", amount(1), lease(old, 1))
		}, []credit.Damage{credit.Stuck, credit.Unbalanced}},
		{"a reservation of nothing", func(b *books) { b.wallet("SET pending.#k = :v", amount(0), lease(young, 1)) },
			[]credit.Damage{credit.Unreadable}},
		{"a reservation of one credit", func(b *books) { b.wallet("SET pending.#k = :v", amount(1), lease(young, 1)) },
			[]credit.Damage{credit.Unbalanced}},
		{"a charge of the day after tomorrow", func(b *books) {
			b.put(b.names.Ledger, item("p", credit.NewKey(now.Add(48*time.Hour), "late"), credit.Captured, 1, nil))
		}, []credit.Damage{credit.Unbalanced}},
		{"a charge in two partitions", func(b *books) {
			b.put(b.names.Ledger, item("p", young, credit.Captured, 1, nil))
			b.put(b.names.Ledger, item("p", young, credit.Captured, 1, dynamo.Item{"pk": text("p#2026-11-21")}))
		}, []credit.Damage{credit.Unbalanced, credit.Misplaced}},
		{"a charge of nothing", func(b *books) { b.put(b.names.Ledger, item("p", young, credit.Captured, 0, nil)) },
			[]credit.Damage{credit.Unreadable}},
		{"an adjustment of nothing", func(b *books) { b.put(b.names.Movements, operators(young, credit.Adjustment, 0, nil)) },
			nil},
		{"an entry under no key", func(b *books) {
			odd := item("p", young, credit.Captured, 1, nil)
			odd["sk"] = text("x")
			b.put(b.names.Ledger, odd)
		}, []credit.Damage{credit.Unreadable}},
		{"a state of no version", func(b *books) { b.put(b.names.Ledger, item("p", young, "lent", 1, nil)) },
			[]credit.Damage{credit.Forged}},
		{"a release", func(b *books) { b.put(b.names.Ledger, item("p", young, credit.Released, 1, nil)) }, nil},
		{"an uncertain release", func(b *books) {
			b.put(b.names.Ledger, item("p", young, credit.Released, 1, dynamo.Item{"uncertain": text("p")}))
		}, []credit.Damage{credit.Unexplained}},
		{"no balance", func(b *books) { b.wallet("REMOVE balance", nil) }, []credit.Damage{credit.Unreadable}},
		{"no reservations at all", func(b *books) { b.wallet("REMOVE pending", nil) }, []credit.Damage{credit.Unbalanced}},
		{"reservations that are no map", func(b *books) { b.wallet("SET pending = :v", dynamo.Item{":v": text("x")}) },
			[]credit.Damage{credit.Unreadable, credit.Unbalanced}},
		{"an adjustment without its actor", func(b *books) {
			anonymous := operators(young, credit.Adjustment, 0, nil)
			delete(anonymous, "by")
			b.put(b.names.Movements, anonymous)
		}, []credit.Damage{credit.Unexplained}},
		{"a verdict without its actor", func(b *books) {
			b.put(b.names.Resolutions, operators(b.keys["captured"], confirmed, 30, dynamo.Item{"by": text("")}))
		}, []credit.Damage{credit.Unexplained}},
		{"a verdict on what is uncertain", func(b *books) {
			b.change("uncertain", "SET uncertain = :v", dynamo.Item{":v": text("p#0")})
		}, []credit.Damage{credit.Unexplained}},
		{"a verdict with its actor", func(b *books) {
			b.put(b.names.Resolutions, operators(b.keys["captured"], confirmed, 30, nil))
		}, nil},
		{"a refund that is gone", func(b *books) {
			b.put(b.names.Resolutions, operators(b.keys["captured"], refunded, 30, nil))
		}, []credit.Damage{credit.Overpaid}},
		{"a refund of one credit too many",
			func(b *books) { b.change("to refund", "SET cr = :v", dynamo.Item{":v": dynamo.Number(29)}) },
			[]credit.Damage{credit.Overpaid, credit.Unbalanced}},
		{"a refund of nothing that was charged", func(b *books) {
			b.put(b.names.Movements, operators(young, credit.Refunded, 1, dynamo.Item{"of": text(string(old))}))
		}, []credit.Damage{credit.Overpaid, credit.Unbalanced}},
		{"a refund of no certain charge",
			func(b *books) { b.put(b.names.Movements, operators(young, credit.Refunded, 1, nil)) },
			[]credit.Damage{credit.Unbalanced}},
		{"a ledger of 0 without a wallet",
			func(b *books) { b.put(b.names.Ledger, item("nobody", young, credit.Released, 1, nil)) }, nil},
		{"a balance of 0", func(b *books) {
			balance, err := b.Balance(b.t.Context(), "p")
			b.must(err)
			b.must(b.Adjust(b.t.Context(), movementOf("p", now, "all", -balance)))
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBooks(t)
			c.plant(b)
			items := 0
			got, err := b.Verify(t.Context(), func() { items++ })
			if err != nil || got.Wallets+got.Entries != items || got.Wallets == 0 || got.Entries == 0 {
				t.Fatalf("%+v of %d items, %v", got, items, err)
			}
			var found []credit.Damage
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
			direct := newFixture(t, 1000)
			for i := range 5 {
				must.Succeed(t, take(t, direct.Store, request(10, fmt.Sprint(i)), "reserve", "capture", "remove"))
			}
			calls, granted := map[string]int{}, 0
			grant := func() {
				granted++
				if err := direct.Grant(context.Background(),
					movementOf("p", time.Now().AddDate(0, 0, -1), fmt.Sprint(granted), 1)); err != nil {
					t.Error(err)
				}
			}
			grant()
			store := direct.over(&faults{before: func(call string) {
				calls[call]++
				if call == "Scan" && calls[call] == 2 || call == "Query" && calls[call] <= test.queries {
					grant()
				}
			}})
			verified, err := store.Verify(t.Context(), nil)
			must.Succeed(t, err)
			found := []credit.Damage{}
			for _, f := range verified.Findings {
				found = append(found, f.Damage)
			}
			if fmt.Sprint(found) != test.want || granted < 2+min(test.queries, 3) {
				t.Errorf("%+v after %d grants, want %s", verified.Findings, granted, test.want)
			}
		})
	}
}

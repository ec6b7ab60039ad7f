package credit_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
)

// books is a store with two projects that have every kind of movement, and its tables, to plant damage in them.
type books struct {
	t      *testing.T
	client *dynamodb.Client
	tables enginetest.Tables
	store  *credit.Store
	keys   map[string]credit.Key // by name
}

func newBooks(t *testing.T) *books {
	client, tables := enginetest.Client(t)
	b := &books{t, client, tables, credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger}), map[string]credit.Key{}}
	for _, project := range []string{"untouched", "p"} {
		b.fill(project)
	}
	return b
}

func (b *books) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *books) fill(project string) {
	ctx, now := context.Background(), time.Now()
	b.must(b.store.CreateWallet(ctx, project))
	key := func(name string, at time.Time) credit.Key {
		b.keys[name] = credit.NewKey(at, name)
		return b.keys[name]
	}
	movement := func(name string, at time.Time, credits int64) credit.Movement {
		return credit.Movement{Project: project, ID: key(name, at), Credits: credits, Reason: "test", Actor: "test"}
	}
	b.must(b.store.Grant(ctx, movement("grant", now.AddDate(0, 0, -40), 1000)))
	b.must(b.store.Adjust(ctx, movement("adjustment", now.AddDate(0, 0, -2), -50)))
	reserve := func(name string, irrevocable bool) *credit.Reservation {
		r := &credit.Reservation{
			Project: project, Key: key(name, now), Credits: 30, Operation: credit.SMS, Environment: "production", RequestID: name, Irrevocable: irrevocable,
		}
		b.must(b.store.Reserve(ctx, r))
		return r
	}
	for _, name := range []string{"captured", "to refund"} {
		r := reserve(name, false)
		b.must(b.store.Capture(ctx, r, credit.Outcome{}))
		b.store.Remove(ctx, r)
	}
	_, err := b.store.RefundCharge(ctx, project, b.keys["to refund"], "broken", "test")
	b.must(err)
	b.must(b.store.Release(ctx, reserve("failed", false)))
	uncertain := reserve("uncertain", true)
	b.must(b.store.Mark(ctx, uncertain))
	b.must(b.store.Capture(ctx, uncertain, credit.Outcome{Uncertain: true}))
	b.store.Remove(ctx, uncertain)
	_, err = b.store.Resolve(ctx, project, uncertain.Key, credit.Resolution{Verdict: credit.VerdictRefunded, Reason: "lost", Actor: "test"})
	b.must(err)
	reserve("pending", false)
	b.must(b.store.Capture(ctx, reserve("captured and pending", false), credit.Outcome{}))
}

// wallet updates the wallet of p.
func (b *books) wallet(expression string, values dynamo.Item, names map[string]string) {
	b.t.Helper()
	_, err := b.client.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
		TableName: &b.tables.Wallets, Key: dynamo.Item{"pk": dynamo.Text("p")},
		UpdateExpression: &expression, ExpressionAttributeValues: values, ExpressionAttributeNames: names,
	})
	b.must(err)
}

func (b *books) entry(name string) dynamo.Item {
	k := b.keys[name]
	return dynamo.Item{"pk": dynamo.Text("p#" + k.Day()), "sk": dynamo.Text(string(k))}
}

// change updates an entry of p.
func (b *books) change(name, expression string, values dynamo.Item) {
	b.t.Helper()
	_, err := b.client.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
		TableName: &b.tables.Ledger, Key: b.entry(name), UpdateExpression: &expression, ExpressionAttributeValues: values,
	})
	b.must(err)
}

func (b *books) drop(name string) {
	b.t.Helper()
	_, err := b.client.DeleteItem(b.t.Context(), &dynamodb.DeleteItemInput{TableName: &b.tables.Ledger, Key: b.entry(name)})
	b.must(err)
}

func (b *books) put(item dynamo.Item) {
	b.t.Helper()
	_, err := b.client.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: &b.tables.Ledger, Item: item})
	b.must(err)
}

// TestVerify checks that sound wallets have no finding, and that each planted damage is found in its project and in no other.
func TestVerify(t *testing.T) {
	t.Parallel()
	amount := func(n int64) dynamo.Item { return dynamo.Item{":v": dynamo.Number(n)} }
	for _, c := range []struct {
		name  string
		plant func(*books)
		want  []credit.Damage // nil: nothing
	}{
		{"clean", func(*books) {}, nil},
		{"a balance that was raised", func(b *books) { b.wallet("SET balance = balance + :v", amount(1), nil) }, []credit.Damage{credit.Unbalanced}},
		{"a negative balance", func(b *books) { b.wallet("SET balance = :v", amount(-5), nil) }, []credit.Damage{credit.Overdrawn, credit.Unbalanced}},
		{"a lost charge", func(b *books) { b.drop("captured") }, []credit.Damage{credit.Unbalanced}},
		{"a lost grant", func(b *books) { b.drop("grant") }, []credit.Damage{credit.Unbalanced}},
		{"a changed charge", func(b *books) { b.change("captured", "SET cr = :v", amount(3)) }, []credit.Damage{credit.Unbalanced}},
		{"a charge of another amount than reserved", func(b *books) { b.change("captured and pending", "SET cr = :v", amount(31)) }, []credit.Damage{credit.Unbalanced, credit.Mismatched}},
		{"a lost reservation", func(b *books) {
			b.wallet("REMOVE pending.#k", nil, map[string]string{"#k": string(b.keys["pending"])})
		}, []credit.Damage{credit.Unbalanced}},
		{"a lost wallet", func(b *books) {
			_, err := b.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &b.tables.Wallets, Key: dynamo.Item{"pk": dynamo.Text("p")}})
			b.must(err)
		}, []credit.Damage{credit.NoWallet}},
		{"an entry that cannot be read", func(b *books) {
			b.put(dynamo.Item{"pk": dynamo.Text("p#2026-01-01"), "sk": dynamo.Text("x"), "st": dynamo.Text("captured")})
		}, []credit.Damage{credit.Unreadable}},
		{"a reservation that cannot be read", func(b *books) {
			b.wallet("SET pending.#k = :v", dynamo.Item{":v": dynamo.Text("x")}, map[string]string{"#k": "0"}) // the first one
		}, []credit.Damage{credit.Unreadable}},
		{"an entry under another day", func(b *books) {
			item := b.entry("grant")
			got, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.tables.Ledger, Key: item})
			b.must(err)
			b.drop("grant")
			got.Item["pk"] = dynamo.Text("p#" + time.Now().UTC().Format(time.DateOnly))
			b.put(got.Item)
		}, []credit.Damage{credit.Misplaced}},
		{"a grant without its reason", func(b *books) { b.change("grant", "REMOVE why", nil) }, []credit.Damage{credit.Unexplained}},
		{"a charge refunded twice", func(b *books) {
			b.must(b.store.Refund(t.Context(), credit.Movement{Project: "p", ID: credit.NewKey(time.Now(), "again"), Credits: 30, Reason: "again", Actor: "test", Refunds: b.keys["to refund"]}))
		}, []credit.Damage{credit.Overpaid}},
		{"a reservation that was never settled", func(b *books) {
			old := credit.NewKey(time.Now().Add(-time.Hour), "old")
			b.must(b.store.Reserve(t.Context(), &credit.Reservation{Project: "p", Key: old, Credits: 1, Operation: credit.SMS, Environment: "production", RequestID: "old"}))
		}, []credit.Damage{credit.Stuck}},
		{"an uncertain grant", func(b *books) { b.change("grant", "SET uncertain = :v", dynamo.Item{":v": dynamo.Text("p")}) }, []credit.Damage{credit.Unexplained}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBooks(t)
			c.plant(b)
			got, err := b.store.Verify(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			found := map[credit.Damage]bool{}
			for _, f := range got.Findings {
				found[f.Damage] = true
				if f.Project != "p" || f.Detail == "" {
					t.Errorf("finding %+v", f)
				}
			}
			for _, damage := range c.want {
				if !found[damage] {
					t.Errorf("%s is not among %+v", damage, got.Findings)
				}
			}
			if len(found) != len(c.want) || got.Entries == 0 || got.Wallets == 0 {
				t.Errorf("%+v, want %v", got, c.want)
			}
		})
	}
}

// RefundCharge refunds a charge once, however many operators repeat the refund, and never refunds an uncertain charge.
func TestRefundCharge(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	before, err := b.store.Balance(t.Context(), "p")
	b.must(err)
	for range 2 {
		if _, err := b.store.RefundCharge(t.Context(), "p", b.keys["captured"], "late", "test"); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"grant", "uncertain", "pending"} {
		if _, err := b.store.RefundCharge(t.Context(), "p", b.keys[name], "late", "test"); err == nil {
			t.Errorf("%s was refunded", name)
		}
	}
	if after, err := b.store.Balance(t.Context(), "p"); err != nil || after != before+30 {
		t.Errorf("balance %d, %v; want %d", after, err, before+30)
	}
}

// TestLow checks that the pass over reservations reports a wallet below its alert, and none at its alert or without one.
func TestLow(t *testing.T) {
	t.Parallel()
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	for project, alert := range map[string]int64{"none": 0, "above": 99, "at": 100, "below": 101} {
		if err := store.CreateWallet(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		if err := store.Grant(t.Context(), credit.Movement{Project: project, ID: credit.NewKey(time.Now(), "g"), Credits: 100}); err != nil {
			t.Fatal(err)
		}
		if err := store.SetAlert(t.Context(), project, alert); err != nil {
			t.Fatal(err)
		}
	}
	// Each of two shards holds half of the balance, and the sum of both counts.
	for project, alert := range map[string]int64{"parts-at": 100, "parts-below": 101} {
		grant := credit.Movement{Project: project, ID: credit.NewKey(time.Now(), "g"), Credits: 100}
		if err := errors.Join(store.CreateWallet(t.Context(), project), store.AddShards(t.Context(), project, 2), store.Grant(t.Context(), grant), store.SetAlert(t.Context(), project, alert)); err != nil {
			t.Fatal(err)
		}
		spread(t, store, project)
	}
	var low []credit.LowBalance
	err := store.VisitPending(t.Context(), func(*credit.Reservation, error) error { return nil }, func(l credit.LowBalance) { low = append(low, l) })
	slices.SortFunc(low, func(a, b credit.LowBalance) int { return cmp.Compare(a.Project, b.Project) })
	if err != nil || fmt.Sprint(low) != "[{below 100 101} {parts-below 100 101}]" {
		t.Errorf("%v, %v", low, err)
	}
	if err := store.SetAlert(t.Context(), "nobody", 1); err == nil {
		t.Error("an alert without a wallet")
	}
}

// meddler does something before each call of a client.
type meddler struct{ before func(call string) }

func (m meddler) Do(r *http.Request) (*http.Response, error) {
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	m.before(call)
	return http.DefaultClient.Do(r)
}

// TestVerifyWhileMoving: a project that moves between the looks at its wallet and at its ledger is looked at again; one
// that never rests is said to be busy.
func TestVerifyWhileMoving(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		shards  int
		queries int // how many of them, after the scan of the ledger, find a grant made just before
		want    string
	}{
		{"once", 1, 0, "[]"},
		{"twice", 1, 1, "[]"},
		{"once, in shards", 3, 0, "[]"},
		{"all the time", 1, 1000, "[busy]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			direct := newTabled(t, test.shards, 1000)
			for i := range 5 * test.shards { // entries in more than one shard
				if err := take(t, direct.Store, inShards(test.shards, 10, fmt.Sprint(i)), "reserve", "capture", "remove"); err != nil {
					t.Fatal(err)
				}
			}
			calls, granted := map[string]int{}, 0
			grant := func() {
				granted++
				m := credit.Movement{Project: "p", ID: credit.NewKey(time.Now().AddDate(0, 0, -1), fmt.Sprint(granted)), Credits: 1, Reason: "test", Actor: "test"}
				if err := direct.Grant(context.Background(), m); err != nil {
					t.Error(err)
				}
			}
			grant()
			store := direct.over(meddler{func(call string) {
				calls[call]++
				if call == "Scan" && calls[call] == 2 || call == "Query" && calls[call] <= test.queries {
					grant()
				}
			}})
			verified, err := store.Verify(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
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

package credit_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
	"svcapi/shared/credit"
	"svcapi/test/enginetest"
)

// TestVisitUnreadable checks that VisitPending reports a wallet with one unreadable attribute, and no other wallet.
func TestVisitUnreadable(t *testing.T) {
	t.Parallel()
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	none := &types.AttributeValueMemberM{Value: attr.Item{}}
	for name, item := range map[string]attr.Item{
		"sound":   {"pending": none, "balance": attr.Number(9), "alert": attr.Number(1)},
		"pending": {"pending": attr.Number(1), "balance": attr.Number(9)},
		"balance": {"pending": none, "balance": attr.Text("9")},
		"alert":   {"pending": none, "balance": attr.Number(9), "alert": attr.Text("1")},
	} {
		item["pk"] = attr.Text(name)
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Wallets, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	var reported []string
	err := store.VisitPending(t.Context(), func(_ *credit.Reservation, err error) error {
		if err == nil {
			t.Error("a reservation in a wallet without one")
			return nil
		}
		reported = append(reported, err.Error())
		return nil
	}, func(low credit.LowBalance) { t.Errorf("low: %+v", low) })
	slices.Sort(reported)
	if err != nil || len(reported) != 3 {
		t.Fatalf("%q, %v", reported, err)
	}
	for i, name := range []string{"alert", "balance", "pending"} {
		if prefix := "credit: wallet " + name + ": "; len(reported[i]) <= len(prefix) || reported[i][:len(prefix)] != prefix {
			t.Errorf("%q, want %q…", reported[i], prefix)
		}
	}
}

// TestVisitStops checks that an error of visit about an unreadable wallet ends the walk.
func TestVisitStops(t *testing.T) {
	t.Parallel()
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	unreadable := attr.Item{"pk": attr.Text("p"), "pending": attr.Number(1), "balance": attr.Number(0), "alert": attr.Number(1)}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Wallets, Item: unreadable}); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	for _, want := range []error{stop, nil} {
		low := 0
		err := store.VisitPending(t.Context(), func(*credit.Reservation, error) error { return want }, func(credit.LowBalance) { low++ })
		if !errors.Is(err, want) || (low == 1) != (want == nil) {
			t.Errorf("visit returns %v: %v, %d low balances", want, err, low)
		}
	}
}

// TestSpent checks what projects have spent by their wallets' items: over all shards, and without wallets that cannot be read
// (docs/decisions.md#unusual-spending).
func TestSpent(t *testing.T) {
	t.Parallel()
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	for name, item := range map[string]attr.Item{
		"one":      {"balance": attr.Number(70), "granted": attr.Number(100)},
		"three":    {"balance": attr.Number(10), "granted": attr.Number(100)},
		"three#1":  {"balance": attr.Number(20)},
		"three#2":  {"balance": attr.Number(5)},
		"old":      {"balance": attr.Number(40)}, // a wallet of release 1.0.0, before an operator's next movement
		"balance":  {"balance": attr.Text("9"), "granted": attr.Number(100)},
		"shard":    {"balance": attr.Number(9), "granted": attr.Number(100)},
		"shard#1":  {"balance": attr.Text("9")},
		"granted":  {"balance": attr.Number(9), "granted": attr.Text("100")},
		"named#01": {"balance": attr.Number(9)},
	} {
		item["pk"] = attr.Text(name)
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Wallets, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Spent(t.Context())
	if want := map[string]int64{"one": 30, "three": 65, "old": -40}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

package credit_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
)

// TestVisitUnreadable checks that VisitPending reports a wallet with one unreadable attribute, and no other wallet.
func TestVisitUnreadable(t *testing.T) {
	t.Parallel()
	client, tables := enginetest.Client(t)
	store := credit.NewStore(client, credit.Tables{Wallets: tables.Wallets, Ledger: tables.Ledger})
	none := &types.AttributeValueMemberM{Value: dynamo.Item{}}
	for name, item := range map[string]dynamo.Item{
		"sound":   {"pending": none, "balance": dynamo.Number(9), "alert": dynamo.Number(1)},
		"pending": {"pending": dynamo.Number(1), "balance": dynamo.Number(9)},
		"balance": {"pending": none, "balance": dynamo.Text("9")},
		"alert":   {"pending": none, "balance": dynamo.Number(9), "alert": dynamo.Text("1")},
	} {
		item["pk"] = dynamo.Text(name)
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
	unreadable := dynamo.Item{"pk": dynamo.Text("p"), "pending": dynamo.Number(1), "balance": dynamo.Number(0), "alert": dynamo.Number(1)}
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
	for name, item := range map[string]dynamo.Item{
		"one":      {"balance": dynamo.Number(70), "granted": dynamo.Number(100)},
		"three":    {"balance": dynamo.Number(10), "granted": dynamo.Number(100)},
		"three#1":  {"balance": dynamo.Number(20)},
		"three#2":  {"balance": dynamo.Number(5)},
		"old":      {"balance": dynamo.Number(40)}, // a wallet of release 1.0.0, before an operator's next movement
		"balance":  {"balance": dynamo.Text("9"), "granted": dynamo.Number(100)},
		"shard":    {"balance": dynamo.Number(9), "granted": dynamo.Number(100)},
		"shard#1":  {"balance": dynamo.Text("9")},
		"granted":  {"balance": dynamo.Number(9), "granted": dynamo.Text("100")},
		"named#01": {"balance": dynamo.Number(9)},
	} {
		item["pk"] = dynamo.Text(name)
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Wallets, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Spent(t.Context())
	if want := map[string]int64{"one": 30, "three": 65, "old": -40}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

package credit_test

import (
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

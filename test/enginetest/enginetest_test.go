package enginetest_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/test/enginetest"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// TestTables checks that a test has tables of its own, which are the template's (docs/decisions/operating.md#tables).
func TestTables(t *testing.T) {
	client, tables := enginetest.Client(t)
	ledger := must.Get(client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &tables.Ledger})).Or(t)
	if len(ledger.Table.KeySchema) != 2 || len(ledger.Table.GlobalSecondaryIndexes) != 1 {
		t.Errorf("ledger: keys %v, indexes %v", ledger.Table.KeySchema, ledger.Table.GlobalSecondaryIndexes)
	}
	ttl := must.Get(client.DescribeTimeToLive(context.Background(),
		&dynamodb.DescribeTimeToLiveInput{TableName: &tables.Transient})).Or(t)
	if got := ttl.TimeToLiveDescription; got.TimeToLiveStatus != types.TimeToLiveStatusEnabled ||
		*got.AttributeName != "expires" {
		t.Errorf("transient: time to live %s on %v", got.TimeToLiveStatus, got.AttributeName)
	}
	if _, others := enginetest.Client(t); others.Wallets == tables.Wallets {
		t.Error("two tests share their tables")
	}
}

// Package books is the operator's side of the money: what operators move, how they resolve uncertain charges, and what
// the ledger says about both. What operators do is recorded in tables of its own, which no function may write but the
// one that resolves uncertain sends (docs/decisions/money.md#operator-movements).
package books

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

// Tables names the tables of the wallets and of the ledger, and those of what operators do, which functions neither
// read nor write.
type Tables struct {
	wallet.Tables
	Movements, Resolutions string
}

// NamedTables returns the tables whose names the function name derives from short names such as wallets.
func NamedTables(name func(short string) string) Tables {
	return Tables{wallet.Tables{Wallets: name("wallets"), Ledger: name("ledger")}, name("movements"), name("resolutions")}
}

// Prices returns the prices in the parameters of a stack.
func Prices(parameters map[string]string) (wallet.Prices, error) {
	return wallet.ReadPrices(func(p wallet.Price) (string, bool) {
		text, ok := parameters[p.Parameter]
		return text, ok
	})
}

// Store reads and writes what operators do, on top of what requests do. A Store is safe for concurrent use.
type Store struct {
	*wallet.Store

	client *dynamodb.Client
	tables Tables
}

// NewStore returns a store. The client comes from dynamo.NewClient, because the protocol counts its attempts.
func NewStore(client *dynamodb.Client, tables Tables) *Store {
	return &Store{wallet.NewStore(client, tables.Tables), client, tables}
}

// WithLimits returns a copy of the store with other limits.
func (s *Store) WithLimits(l wallet.Limits) *Store {
	return &Store{s.Store.WithLimits(l), s.client, s.tables}
}

// Entry is an entry of a project's ledger, or of the tables of what operators do, with the resolution of an uncertain
// charge where resolutions are read. The JSON form is the output of "svc credit ledger".
type Entry struct {
	wallet.Entry
	Resolution Resolution `json:"resolution,omitzero"`
}

func decode(item dynamo.Item) (Entry, error) {
	e, err := wallet.DecodeEntry(item)
	return Entry{Entry: e}, err
}

// operatorKey returns the key of an entry in the tables of what operators do.
func operatorKey(project string, key wallet.Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": dynamo.Text(project), "sk": dynamo.Text(string(key))}
}

// Package credit keeps the money of a project: a wallet with the balance and the pending reservations,
// and a ledger whose entries record what happened. What operators do is recorded in tables of its own, which no
// function may write (docs/decisions/money.md#operator-movements).
//
// A paid request reserves its credits, works, and captures the credits; work that fails releases them.
// Each step is one conditional write that may be repeated, and the process may die between any two
// steps. A scheduled function settles what a dead request left. At each moment
//
//	balance + pending without a capture + captures − refunds − adjustments = grants
//
// and the balance is never negative. Amounts are whole credits; a US dollar is 1,000,000 credits
// (docs/decisions/money.md#wallet).
//
// One item of DynamoDB takes 1,000 write units a second. The wallet of a project that needs more consists
// of several shards, each of them an item of its own with its own ledger entries. Credits move between
// the shards where one shard lacks them, so that a request is refused only when all shards together lack
// the credits (docs/decisions/money.md#shards).
package credit

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/dynamo"
)

var (
	// ErrInsufficientCredits refuses a reservation: the wallet has fewer credits, or does not exist.
	ErrInsufficientCredits = errors.New("credit: insufficient credits")
	// ErrInvalidReservation refuses a reservation of no credits, for no project or with a key that NewKey does not produce.
	ErrInvalidReservation = errors.New("credit: invalid reservation")
	// ErrSettled reports that the reservation was settled while its request was alive. The error means that
	// the settling function treats requests as dead before the longest run time of a function has passed.
	ErrSettled = errors.New("credit: reservation settled while its request was alive")
)

// Limits bound the writes of a request, so that the response is sent before the client times out.
type Limits struct {
	// Write bounds Reserve, Mark, Capture, and each write of Release, with all attempts and pauses.
	Write time.Duration
	// Remove bounds the method Remove, which does nothing when less than this time is left before the context's
	// deadline, and each write of Settle: the next run of the settling function finishes the rest.
	Remove time.Duration
	// Rebalance bounds how long a reservation looks for credits in the wallet's shards. The call that is under way at
	// that time has its own bound, Write.
	Rebalance time.Duration
}

// DefaultLimits bound a request's writes. The last writes fit into the 5 seconds that the request keeps back for them.
var DefaultLimits = Limits{Write: dynamo.WriteTimeout, Remove: time.Second, Rebalance: 2 * time.Second}

// Tables names the tables of the wallets and of the ledger, and those of what operators do, which functions neither read
// nor write.
type Tables struct{ Wallets, Ledger, Movements, Resolutions string }

// NamedTables returns the tables whose names the function name derives from short names such as wallets.
func NamedTables(name func(short string) string) Tables {
	return Tables{name("wallets"), name("ledger"), name("movements"), name("resolutions")}
}

// Store reads and writes wallets and their ledger. A Store is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	tables Tables
	limits Limits
}

// NewStore returns a store. The client comes from dynamo.NewClient, because the protocol counts its attempts.
func NewStore(client *dynamodb.Client, tables Tables) *Store {
	return &Store{client: client, tables: tables, limits: DefaultLimits}
}

// WithLimits returns a copy of the store with other limits.
func (s *Store) WithLimits(l Limits) *Store {
	other := *s
	other.limits = l
	return &other
}

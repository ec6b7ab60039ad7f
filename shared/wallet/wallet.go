// Package wallet keeps the money of a project: a wallet with the balance and the open leases,
// and a ledger whose entries record what happened. What operators do is recorded in tables of its own, which no
// function may write (docs/decisions/money.md#operator-movements).
//
// A paid request reserves its credits, works, and captures the credits; work that fails releases them.
// Each step is one conditional write that may be repeated, and the process may die between any two
// steps. A scheduled function closes the leases that instances left. At each moment
//
//	balance + pending without a capture + captures − refunds − adjustments = grants
//
// and the balance is never negative. Amounts are whole credits; a US dollar is 1,000,000 credits
// (docs/decisions/money.md#wallet).
//
// One item of DynamoDB takes 1,000 write units a second. An instance that serves a busy project reserves credits for
// many requests in one write, a lease (docs/decisions/money.md#leases).
package wallet

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
)

var (
	// ErrInsufficientCredits refuses a reservation: the wallet has fewer credits, or does not exist.
	ErrInsufficientCredits = errors.New("wallet: insufficient credits")
	// ErrInvalidReservation refuses a reservation of no credits, for no project or with a key that NewKey does not
	// produce.
	ErrInvalidReservation = errors.New("wallet: invalid reservation")
	// ErrSettled reports that the reservation was settled while its request was alive. The error means that
	// the settling function treats requests as dead before the longest run time of a function has passed.
	ErrSettled = errors.New("wallet: reservation settled while its request was alive")
	// ErrReleased is ErrSettled where nothing is charged or sent under the reservation's key, and nothing can be any more.
	ErrReleased = fmt.Errorf("%w, and released", ErrSettled)
)

// Limits bound the writes of a request, so that the response is sent before the client times out.
type Limits struct {
	// Write bounds Reserve, Mark, Capture, and each write of Release, with all attempts and pauses.
	Write time.Duration
	// Remove bounds the method Remove, which does nothing when less than this time is left before the context's
	// deadline, and each write of Settle: the next run of the settling function finishes the rest.
	Remove time.Duration
	// Leasing holds the numbers of leases.
	Leasing Leasing
}

// DefaultLimits bound a request's writes. The last writes fit into the 5 seconds that the request keeps back for them.
var DefaultLimits = Limits{
	Write: dynamo.WriteTimeout, Remove: time.Second,
	Leasing: Leasing{Life: 40 * time.Second, Slots: mostSlots, From: 4, Floor: 64, Share: 16, AtOnce: 16},
}

// Tables names the tables of the wallets and of the ledger.
type Tables struct{ Wallets, Ledger string }

// Store reads and writes wallets and their ledger. A Store is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	tables Tables
	limits Limits

	lessees *cache.Map[string, *lessee] // by project
}

// NewStore returns a store. The client comes from dynamo.NewClient, because the protocol counts its attempts.
func NewStore(client *dynamodb.Client, tables Tables) *Store {
	return &Store{
		client: client, tables: tables, limits: DefaultLimits, lessees: cache.New[string, *lessee](lesseesCached),
	}
}

// WithLimits returns a copy of the store with other limits.
func (s *Store) WithLimits(l Limits) *Store {
	other := *s
	other.limits = l
	return &other
}

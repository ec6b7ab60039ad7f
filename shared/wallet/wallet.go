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
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/pattern"
)

var (
	// ErrInsufficientCredits refuses a reservation: the wallet has fewer credits, or does not exist.
	ErrInsufficientCredits = errors.New("wallet: insufficient credits")
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
	Limits Limits // DefaultLimits, unless a test sets others before the first call

	client  *dynamodb.Client
	tables  Tables
	lessees *cache.Map[string, *lessee] // by project
}

// NewStore returns a store. The client comes from dynamo.NewClient, because the protocol counts its attempts.
func NewStore(client *dynamodb.Client, tables Tables) *Store {
	return &Store{DefaultLimits, client, tables, cache.New[string, *lessee](lesseesCached)}
}

// Key names one lease, the charge of one request, or one movement: 16 digits of its time in microseconds since 1970,
// "-", and 28 bits of the request ID's digest in 7 hexadecimal digits. Behind the key of a lease of several slots, the
// key of a request has "." and the number of its slot in two hexadecimal digits. Keys sort by time.
type Key string

const (
	keyDigits = 16
	keyDigest = 7
)

// NewKey returns the key of a request that began at that time. A replayed event has its ID again, at another time.
func NewKey(at time.Time, requestID string) Key {
	digest := sha256.Sum256([]byte(requestID))
	return Key(Digits(at) + "-" + hex.EncodeToString(digest[:])[:keyDigest])
}

// Digits returns the digits with which all keys of that time begin.
func Digits(at time.Time) string { return fmt.Sprintf("%0*d", keyDigits, at.UnixMicro()) }

var keyPattern = pattern.New(`^\d{16}-[0-9a-f]{7}(\.[0-7][0-9a-f])?$`)

// ParseKey returns the key that a text is, or an error for a text that is no key.
func ParseKey(s string) (Key, error) {
	if !keyPattern().MatchString(s) {
		return "", fmt.Errorf("wallet: %q is no key", s)
	}
	return Key(s), nil
}

// Lease returns the key of the lease that a key belongs to.
func (k Key) Lease() Key {
	base, _, _ := strings.Cut(string(k), ".")
	return Key(base)
}

// at returns the key of the same request at another time.
func (k Key) at(t time.Time) Key {
	_, digest, _ := strings.Cut(string(k.Lease()), "-")
	return Key(Digits(t) + "-" + digest)
}

// Time returns when the lease or the movement began, in UTC; the zero time for a text that is no key.
func (k Key) Time() time.Time {
	number, _, _ := strings.Cut(string(k), "-")
	micros, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// Day returns the UTC date of the key, 2006-01-02, which names the ledger's partition within a project.
func (k Key) Day() string { return k.Time().Format(time.DateOnly) }

// Grouped returns a number of credits with a comma between groups of three digits: 1,234,567.
func Grouped(credits int64) string {
	digits, sign := strconv.FormatInt(credits, 10), ""
	if credits < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

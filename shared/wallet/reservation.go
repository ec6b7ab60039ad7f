package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// Reservation describes the credits that are reserved for one request.
type Reservation struct {
	Project string
	// Began is when the request began by this instance's clock, Received when the gateway received it, if it is known: an
	// instance's own clock may be late after a freeze. The later one counts.
	Began, Received time.Time
	// Key is the key under which the ledger has the entries of the request, from Reserve on.
	Key         Key
	Credits     int64  // above 0
	Price       string // of the operation, as the price list names it
	Units       int64  // of the request: SMS units, 1 for other operations
	Environment string
	RequestID   string
	// Irrevocable marks work that cannot be taken back once begun (SMS). Mark writes a ledger entry before the
	// first byte leaves, and only a marked reservation can be captured.
	Irrevocable bool
	// Died has the vendor and the reference of the uncertain charge if the request dies.
	Died Outcome

	lease    *lease // that has the slot
	marked   bool   // Mark was called: the ledger may hold the entry "sending"
	ended    bool   // the outcome of the slot is known: a repeat does not count again
	captured bool   // no lease is removed whose charge is not written
}

// InsufficientError is ErrInsufficientCredits with the balance that Balance shows, 0 where there is no wallet.
type InsufficientError struct {
	Balance int64
	// Oldest is the begin of the oldest lease of several slots, where the credits suffice once leases are closed.
	Oldest time.Time
}

// Error returns the text of ErrInsufficientCredits.
func (*InsufficientError) Error() string { return ErrInsufficientCredits.Error() }

// Unwrap returns ErrInsufficientCredits.
func (*InsufficientError) Unwrap() error { return ErrInsufficientCredits }

// Reserve reserves the credits: in the instance's lease, or by one write in the wallet. Reserve returns an
// InsufficientError when the wallet lacks the credits, and another error when no attempt got a response: Reserve has
// then returned the credits that may have been taken.
func (s *Store) Reserve(ctx context.Context, r *Reservation) error {
	if r.Credits <= 0 || r.Project == "" || r.Began.IsZero() {
		return fmt.Errorf("%w: %d credits for project %q at %s", ErrInvalidReservation, r.Credits, r.Project, r.Began)
	}
	began := r.Began.UTC()
	if r.Received.After(began) {
		began = r.Received.UTC()
	}
	l := s.lessees.GetOrPut(r.Project, &lessee{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil && l.lease.take(r, began, s.limits.Leasing.Life) {
		return nil
	}
	return s.acquire(ctx, l, r, began)
}

// remove takes a lease out of the wallet. A lease that is absent is no error.
func (s *Store) remove(ctx context.Context, l Lease) error {
	_, err := s.updatePending(ctx, l, "REMOVE pending.#k", "", nil)
	return err
}

// returnCredits takes a lease out of the wallet and adds its credits to the balance, once.
func (s *Store) returnCredits(ctx context.Context, l Lease) error {
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	_, err := s.updatePending(ctx, l, closing, "", s.closed(l, l.Credits))
	return err
}

// The updates that close a lease; raising also raises the fence.
const (
	closing = "SET balance = balance + :c, lent = lent - :lent REMOVE pending.#k"
	raising = "SET balance = balance + :c, lent = lent - :lent, fence = :fence REMOVE pending.#k"
)

// closed returns the values of an update that closes a lease.
func (s *Store) closed(l Lease, unspent int64) dynamo.Item {
	return dynamo.Item{":c": dynamo.Number(unspent), ":lent": dynamo.Number(l.Lent(s.limits.Leasing))}
}

// updatePending updates a wallet that holds the lease, on a further condition. Otherwise updatePending changes nothing,
// and returns the stored item.
func (s *Store) updatePending(ctx context.Context, l Lease, update, condition string,
	values dynamo.Item) (stored dynamo.Item, err error) {
	_, _, err = dynamo.Write(ctx, s.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.tables.Wallets, Key: ItemKey(l.Project), UpdateExpression: &update,
		ConditionExpression:                 aws.String("attribute_exists(pending.#k)" + condition),
		ExpressionAttributeNames:            map[string]string{"#k": l.Name()},
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if stored, conflict := dynamo.ConditionFailed(err); conflict {
		return stored, nil
	}
	return nil, err
}

// within bounds ctx by the limit and keeps only the deadline of ctx: a cancellation of the work does not count.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	until := time.Now().Add(limit)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

package wallet

import (
	"context"
	"errors"
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
	// Irrevocable is work that cannot be taken back once begun (SMS): only a marked reservation can be captured.
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

// Reserve reserves the credits: in the instance's lease, or by one write in the wallet. Beside an InsufficientError, an
// error says that no attempt got a response: Reserve has then returned the credits that may have been taken.
func (s *Store) Reserve(ctx context.Context, r *Reservation) error {
	if r.Credits <= 0 || r.Project == "" || r.Began.IsZero() {
		return fmt.Errorf("wallet: reserve: %d credits for project %q at %s", r.Credits, r.Project, r.Began)
	}
	began := r.Began.UTC()
	if r.Received.After(began) {
		began = r.Received.UTC()
	}
	l := s.lessees.GetOrPut(r.Project, &lessee{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil && l.lease.take(r, began, s.Limits.Leasing.Life) {
		return nil
	}
	return s.acquire(ctx, l, r, began)
}

// returnCredits takes a lease out of the wallet and adds its credits to the balance, once.
func (s *Store) returnCredits(ctx context.Context, l Lease) error {
	ctx, cancel := within(ctx, s.Limits.Write)
	defer cancel()
	_, err := s.updatePending(ctx, l, closing, "", s.closed(l, l.Credits))
	return err
}

// closing is the update of a wallet that closes a lease.
const closing = "SET balance = balance + :c, lent = lent - :lent"

// closed returns the values of closing.
func (s *Store) closed(l Lease, unspent int64) dynamo.Item {
	return dynamo.Item{":c": dynamo.Number(unspent), ":lent": dynamo.Number(l.Lent(s.Limits.Leasing))}
}

// updatePending takes the lease out of a wallet that holds it, with a further update on a further condition. Otherwise
// updatePending changes nothing, and returns the stored item.
func (s *Store) updatePending(ctx context.Context, l Lease, update, condition string,
	values dynamo.Item) (stored dynamo.Item, err error) {
	_, _, err = dynamo.Write(ctx, s.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.tables.Wallets, Key: ItemKey(l.Project),
		UpdateExpression:                    aws.String(update + " REMOVE pending.#k"),
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

// Outcome describes how successful work ended.
type Outcome struct {
	// Uncertain means that no usable response came from the vendor: the charge is listed for the operator to resolve.
	Uncertain bool
	// Vendor did the work, if any vendor did.
	Vendor string
	// VendorID is the vendor's ID of the work, if any. An ID of over 64 bytes is not stored: one write pays for 1 KB.
	VendorID string
	// Reference is that of an uncertain send (docs/decisions/extensions.md#references).
	Reference string
}

// Mark writes the ledger entry which says that irrevocable work is about to begin. The project is charged for a
// request that dies after Mark. On any error nothing may be sent; Mark has then released the reservation.
func (s *Store) Mark(ctx context.Context, r *Reservation) error {
	timed, cancel := context.WithTimeout(ctx, s.Limits.Write)
	defer cancel()
	r.marked = true
	entry := newEntry(r, Sending)
	entry.Vendor, entry.Reference = r.Died.Vendor, r.Died.Reference
	stored, err := s.put(timed, entry, "")
	switch {
	case err == nil, stored.State == Sending: // an earlier attempt took effect
		return nil
	case stored.State != "":
		return r.settled(stored.State)
	}
	return errors.Join(fmt.Errorf("wallet: mark: %w", err), s.Release(ctx, r))
}

// Capture writes the ledger entry that charges the project. ErrSettled says that the reservation was settled before;
// after any other error the charge is unknown. The context's deadline is that of the request and not of the work.
func (s *Store) Capture(ctx context.Context, r *Reservation, o Outcome) error {
	ctx, cancel := within(ctx, s.Limits.Write)
	defer cancel()
	entry := newEntry(r, Captured)
	entry.Uncertain, entry.Vendor, entry.Reference = o.Uncertain, o.Vendor, o.Reference
	if len(o.VendorID) <= 64 {
		entry.VendorID = o.VendorID
	}
	allowed := State("")
	if r.Irrevocable {
		allowed = Sending
	}
	stored, err := s.put(ctx, entry, allowed)
	switch {
	case err == nil, stored.State == Captured: // an earlier attempt took effect
		r.captured = true
		r.lease.end(r, r.Credits, 0)
		return nil
	case errors.Is(err, errConflict):
		return r.settled(stored.State)
	}
	return fmt.Errorf("wallet: capture: %w", err)
}

// settled leaves the rest of the lease to the settling function, which has written an entry of the lease.
func (r *Reservation) settled(as State) error {
	r.lease.leave()
	if as == Released {
		return ErrReleased
	}
	return fmt.Errorf("%w: found %q", ErrSettled, as)
}

// Remove takes the lease of a captured reservation out of the wallet, where the lease has one slot. Remove returns no
// error, because nothing depends on the removal: the settling function closes a lease that Remove leaves. Remove does
// nothing in three cases: Capture has not succeeded; a late copy of the reservation may arrive, which must still find
// the lease; or less than Limits.Remove is left before the deadline.
func (s *Store) Remove(ctx context.Context, r *Reservation) {
	// Other requests may change the state of a lease with several slots: the number of slots comes first.
	if !r.captured || r.lease == nil || r.lease.Slots > 1 || r.lease.state != single {
		return
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < s.Limits.Remove {
		return
	}
	ctx, cancel := within(ctx, s.Limits.Remove)
	defer cancel()
	_, _ = s.updatePending(ctx, r.lease.Lease, "", "", nil)
}

// Release returns the credits of failed work: to the balance, or to a lease with several slots, which costs no write.
// After Mark, Release forbids the capture first; where the condition of that write fails or no response comes, the
// settling function decides. Without Mark there is no entry, and no late copy but that of the reservation, which the
// settling function finds. An error is for the log: the credits return to the balance when the lease is settled.
func (s *Store) Release(ctx context.Context, r *Reservation) error {
	if r.marked {
		timed, cancel := within(ctx, s.Limits.Write)
		defer cancel()
		if _, err := s.put(timed, newEntry(r, Released), "", Sending, Released); err != nil {
			return fmt.Errorf("wallet: release: %w", err)
		}
	}
	r.lease.end(r, 0, r.Credits)
	if r.lease == nil || r.lease.Slots > 1 {
		return nil
	}
	if err := s.returnCredits(ctx, r.lease.Lease); err != nil {
		return fmt.Errorf("wallet: release: %w", err)
	}
	return nil
}

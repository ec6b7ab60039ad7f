package credit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
	"svcapi/shared/awsclient"
)

// Reservation describes the credits that are reserved for one request.
type Reservation struct {
	Project string
	// Shards is the number of shards in use by the project's record; 0 and 1 mean a wallet of one item.
	Shards int
	// Wallet names the wallet's item that holds the reservation. Reserve sets the field.
	Wallet      string
	Key         Key
	Credits     int64  // above 0
	Operation   string // as the price list names it
	Environment string
	RequestID   string
	// Irrevocable marks work that cannot be taken back once begun (SMS). Mark writes a ledger entry before the
	// first byte leaves, and Release writes an entry that forbids every later capture.
	Irrevocable bool
	// Vendor is about to be called; the entry of an uncertain charge names the vendor if the request dies.
	Vendor string
	// Attempts counts the attempts of Reserve that may have taken effect: the successful attempt, and each failed
	// attempt that DynamoDB did not turn away. After more than one, a late copy may still arrive. Reserve sets the
	// field.
	Attempts int

	ambiguous int // failed attempts of Reserve that may have taken effect, in any shard of the wallet
	captured  bool
}

// Outcome describes how successful work ended.
type Outcome struct {
	// Uncertain means that the vendor was reached and no usable response came. The project is charged, and the
	// charge is listed for the operator to resolve.
	Uncertain bool
	// Vendor did the work, if any vendor did.
	Vendor string
}

// insufficientError is ErrInsufficientCredits with the item that lacks the credits, nil where there is none.
type insufficientError struct{ wallet attr.Item }

func (*insufficientError) Error() string { return ErrInsufficientCredits.Error() }

func (*insufficientError) Unwrap() error { return ErrInsufficientCredits }

// Reserve takes the credits out of the balance. Reserve returns ErrInsufficientCredits when the wallet lacks the credits,
// and another error when no attempt got a response: Reserve has then returned the credits that may have been taken.
func (s *Store) Reserve(ctx context.Context, r *Reservation) error {
	if _, err := ParseKey(string(r.Key)); r.Credits <= 0 || r.Project == "" || err != nil {
		return fmt.Errorf("%w: %d credits with key %q for project %q", ErrInvalidReservation, r.Credits, r.Key, r.Project)
	}
	r.Wallet = r.shard()
	err := s.reserve(ctx, r)
	if refused, ok := errors.AsType[*insufficientError](err); ok {
		return s.reserveRebalanced(ctx, r, refused)
	}
	return err
}

// reserve takes the credits out of the balance of the item r.Wallet.
func (s *Store) reserve(ctx context.Context, r *Reservation) error {
	timed, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	_, ambiguous, err := awsclient.WriteUnlessHot(timed, s.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           &s.tables.Wallets,
		Key:                                 walletKey(r.Wallet),
		UpdateExpression:                    aws.String("SET balance = balance - :c, pending.#k = :c"),
		ConditionExpression:                 aws.String("balance >= :c AND attribute_not_exists(pending.#k)"),
		ExpressionAttributeNames:            map[string]string{"#k": string(r.Key)},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":c": attr.Number(r.Credits)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	r.ambiguous += ambiguous
	if err == nil {
		r.Attempts = 1 + r.ambiguous
		return nil
	}
	if wallet, refused := attr.Refused(err); refused {
		if _, mine := pendingOf(wallet)[string(r.Key)]; mine { // an earlier attempt took effect
			r.Attempts = 2 // at least
			return nil
		}
		return &insufficientError{wallet}
	}
	err = fmt.Errorf("credit: reserve: %w", err)
	if r.ambiguous == 0 {
		return err // DynamoDB turned every attempt away: nothing was taken
	}
	r.Attempts = 2
	return errors.Join(err, s.Release(ctx, r))
}

// Mark writes the ledger entry which says that irrevocable work is about to begin. The project is charged for a
// request that dies after Mark. On any error nothing may be sent; Mark has then released the reservation.
func (s *Store) Mark(ctx context.Context, r *Reservation) error {
	timed, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	stored, err := s.put(timed, r.Wallet, newEntry(r, Sending), "")
	switch {
	case err == nil, stored == Sending: // an earlier attempt took effect
		return nil
	case stored != "":
		return fmt.Errorf("%w: mark found it %s", ErrSettled, stored)
	}
	return errors.Join(fmt.Errorf("credit: mark: %w", err), s.Release(ctx, r))
}

// Capture writes the ledger entry that charges the project. After an error that is not ErrSettled the charge
// is unknown, although the request has succeeded. The context's deadline is the deadline of the request and not
// of the work.
func (s *Store) Capture(ctx context.Context, r *Reservation, o Outcome) error {
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	entry := newEntry(r, Captured)
	entry.Uncertain = o.Uncertain
	if o.Vendor != "" {
		entry.Vendor = o.Vendor
	}
	allowed := State("")
	if r.Irrevocable {
		allowed = Sending
	}
	stored, err := s.put(ctx, r.Wallet, entry, allowed)
	switch {
	case err == nil, stored == Captured: // an earlier attempt took effect
		r.captured = true
		return nil
	case errors.Is(err, errRefused):
		return fmt.Errorf("%w: capture found it %q", ErrSettled, stored)
	}
	return fmt.Errorf("credit: capture: %w", err)
}

// Remove takes the key of a captured reservation out of the wallet. Remove returns no error, because nothing
// depends on the removal: the settling function removes a key that is left. Remove does nothing unless Capture
// succeeded, after a reservation whose Attempts are more than one (a late copy of the first attempt must still find
// its key), and when there is no time.
func (s *Store) Remove(ctx context.Context, r *Reservation) {
	if !r.captured || r.Attempts > 1 {
		return
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < s.limits.Remove {
		return
	}
	ctx, cancel := within(ctx, s.limits.Remove)
	defer cancel()
	_ = s.remove(ctx, r.Wallet, r.Key)
}

// Release returns the credits of failed work to the balance. For irrevocable work Release forbids the capture
// first; where that write is refused or gets no response, the settling function decides. An error is for the log:
// the credits return to the balance when the reservation is settled.
func (s *Store) Release(ctx context.Context, r *Reservation) error {
	if r.Irrevocable {
		if err := s.forbidCapture(ctx, r); err != nil {
			return fmt.Errorf("credit: release: %w", err)
		}
	}
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	if err := s.returnCredits(ctx, r.Wallet, r.Key, r.Credits); err != nil {
		return fmt.Errorf("credit: release: %w", err)
	}
	return nil
}

// forbidCapture writes the entry "released", so that a capture which arrives later fails.
func (s *Store) forbidCapture(ctx context.Context, r *Reservation) error {
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	_, err := s.put(ctx, r.Wallet, newEntry(r, Released), "", Sending, Released)
	return err
}

// remove takes the key out of the wallet. A key that is absent is no error.
func (s *Store) remove(ctx context.Context, wallet string, key Key) error {
	return s.updatePending(ctx, &dynamodb.UpdateItemInput{
		UpdateExpression: aws.String("REMOVE pending.#k"),
	}, wallet, key)
}

// returnCredits takes the key out of the wallet and adds its credits to the balance, once.
func (s *Store) returnCredits(ctx context.Context, wallet string, key Key, credits int64) error {
	return s.updatePending(ctx, &dynamodb.UpdateItemInput{
		UpdateExpression:          aws.String("SET balance = balance + :c REMOVE pending.#k"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":c": attr.Number(credits)},
	}, wallet, key)
}

// updatePending updates a wallet whose pending map holds the key. Without the key updatePending changes nothing.
func (s *Store) updatePending(ctx context.Context, update *dynamodb.UpdateItemInput, wallet string, key Key) error {
	update.TableName = &s.tables.Wallets
	update.Key = walletKey(wallet)
	update.ConditionExpression = aws.String("attribute_exists(pending.#k)")
	update.ExpressionAttributeNames = map[string]string{"#k": string(key)}
	_, _, err := awsclient.Write(ctx, s.client.UpdateItem, update)
	if _, refused := attr.Refused(err); refused {
		return nil
	}
	return err
}

// within bounds ctx by the limit and keeps only the deadline of ctx: a cancellation of the work does not count.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	until := time.Now().Add(limit)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

package credit

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
	// Shards is the number of shards in use by the project's record; 0 and 1 mean a wallet of one item.
	Shards int
	// Wallet names the wallet's item that holds the reservation. Reserve sets the field.
	Wallet      string
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
	// Attempts counts the attempts of Reserve that may have taken effect: the successful attempt, and each failed
	// attempt that DynamoDB did not turn away. If Attempts is above 1, a late copy of an earlier attempt may still
	// arrive: a delayed duplicate, which takes effect after its client has given up. Reserve sets the field.
	Attempts int

	ambiguous int  // failed attempts of Reserve that may have taken effect, in any shard of the wallet
	marked    bool // Mark was called: the ledger may hold the entry "sending"
	captured  bool
}

// InsufficientError is ErrInsufficientCredits with the balance of the wallet, 0 where there is none.
type InsufficientError struct {
	Balance int64
	wallet  dynamo.Item // the item that lacks the credits
}

// Error returns the text of ErrInsufficientCredits.
func (*InsufficientError) Error() string { return ErrInsufficientCredits.Error() }

// Unwrap returns ErrInsufficientCredits.
func (*InsufficientError) Unwrap() error { return ErrInsufficientCredits }

// Reserve takes the credits out of the balance. Reserve returns an InsufficientError when the wallet lacks the credits,
// and another error when no attempt got a response: Reserve has then returned the credits that may have been taken.
func (s *Store) Reserve(ctx context.Context, r *Reservation) error {
	if _, err := ParseKey(string(r.Key)); r.Credits <= 0 || r.Project == "" || err != nil {
		return fmt.Errorf("%w: %d credits with key %q for project %q", ErrInvalidReservation, r.Credits, r.Key, r.Project)
	}
	r.Wallet = r.shard()
	err := s.reserve(ctx, r)
	if refused, ok := errors.AsType[*InsufficientError](err); ok {
		return s.reserveRebalanced(ctx, r, refused)
	}
	return err
}

// reserve takes the credits out of the balance of the item r.Wallet.
func (s *Store) reserve(ctx context.Context, r *Reservation) error {
	timed, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	_, ambiguous, err := dynamo.WriteUnlessHot(timed, s.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           &s.tables.Wallets,
		Key:                                 walletKey(r.Wallet),
		UpdateExpression:                    aws.String("SET balance = balance - :c, pending.#k = :c"),
		ConditionExpression:                 aws.String("balance >= :c AND attribute_not_exists(pending.#k)"),
		ExpressionAttributeNames:            map[string]string{"#k": string(r.Key)},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":c": dynamo.Number(r.Credits)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	r.ambiguous += ambiguous
	if err == nil {
		r.Attempts = 1 + r.ambiguous
		return nil
	}
	if wallet, refused := dynamo.Refused(err); refused {
		if _, mine := pendingOf(wallet)[string(r.Key)]; mine { // an earlier attempt took effect
			r.Attempts = 2 // at least
			return nil
		}
		balance, _ := dynamo.NumberOf(wallet["balance"]) // 0 where there is no wallet
		return &InsufficientError{balance, wallet}
	}
	err = fmt.Errorf("credit: reserve: %w", err)
	if r.ambiguous == 0 {
		return err // DynamoDB turned every attempt away: nothing was taken
	}
	r.Attempts = 2
	return errors.Join(err, s.Release(ctx, r))
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
		ExpressionAttributeValues: map[string]types.AttributeValue{":c": dynamo.Number(credits)},
	}, wallet, key)
}

// updatePending updates a wallet whose pending map holds the key. Without the key updatePending changes nothing.
func (s *Store) updatePending(ctx context.Context, update *dynamodb.UpdateItemInput, wallet string, key Key) error {
	update.TableName = &s.tables.Wallets
	update.Key = walletKey(wallet)
	update.ConditionExpression = aws.String("attribute_exists(pending.#k)")
	update.ExpressionAttributeNames = map[string]string{"#k": string(key)}
	_, _, err := dynamo.Write(ctx, s.client.UpdateItem, update)
	if _, refused := dynamo.Refused(err); refused {
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

package credit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
)

// Movement is credits that an operator moves. It takes effect once, however often it is repeated
// with the same ID.
type Movement struct {
	Project string
	ID      Key   // made once with NewKey, kept for repeating
	Credits int64 // above 0; for an adjustment signed and not 0
	Reason  string
	Actor   string // the caller's ARN
	// RequestID of the request that a refund is for, or of the operator's own call.
	RequestID string
	Operation string // of the refunded request, else empty
	Refunds   Key    // the charge that a refund gives back; empty where it names none
}

var (
	// ErrNoWallet says that the project has no wallet.
	ErrNoWallet = errors.New("credit: no such wallet")
	// ErrOtherMovement says that the ID was used before, for something else.
	ErrOtherMovement = errors.New("credit: the ID belongs to another movement")
	// ErrOutOfRange says that a movement would take the balance below 0 or beyond what fits.
	ErrOutOfRange = errors.New("credit: the balance would be negative or too large")
)

// maxBalance keeps a balance and any price well inside an int64.
const maxBalance = math.MaxInt64 / 4

// CreateWallet makes a project's empty wallet; one that exists is left as it is.
func (s *Store) CreateWallet(ctx context.Context, project string) error {
	return s.create(ctx, project)
}

func (s *Store) create(ctx context.Context, wallet string) error {
	item := walletKey(wallet)
	item["balance"] = attr.Number(0)
	item["pending"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           &s.tables.Wallets,
		Item:                item,
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	})
	if _, exists := attr.Refused(err); exists || err == nil {
		return nil
	}
	return fmt.Errorf("credit: create the wallet: %w", err)
}

// Balance is what a project can spend, in credits: what is in flight has left it already. A project
// without a wallet has 0. Of a wallet in parts it is the sum at one moment; while credits move between
// the parts without a pause, it may be off by what moved.
func (s *Store) Balance(ctx context.Context, project string) (int64, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:            &s.tables.Wallets,
		Key:                  walletKey(project),
		ProjectionExpression: aws.String("balance, parts"),
		ConsistentRead:       aws.Bool(true),
	})
	if err != nil {
		return 0, fmt.Errorf("credit: read the balance: %w", err)
	}
	if out.Item == nil {
		return 0, nil
	}
	if parts := partsIn(out.Item); parts > 1 {
		return s.balanceOf(ctx, project, parts)
	}
	return attr.NumberOf(out.Item["balance"])
}

func (s *Store) balanceOf(ctx context.Context, project string, parts int) (int64, error) {
	const looks = 4
	var before purse
	for range looks {
		now, err := s.purse(ctx, project, parts)
		if err != nil || before.steady(now) {
			return now.total(), err
		}
		before = now
	}
	return before.total(), nil
}

// Wallet is what a wallet holds, in all its parts.
type Wallet struct {
	Parts          int       // at least 1
	Balance, Alert int64     // Alert 0: none
	Reserved       int64     // in flight, not in Balance
	Oldest         time.Time // when the oldest reservation in flight began; zero: none
}

// Wallet reads a project's wallet; nil where there is none.
func (s *Store) Wallet(ctx context.Context, project string) (*Wallet, error) {
	item, err := s.walletItem(ctx, project)
	if err != nil || item == nil {
		return nil, err
	}
	w := Wallet{Parts: partsIn(item)}
	if item["alert"] != nil {
		if w.Alert, err = attr.NumberOf(item["alert"]); err != nil {
			return nil, fmt.Errorf("credit: wallet of %s: %w", project, err)
		}
	}
	for part := range w.Parts {
		wallet := walletID(project, part)
		if item, err = s.walletItem(ctx, wallet); err != nil {
			return nil, err
		}
		if err := w.add(wallet, item); err != nil {
			return nil, err
		}
	}
	// Read one after another the parts may have exchanged credits meanwhile.
	w.Balance, err = s.Balance(ctx, project)
	return &w, err
}

func (w *Wallet) add(wallet string, item attr.Item) error {
	for key, value := range pendingOf(item) {
		r, err := decodePending(wallet, key, value)
		if err != nil {
			return err
		}
		w.Reserved += r.Credits
		if at := r.Key.Time(); w.Oldest.IsZero() || at.Before(w.Oldest) {
			w.Oldest = at
		}
	}
	return nil
}

// Grant adds credits.
func (s *Store) Grant(ctx context.Context, m Movement) error { return s.move(ctx, m, Granted) }

// Refund gives captured credits back.
func (s *Store) Refund(ctx context.Context, m Movement) error { return s.move(ctx, m, Refunded) }

// Adjust corrects the balance in either direction.
func (s *Store) Adjust(ctx context.Context, m Movement) error { return s.move(ctx, m, Adjustment) }

// move writes wallet and ledger entry together. Movements are rare, so that a transaction on the
// wallet disturbs no one; reservations that it turns away are tried again.
func (s *Store) move(ctx context.Context, m Movement, state State) error {
	if _, err := ParseKey(string(m.ID)); err != nil {
		return err
	}
	if m.Credits == 0 || m.Credits < 0 && state != Adjustment || m.Credits > maxBalance || m.Credits < -maxBalance {
		return fmt.Errorf("%w: %s of %d credits", ErrOutOfRange, state, m.Credits)
	}
	entry := Entry{
		Key: m.ID, State: state, Credits: m.Credits, Operation: m.Operation,
		RequestID: m.RequestID, At: time.Now(), Actor: m.Actor, Reason: m.Reason, Refunds: m.Refunds,
	}
	err := s.post(ctx, m, entry)
	if m.Credits < 0 && errors.Is(err, ErrOutOfRange) {
		return s.gathered(ctx, m.Project, -m.Credits, err, func() error { return s.post(ctx, m, entry) })
	}
	return err
}

// post writes a movement and its entry.
func (s *Store) post(ctx context.Context, m Movement, entry Entry) error {
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{
				TableName:                           &s.tables.Ledger,
				Item:                                encodeEntry(m.Project, entry),
				ConditionExpression:                 aws.String("attribute_not_exists(pk)"),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}},
			{Update: s.credited(m.Project, m.Credits)},
		},
	})
	if err == nil {
		return nil
	}
	reasons := canceled(err)
	switch {
	case len(reasons) != 2:
	case refusedBy(reasons[0]):
		stands, err := decodeEntry(reasons[0].Item)
		if err != nil {
			return err
		}
		if stands.State != entry.State || stands.Credits != m.Credits {
			return fmt.Errorf("%w: a %s of %d credits", ErrOtherMovement, stands.State, stands.Credits)
		}
		return nil // done before
	case refusedBy(reasons[1]):
		return walletRefused(m.Project, entry.State, m.Credits, reasons[1])
	}
	return fmt.Errorf("credit: %s: %w", entry.State, err)
}

// credited is the update that adds credits, signed, to a wallet and keeps its balance in range.
func (s *Store) credited(project string, credits int64) *types.Update {
	// Written as bounds on the balance that stands, so that the condition needs no arithmetic.
	least, most := max(0, -credits), min(maxBalance, maxBalance-credits)
	return &types.Update{
		TableName:           &s.tables.Wallets,
		Key:                 walletKey(project),
		UpdateExpression:    aws.String("SET balance = balance + :c"),
		ConditionExpression: aws.String("balance BETWEEN :least AND :most"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":c": attr.Number(credits), ":least": attr.Number(least), ":most": attr.Number(most),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// canceled gives the reasons of a cancelled transaction, one for each of its writes.
func canceled(err error) []types.CancellationReason {
	if failed, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return failed.CancellationReasons
	}
	return nil
}

func refusedBy(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

// walletRefused says why a wallet did not take a movement.
func walletRefused(project string, state State, credits int64, r types.CancellationReason) error {
	if r.Item == nil {
		return fmt.Errorf("%w: %s", ErrNoWallet, project)
	}
	return fmt.Errorf("%w: %s of %d credits", ErrOutOfRange, state, credits)
}

// SetAlert makes the settling function tell when the balance is below these credits; 0 ends that.
func (s *Store) SetAlert(ctx context.Context, project string, credits int64) error {
	if credits < 0 || credits > maxBalance {
		return fmt.Errorf("%w: alert at %d credits", ErrOutOfRange, credits)
	}
	update := &dynamodb.UpdateItemInput{
		TableName:           &s.tables.Wallets,
		Key:                 walletKey(project),
		UpdateExpression:    aws.String("REMOVE alert"),
		ConditionExpression: aws.String("attribute_exists(pk)"),
	}
	if credits > 0 {
		update.UpdateExpression = aws.String("SET alert = :c")
		update.ExpressionAttributeValues = map[string]types.AttributeValue{":c": attr.Number(credits)}
	}
	_, err := s.client.UpdateItem(ctx, update)
	if _, absent := attr.Refused(err); absent {
		return fmt.Errorf("%w: %s", ErrNoWallet, project)
	}
	if err != nil {
		return fmt.Errorf("credit: set the alert: %w", err)
	}
	return nil
}

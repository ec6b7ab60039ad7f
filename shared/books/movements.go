package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

// Movement describes credits that an operator moves. A movement takes effect once, however often it is repeated with
// the same ID.
type Movement struct {
	Project string
	ID      wallet.Key // generated once with NewKey, and kept for repeats
	Credits int64      // above 0; for an adjustment signed and not 0
	Reason  string
	Actor   string // the caller's ARN
	// RequestID names the request that a refund is for, or the operator's own call.
	RequestID string
	Price     string     // of the refunded request, else empty
	Refunds   wallet.Key // the charge that a refund returns; empty where the refund names no charge
}

var (
	// ErrNoWallet reports that the project has no wallet.
	ErrNoWallet = errors.New("books: no such wallet")
	// ErrOtherMovement reports that the ID was used before, for another movement.
	ErrOtherMovement = errors.New("books: the ID belongs to another movement")
	// ErrOutOfRange reports that a movement would take the balance below 0 or above the largest balance.
	ErrOutOfRange = errors.New("books: the balance would be negative or too large")
)

// CreateWallet creates a project's empty wallet. CreateWallet leaves an existing wallet as it is.
func (s *Store) CreateWallet(ctx context.Context, project string) error {
	item := wallet.ItemKey(project)
	item["balance"], item["lent"], item["fence"] = dynamo.Number(0), dynamo.Number(0), dynamo.Text("0")
	item["pending"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           &s.tables.Wallets,
		Item:                item,
		ConditionExpression: new("attribute_not_exists(pk)"),
	})
	if _, exists := dynamo.ConditionFailed(err); exists || err == nil {
		return nil
	}
	return fmt.Errorf("books: create the wallet: %w", err)
}

// Wallet is the state of a project's wallet.
type Wallet struct {
	Balance, Alert int64     // Alert 0: no alert
	Free           int64     // of the balance: what no lease holds, and an adjustment can take
	Reserved       int64     // by single requests, not in Balance
	Oldest         time.Time // begin of the oldest lease; zero: there is none
}

// Wallet reads a project's wallet, and returns nil where the project has none.
func (s *Store) Wallet(ctx context.Context, project string) (*Wallet, error) {
	item, err := s.Item(ctx, project)
	if err != nil || item == nil {
		return nil, err
	}
	w := Wallet{}
	if alert := item["alert"]; alert != nil {
		if w.Alert, err = dynamo.NumberOf(alert); err != nil {
			return nil, fmt.Errorf("books: wallet of %s: %w", project, err)
		}
	}
	for _, l := range slices.Backward(wallet.LeasesOf(item, func(_ string, failed error) { err = cmp.Or(err, failed) })) {
		if w.Oldest = l.Key.Time(); l.Slots == 1 {
			w.Reserved += l.Credits
		}
	}
	if err == nil {
		w.Free, _ = dynamo.NumberOf(item["balance"]) // Available reports its error
		w.Balance, err = s.Available(ctx, item)
	}
	return &w, err
}

// Grant adds credits to a wallet.
func (s *Store) Grant(ctx context.Context, m Movement) error { return s.move(ctx, m, wallet.Granted) }

// Refund returns captured credits to a wallet.
func (s *Store) Refund(ctx context.Context, m Movement) error { return s.move(ctx, m, wallet.Refunded) }

// Adjust corrects the balance of a wallet in either direction.
func (s *Store) Adjust(ctx context.Context, m Movement) error {
	return s.move(ctx, m, wallet.Adjustment)
}

// entry returns the ledger entry of a movement, with the current time.
func (m *Movement) entry(state wallet.State) wallet.Entry {
	return wallet.Entry{
		Key: m.ID, State: state, Credits: m.Credits, Price: m.Price,
		RequestID: m.RequestID, At: time.Now(), Actor: m.Actor, Reason: m.Reason, Refunds: m.Refunds,
	}
}

// move writes the wallet and the movement's entry in one transaction. Movements are rare, so the transaction hardly
// disturbs reservations, which are tried again where the transaction turns them away. An entry under the key of a
// refunded charge keeps the charge from a second refund.
func (s *Store) move(ctx context.Context, m Movement, state wallet.State) error {
	if _, err := wallet.ParseKey(string(m.ID)); err != nil {
		return err
	}
	if m.Credits == 0 || m.Credits < 0 && state != wallet.Adjustment || m.Credits > wallet.MaxBalance ||
		m.Credits < -wallet.MaxBalance {
		return fmt.Errorf("%w: %s of %d credits", ErrOutOfRange, state, m.Credits)
	}
	entries := []wallet.Entry{m.entry(state)}
	if m.Refunds != "" {
		once := entries[0]
		once.Key, once.State, once.Refunds = m.Refunds, wallet.State(VerdictRefunded), ""
		entries = append(entries, once)
	}
	writes := []types.TransactWriteItem{{Update: s.creditUpdate(m.Project, m.Credits)}}
	for _, e := range entries {
		writes = append(writes, s.operatorPut(movements, m.Project, e))
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	if err == nil {
		return nil
	}
	reasons := cancellationReasons(err)
	if len(reasons) != len(writes) {
		return fmt.Errorf("books: %s: %w", state, err)
	}
	for i, e := range entries {
		if !conditionFailed(reasons[i+1]) {
			continue
		}
		stored, err := decode(reasons[i+1].Item)
		if err == nil && (stored.State != e.State || stored.Credits != e.Credits || stored.Refunds != e.Refunds) {
			err = fmt.Errorf("%w: a %s of %d credits", ErrOtherMovement, stored.State, stored.Credits)
		}
		return err // nil: an earlier attempt took effect
	}
	if conditionFailed(reasons[0]) {
		return walletRefused(m.Project, state, m.Credits, reasons[0])
	}
	return fmt.Errorf("books: %s: %w", state, err)
}

// PriceChange returns the write of the entry about a project's own price, which moves no credits.
func (s *Store) PriceChange(m Movement) *types.Put {
	return s.operatorPut(movements, m.Project, m.entry(wallet.Repriced)).Put
}

// operatorPut returns the write of an operator's entry, which takes effect once for its key.
func (s *Store) operatorPut(to entryTable, project string, e wallet.Entry) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           new(s.tables.name(to)),
		Item:                                wallet.EncodeEntry(operatorKey(project, e.Key), e),
		ConditionExpression:                 new("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// creditUpdate returns the update that adds credits, signed, to a wallet and keeps its balance in range.
func (s *Store) creditUpdate(project string, credits int64) *types.Update {
	// The condition bounds the stored balance, so that it needs no arithmetic.
	least, most := max(0, -credits), min(wallet.MaxBalance, wallet.MaxBalance-credits)
	return &types.Update{
		TableName:           &s.tables.Wallets,
		Key:                 wallet.ItemKey(project),
		UpdateExpression:    new("SET balance = balance + :c, granted = if_not_exists(granted, :none) + :c"),
		ConditionExpression: new("balance BETWEEN :least AND :most"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":c": dynamo.Number(credits), ":none": dynamo.Number(0), ":least": dynamo.Number(least),
			":most": dynamo.Number(most),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// cancellationReasons returns the reasons of a cancelled transaction, one for each of its writes.
func cancellationReasons(err error) []types.CancellationReason {
	if failed, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return failed.CancellationReasons
	}
	return nil
}

func conditionFailed(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

// walletRefused returns the error that explains why a wallet refused a movement.
func walletRefused(project string, state wallet.State, credits int64, r types.CancellationReason) error {
	if r.Item == nil {
		return fmt.Errorf("%w: %s", ErrNoWallet, project)
	}
	free, _ := dynamo.NumberOf(r.Item["balance"])
	return outOfRange(state, credits, free)
}

func outOfRange(state wallet.State, credits, free int64) error {
	return fmt.Errorf("%w: %s of %s credits, and the wallet has %s that no lease holds", ErrOutOfRange, state,
		wallet.Grouped(credits), wallet.Grouped(free))
}

// ValidateAdjustment returns the error with which Adjust refuses so many credits now.
func (w *Wallet) ValidateAdjustment(credits int64) error {
	if w.Free+credits < 0 || w.Free+credits > wallet.MaxBalance {
		return outOfRange(wallet.Adjustment, credits, w.Free)
	}
	return nil
}

// SetAlert makes the settling function report a balance below these credits; 0 ends the reports.
func (s *Store) SetAlert(ctx context.Context, project string, credits int64) error {
	if credits < 0 || credits > wallet.MaxBalance {
		return fmt.Errorf("%w: alert at %d credits", ErrOutOfRange, credits)
	}
	update := &dynamodb.UpdateItemInput{
		TableName:           &s.tables.Wallets,
		Key:                 wallet.ItemKey(project),
		UpdateExpression:    new("REMOVE alert"),
		ConditionExpression: new("attribute_exists(pk)"),
	}
	if credits > 0 {
		update.UpdateExpression = new("SET alert = :c")
		update.ExpressionAttributeValues = map[string]types.AttributeValue{":c": dynamo.Number(credits)}
	}
	_, err := s.client.UpdateItem(ctx, update)
	if _, absent := dynamo.ConditionFailed(err); absent {
		return fmt.Errorf("%w: %s", ErrNoWallet, project)
	}
	if err != nil {
		return fmt.Errorf("books: set the alert: %w", err)
	}
	return nil
}

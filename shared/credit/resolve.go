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

// Verdict is an operator's decision about an uncertain charge.
type Verdict string

// The verdicts: the vendor did send, or the vendor did not send.
const (
	VerdictConfirmed Verdict = "confirmed" // stays charged
	VerdictRefunded  Verdict = "refunded"  // a ledger entry returns the credits
	unresolved       Verdict = ""
)

// Resolution is an operator's decision about one uncertain charge, with its reason and author.
type Resolution struct {
	Verdict Verdict
	Reason  string
	Actor   string // the operator's ARN
	At      time.Time
}

var (
	// ErrNotUncertain reports that the ledger has no uncertain charge of that key.
	ErrNotUncertain = errors.New("credit: no such uncertain charge")
	// ErrResolved reports that the charge was resolved before, with the other verdict.
	ErrResolved = errors.New("credit: the charge is resolved already")
	// ErrNotCharged reports that the ledger has no charge of that key that could be refunded.
	ErrNotCharged = errors.New("credit: no such charge")
	// ErrUncertain reports that the charge is to be resolved and not refunded.
	ErrUncertain = errors.New("credit: the charge is uncertain")
)

// Resolve settles an uncertain charge for good and returns the stored entry. VerdictConfirmed takes the charge off the
// list; VerdictRefunded also returns the credits, once, with a refund entry of its own that names the charge. Resolve
// may be repeated: a charge that has the same verdict already stays as it is, with the first actor and reason. Resolve
// returns ErrResolved for a charge with the other verdict.
func (s *Store) Resolve(ctx context.Context, project string, key Key, r Resolution) (*Entry, error) {
	if r.Verdict != VerdictConfirmed && r.Verdict != VerdictRefunded {
		return nil, fmt.Errorf("credit: no verdict %q", r.Verdict)
	}
	r.At = time.Now()
	entry, err := s.charge(ctx, project, key)
	if err != nil {
		return nil, fmt.Errorf("credit: resolve: %w", err)
	}
	if done, err := entry.resolved(key, r.Verdict); done || err != nil {
		return entry, err
	}
	write := s.confirm
	if r.Verdict == VerdictRefunded {
		write = s.refund
	}
	// The stored entry decides, and not the result of the write: an attempt without a response may have taken effect,
	// and another operator may have been first.
	failed := write(ctx, *entry, r)
	if entry, err = s.charge(ctx, project, key); err != nil {
		return nil, fmt.Errorf("credit: resolve: %w", errors.Join(failed, err))
	}
	if done, err := entry.resolved(key, r.Verdict); done || err != nil {
		return entry, err
	}
	return nil, fmt.Errorf("credit: resolve: %w", failed)
}

// resolved reports whether the entry has that verdict. resolved returns an error where the entry can never have it.
func (e *Entry) resolved(key Key, want Verdict) (bool, error) {
	switch {
	case e == nil || !e.Uncertain && e.Resolution.Verdict == unresolved:
		return false, fmt.Errorf("%w: %s", ErrNotUncertain, key)
	case e.Resolution.Verdict == unresolved:
		return false, nil
	case e.Resolution.Verdict != want:
		return false, fmt.Errorf("%w: %s by %s", ErrResolved, e.Resolution.Verdict, e.Resolution.Actor)
	}
	return true, nil
}

// resolutionUpdate returns the update of the charge's entry. The update takes the entry out of the sparse index and
// takes effect once, because it removes the attribute that its condition needs.
func (s *Store) resolutionUpdate(e Entry, r Resolution) types.Update {
	return types.Update{
		TableName:           &s.tables.Ledger,
		Key:                 entryKey(e.Wallet, e.Key),
		UpdateExpression:    aws.String("SET res = :r REMOVE uncertain"),
		ConditionExpression: aws.String("uncertain = :p AND cr = :c"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":r": encodeResolution(r), ":p": dynamo.Text(e.Wallet), ":c": dynamo.Number(e.Credits),
		},
	}
}

// confirm resolves the entry and leaves the charge.
func (s *Store) confirm(ctx context.Context, e Entry, r Resolution) error {
	u := s.resolutionUpdate(e, r)
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
		ConditionExpression: u.ConditionExpression, ExpressionAttributeValues: u.ExpressionAttributeValues,
	})
	return err
}

// refund resolves the entry, adds the credits to the wallet and writes the refund's own entry, all or nothing.
func (s *Store) refund(ctx context.Context, e Entry, r Resolution) error {
	project := projectOf(e.Wallet)
	back := Entry{
		Key: NewKey(r.At, "refund "+string(e.Key)), State: Refunded, Credits: e.Credits, Operation: e.Operation,
		RequestID: e.RequestID, Environment: e.Environment, Vendor: e.Vendor,
		At: r.At, Actor: r.Actor, Reason: r.Reason, Refunds: e.Key,
	}
	charge := s.resolutionUpdate(e, r)
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{Update: &charge},
			{Put: &types.Put{
				TableName:           &s.tables.Ledger,
				Item:                encodeEntry(project, back),
				ConditionExpression: aws.String("attribute_not_exists(pk)"),
			}},
			{Update: s.creditUpdate(project, e.Credits)},
		},
	})
	if reasons := cancellationReasons(err); len(reasons) == 3 && conditionFailed(reasons[2]) {
		return walletRefused(project, Refunded, e.Credits, reasons[2])
	}
	return err
}

// RefundCharge refunds a charge: all of its credits, once, by an entry that names the charge. RefundCharge may be
// repeated. RefundCharge returns ErrUncertain for an uncertain charge, which is to be resolved, and ErrResolved for a
// charge that was refunded by its resolution.
func (s *Store) RefundCharge(ctx context.Context, project string, charge Key, reason, actor string) (*Entry, error) {
	e, err := s.charge(ctx, project, charge)
	switch {
	case err != nil:
		return nil, fmt.Errorf("credit: refund: %w", err)
	case e == nil:
		return nil, fmt.Errorf("%w: %s", ErrNotCharged, charge)
	case e.Uncertain:
		return nil, fmt.Errorf("%w: %s", ErrUncertain, charge)
	case e.Resolution.Verdict == VerdictRefunded:
		return nil, fmt.Errorf("%w: %s by %s", ErrResolved, VerdictRefunded, e.Resolution.Actor)
	}
	return e, s.Refund(ctx, Movement{
		Project: project, ID: NewKey(charge.Time(), "refund "+string(charge)), Credits: e.Credits, Reason: reason,
		Actor: actor, RequestID: e.RequestID, Operation: e.Operation, Refunds: charge,
	})
}

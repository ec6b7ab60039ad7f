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
)

// Verdict is what an operator decides about an uncertain charge.
type Verdict string

// The verdicts: the vendor did send, or it did not.
const (
	Confirmed  Verdict = "confirmed" // stays charged
	GivenBack  Verdict = "refunded"  // credited back
	unresolved Verdict = ""
)

// Resolution is an operator's decision about one uncertain charge.
type Resolution struct {
	Verdict Verdict
	Reason  string
	Actor   string // the operator's ARN
	At      time.Time
}

var (
	// ErrNotUncertain says that the ledger has no uncertain charge of that key.
	ErrNotUncertain = errors.New("credit: no such uncertain charge")
	// ErrResolved says that the charge was resolved before, the other way.
	ErrResolved = errors.New("credit: the charge is resolved already")
	// ErrNotCharged says that the ledger has no charge of that key that could be refunded.
	ErrNotCharged = errors.New("credit: no such charge")
	// ErrUncertain says that the charge is to be resolved, not refunded.
	ErrUncertain = errors.New("credit: the charge is uncertain")
)

// Resolve settles an uncertain charge for good and returns its entry as it then stands. Confirmed
// takes it off the list; GivenBack also credits its amount back, once, with a refund entry of its
// own that names the charge. It may be repeated: a charge that has been resolved in the same way
// stays as it is, with the first actor and reason; one resolved in the other way is ErrResolved.
func (s *Store) Resolve(ctx context.Context, project string, key Key, r Resolution) (*Entry, error) {
	if r.Verdict != Confirmed && r.Verdict != GivenBack {
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
	if r.Verdict == GivenBack {
		write = s.refund
	}
	// Whatever the write says: what counts is what stands. An attempt may have landed unanswered, and
	// another operator may have been first.
	failed := write(ctx, project, *entry, r)
	if entry, err = s.charge(ctx, project, key); err != nil {
		return nil, fmt.Errorf("credit: resolve: %w", errors.Join(failed, err))
	}
	if done, err := entry.resolved(key, r.Verdict); done || err != nil {
		return entry, err
	}
	return nil, fmt.Errorf("credit: resolve: %w", failed)
}

// resolved tells whether the entry has that verdict; an error where it never can have.
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

// resolving is the update of the charge's entry. It takes the entry out of the sparse index and
// happens once: its condition is what it removes.
func (s *Store) resolving(project string, e Entry, r Resolution) types.Update {
	wallet := walletID(project, e.Part)
	return types.Update{
		TableName:           &s.tables.Ledger,
		Key:                 entryKey(wallet, e.Key),
		UpdateExpression:    aws.String("SET res = :r REMOVE uncertain"),
		ConditionExpression: aws.String("uncertain = :p AND cr = :c"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":r": encodeResolution(r), ":p": attr.Text(wallet), ":c": attr.Number(e.Credits),
		},
	}
}

func (s *Store) confirm(ctx context.Context, project string, e Entry, r Resolution) error {
	u := s.resolving(project, e, r)
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
		ConditionExpression: u.ConditionExpression, ExpressionAttributeValues: u.ExpressionAttributeValues,
	})
	return err
}

// refund resolves the entry, pays into the wallet and writes the refund's own entry, all or nothing.
func (s *Store) refund(ctx context.Context, project string, e Entry, r Resolution) error {
	back := Entry{
		Key: NewKey(r.At, "refund "+string(e.Key)), State: Refunded, Credits: e.Credits, Operation: e.Operation,
		RequestID: e.RequestID, Environment: e.Environment, Vendor: e.Vendor,
		At: r.At, Actor: r.Actor, Reason: r.Reason, Refunds: e.Key,
	}
	charge := s.resolving(project, e, r)
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{Update: &charge},
			{Put: &types.Put{
				TableName:           &s.tables.Ledger,
				Item:                encodeEntry(project, back),
				ConditionExpression: aws.String("attribute_not_exists(pk)"),
			}},
			{Update: s.credited(project, e.Credits)},
		},
	})
	if reasons := canceled(err); len(reasons) == 3 && refusedBy(reasons[2]) {
		return walletRefused(project, Refunded, e.Credits, reasons[2])
	}
	return err
}

// RefundCharge gives a charge back: all of it, once, by an entry that names it. It may be repeated. A
// charge that is uncertain is ErrUncertain: it is resolved instead; one that was given back so is
// ErrResolved.
func (s *Store) RefundCharge(ctx context.Context, project string, charge Key, reason, actor string) (*Entry, error) {
	e, err := s.charge(ctx, project, charge)
	switch {
	case err != nil:
		return nil, fmt.Errorf("credit: refund: %w", err)
	case e == nil:
		return nil, fmt.Errorf("%w: %s", ErrNotCharged, charge)
	case e.Uncertain:
		return nil, fmt.Errorf("%w: %s", ErrUncertain, charge)
	case e.Resolution.Verdict == GivenBack:
		return nil, fmt.Errorf("%w: %s by %s", ErrResolved, GivenBack, e.Resolution.Actor)
	}
	return e, s.Refund(ctx, Movement{
		Project: project, ID: NewKey(charge.Time(), "refund "+string(charge)), Credits: e.Credits, Reason: reason,
		Actor: actor, RequestID: e.RequestID, Operation: e.Operation, Refunds: charge,
	})
}

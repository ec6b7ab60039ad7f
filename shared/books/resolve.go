package books

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
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
	Verdict Verdict   `json:"verdict"`
	Reason  string    `json:"reason"`
	Actor   string    `json:"actor"` // the operator's ARN
	At      time.Time `json:"at"`
}

var (
	// ErrNotUncertain reports that the ledger has no uncertain charge of that key.
	ErrNotUncertain = errors.New("books: no such uncertain charge")
	// ErrResolved reports that the charge was resolved before, with the other verdict.
	ErrResolved = errors.New("books: the charge is resolved already")
	// ErrNotCharged reports that the ledger has no charge of that key that could be refunded.
	ErrNotCharged = errors.New("books: no such charge")
	// ErrUncertain reports that the charge is to be resolved and not refunded.
	ErrUncertain = errors.New("books: the charge is uncertain")
)

// Resolve settles an uncertain charge for good and returns the stored entry. VerdictConfirmed takes the charge off the
// list; VerdictRefunded also returns the credits, once, with a refund entry of its own that names the charge. Resolve
// may be repeated: a charge that has the same verdict already stays as it is, with the first actor and reason. Resolve
// returns ErrResolved for a charge with the other verdict.
func (s *Store) Resolve(ctx context.Context, project string, key wallet.Key, r Resolution) (*Entry, error) {
	if r.Verdict != VerdictConfirmed && r.Verdict != VerdictRefunded {
		return nil, fmt.Errorf("books: no verdict %q", r.Verdict)
	}
	r.At = time.Now()
	entry, err := s.charge(ctx, project, key)
	if err != nil {
		return nil, fmt.Errorf("books: resolve: %w", err)
	}
	if done, err := entry.resolved(key, r.Verdict); done || err != nil {
		return entry, err
	}
	// The stored entry decides, and not the result of the write: an attempt without a response may have taken effect,
	// and another operator may have been first.
	failed := s.writeResolution(ctx, *entry, r)
	if entry, err = s.charge(ctx, project, key); err != nil {
		return nil, fmt.Errorf("books: resolve: %w", errors.Join(failed, err))
	}
	if done, err := entry.resolved(key, r.Verdict); done || err != nil {
		return entry, err
	}
	return nil, fmt.Errorf("books: resolve: %w", failed)
}

// resolved reports whether the entry has that verdict. resolved returns an error where the entry can never have it.
func (e *Entry) resolved(key wallet.Key, want Verdict) (bool, error) {
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

// verdict returns the verdict that an entry of the table of resolutions records; a refund there records none.
func (e *Entry) verdict() Verdict {
	if v := Verdict(e.State); v == VerdictConfirmed || v == VerdictRefunded {
		return v
	}
	return unresolved
}

// resolve adds its resolution to a charge.
func (e *Entry) resolve(r Entry) {
	e.Uncertain, e.Resolution = false, Resolution{r.verdict(), r.Reason, r.Actor, r.At}
}

// writeResolution resolves the charge, all or nothing. The update of the charge's entry takes the entry out of the
// sparse index, and takes effect once, because the update removes the attribute that its condition needs. The
// resolution's entry has the key of the charge, so that a charge has one resolution, also where a function has written
// the charge again. A refund adds the credits to the wallet, by an entry of its own.
func (s *Store) writeResolution(ctx context.Context, e Entry, r Resolution) error {
	project := e.Project
	entry := wallet.Entry{Key: e.Key, State: wallet.State(r.Verdict), Credits: e.Credits, At: r.At,
		Actor: r.Actor, Reason: r.Reason}
	writes := []types.TransactWriteItem{
		{Update: &types.Update{
			TableName:           &s.tables.Ledger,
			Key:                 wallet.EntryKey(project, e.Key),
			UpdateExpression:    new("REMOVE uncertain"),
			ConditionExpression: new("uncertain = :p AND cr = :c"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":p": dynamo.Text(wallet.Shard(project, e.Key)), ":c": dynamo.Number(e.Credits),
			},
		}},
		s.operatorPut(resolutions, project, entry),
	}
	if r.Verdict == VerdictRefunded {
		entry.Key, entry.State, entry.Refunds = wallet.NewKey(r.At, "refund "+string(e.Key)), wallet.Refunded, e.Key
		entry.Price, entry.RequestID, entry.Environment, entry.Vendor = e.Price, e.RequestID, e.Environment, e.Vendor
		writes = append(writes, s.operatorPut(resolutions, project, entry),
			types.TransactWriteItem{Update: s.creditUpdate(project, e.Credits)},
			types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{ // a charge that a function has put on the list again
				TableName:           &s.tables.Movements,
				Key:                 operatorKey(project, e.Key),
				ConditionExpression: new("attribute_not_exists(pk)"),
			}})
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	switch reasons := cancellationReasons(err); {
	case len(reasons) != 5:
	case conditionFailed(reasons[4]):
		return fmt.Errorf("%w: by a refund", ErrResolved)
	case conditionFailed(reasons[3]):
		return walletRefused(project, wallet.Refunded, e.Credits, reasons[3])
	}
	return err
}

// RefundCharge refunds a charge: all of its credits, once, by an entry of the current day that names the charge.
// RefundCharge may be repeated. RefundCharge returns ErrUncertain for an uncertain charge, which is to be resolved, and
// ErrResolved for a charge that was refunded by its resolution.
func (s *Store) RefundCharge(ctx context.Context, project string, charge wallet.Key, reason,
	actor string) (*Entry, error) {
	e, err := s.charge(ctx, project, charge)
	switch {
	case err != nil:
		return nil, fmt.Errorf("books: refund: %w", err)
	case e == nil:
		return nil, fmt.Errorf("%w: %s", ErrNotCharged, charge)
	case e.Uncertain:
		return nil, fmt.Errorf("%w: %s", ErrUncertain, charge)
	case e.Resolution.Verdict == VerdictRefunded:
		return nil, fmt.Errorf("%w: %s by %s", ErrResolved, VerdictRefunded, e.Resolution.Actor)
	}
	return e, s.Refund(ctx, Movement{
		Project: project, ID: wallet.NewKey(time.Now(), "refund "+string(charge)), Credits: e.Credits, Reason: reason,
		Actor: actor, RequestID: e.RequestID, Price: e.Price, Refunds: charge,
	})
}

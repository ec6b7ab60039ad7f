package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
)

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
	item["pending"] = &types.AttributeValueMemberM{Value: dynamo.Item{}}
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

// Grant adds credits to a wallet. A movement takes effect once for its key, which wallet.NewKey generates once and
// repeats keep. Its credits are above 0, and its request ID is that of the refunded request or of the operator's own
// call.
func (s *Store) Grant(ctx context.Context, m wallet.Entry) error {
	return s.move(ctx, m, wallet.Granted)
}

// Refund returns captured credits to a wallet.
func (s *Store) Refund(ctx context.Context, m wallet.Entry) error {
	return s.move(ctx, m, wallet.Refunded)
}

// Adjust corrects the balance of a wallet in either direction: the credits are signed, and not 0.
func (s *Store) Adjust(ctx context.Context, m wallet.Entry) error {
	return s.move(ctx, m, wallet.Adjustment)
}

// move writes the wallet and the movement's entry in one transaction. Reservations that it turns away are tried again.
// An entry under the key of a refunded charge keeps the charge from a second refund.
func (s *Store) move(ctx context.Context, m wallet.Entry, state wallet.State) error {
	if _, err := wallet.ParseKey(string(m.Key)); err != nil {
		return err
	}
	if m.Credits == 0 || m.Credits < 0 && state != wallet.Adjustment || m.Credits > wallet.MaxBalance ||
		m.Credits < -wallet.MaxBalance {
		return fmt.Errorf("%w: %s of %d credits", ErrOutOfRange, state, m.Credits)
	}
	m.State, m.At = state, time.Now()
	entries := []wallet.Entry{m}
	if m.Refunds != "" {
		once := m
		once.Key, once.State, once.Refunds = m.Refunds, wallet.State(VerdictRefunded), ""
		entries = append(entries, once)
	}
	writes := []types.TransactWriteItem{{Update: s.creditUpdate(m.Project, m.Credits)}}
	for _, e := range entries {
		writes = append(writes, s.operatorPut(movements, e))
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	if err == nil {
		return nil
	}
	reasons := dynamo.Reasons(err)
	if len(reasons) != len(writes) {
		return fmt.Errorf("books: %s: %w", state, err)
	}
	for i, e := range entries {
		if !dynamo.Refused(reasons[i+1]) {
			continue
		}
		stored, err := decode(reasons[i+1].Item)
		if err == nil && (stored.State != e.State || stored.Credits != e.Credits || stored.Refunds != e.Refunds) {
			err = fmt.Errorf("%w: a %s of %d credits", ErrOtherMovement, stored.State, stored.Credits)
		}
		return err // nil: an earlier attempt took effect
	}
	if dynamo.Refused(reasons[0]) {
		return walletRefused(m.Project, state, m.Credits, reasons[0])
	}
	return fmt.Errorf("books: %s: %w", state, err)
}

// PriceChange returns the write of the entry about a project's own price, which moves no credits.
func (s *Store) PriceChange(m wallet.Entry) *types.Put {
	m.State, m.At = wallet.Repriced, time.Now()
	return s.operatorPut(movements, m).Put
}

// operatorPut returns the write of an operator's entry, which takes effect once for its key.
func (s *Store) operatorPut(to entryTable, e wallet.Entry) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           new(s.tables.name(to)),
		Item:                                wallet.EncodeEntry(operatorKey(e.Project, e.Key), e),
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
		ExpressionAttributeValues: dynamo.Item{
			":c": dynamo.Number(credits), ":none": dynamo.Number(0), ":least": dynamo.Number(least),
			":most": dynamo.Number(most),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
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
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &s.tables.Wallets,
		Key:                       wallet.ItemKey(project),
		UpdateExpression:          new("SET alert = :c"),
		ConditionExpression:       new("attribute_exists(pk)"),
		ExpressionAttributeValues: dynamo.Item{":c": dynamo.Number(credits)},
	})
	if _, absent := dynamo.ConditionFailed(err); absent {
		return fmt.Errorf("%w: %s", ErrNoWallet, project)
	}
	if err != nil {
		return fmt.Errorf("books: set the alert: %w", err)
	}
	return nil
}

// ErrNotEmpty reports that a wallet has open leases, or more credits than the adjustment that empties it may take.
var ErrNotEmpty = errors.New("books: the wallet cannot be emptied")

// emptyTries bounds the attempts of Empty while requests that began before the closing change the wallet.
const emptyTries = 10

// Empty takes all credits out of a project's wallet by one adjustment of up to m.Credits, ends the wallet's alert, and
// returns the credits. Afterwards the wallet has neither credits nor a lease, no request can reserve, and no late write
// moves credits, because the fence of the wallet is raised. Empty returns ErrNotEmpty and changes nothing where a lease
// is open, or where the wallet has more credits. Empty may be repeated: an empty wallet gets no entry.
func (s *Store) Empty(ctx context.Context, m wallet.Entry) (int64, error) {
	for range emptyTries {
		item, err := s.Item(ctx, m.Project)
		if err != nil || item == nil {
			return 0, err
		}
		credits, err := dynamo.NumberOf(item["balance"])
		switch {
		case err != nil:
			return 0, fmt.Errorf("books: wallet %s: %w", m.Project, err)
		case len(wallet.PendingOf(item)) > 0:
			return 0, fmt.Errorf("%w: it has open leases", ErrNotEmpty)
		case credits > m.Credits:
			return 0, fmt.Errorf("%w: it has %s credits", ErrNotEmpty, wallet.Grouped(credits))
		}
		update := s.creditUpdate(m.Project, -credits)
		*update.UpdateExpression += ", fence = :fence REMOVE alert"
		*update.ConditionExpression += " AND balance = :least AND size(pending) = :none AND fence = :seen"
		fence := dynamo.TextOf(item["fence"])
		update.ExpressionAttributeValues[":seen"] = dynamo.Text(fence)
		update.ExpressionAttributeValues[":fence"] = dynamo.Text(wallet.Lease{Key: m.Key.Above(fence), Slots: 1}.Name())
		writes := []types.TransactWriteItem{{Update: update}}
		if credits != 0 {
			taken := m
			taken.State, taken.Credits, taken.At = wallet.Adjustment, -credits, time.Now()
			writes = append(writes, s.operatorPut(movements, taken))
		}
		_, err = s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
		if err == nil {
			return credits, nil
		}
		if len(dynamo.Reasons(err)) == 0 {
			return 0, fmt.Errorf("books: empty the wallet: %w", err)
		}
		// A request or an operator has changed the wallet.
	}
	return 0, fmt.Errorf("%w: it changes all the time", ErrNotEmpty)
}

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
// list; VerdictRefunded also returns the credits, once, with a refund entry of its own that names the charge. A charge
// that has the same verdict already keeps its first actor and reason; one with the other verdict is ErrResolved.
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
	// The stored entry decides: an attempt without a response may have taken effect, or another operator was first.
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
	entry := wallet.Entry{Project: project, Key: e.Key, State: wallet.State(r.Verdict), Credits: e.Credits, At: r.At,
		Actor: r.Actor, Reason: r.Reason}
	writes := []types.TransactWriteItem{
		{Update: &types.Update{
			TableName:           &s.tables.Ledger,
			Key:                 wallet.EntryKey(project, e.Key),
			UpdateExpression:    new("REMOVE uncertain"),
			ConditionExpression: new("uncertain = :p AND cr = :c"),
			ExpressionAttributeValues: dynamo.Item{
				":p": dynamo.Text(wallet.Shard(project, e.Key)), ":c": dynamo.Number(e.Credits),
			},
		}},
		s.operatorPut(resolutions, entry),
	}
	if r.Verdict == VerdictRefunded {
		entry.Key, entry.State, entry.Refunds = wallet.NewKey(r.At, "refund "+string(e.Key)), wallet.Refunded, e.Key
		entry.Price, entry.RequestID, entry.Environment, entry.Vendor = e.Price, e.RequestID, e.Environment, e.Vendor
		writes = append(writes, s.operatorPut(resolutions, entry),
			types.TransactWriteItem{Update: s.creditUpdate(project, e.Credits)},
			types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{ // a charge that a function has put on the list again
				TableName:           &s.tables.Movements,
				Key:                 operatorKey(project, e.Key),
				ConditionExpression: new("attribute_not_exists(pk)"),
			}})
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	switch reasons := dynamo.Reasons(err); {
	case len(reasons) != 5:
	case dynamo.Refused(reasons[4]):
		return fmt.Errorf("%w: by a refund", ErrResolved)
	case dynamo.Refused(reasons[3]):
		return walletRefused(project, wallet.Refunded, e.Credits, reasons[3])
	}
	return err
}

// RefundCharge refunds a charge: all of its credits, once, however often repeated, by an entry of the current day that
// names the charge. An uncertain charge is ErrUncertain; one that its resolution has refunded is ErrResolved.
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
	return e, s.Refund(ctx, wallet.Entry{
		Project: project, Key: wallet.NewKey(time.Now(), "refund "+string(charge)), Credits: e.Credits, Reason: reason,
		Actor: actor, RequestID: e.RequestID, Price: e.Price, Refunds: charge,
	})
}

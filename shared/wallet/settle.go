package wallet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
)

// settler is the actor of the entries that Settle writes.
const settler = "settle"

// LowBalance is a wallet whose balance is below its alert.
type LowBalance struct {
	Project        string
	Balance, Alert int64
}

// pendingFilter selects the wallets that hold leases, those that may be low, and those that cannot be read.
const pendingFilter = "size(pending) > :none OR balance < alert OR NOT attribute_type(pending, :map) OR " +
	"NOT attribute_type(balance, :number) OR attribute_exists(alert) AND NOT attribute_type(alert, :number)"

// VisitPending calls visit for every lease that any wallet holds, oldest first within a wallet, and stops at the first
// error of visit. In the same pass VisitPending calls low for every wallet below its alert. VisitPending passes a lease
// or a wallet that cannot be read to visit as an error that names it, and goes on with the scan.
func (s *Store) VisitPending(ctx context.Context, visit func(Lease, error) error, low func(LowBalance)) error {
	return dynamo.Scan(ctx, s.client, &dynamodb.ScanInput{
		TableName:            &s.tables.Wallets,
		ConsistentRead:       aws.Bool(true),
		FilterExpression:     aws.String(pendingFilter),
		ProjectionExpression: aws.String("pk, pending, balance, alert"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":none": dynamo.Number(0), ":map": dynamo.Text("M"), ":number": dynamo.Text("N"),
		},
	}, func(item dynamo.Item) error { return s.visitWallet(ctx, item, visit, low) })
}

// visitWallet calls visit and low for one wallet, and returns the error of visit.
func (s *Store) visitWallet(ctx context.Context, item dynamo.Item, visit func(Lease, error) error,
	low func(LowBalance)) error {
	project := dynamo.TextOf(item["pk"])
	var unreadable []error
	if _, ok := item["pending"].(*types.AttributeValueMemberM); !ok {
		unreadable = append(unreadable,
			fmt.Errorf("wallet: wallet %s: pending is of type %T, no map", project, item["pending"]))
	}
	leases := LeasesOf(item, func(_ string, err error) { unreadable = append(unreadable, err) })
	found, err := s.readLowBalance(ctx, project, item)
	if err != nil {
		unreadable = append(unreadable, fmt.Errorf("wallet: wallet %s: %w", project, err))
	}
	for _, l := range leases {
		if err := visit(l, nil); err != nil {
			return err
		}
	}
	for _, failed := range unreadable {
		if err := visit(Lease{}, failed); err != nil {
			return err
		}
	}
	if err == nil && found.Balance < found.Alert {
		low(found)
	}
	return nil
}

// readLowBalance returns the balance and the alert of a wallet. Where no alert was set, the alert is the least number.
func (s *Store) readLowBalance(ctx context.Context, project string, item dynamo.Item) (LowBalance, error) {
	balance, err := dynamo.NumberOf(item["balance"])
	if err != nil || item["alert"] == nil {
		return LowBalance{project, balance, math.MinInt64}, err
	}
	alert, err := dynamo.NumberOf(item["alert"])
	if err == nil && balance < alert {
		balance, err = s.Available(ctx, item)
	}
	return LowBalance{project, balance, alert}, err
}

// Spent returns what each project has spent since its wallet was created, reservations included: all that operators
// moved to the wallet, less what the wallet still holds. Spent omits a wallet that cannot be read; VisitPending names
// it.
func (s *Store) Spent(ctx context.Context) (map[string]int64, error) {
	spent := map[string]int64{}
	in := &dynamodb.ScanInput{TableName: &s.tables.Wallets, ProjectionExpression: aws.String("pk, balance, granted")}
	err := dynamo.Scan(ctx, s.client, in, func(item dynamo.Item) error {
		balance, err := dynamo.NumberOf(item["balance"])
		granted, invalid := dynamo.NumberOf(cmp.Or(item["granted"], dynamo.Number(0))) // absent until the first movement
		if err == nil && invalid == nil {
			spent[dynamo.TextOf(item["pk"])] = granted - balance
		}
		return nil
	})
	return spent, err
}

// Settled counts what Settle has finished.
type Settled struct {
	Released  int // leases of one request that the request never captured: the credits were returned to the balance
	Uncertain int // marked requests: charged as uncertain
	Closed    int // all other leases: what they have not spent was returned to the balance
}

// errUnsettled reports that an entry itself keeps its lease from being settled, and no failed call.
var errUnsettled = errors.New("the entry does not say how the request ends")

// Settle closes leases of one wallet, in their order, and calls done with the result of each. After a failed call
// Settle leaves the others to the next run: a throttled wallet would take the time of other wallets.
//
// The caller guarantees that no request with a slot of the leases is alive: no write of a request is under way, except
// for late copies. A late copy finds an entry of each slot, and a fence above the lease.
func (s *Store) Settle(ctx context.Context, leases []Lease, done func(Lease, Settled, error)) {
	for _, l := range leases {
		settled, err := s.settle(ctx, l)
		if err != nil {
			err = fmt.Errorf("wallet: settle: %w", err)
		}
		if done(l, settled, err); err != nil && !errors.Is(err, errUnsettled) {
			return
		}
	}
}

// settle ends the slots of a lease, and closes the lease.
func (s *Store) settle(ctx context.Context, l Lease) (Settled, error) {
	entries, err := s.slotEntries(ctx, l)
	if err != nil {
		return Settled{}, err
	}
	var mu sync.Mutex // guards the variables below
	unspent, uncertain := l.Credits, 0
	var group errgroup.Group
	group.SetLimit(s.limits.Leasing.AtOnce)
	for n := range l.Slots {
		stored := entries[l.slot(n)]
		group.Go(func() error {
			end, err := s.endSlot(ctx, l, l.slot(n), stored)
			mu.Lock()
			defer mu.Unlock()
			if end.State == Captured {
				unspent -= end.Credits
			}
			if end.State == Captured && stored.State == Sending && end.Actor == settler {
				uncertain++
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Settled{Uncertain: uncertain}, err
	}
	settled := Settled{Uncertain: uncertain, Closed: 1}
	if l.Slots == 1 && unspent > 0 {
		settled = Settled{Released: 1}
	}
	return settled, s.closeLease(ctx, l, unspent)
}

// endSlot returns the final entry of a slot with its stored entry, the zero Entry where the ledger has none. endSlot
// forbids the capture of a slot without an entry, and charges a marked one as uncertain.
func (s *Store) endSlot(ctx context.Context, l Lease, key Key, stored Entry) (end Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Remove) // a throttled wallet does not keep the run from the others
	defer cancel()
	switch end = newEntry(&Reservation{Project: l.Project, Key: key, Credits: l.Credits / int64(l.Slots)},
		Released); stored.State {
	case "":
		end.Unused = true
	case Sending:
		at := end.At
		end = stored
		end.State, end.Uncertain, end.At = Captured, true, at
	case Captured, Released:
		return stored, nil
	default:
		return Entry{}, fmt.Errorf("%w: the entry of %s in %s is %q", errUnsettled, key, l.Project, stored.State)
	}
	end.Actor = settler
	other, err := s.put(ctx, end, stored.State)
	switch other.State {
	case "":
		return end, err
	case Captured, Released: // another settler, or a late copy, was first
		return other, nil
	}
	return Entry{}, fmt.Errorf("%w: the entry of %s in %s has become %q", errUnsettled, key, l.Project, other.State)
}

// closeLease returns what a lease has not spent to the balance, once, and raises the fence of the wallet to the lease:
// a late copy of the write that acquired the lease finds the fence.
func (s *Store) closeLease(ctx context.Context, l Lease, unspent int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Remove)
	defer cancel()
	values := s.closed(l, unspent)
	values[":fence"] = dynamo.Text(l.Name())
	stored, err := s.updatePending(ctx, l, raising, " AND fence < :fence", values)
	if PendingOf(stored)[l.Name()] != nil { // a newer lease was closed before
		_, err = s.updatePending(ctx, l, closing, " AND fence >= :fence", values)
	}
	return err
}

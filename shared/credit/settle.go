package credit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// settler is the actor of the entries that Settle writes.
const settler = "settle"

// LowBalance is a wallet whose balance is below its alert.
type LowBalance struct {
	Project        string
	Balance, Alert int64
}

// pendingFilter selects the wallets that hold reservations, those that may be low (all shards of a wallet together hold no
// less than its first shard), and those that cannot be read.
const pendingFilter = "size(pending) > :none OR balance < alert OR NOT attribute_type(pending, :map) OR " +
	"NOT attribute_type(balance, :number) OR attribute_exists(alert) AND NOT attribute_type(alert, :number)"

// VisitPending calls visit for every reservation that any wallet holds, oldest first within a wallet, and stops at the first
// error of visit. In the same pass VisitPending calls low for every wallet below its alert. VisitPending passes a reservation
// or a wallet that cannot be read to visit as an error that names it, and goes on with the scan.
func (s *Store) VisitPending(ctx context.Context, visit func(*Reservation, error) error, low func(LowBalance)) error {
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{
		TableName:            &s.tables.Wallets,
		ConsistentRead:       aws.Bool(true),
		FilterExpression:     aws.String(pendingFilter),
		ProjectionExpression: aws.String("pk, pending, balance, alert, shards"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":none": dynamo.Number(0), ":map": dynamo.Text("M"), ":number": dynamo.Text("N"),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("credit: read the wallets: %w", err)
		}
		for _, item := range page.Items {
			if err := s.visitWallet(ctx, item, visit, low); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitWallet calls visit and low for one wallet, and returns the error of visit.
func (s *Store) visitWallet(ctx context.Context, item dynamo.Item, visit func(*Reservation, error) error, low func(LowBalance)) error {
	wallet := dynamo.TextOf(item["pk"])
	if _, ok := item["pending"].(*types.AttributeValueMemberM); !ok {
		if err := visit(nil, fmt.Errorf("credit: wallet %s: pending is of type %T, no map", wallet, item["pending"])); err != nil {
			return err
		}
	}
	pending := pendingOf(item)
	for _, key := range slices.Sorted(maps.Keys(pending)) {
		if err := visit(decodePending(wallet, key, pending[key])); err != nil {
			return err
		}
	}
	found, err := s.readLowBalance(ctx, wallet, item)
	if err != nil {
		return visit(nil, fmt.Errorf("credit: wallet %s: %w", wallet, err))
	}
	if found.Balance < found.Alert {
		low(found)
	}
	return nil
}

// readLowBalance returns the balance and the alert of a wallet. Where no alert was set, the alert is the least number.
func (s *Store) readLowBalance(ctx context.Context, wallet string, item dynamo.Item) (LowBalance, error) {
	balance, err := dynamo.NumberOf(item["balance"])
	if err != nil || item["alert"] == nil {
		return LowBalance{wallet, balance, math.MinInt64}, err
	}
	alert, err := dynamo.NumberOf(item["alert"])
	if err != nil {
		return LowBalance{}, err
	}
	balance, err = s.sumOfShards(ctx, wallet, item)
	return LowBalance{wallet, balance, alert}, err
}

// Spent returns what each project has spent since its wallet was created, reservations included: all that operators moved to
// the wallet, less what the wallet still holds. Spent omits a wallet that cannot be read; VisitPending names it.
func (s *Store) Spent(ctx context.Context) (map[string]int64, error) {
	spent, unreadable := map[string]int64{}, map[string]bool{}
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{
		TableName: &s.tables.Wallets, ProjectionExpression: aws.String("pk, balance, granted"),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("credit: read the wallets: %w", err)
		}
		for _, item := range page.Items {
			project, balance, granted, err := readSpent(item)
			if err != nil {
				unreadable[project] = true
			}
			spent[project] += granted - balance
		}
	}
	maps.DeleteFunc(spent, func(project string, _ int64) bool { return unreadable[project] })
	return spent, nil
}

// readSpent returns the project of a wallet's shard, its balance and what operators moved to the shard.
func readSpent(item dynamo.Item) (project string, balance, granted int64, err error) {
	if project, _, err = parseWallet(dynamo.TextOf(item["pk"])); err != nil {
		return projectOf(dynamo.TextOf(item["pk"])), 0, 0, err
	}
	if balance, err = dynamo.NumberOf(item["balance"]); err != nil || item["granted"] == nil {
		return project, balance, 0, err
	}
	granted, err = dynamo.NumberOf(item["granted"])
	return project, balance, granted, err
}

// Settled is the result of Settle for one reservation.
type Settled string

// The results for the reservation of a dead request.
const (
	SettledWaiting   Settled = "waiting"   // captured; not old enough to be removed
	SettledRemoved   Settled = "removed"   // captured; the key was taken out of the wallet
	SettledUncertain Settled = "uncertain" // marked: charged as uncertain, the key is still to be removed
	SettledReleased  Settled = "released"  // the credits were returned to the balance
)

// errUnsettled reports that an entry itself keeps its reservation from being settled, and no failed call.
var errUnsettled = errors.New("the entry does not say how the reservation ends")

// Settle finishes reservations of dead requests in one wallet, in their order, and calls done with the result of each.
// After a failed call Settle leaves the others to the next run: a throttled wallet would take the time of other wallets.
//
// The caller guarantees that the requests are dead: no write of a request is under way, except for late copies. Where
// lateCopies returns true even these may still arrive; a captured reservation then keeps its key, because a late copy of
// the reserving write must find that key.
func (s *Store) Settle(
	ctx context.Context, reservations []*Reservation, lateCopies func(*Reservation) bool, done func(*Reservation, Settled, error),
) {
	entries, err := s.entriesOf(ctx, reservations)
	for _, r := range reservations {
		var settled Settled
		if err == nil {
			settled, err = s.settle(ctx, r, entries[r.Key], lateCopies(r))
		}
		if err == nil {
			done(r, settled, nil)
			continue
		}
		done(r, "", fmt.Errorf("credit: settle: %w", err))
		if !errors.Is(err, errUnsettled) {
			return
		}
		err = nil
	}
}

// settle finishes one reservation with its stored entry, nil where the ledger has none.
func (s *Store) settle(ctx context.Context, r *Reservation, stored dynamo.Item, lateCopies bool) (Settled, error) {
	var entry *Entry
	if stored != nil {
		e, err := decodeEntry(stored)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errUnsettled, err)
		}
		entry = &e
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.Remove) // a throttled wallet does not keep the run from the others
	defer cancel()
	uncertain := false
	if entry == nil || entry.State == Sending {
		var end Entry
		before := State("")
		if entry == nil {
			end = newEntry(r, Released) // forbids a late capture
		} else {
			end, before, uncertain = *entry, Sending, true
			end.State, end.Uncertain, end.At = Captured, true, newEntry(r, Captured).At
		}
		end.Actor = settler
		stored, err := s.put(ctx, end, before)
		switch {
		case err == nil:
			entry = &end
		case stored != "": // another settler, or a late copy, was first
			entry = &Entry{State: stored}
		default:
			return "", err
		}
	}
	switch {
	case entry.State == Released:
		if err := s.returnCredits(ctx, r.Wallet, r.Key, r.Credits); err != nil {
			return "", err
		}
		return SettledReleased, nil
	case entry.State == Captured && uncertain && lateCopies:
		return SettledUncertain, nil
	case entry.State == Captured && lateCopies:
		return SettledWaiting, nil
	case entry.State == Captured:
		if err := s.remove(ctx, r.Wallet, r.Key); err != nil {
			return "", err
		}
		if uncertain {
			return SettledUncertain, nil
		}
		return SettledRemoved, nil
	}
	return "", fmt.Errorf("%w: the entry of %s in %s is %q", errUnsettled, r.Key, r.Wallet, entry.State)
}

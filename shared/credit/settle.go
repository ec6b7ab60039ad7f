package credit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
)

// settler is the actor of the entries that Settle makes.
const settler = "settle"

// Low is a wallet with less than its alert names.
type Low struct {
	Project        string
	Balance, Alert int64
}

// inFlightFilter selects the wallets that hold reservations, those that may be low (all parts of a wallet hold no less than
// its first), and those that cannot be read.
const inFlightFilter = "size(pending) > :none OR balance < alert OR NOT attribute_type(pending, :map) OR " +
	"NOT attribute_type(balance, :number) OR attribute_exists(alert) AND NOT attribute_type(alert, :number)"

// InFlight calls visit for every reservation that any wallet holds, oldest first within a wallet, and stops at the first
// error of visit. In the same pass InFlight calls low for every wallet below its alert. A reservation or a wallet that
// cannot be read is passed to visit as an error that names it, and the scan goes on.
func (s *Store) InFlight(ctx context.Context, visit func(*Reservation, error) error, low func(Low)) error {
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{
		TableName:            &s.tables.Wallets,
		ConsistentRead:       aws.Bool(true),
		FilterExpression:     aws.String(inFlightFilter),
		ProjectionExpression: aws.String("pk, pending, balance, alert, parts"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":none": attr.Number(0), ":map": attr.Text("M"), ":number": attr.Text("N"),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("credit: read the wallets: %w", err)
		}
		for _, item := range page.Items {
			if err := s.inFlightIn(ctx, item, visit, low); err != nil {
				return err
			}
		}
	}
	return nil
}

// inFlightIn is InFlight for one wallet. Its error is that of visit.
func (s *Store) inFlightIn(ctx context.Context, item attr.Item, visit func(*Reservation, error) error, low func(Low)) error {
	wallet := attr.TextOf(item["pk"])
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
	found, err := s.lowOf(ctx, wallet, item)
	if err != nil {
		return visit(nil, fmt.Errorf("credit: wallet %s: %w", wallet, err))
	}
	if found.Balance < found.Alert {
		low(found)
	}
	return nil
}

// lowOf reads the balance and the alert of a wallet; where no alert was set, it is the least number.
func (s *Store) lowOf(ctx context.Context, wallet string, item attr.Item) (Low, error) {
	balance, err := attr.NumberOf(item["balance"])
	if err != nil || item["alert"] == nil {
		return Low{wallet, balance, math.MinInt64}, err
	}
	alert, err := attr.NumberOf(item["alert"])
	if err != nil {
		return Low{}, err
	}
	if parts := partsIn(item); parts > 1 {
		balance, err = s.balanceOf(ctx, wallet, parts)
	}
	return Low{wallet, balance, alert}, err
}

// Settled is what Settle did with a reservation.
type Settled string

// What a dead request's reservation can come to.
const (
	SettledWaiting   Settled = "waiting"   // captured; not yet old enough to be removed
	SettledRemoved   Settled = "removed"   // captured, taken out of the wallet
	SettledUncertain Settled = "uncertain" // had been about to send: charged as uncertain, still to be removed
	SettledReleased  Settled = "released"  // given back
)

// Settle finishes what a dead request left. The caller vouches for its death: no write of it is under
// way any more but late copies. lateCopies says that even these may still arrive; a captured
// reservation then stays, for a late copy of its reservation must find its key.
func (s *Store) Settle(ctx context.Context, r *Reservation, lateCopies bool) (Settled, error) {
	entry, err := s.entry(ctx, r.wallet(), r.Key)
	if err != nil {
		return "", fmt.Errorf("credit: settle: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.Remove) // a throttled wallet does not keep the run from the others
	defer cancel()
	uncertain := false
	if entry == nil || entry.State == Sending {
		var end Entry
		before := State("")
		if entry == nil {
			end = entryOf(r, Released) // bars a late capture
		} else {
			end, before, uncertain = *entry, Sending, true
			end.State, end.Uncertain, end.At = Captured, true, entryOf(r, Captured).At
		}
		end.Actor = settler
		stands, err := s.put(ctx, r.wallet(), end, before)
		switch {
		case err == nil:
			entry = &end
		case stands != "": // another settler, or a late copy, was first
			entry = &Entry{State: stands}
		default:
			return "", fmt.Errorf("credit: settle: %w", err)
		}
	}
	switch {
	case entry.State == Released:
		if err := s.giveBack(ctx, r.wallet(), r.Key, r.Credits); err != nil {
			return "", fmt.Errorf("credit: settle: %w", err)
		}
		return SettledReleased, nil
	case entry.State == Captured && uncertain && lateCopies:
		return SettledUncertain, nil
	case entry.State == Captured && lateCopies:
		return SettledWaiting, nil
	case entry.State == Captured:
		if err := s.remove(ctx, r.wallet(), r.Key); err != nil {
			return "", fmt.Errorf("credit: settle: %w", err)
		}
		if uncertain {
			return SettledUncertain, nil
		}
		return SettledRemoved, nil
	}
	return "", fmt.Errorf("credit: settle: the entry of %s in %s is %q", r.Key, r.wallet(), entry.State)
}

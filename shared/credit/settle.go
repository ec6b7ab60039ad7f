package credit

import (
	"context"
	"fmt"
	"maps"
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

// InFlight calls visit for every reservation that any wallet holds, oldest first within a wallet,
// and stops at its first error. A reservation that cannot be read is passed to visit as an error.
// In the same pass it calls low for every wallet below its alert.
func (s *Store) InFlight(ctx context.Context, visit func(*Reservation, error) error, low func(Low)) error {
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{
		TableName:                 &s.tables.Wallets,
		ConsistentRead:            aws.Bool(true),
		FilterExpression:          aws.String("size(pending) > :none OR balance < alert"), // all parts hold no less than the first
		ProjectionExpression:      aws.String("pk, pending, balance, alert, parts"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":none": attr.Number(0)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("credit: read the wallets: %w", err)
		}
		for _, item := range page.Items {
			wallet, pending := attr.TextOf(item["pk"]), pendingOf(item)
			for _, key := range slices.Sorted(maps.Keys(pending)) {
				if err := visit(decodePending(wallet, key, pending[key])); err != nil {
					return err
				}
			}
			alert, err := attr.NumberOf(item["alert"])
			if err != nil {
				continue // none was set
			}
			balance, err := attr.NumberOf(item["balance"])
			if parts := partsIn(item); parts > 1 {
				balance, err = s.balanceOf(ctx, wallet, parts)
			}
			if err != nil {
				return fmt.Errorf("credit: balance of %s: %w", wallet, err)
			}
			if balance < alert {
				low(Low{wallet, balance, alert})
			}
		}
	}
	return nil
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

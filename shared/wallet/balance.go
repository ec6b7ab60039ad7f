package wallet

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
)

// MaxBalance keeps a balance and any price well inside an int64.
const MaxBalance = math.MaxInt64 / 4

// Item reads a wallet consistently, and returns nil where the project has none.
func (s *Store) Item(ctx context.Context, project string) (dynamo.Item, error) {
	out, err := s.client.GetItem(ctx,
		&dynamodb.GetItemInput{TableName: &s.tables.Wallets, Key: ItemKey(project), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, fmt.Errorf("wallet: read the wallet: %w", err)
	}
	return out.Item, nil
}

// Balance returns the credits that a project can spend: the balance of the wallet, and what leases with several slots
// have not spent. Reservations of one request count as spent. A project without a wallet has 0 credits.
func (s *Store) Balance(ctx context.Context, project string) (int64, error) {
	item, err := s.Item(ctx, project)
	if err != nil || item == nil {
		return 0, err
	}
	return s.Available(ctx, item)
}

// Available returns the balance of a wallet that was read, with what leases with several slots have not spent. Each
// lease takes a query.
func (s *Store) Available(ctx context.Context, item dynamo.Item) (int64, error) {
	balance, err := dynamo.NumberOf(item["balance"])
	if err != nil {
		return 0, fmt.Errorf("wallet: wallet %s: %w", dynamo.TextOf(item["pk"]), err)
	}
	leases := slices.DeleteFunc(LeasesOf(item, func(string, error) {}), func(l Lease) bool { return l.Slots == 1 })
	unspent, err := s.Unspent(ctx, leases, Captured, Sending)
	return balance + unspent, err
}

// Unspent returns the credits of leases without those of entries in the given states.
func (s *Store) Unspent(ctx context.Context, leases []Lease, spent ...State) (int64, error) {
	var sum atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.limits.Leasing.AtOnce)
	for _, l := range leases {
		group.Go(func() error {
			entries, err := s.slotEntries(ctx, l)
			for _, e := range entries {
				if slices.Contains(spent, e.State) {
					sum.Add(-e.Credits)
				}
			}
			sum.Add(l.Credits)
			return err
		})
	}
	err := group.Wait()
	return sum.Load(), err
}

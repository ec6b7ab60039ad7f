package wallet

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

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

// Available returns the balance of a wallet that was read, with what leases with several slots have not spent.
func (s *Store) Available(ctx context.Context, item dynamo.Item) (int64, error) {
	balance, err := dynamo.NumberOf(item["balance"])
	if err != nil {
		return 0, fmt.Errorf("wallet: wallet %s: %w", dynamo.TextOf(item["pk"]), err)
	}
	unspent, err := s.Unspent(ctx, leasesOfSeveral(item), Captured, Sending)
	return balance + unspent, err
}

// leasesOfSeveral returns the leases with several slots of a wallet that was read, the oldest first.
func leasesOfSeveral(item dynamo.Item) []Lease {
	return slices.DeleteFunc(LeasesOf(item, func(string, error) {}), func(l Lease) bool { return l.Slots == 1 })
}

// Unspent returns the credits of leases without those of entries in the given states. A lease with an entry that cannot
// be read counts as spent. Unspent makes one query for each partition of the ledger in which a lease has its entries:
// up to 16 of each UTC day, however many leases there are.
func (s *Store) Unspent(ctx context.Context, leases []Lease, spent ...State) (sum int64, err error) {
	partitions, unspent := map[string][]Key{}, map[Key]int64{}
	for _, l := range leases { // the oldest first
		pk := Partition(l.Project, l.Key)
		partitions[pk], unspent[l.Key] = append(partitions[pk], l.Key), l.Credits
	}
	unreadable := map[Key]bool{}
	var mu sync.Mutex // guards the maps
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.limits.Leasing.AtOnce)
	for pk, keys := range partitions {
		group.Go(func() error {
			in := dynamo.Partition(pk)
			in.TableName, in.ProjectionExpression = &s.tables.Ledger, aws.String("sk, st, cr")
			*in.KeyConditionExpression += " AND sk BETWEEN :first AND :last"
			in.ExpressionAttributeValues[":first"] = dynamo.Text(string(keys[0]))
			in.ExpressionAttributeValues[":last"] = dynamo.Text(string(keys[len(keys)-1]) + "/") // after its slots
			_, err := dynamo.Query(ctx, s.client, in, func(item dynamo.Item) error {
				credits, invalid := dynamo.NumberOf(item["cr"])
				lease, state := Key(dynamo.TextOf(item["sk"])).Lease(), State(dynamo.TextOf(item["st"]))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case invalid != nil || !slices.Contains([]State{Sending, Captured, Released}, state):
					unreadable[lease] = true
				case slices.Contains(spent, state):
					unspent[lease] -= credits
				}
				return nil
			})
			return err
		})
	}
	err = group.Wait()
	for _, l := range leases {
		if !unreadable[l.Key] {
			sum += unspent[l.Key]
		}
	}
	return sum, err
}

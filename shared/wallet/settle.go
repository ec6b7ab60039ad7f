package wallet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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

// Visited is what VisitPending finds in one wallet.
type Visited struct {
	Leases     []Lease     // oldest first
	Unreadable []error     // each names the wallet or one of its leases
	Low        *LowBalance // nil: the balance is not below an alert
}

// VisitPending calls visit for every wallet that holds leases, is below its alert or cannot be read, and stops at the
// first error of visit.
func (s *Store) VisitPending(ctx context.Context, visit func(Visited) error) error {
	return dynamo.Scan(ctx, s.client, &dynamodb.ScanInput{
		TableName:            &s.tables.Wallets,
		ConsistentRead:       aws.Bool(true),
		FilterExpression:     aws.String(pendingFilter),
		ProjectionExpression: aws.String("pk, pending, balance, alert"),
		ExpressionAttributeValues: dynamo.Item{
			":none": dynamo.Number(0), ":map": dynamo.Text("M"), ":number": dynamo.Text("N"),
		},
	}, func(item dynamo.Item) error { return visit(s.visited(ctx, item)) })
}

// visited returns what VisitPending says of a wallet.
func (s *Store) visited(ctx context.Context, item dynamo.Item) (v Visited) {
	project := dynamo.TextOf(item["pk"])
	unreadable := func(err error) { v.Unreadable = append(v.Unreadable, err) }
	if _, ok := item["pending"].(*types.AttributeValueMemberM); !ok {
		unreadable(fmt.Errorf("wallet: wallet %s: pending is of type %T, no map", project, item["pending"]))
	}
	v.Leases = LeasesOf(item, func(_ string, err error) { unreadable(err) })
	low, err := s.readLowBalance(ctx, project, item)
	switch {
	case err != nil:
		unreadable(fmt.Errorf("wallet: wallet %s: %w", project, err))
	case low.Balance < low.Alert:
		v.Low = &low
	}
	return v
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

// Spent returns what each project has ever spent, reservations included: all that operators moved to its wallet, less
// what the wallet still holds. Spent omits a wallet that cannot be read, which VisitPending names.
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
	group.SetLimit(s.Limits.Leasing.AtOnce)
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
	ctx, cancel := context.WithTimeout(ctx, s.Limits.Remove) // a throttled wallet does not keep the run from the others
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

// closeLease returns what a lease has not spent to the balance, once, and raises the fence against its late copies.
func (s *Store) closeLease(ctx context.Context, l Lease, unspent int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.Limits.Remove)
	defer cancel()
	values := s.closed(l, unspent)
	values[":fence"] = dynamo.Text(l.Name())
	stored, err := s.updatePending(ctx, l, closing+", fence = :fence", " AND fence < :fence", values)
	if PendingOf(stored)[l.Name()] != nil { // a newer lease was closed before
		_, err = s.updatePending(ctx, l, closing, " AND fence >= :fence", values)
	}
	return err
}

// MaxBalance keeps a balance and any price well inside an int64.
const MaxBalance = math.MaxInt64 / 4

// Item reads a wallet consistently, and returns nil where the project has none.
func (s *Store) Item(ctx context.Context, project string) (dynamo.Item, error) {
	return dynamo.Get(ctx, s.client, s.tables.Wallets, ItemKey(project))
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
	unspent, err := s.unspent(ctx, leasesOfSeveral(item))
	return balance + unspent, err
}

// leasesOfSeveral returns the leases with several slots of a wallet that was read, the oldest first.
func leasesOfSeveral(item dynamo.Item) []Lease {
	return slices.DeleteFunc(LeasesOf(item, func(string, error) {}), func(l Lease) bool { return l.Slots == 1 })
}

// fewLeases is the largest number of leases whose newest entries are read before others.
const fewLeases = 8

// unspent returns the credits of leases without those of charges and marks. A lease with an entry that cannot be read
// counts as spent. Where there are few leases, a query reads the newest entry of each. The other leases take one query
// for each partition of the ledger: up to 16 a UTC day, however many leases there are.
func (s *Store) unspent(ctx context.Context, leases []Lease) (sum int64, err error) {
	if len(leases) <= fewLeases {
		if sum, leases, err = s.newest(ctx, leases); err != nil {
			return 0, err
		}
	}
	partitions, unspent := map[string][]Key{}, map[Key]int64{}
	for _, l := range leases {
		pk := Partition(l.Project, l.Key)
		partitions[pk], unspent[l.Key] = append(partitions[pk], l.Key), l.Credits
	}
	unreadable := map[Key]bool{}
	var mu sync.Mutex // guards the maps
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.Limits.Leasing.AtOnce)
	for pk, keys := range partitions {
		group.Go(func() error {
			in := dynamo.Partition(s.tables.Ledger, pk)
			in.ProjectionExpression = aws.String("sk, st, cr")
			*in.KeyConditionExpression += " AND sk BETWEEN :first AND :last"
			in.ExpressionAttributeValues[":first"] = dynamo.Text(string(slices.Min(keys)))
			in.ExpressionAttributeValues[":last"] = dynamo.Text(string(slices.Max(keys)) + "/") // after its slots
			_, err := dynamo.Query(ctx, s.client, in, func(item dynamo.Item) error {
				credits, invalid := dynamo.NumberOf(item["cr"])
				lease, state := Key(dynamo.TextOf(item["sk"])).Lease(), State(dynamo.TextOf(item["st"]))
				mu.Lock()
				defer mu.Unlock()
				switch state {
				case Sending, Captured:
					unspent[lease] -= credits
				case Released:
				default:
					unreadable[lease] = true
				}
				unreadable[lease] = unreadable[lease] || invalid != nil
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

// newest returns the unspent credits of leases whose newest entry has what the slots below have spent, and the others.
func (s *Store) newest(ctx context.Context, leases []Lease) (sum int64, others []Lease, err error) {
	var mu sync.Mutex // guards the sum and the others
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range leases {
		group.Go(func() error {
			in := s.slotsQuery(l)
			in.ScanIndexForward, in.Limit, in.ProjectionExpression = new(false), new(int32(1)), new("st, cr, sp")
			out, err := s.client.Query(ctx, in)
			if err != nil {
				return fmt.Errorf("wallet: %w", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, item := range out.Items {
				spent, unknown := dynamo.NumberOf(item["sp"])
				credits, invalid := dynamo.NumberOf(item["cr"])
				state := State(dynamo.TextOf(item["st"]))
				if unknown != nil || invalid != nil || state != Sending && state != Captured && state != Released {
					others = append(others, l)
					return nil
				}
				if l.Credits -= spent; state != Released {
					l.Credits -= credits
				}
			}
			sum += l.Credits
			return nil
		})
	}
	return sum, others, group.Wait()
}

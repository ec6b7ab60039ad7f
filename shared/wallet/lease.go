package wallet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// Lease is an entry of a wallet's pending map: credits that one write has reserved (docs/decisions/money.md#leases).
type Lease struct {
	Project string
	Key     Key // the time is the begin of the lease
	Slots   int // 1: the reservation of one request
	Credits int64
}

// mostSlots is the largest number of slots of a lease, and largeSlots that of a lease after one with fewer slots.
const mostSlots, largeSlots = 128, 64

// lesseesCached bounds the projects of which an instance holds a lease. The settling function closes the others.
const lesseesCached = 1000

// Where the leases of the wallet have busySlots, an instance leases more, and from its second request on; from hotSlots
// on the largest lease: a project that begins with hundreds of instances would else write its wallet too often.
const (
	busySlots = 2 * mostSlots
	hotSlots  = 16 * mostSlots
)

// acquisitions bounds the writes with which one request looks for a lease.
const acquisitions = 8

// Leasing holds the numbers of the protocol of leases. Tests use smaller ones.
type Leasing struct {
	// Life is the time in which the slots of a lease may begin to be used.
	Life time.Duration
	// Slots is the largest number of slots, From the number of requests of one instance in the time Life from which the
	// instance takes leases with several slots.
	Slots, From int
	// Floor is how many times the credits of a lease with several slots the wallet keeps. Share is how many times the
	// credits of all leases with several slots are at most the balance before another lease.
	Floor, Share int64
	// AtOnce is the number of slots that Settle ends at the same time.
	AtOnce int
}

func (l Lease) slot(n int) Key {
	if l.Slots == 1 {
		return l.Key
	}
	return Key(fmt.Sprintf("%s.%02x", l.Key, n))
}

// Lent returns the part of a lease in the wallet's attribute lent.
func (l Lease) Lent(by Leasing) int64 {
	if l.Slots == 1 {
		return 0
	}
	return by.Share * l.Credits
}

// state is the state of a lease in its instance.
//
//	              slots, credits or time used up      each outcome is known
//	acquire ──▶ open ──────────────────────────▶ used ──────────────────────▶ the write of the next lease closes it
//	   │         └─── a write of it may arrive late, or a slot was settled ──▶ left, to the settling function
//	   └──▶ single: its request closes it
type state int

const (
	single state = iota // one slot: its request removes the lease, or returns its credits
	open                // requests get slots
	used                // no request gets a slot any more, for good, because a late copy of the next lease may close it
	left                // only the settler closes the lease, with a fence against a copy that acquires the lease again
)

// lease is a lease that this instance has acquired.
type lease struct {
	Lease

	mu     sync.Mutex // guards the fields below
	state  state
	next   int   // the first slot that no request has: a slot is one request's
	free   int64 // credits that no slot has: all slots together charge no more than the lease has
	spent  int64 // captured credits, which closing does not return
	unsure int   // slots whose outcome is not known: one of them may be captured still
}

// take gives the request that began at that time a slot. A lease ends with its UTC day, which is that of its charges.
func (l *lease) take(r *Reservation, began time.Time, life time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	begin := l.Key.Time()
	if l.state == open && (l.next == l.Slots || l.free < r.Credits || !began.Before(begin.Add(life)) ||
		began.Format(time.DateOnly) != l.Key.Day()) {
		l.state = used
	}
	if l.next == l.Slots || l.next > 0 && l.state != open {
		return false
	}
	r.lease, r.Key, r.ended = l, l.slot(l.next), false
	l.next, l.free, l.unsure = l.next+1, l.free-r.Credits, l.unsure+1
	return true
}

// end notes the outcome of the request's slot, once: captured credits, or credits for other slots.
func (l *lease) end(r *Reservation, captured, free int64) {
	if l == nil || r.ended {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent, l.free, l.unsure, r.ended = l.spent+captured, l.free+free, l.unsure-1, true
}

// before returns what the slots below that of the request have spent, and nil where another outcome is not known. If a
// higher slot has spent credits, its entry is read in place of this one.
func (l *lease) before(r *Reservation) *int64 {
	if l == nil || l.Slots == 1 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.ended || l.unsure > 1 {
		return nil
	}
	return new(l.spent)
}

// unspent returns the credits that closing the lease returns, and whether the next lease may close it.
func (l *lease) unspent() (credits int64, closes bool) {
	if l == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Credits - l.spent, l.state == used && l.unsure == 0
}

// leave ends the use of the lease by this instance.
func (l *lease) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = left
}

// lessee is what an instance knows of one project.
type lessee struct {
	mu     sync.Mutex  // held while a lease is acquired
	lease  *lease      // the newest; nil: none yet
	recent []time.Time // of requests with a new lease: an instance of few requests leases no slots that nobody uses
	// as the last write of a lease returned them: fewer writes are refused
	balance, lent int64
}

// learn notes the balance and the credits of leases of a wallet.
func (l *lessee) learn(item dynamo.Item) {
	l.balance, _ = dynamo.NumberOf(item["balance"]) // 0 where there is no wallet
	l.lent, _ = dynamo.NumberOf(item["lent"])
}

// slots returns the slots of the next lease: more than before where those were used up, and no more than are allowed.
func (l *lessee) slots(now time.Time, credits, back int64, by Leasing) int {
	l.recent = slices.DeleteFunc(append(l.recent, now), func(at time.Time) bool { return !at.After(now.Add(-by.Life)) })
	l.recent = l.recent[max(0, len(l.recent)-by.From):]
	from, first, growth := by.From, 2, 2
	switch leased := l.lent / by.Share / credits; {
	case leased >= hotSlots:
		from, first, growth = 2, mostSlots, mostSlots
	case leased >= busySlots:
		from, first, growth = 2, 3, 7
	}
	n := first
	switch old := l.lease; {
	case len(l.recent) < from:
		return 1
	case old == nil || old.Slots == 1:
	case old.next == old.Slots && old.Slots < largeSlots:
		n = min(old.next*growth, max(largeSlots, first))
	case old.next == old.Slots:
		n = old.next * growth
	default:
		n = min(old.next*growth, old.Slots)
	}
	return l.allowed(min(n, by.Slots), credits, back, by)
}

// allowed returns up to how many slots a lease may have. back are the credits that the lease before returns.
func (l *lessee) allowed(slots int, credits, back int64, by Leasing) int {
	if l.lent > l.balance {
		return 1
	}
	return int(max(1, min(int64(slots), (l.balance+back)/(by.Floor+1)/credits)))
}

// acquire gives the request a slot of a new lease that closes the one before.
func (s *Store) acquire(ctx context.Context, l *lessee, r *Reservation, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, s.Limits.Write)
	defer cancel()
	by, old := s.Limits.Leasing, l.lease
	back, closes := old.unspent()
	if !closes { // the settling function closes the lease, or the request of its slot
		old, back = nil, 0
	}
	slots, key := l.slots(began, r.Credits, back, by), NewKey(began, r.RequestID)
	var err error
	for range acquisitions {
		next := &lease{Lease: Lease{r.Project, key, slots, int64(slots) * r.Credits}}
		if next.free = next.Credits; slots > 1 {
			next.state = open
		}
		var ambiguous int
		ambiguous, err = s.writeLease(ctx, l, next, old)
		stored, conflict := dynamo.ConditionFailed(err)
		if _, mine := PendingOf(stored)[next.Name()]; mine { // an earlier attempt took effect
			err, ambiguous = nil, 1
		}
		switch {
		case err == nil:
			if ambiguous > 0 && old == nil {
				next.state = left // an attempt may acquire it again, once it is closed
			}
			l.lease = next
			next.take(r, began, by.Life)
			return nil
		case !conflict && ambiguous == 0: // DynamoDB turned every attempt away: nothing was taken
			return fmt.Errorf("wallet: reserve: %w", err)
		case !conflict:
			return errors.Join(fmt.Errorf("wallet: reserve: %w", err), s.returnCredits(ctx, next.Lease))
		}
		l.learn(stored)
		key = key.at(key.Time().Add(time.Microsecond)) // a late copy of this write must not find the next one
		switch fence := dynamo.TextOf(stored["fence"]); {
		case fence >= next.Name(): // this instance's clock is late
			key = key.Above(fence)
		case old != nil && PendingOf(stored)[old.Name()] == nil: // settled meanwhile
			old.leave()
			old, back = nil, 0
		case slots > 1:
			if slots = l.allowed(slots, r.Credits, back, by); slots == next.Slots {
				slots = 1 // another instance has written the wallet
			}
		default:
			return s.insufficient(ctx, r.Credits, l.balance, stored)
		}
	}
	return fmt.Errorf("wallet: reserve: %w", err)
}

// insufficient returns the error for a wallet without the credits, with what leases of several slots have not spent.
// Where that cannot be read, the error has the stored balance.
func (s *Store) insufficient(ctx context.Context, credits, balance int64, stored dynamo.Item) error {
	e := &InsufficientError{Balance: balance}
	if available, err := s.Available(ctx, stored); err == nil {
		if e.Balance = available; balance < credits && available >= credits {
			e.Oldest = leasesOfSeveral(stored)[0].Key.Time()
		}
	}
	return e
}

// writeLease acquires the next lease, and closes the old one, unless it is nil. The lessee learns what the wallet has.
func (s *Store) writeLease(ctx context.Context, l *lessee, next, old *lease) (ambiguous int, err error) {
	by, least, change := s.Limits.Leasing, next.Credits, next.Lent(s.Limits.Leasing)
	update, condition := "SET balance = balance - :by, lent = lent + :lent, pending.#new = :c",
		"fence < :new AND attribute_not_exists(pending.#new)"
	names := map[string]string{"#new": next.Name()}
	if old != nil {
		back, _ := old.unspent()
		least -= back
		change -= old.Lent(by)
		update += " REMOVE pending.#old"
		condition += " AND attribute_exists(pending.#old)"
		names["#old"] = old.Name()
	}
	values := dynamo.Item{":by": dynamo.Number(least), ":lent": dynamo.Number(change), ":c": dynamo.Number(next.Credits),
		":new": dynamo.Text(next.Name())}
	if next.Slots > 1 {
		least += by.Floor * next.Credits
		condition += " AND lent <= balance"
	}
	values[":least"] = dynamo.Number(max(0, least))
	out, ambiguous, err := dynamo.WriteUnlessHot(ctx, s.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           &s.tables.Wallets,
		Key:                                 ItemKey(next.Project),
		UpdateExpression:                    &update,
		ConditionExpression:                 aws.String(condition + " AND balance >= :least"),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		l.learn(out.Attributes)
	}
	return ambiguous, err
}

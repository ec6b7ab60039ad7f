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

// Lease is an entry in the pending map of a wallet: the credits that an instance has reserved in one write for as many
// requests as the lease has slots (docs/decisions/money.md#leases).
type Lease struct {
	Project string
	Key     Key // the time is the begin of the lease
	Slots   int // 1: the reservation of one request
	Credits int64
}

// mostSlots is the largest number of slots of a lease.
const mostSlots = 64

// lesseesCached bounds the projects of which an instance holds a lease. The settling function closes a lease that the
// instance gives up.
const lesseesCached = 1000

// busyLeases is the number of the largest leases in a wallet from which an instance takes the largest from its second
// request on: a project that begins with hundreds of instances would else write its wallet too often.
const busyLeases = 16

// acquisitions bounds the writes with which one request looks for a lease.
const acquisitions = 8

// clockMargin is how far the clocks of two instances may differ while a lease is used.
const clockMargin = 4 * time.Second

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
	return Key(fmt.Sprintf("%s.%02d", l.Key, n))
}

// Lent returns the part of a lease in the wallet's attribute lent.
func (l Lease) Lent(by Leasing) int64 {
	if l.Slots == 1 {
		return 0
	}
	return by.Share * l.Credits
}

// held is a lease that this instance has acquired.
type held struct {
	Lease
	unit    int64 // credits of a slot
	next    int   // the first slot that no request has
	returns bool  // a late copy of its write could put the lease back into the wallet
	frozen  bool  // a write that closes the lease may be under way: no slot may be used any more

	mu   sync.Mutex // guards the fields below
	free int64      // credits that no slot has
	used int64      // captured credits
	open int        // slots whose outcome is not known
}

// live reports whether a request that begins now, and that was received at another time by the gateway's clock, may use
// a slot of the lease. A lease ends with its UTC day, so that the key of a charge has the day of its request.
func (h *held) live(now, received time.Time, life time.Duration) bool {
	begin := h.Key.Time()
	end := begin.Add(life)
	return h.next < h.Slots && !h.frozen && now.Before(end) && received.Before(end) &&
		now.After(begin.Add(-clockMargin)) &&
		now.Format(time.DateOnly) == h.Key.Day()
}

// take gives the request a slot, unless the lease lacks the credits.
func (h *held) take(r *Reservation) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.free < r.Credits {
		return false
	}
	r.lease, r.Key, r.ended = h, h.slot(h.next), false
	h.next, h.free, h.open = h.next+1, h.free-r.Credits, h.open+1
	return true
}

// end notes the outcome of the request's slot: captured credits, or credits for other slots.
func (r *Reservation) end(captured, free int64) {
	h := r.lease
	if h == nil || r.ended {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used, h.free, h.open, r.ended = h.used+captured, h.free+free, h.open-1, true
}

// enough reports whether the lease has the credits of a slot.
func (h *held) enough() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.free >= h.unit
}

// closes reports whether the next lease can close this one: the outcome of each used slot is known, and no late copy
// puts the lease back.
func (h *held) closes() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open == 0 && !h.returns
}

// unspent returns the credits that the lease has not spent.
func (h *held) unspent() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Credits - h.used
}

// lessee is the state of one project in an instance.
type lessee struct {
	mu     sync.Mutex // held while a lease is acquired
	lease  *held      // nil: none
	recent []time.Time
	single time.Time // until when each lease has one slot, because the wallet had too few credits for more
	busy   bool      // many instances lease
}

// slots returns the number of slots of the next lease, for a request that begins now.
func (l *lessee) slots(now time.Time, credits int64, by Leasing) int {
	l.recent = slices.DeleteFunc(append(l.recent, now), func(at time.Time) bool { return !at.After(now.Add(-by.Life)) })
	l.recent = l.recent[max(0, len(l.recent)-by.Slots):]
	switch n := len(l.recent); {
	case n < 2, n < by.From && !l.busy, now.Before(l.single), credits > MaxBalance>>20: // so that no product overflows
		return 1
	case l.busy:
		return by.Slots
	default:
		return min(2*n, by.Slots)
	}
}

// acquire gives the request a slot: of the instance's lease, or of a new lease that closes the one before. A fresh
// reservation is one that replaces a settled one.
func (s *Store) acquire(ctx context.Context, r *Reservation, fresh bool) error {
	l := s.lessees.GetOrPut(r.Project, &lessee{})
	l.mu.Lock()
	defer l.mu.Unlock()
	by, now := s.limits.Leasing, r.own.Time()
	slots, beside, old := 1, false, (*held)(nil)
	if !fresh {
		slots = l.slots(now, r.Credits, by)
		if l.lease != nil && l.lease.live(now, r.Received, by.Life) {
			if l.lease.take(r) {
				return nil
			}
			beside = l.lease.enough() // this request costs more than a slot: the lease stays
		}
	}
	if beside {
		slots = 1
	} else if !fresh && l.lease != nil && l.lease.closes() {
		old = l.lease
	} // otherwise the settling function closes the lease
	timed, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	var err error
	for range acquisitions {
		next := &held{Lease: Lease{r.Project, r.own, slots, int64(slots) * r.Credits}, unit: r.Credits,
			free: int64(slots) * r.Credits}
		var lent int64
		var ambiguous int
		lent, ambiguous, err = s.writeLease(timed, next, old)
		stored, refused := dynamo.Refused(err)
		if _, mine := PendingOf(stored)[next.Name()]; mine { // an earlier attempt took effect
			err, ambiguous = nil, 1
		}
		switch {
		case err == nil:
			next.returns = ambiguous > 0 && old == nil
			l.busy = lent >= busyLeases*by.Share*int64(by.Slots)*r.Credits
			if !beside {
				l.lease = nil
			}
			if slots > 1 {
				l.lease = next
			}
			next.take(r)
			return nil
		case !refused && ambiguous == 0: // DynamoDB turned every attempt away: nothing was taken
			return fmt.Errorf("wallet: reserve: %w", err)
		case !refused:
			if old != nil {
				l.lease = nil
			}
			return errors.Join(fmt.Errorf("wallet: reserve: %w", err), s.returnCredits(ctx, next.Lease))
		}
		if old != nil && ambiguous > 0 {
			old.frozen = true
		}
		r.own = r.own.at(r.own.Time().Add(time.Microsecond)) // a late copy of this write must not find the next one
		switch fence := dynamo.TextOf(stored["fence"]); {
		case fence >= next.Name(): // this instance's clock is late
			r.own = r.own.Above(fence)
		case old != nil && PendingOf(stored)[old.Name()] == nil: // settled meanwhile
			old, l.lease = nil, nil
		case slots > 1:
			slots, l.single = 1, now.Add(by.Life)
		case beside && l.lease.closes(): // with the credits of this instance's lease there may be enough
			beside, old = false, l.lease
		default:
			balance, _ := dynamo.NumberOf(stored["balance"]) // 0 where there is no wallet
			return &InsufficientError{balance}
		}
	}
	return fmt.Errorf("wallet: reserve: %w", err)
}

// writeLease takes the credits of the next lease out of the balance, and closes the old lease, unless it is nil, in the
// same write. writeLease returns the wallet's attribute lent.
func (s *Store) writeLease(ctx context.Context, next, old *held) (lent int64, ambiguous int, err error) {
	by, least, change := s.limits.Leasing, next.Credits, next.Lent(s.limits.Leasing)
	update, condition := "SET balance = balance - :by, lent = lent + :lent, pending.#new = :c",
		"fence < :new AND attribute_not_exists(pending.#new)"
	names := map[string]string{"#new": next.Name()}
	if old != nil {
		least -= old.unspent()
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
		lent, _ = dynamo.NumberOf(out.Attributes["lent"]) // the write has taken effect, whatever it returns
	}
	return lent, ambiguous, err
}

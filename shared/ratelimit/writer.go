package ratelimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

const (
	// slotNames has a letter for each slot of an item. The item of a window or a day with 64 slots has less than 1 KB.
	slotNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	// timeDigits is the length of a token's time: milliseconds after epoch in base 36, which fit until 2114.
	timeDigits = 8
	epoch      = 1_735_689_600_000 // 2025-01-01, in Unix milliseconds
	// stampLife is how long a slot is its writer's alone. The subtraction of a count that got no response comes at most
	// two minutes after the count, where the settler's next run empties the queue; the rest is for clocks that differ.
	stampLife = 3 * time.Minute
	// repeatLife is how long a slot is a writer's alone by each clock that differs by up to a minute.
	repeatLife = stampLife - time.Minute
)

// stamp is what a write leaves in its item: a token in a slot.
type stamp struct {
	Slot  string `json:"s"` // an attribute
	Token string `json:"t"` // the time, then the ID of the writer: tokens sort by time
}

// writer is the identity with which an instance writes to a counter, one write at a time.
type writer struct {
	id, slot string
	last     int64           // time of the last token
	busy     map[string]bool // the counters to which the writer is writing
}

// crowded is the name under which the cache notes that a counter has more writers than slots.
func crowded(pk string) string { return pk + "#crowded" }

func slotName(i int) string { return "s" + slotNames[i%len(slotNames):][:1] }

// renew gives the writer an ID that no write has used, and a slot.
func (w *writer) renew() { w.id, w.slot = rand.Text()[:4], slotName(mathrand.IntN(len(slotNames))) }

// acquire returns a writer that is not writing to the counter.
func (l *Limiter) acquire(pk string) *writer {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.writers, func(w *writer) bool { return !w.busy[pk] })
	if i < 0 {
		i, l.writers = len(l.writers), append(l.writers, &writer{busy: map[string]bool{}})
		l.writers[i].renew()
	}
	l.writers[i].busy[pk] = true
	return l.writers[i]
}

// free ends the use of a writer, which is renewed where a write without a response may have left its token.
func (l *Limiter) free(w *writer, pk string, uncertain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(w.busy, pk)
	if uncertain {
		w.renew()
	}
}

// stamp returns the writer's next stamp, with a greater token than before, and the least token that is not old.
func (l *Limiter) stamp(w *writer) (s stamp, old string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.last = max(w.last+1, l.clock.Now().UnixMilli()-epoch)
	return stamp{w.slot, digits(w.last) + w.id}, digits(w.last - stampLife.Milliseconds())
}

// digits returns the time of a token, in milliseconds after epoch, as the token begins with it.
func digits(at int64) string {
	return fmt.Sprintf("%0*s", timeDigits, strconv.FormatInt(max(at, 0), 36))
}

// move gives the writer a slot that is empty, old or its own, or else the item's oldest one, which is another writer's.
func (l *Limiter) move(w *writer, item dynamo.Item, old string) (taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token, start := "", mathrand.IntN(len(slotNames))
	for i := 0; i == 0 || taken && i < len(slotNames); i++ {
		name := slotName(start + i)
		held := dynamo.TextOf(item[name])
		if free := held < old || strings.HasSuffix(held, w.id); free || i == 0 || held < token {
			w.slot, token, taken = name, held, !free
		}
	}
	if at, err := strconv.ParseInt(token[:min(timeDigits, len(token))], 36, 64); err == nil {
		w.last = max(w.last, at) // the next token is greater, although another clock may be ahead
	}
	return taken
}

// full reports that each slot of the item has a token: before that, no writer replaces another's token that is not old.
func full(item dynamo.Item) bool {
	return !strings.ContainsFunc(slotNames, func(letter rune) bool { return item["s"+string(letter)] == nil })
}

// write makes a write of a counter's item, which takes effect once, however often it is repeated and whenever a copy
// arrives: the write leaves a greater token than the slot holds, in a slot that no other writer has used for stampLife.
// A repeat that finds its own token knows that an earlier attempt took effect, and a late copy finds its own token or a
// greater one. Where an item has more writers at a time than slots, write takes the oldest slot. If the response to
// another writer's last write was lost in that moment, the repeat of that count takes effect twice
// (docs/decisions/requests.md#counters).
//
// write returns the written item or the stored one. Beside an error the stamp is that of a write which may have taken
// effect, and with which write repeats it; the error of a refusal by the write's own condition has the stored item.
func (l *Limiter) write(ctx context.Context, update updater, in *dynamodb.UpdateItemInput,
	repeated stamp) (item dynamo.Item, uncertain stamp, err error) {
	pk := dynamo.TextOf(in.Key["pk"])
	w := l.acquire(pk)
	defer func() { l.free(w, pk, uncertain != stamp{}) }()
	_, crowds := l.cached(crowded(pk), "")
	by, _ := dynamo.NumberOf(in.ExpressionAttributeValues[":by"])
	subtracts := by < 0
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	for {
		s, old := l.stamp(w)
		if repeated != (stamp{}) {
			s = repeated
		}
		id, limit := s.Token[timeDigits:], old
		if crowds {
			limit = s.Token
		}
		try := *in
		extend(&try, "(attribute_not_exists(#slot) OR #slot < :token AND (contains(#slot, :writer) OR #slot < :old))", s)
		try.ExpressionAttributeValues[":writer"], try.ExpressionAttributeValues[":old"] = dynamo.Text(id), dynamo.Text(limit)
		timed, cancel := context.WithTimeout(ctx, l.writeTime)
		out, ambiguous, err := dynamo.Write(timed, update, &try)
		cancel()
		if repeated != (stamp{}) {
			ambiguous++
		}
		stored, conflict := dynamo.ConditionFailed(err)
		held := dynamo.TextOf(stored[s.Slot])
		unsafe := digits(l.clock.Now().Add(-repeatLife).UnixMilli() - epoch)
		switch {
		case err == nil:
			return out.Attributes, stamp{}, nil
		case errors.Is(err, errSubtracted):
			return nil, stamp{}, err
		case conflict && held == s.Token: // an earlier attempt took effect
			return stored, stamp{}, nil
		case !conflict && ambiguous > 0:
			return nil, s, err
		case !conflict, held < limit, held < s.Token && strings.HasSuffix(held, id): // by the write's own condition
			return nil, stamp{}, err
		case subtracts && ambiguous > 0 && held > s.Token && (full(stored) || s.Token < unsafe):
			// In a full item, or after stampLife, another writer may have taken the slot after an attempt took effect. A second
			// subtraction would let more through than the limit.
			return nil, s, err
		}
		repeated = stamp{}
		if crowds = l.move(w, stored, old); crowds {
			l.reached.Put(crowded(pk), reached{}, cacheReached)
		}
	}
}

// extend adds to a write its stamp, and a condition of the slot.
func extend(in *dynamodb.UpdateItemInput, condition string, s stamp) {
	in.UpdateExpression = new(*in.UpdateExpression + ", #slot = :token")
	in.ConditionExpression = new(*in.ConditionExpression + " AND " + condition)
	in.ExpressionAttributeNames["#slot"], in.ExpressionAttributeValues[":token"] = s.Slot, dynamo.Text(s.Token)
}

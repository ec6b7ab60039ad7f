package ratelimit

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

const (
	// slotNames has a letter for each slot of an item. With 64 full slots the item of a window or a day has less than 1 KB.
	slotNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	// timeDigits is the length of a token's time in base 36, which suffices until 2114.
	timeDigits = 8
	// stampLife is how long a slot is its writer's alone. A request lives for less than 30 seconds, and then repeats for
	// dynamo.WriteTimeout the subtraction of a count that got no response; the rest is for clocks that differ.
	stampLife = time.Minute
)

// epoch is the time of the first token.
var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// stamp is what a write leaves in its item: a token in a slot.
type stamp struct {
	Slot  string `json:"s"` // an attribute
	Token string `json:"t"` // the time, then the ID of the writer: tokens sort by time
}

// writer is the identity with which an instance writes to a counter, one write at a time.
type writer struct {
	id, slot string
	last     int64           // time of the last token, in milliseconds after epoch
	busy     map[string]bool // the counters to which the writer is writing
}

// renew gives the writer an ID and a slot that no write has used.
func (w *writer) renew() { w.id, w.slot = rand.Text()[:4], randomSlot() }

func randomSlot() string { return "s" + string(slotNames[mathrand.IntN(len(slotNames))]) }

// take returns a writer that is not writing to the counter.
func (l *Limiter) take(pk string) *writer {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.writers, func(w *writer) bool { return !w.busy[pk] })
	if i < 0 {
		w := &writer{busy: map[string]bool{}}
		w.renew()
		i, l.writers = len(l.writers), append(l.writers, w)
	}
	l.writers[i].busy[pk] = true
	return l.writers[i]
}

// giveBack ends the use of a writer. A token that a write without a response may have left stays: the writer is renewed.
func (l *Limiter) giveBack(w *writer, pk string, doubt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(w.busy, pk)
	if doubt {
		w.renew()
	}
}

// stamp returns the writer's next stamp, whose token is greater than its tokens before, and the least token that is not old.
func (l *Limiter) stamp(w *writer) (s stamp, old string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.last = max(w.last+1, l.clock.Now().Sub(epoch).Milliseconds())
	return stamp{w.slot, digits(w.last) + w.id}, digits(w.last - stampLife.Milliseconds())
}

// digits returns the time of a token.
func digits(at int64) string {
	return fmt.Sprintf("%0*s", timeDigits, strconv.FormatInt(max(at, 0), 36))
}

// move gives the writer a slot that is empty, old or its own, and otherwise the oldest slot of the item. move reports that
// the slot is another writer's.
func (l *Limiter) move(w *writer, item dynamo.Item, old string) (taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token, start := "", mathrand.IntN(len(slotNames))
	for i := range slotNames {
		name := "s" + string(slotNames[(start+i)%len(slotNames)])
		held := dynamo.TextOf(item[name])
		if free := held < old || strings.HasSuffix(held, w.id); free || i == 0 || held < token {
			w.slot, token, taken = name, held, !free
		}
		if !taken {
			break
		}
	}
	if at, err := strconv.ParseInt(token[:min(timeDigits, len(token))], 36, 64); err == nil {
		w.last = max(w.last, at) // the next token is greater, although another clock may be ahead
	}
	return taken
}

// write makes a write of a counter's item so that the write takes effect once, however often it is repeated, and whenever a
// copy arrives. The write leaves a greater token than the slot holds, and only in a slot that no other writer has used for
// stampLife: a repeat that finds its own token knows that an earlier attempt took effect, a copy finds its own or a greater
// one. Where an item has more writers at a time than slots, write takes the oldest slot: should the response to another
// writer's last write have been lost in that moment, its repeat takes effect twice (docs/decisions.md#counters).
//
// write returns the written item or the stored one, or an error. Beside an error the stamp is that of a write which may have taken
// effect. The item of a refusal by the write's own condition is in its error.
func (l *Limiter) write(ctx context.Context, in *dynamodb.UpdateItemInput) (item dynamo.Item, doubt stamp, err error) {
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	pk := dynamo.TextOf(in.Key["pk"])
	w := l.take(pk)
	defer func() { l.giveBack(w, pk, doubt != stamp{}) }()
	until, crowded := l.crowded.Get(pk)
	crowded = crowded && l.clock.Now().Before(until)
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	for {
		s, old := l.stamp(w)
		try := *in
		limit := old
		if crowded {
			limit = s.Token
		}
		extend(&try, "(attribute_not_exists(#slot) OR #slot < :token AND (contains(#slot, :writer) OR #slot < :old))", s)
		try.ExpressionAttributeValues[":writer"] = dynamo.Text(s.Token[timeDigits:])
		try.ExpressionAttributeValues[":old"] = dynamo.Text(limit)
		out, ambiguous, err := dynamo.Write(ctx, l.client.UpdateItem, &try)
		stored, refused := dynamo.Refused(err)
		held := dynamo.TextOf(stored[s.Slot])
		switch {
		case err == nil:
			return out.Attributes, stamp{}, nil
		case refused && held == s.Token: // an earlier attempt took effect
			return stored, stamp{}, nil
		case !refused && ambiguous > 0:
			return nil, s, err
		case !refused, held < limit, held < s.Token && strings.HasSuffix(held, s.Token[timeDigits:]): // the write's own condition
			return nil, stamp{}, err
		}
		if crowded = l.move(w, stored, old); crowded {
			l.crowded.Put(pk, l.clock.Now().Add(cacheReached))
			if by, _ := dynamo.NumberOf(in.ExpressionAttributeValues[":by"]); by < 0 && ambiguous > 0 {
				return nil, s, err // rather not subtracted than twice
			}
		}
	}
}

// extend adds to a write its stamp, and a condition of the slot.
func extend(in *dynamodb.UpdateItemInput, condition string, s stamp) {
	in.UpdateExpression = aws.String(*in.UpdateExpression + ", #slot = :token")
	in.ConditionExpression = aws.String(*in.ConditionExpression + " AND " + condition)
	in.ExpressionAttributeNames["#slot"], in.ExpressionAttributeValues[":token"] = s.Slot, dynamo.Text(s.Token)
}

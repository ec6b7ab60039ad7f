package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

const (
	// maxReached bounds the counters that an instance caches as reached.
	maxReached = 10_000
	// cacheReached is how long an instance refuses from memory. Other instances may subtract counts meanwhile.
	cacheReached = 10 * time.Second
)

// Count is what one write has added to counters. The zero Count has added nothing. The queue stores Counts as JSON.
type Count struct {
	// ID is of a queued count: the subtraction takes effect once for the ID.
	ID       string   `json:"i,omitzero"`
	By       int64    `json:"n"` // added to each counter
	Key      string   `json:"k"` // of the item
	Counters []string `json:"c"`
	Expires  int64    `json:"e"` // the item, in Unix seconds
	// Uncertain is the stamp of a count that may have taken effect: no attempt got a response.
	Uncertain stamp `json:"u,omitzero"`
	// Subtracting is the stamp of a subtraction of the count that may have taken effect, with which a repeat takes effect
	// once.
	Subtracting stamp `json:"s,omitzero"`
}

func newCount(key string, by int64, end time.Time, counters ...string) Count {
	return Count{By: by, Key: key, Counters: counters, Expires: end.Add(keepAfterWindow).Unix()}
}

// add adds the count to all of its counters, or to none where one of them would exceed its limit. add returns the count
// that took effect or may have done so, otherwise the zero Count, and the item: after an addition the attributes that
// the parameter returns asks for, or more; after a refusal the stored item.
func (l *Limiter) add(ctx context.Context, c Count, limits []int64,
	returns types.ReturnValue) (Count, dynamo.Item, error) {
	in := l.update(c, c.By, "(attribute_not_exists(%[1]s) OR %[1]s <= %[2]s)",
		func(i int) int64 { return limits[i] - c.By })
	in.ReturnValues = returns
	item, uncertain, err := l.write(ctx, l.client.UpdateItem, in, stamp{})
	if stored, conflict := dynamo.ConditionFailed(err); conflict {
		return Count{}, stored, nil
	}
	if err != nil && uncertain == (stamp{}) {
		return Count{}, nil, err
	}
	c.Uncertain = uncertain
	return c, item, err
}

// subtract subtracts a count from its counters, or nothing where the item has expired. Where the count itself got no
// response, subtract subtracts only what was added. Beside an error subtract reports whether it may be called again,
// with the count that it leaves: a repeat does not let more through than the limit.
func (l *Limiter) subtract(ctx context.Context, c *Count) (again bool, err error) {
	if c.By <= 0 {
		return false, nil
	}
	l.reached.DeleteFunc(c.Key, func(reached) bool { return true })
	in := l.update(*c, -c.By, "%s >= %s", func(int) int64 { return c.By })
	uncertain := stamp{}
	if c.Uncertain == (stamp{}) {
		_, uncertain, err = l.write(ctx, l.subtraction(c), in, c.Subtracting)
		c.Subtracting = uncertain
	} else { // the longer token keeps a late copy of the count, or a repeat, from taking effect
		extend(in, "#slot = :counted", stamp{c.Uncertain.Slot, c.Uncertain.Token + "-"})
		in.ExpressionAttributeValues[":counted"] = dynamo.Text(c.Uncertain.Token)
		timed, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
		_, _, err = dynamo.Write(timed, l.subtraction(c), in)
		cancel()
	}
	_, conflict := dynamo.ConditionFailed(err)
	if conflict || errors.Is(err, errSubtracted) {
		if conflict && uncertain == (stamp{}) {
			err = nil // not counted, subtracted before, or the item has expired
		}
		return false, err
	}
	return err != nil, err
}

// update returns the write that adds an amount to each counter of a count where each of them fulfils the condition. The
// condition has the counter's name and its bound as verbs.
func (l *Limiter) update(c Count, by int64, condition string, bound func(i int) int64) *dynamodb.UpdateItemInput {
	names, sums, conditions := map[string]string{}, []string{}, []string{}
	values := dynamo.Item{":by": dynamo.Number(by), ":expires": dynamo.Number(c.Expires)}
	for i, counter := range c.Counters {
		name, value := fmt.Sprintf("#n%d", i), fmt.Sprintf(":bound%d", i)
		names[name], values[value] = counter, dynamo.Number(bound(i))
		sums = append(sums, name+" :by")
		conditions = append(conditions, fmt.Sprintf(condition, name, value))
	}
	return &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: dynamo.Item{"pk": dynamo.Text(c.Key)},
		UpdateExpression:         new("ADD " + strings.Join(sums, ", ") + " SET expires = :expires"),
		ConditionExpression:      new(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}
}

// reached is a cached refusal.
type reached struct {
	until  time.Time
	room   int64 // what still fitted
	limits string
	limit  project.RecipientLimit
}

// cached returns the refusal of a counter by these limits, and false where this instance has cached none.
func (l *Limiter) cached(pk string, limits any) (reached, bool) {
	r, ok := l.reached.Get(pk)
	return r, ok && l.clock.Now().Before(r.until) && r.limits == fmt.Sprint(limits)
}

// cache caches a refusal for cacheReached, but not beyond the end of its window.
func (l *Limiter) cache(pk string, end time.Time, r reached) {
	if r.until = l.clock.Now().Add(cacheReached); end.Before(r.until) {
		r.until = end
	}
	l.reached.Put(pk, r)
}

// rest returns the time until the end of a window in whole seconds, at least 1.
func rest(end, now time.Time) time.Duration {
	return max(time.Second, (end.Sub(now) + time.Second - 1).Truncate(time.Second))
}

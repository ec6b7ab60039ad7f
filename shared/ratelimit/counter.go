package ratelimit

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

const (
	// maxReached bounds the numbers and the days whose limits an instance caches as reached.
	maxReached = 10_000
	// cacheReached is how long an instance refuses from memory. Other instances may subtract counts meanwhile.
	cacheReached = 10 * time.Second
)

// recent is the number of the latest writes that an item holds by their tokens, s0 for the latest one. A repeat recognizes a
// write that took effect, unless so many others have followed: 64 writers at once never push a token out.
const recent = 64

// Count is what one write has added to counters. The zero Count has added nothing.
type Count struct {
	pk       string
	counters []counterLimit // of the item
	token    string         // of the write
	unknown  bool           // no attempt got a response: the count may have taken effect
	By       int64          // added to each counter
}

// counterLimit is a counter with its limit.
type counterLimit struct {
	name string
	most int64
}

// add adds the count to all of its counters, or to none where one of them would exceed its limit. add returns the count that
// took effect or may have done so, otherwise the zero Count, and the item: after an addition the attributes that the
// parameter returns asks for, or more; after a refusal the stored item.
func (l *Limiter) add(ctx context.Context, c Count, end time.Time, returns types.ReturnValue) (Count, dynamo.Item, error) {
	c.token = rand.Text()[:8]
	names, sums, conditions := map[string]string{}, []string{}, []string{"NOT " + l.holds(":token")}
	values := dynamo.Item{
		":by": dynamo.Number(c.By), ":expires": dynamo.Number(end.Add(keepAfterWindow).Unix()), ":token": dynamo.Text(c.token), ":none": dynamo.Text(""),
	}
	for i, counter := range c.counters {
		name, room := fmt.Sprintf("#n%d", i), fmt.Sprintf(":room%d", i)
		names[name], values[room] = counter.name, dynamo.Number(counter.most-c.By)
		sums = append(sums, name+" :by")
		conditions = append(conditions, fmt.Sprintf("(attribute_not_exists(%s) OR %s <= %s)", name, name, room))
	}
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	out, ambiguous, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           &l.table,
		Key:                                 dynamo.Item{"pk": dynamo.Text(c.pk)},
		UpdateExpression:                    aws.String("ADD " + strings.Join(sums, ", ") + " SET expires = :expires, " + l.shift),
		ConditionExpression:                 aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	stored, refused := dynamo.Refused(err)
	switch {
	case err == nil:
		return c, out.Attributes, nil
	case refused && holds(stored, c.token): // an earlier attempt took effect
		return c, stored, nil
	case refused:
		return Count{}, stored, nil
	case ambiguous > 0:
		c.unknown = true
		return c, nil, err
	}
	return Count{}, nil, err
}

// Subtract subtracts an amount of a count from its counters, at most once for each count. Where the count itself got no
// response, Subtract subtracts only what was added.
func (l *Limiter) Subtract(ctx context.Context, c Count, amount int64) error {
	if amount <= 0 || c.pk == "" {
		return nil
	}
	l.reached.DeleteFunc(c.pk, func(reached) bool { return true })
	names, assignments, conditions := map[string]string{}, []string{}, []string{"NOT " + l.holds(":token")}
	values := dynamo.Item{
		":by": dynamo.Number(min(amount, c.By)), ":token": dynamo.Text("-" + c.token), ":none": dynamo.Text(""),
	}
	if c.unknown {
		values[":counted"] = dynamo.Text(c.token)
		conditions = append(conditions, l.holds(":counted"))
	}
	for i, counter := range c.counters {
		names[fmt.Sprintf("#n%d", i)] = counter.name
		assignments = append(assignments, fmt.Sprintf("#n%d = #n%d - :by", i, i))
		conditions = append(conditions, fmt.Sprintf("#n%d >= :by", i))
	}
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	_, _, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                 &l.table,
		Key:                       dynamo.Item{"pk": dynamo.Text(c.pk)},
		UpdateExpression:          aws.String("SET " + strings.Join(assignments, ", ") + ", " + l.shift),
		ConditionExpression:       aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
	})
	if _, refused := dynamo.Refused(err); refused {
		return nil // subtracted before, or the item has expired
	}
	return err
}

// shift returns the assignments that add :token to the latest writes of an item, and the names of all of them.
func shift() (assignments, names string) {
	all := []string{"s0 = :token"}
	for i := range recent - 1 {
		all = append(all, fmt.Sprintf("s%d = if_not_exists(s%d, :none)", i+1, i))
		names += fmt.Sprintf("s%d, ", i)
	}
	return strings.Join(all, ", "), fmt.Sprintf("%ss%d", names, recent-1)
}

// holds returns the condition that a token is one of the item's latest writes.
func (l *Limiter) holds(token string) string { return token + " IN (" + l.recent + ")" }

// holds reports that a token is one of the item's latest writes.
func holds(item dynamo.Item, token string) bool {
	for i := range recent {
		if dynamo.TextOf(item[fmt.Sprintf("s%d", i)]) == token {
			return true
		}
	}
	return false
}

// reached is a cached refusal.
type reached struct {
	until  time.Time
	room   int64 // what still fitted
	limits string
	limit  project.RecipientLimit
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

package ratelimit

import (
	"context"
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

// Count is what one write has added to counters. The zero Count has added nothing.
type Count struct {
	pk       string
	counters []counterLimit // of the item
	By       int64          // added to each counter
}

// counterLimit is a counter with its limit.
type counterLimit struct {
	name string
	most int64
}

// add adds the count to all of its counters, or to none where one of them would exceed its limit. add returns the item: after
// an addition the attributes that the parameter returns asks for, otherwise the stored item.
func (l *Limiter) add(ctx context.Context, c Count, end time.Time, returns types.ReturnValue) (added bool, item dynamo.Item, err error) {
	names, sums, conditions := map[string]string{}, []string{}, []string{}
	values := dynamo.Item{":by": dynamo.Number(c.By), ":expires": dynamo.Number(end.Add(keepAfterWindow).Unix())}
	for i, counter := range c.counters {
		name, room := fmt.Sprintf("#n%d", i), fmt.Sprintf(":room%d", i)
		names[name], values[room] = counter.name, dynamo.Number(counter.most-c.By)
		sums = append(sums, name+" :by")
		conditions = append(conditions, fmt.Sprintf("(attribute_not_exists(%s) OR %s <= %s)", name, name, room))
	}
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	out, _, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           &l.table,
		Key:                                 dynamo.Item{"pk": dynamo.Text(c.pk)},
		UpdateExpression:                    aws.String("ADD " + strings.Join(sums, ", ") + " SET expires = :expires"),
		ConditionExpression:                 aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if stored, refused := dynamo.Refused(err); refused {
		return false, stored, nil
	}
	if err != nil {
		return false, nil, err
	}
	return true, out.Attributes, nil
}

// Subtract subtracts an amount of a count from its counters. Subtract takes effect once or not at all, so that a lost response
// never lets more through than the limit.
func (l *Limiter) Subtract(ctx context.Context, c Count, amount int64) error {
	if amount <= 0 || c.pk == "" {
		return nil
	}
	l.reached.DeleteFunc(c.pk, func(reached) bool { return true })
	names, assignments, conditions := map[string]string{}, []string{}, []string{}
	for i, counter := range c.counters {
		names[fmt.Sprintf("#n%d", i)] = counter.name
		assignments = append(assignments, fmt.Sprintf("#n%d = #n%d - :by", i, i))
		conditions = append(conditions, fmt.Sprintf("#n%d >= :by", i))
	}
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	err := dynamo.WriteOnce(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                 &l.table,
		Key:                       map[string]types.AttributeValue{"pk": dynamo.Text(c.pk)},
		UpdateExpression:          aws.String("SET " + strings.Join(assignments, ", ")),
		ConditionExpression:       aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": dynamo.Number(min(amount, c.By))},
	})
	if _, refused := dynamo.Refused(err); refused {
		return nil // the item has expired
	}
	return err
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

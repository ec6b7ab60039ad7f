package ratelimit

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
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

const (
	// subtractionsAtOnce is as many as a client of DynamoDB keeps connections.
	subtractionsAtOnce = 10
	// timeToQueue is the end of the time of SubtractAll, in which the parts that are left go to the queue.
	timeToQueue = time.Second
	// partsInItem bounds an item of the queue to 300 KB. An item of DynamoDB holds 400 KB.
	partsInItem = 1000
	// queueKey is the key of the item that names the items of the queue.
	queueKey = "subtractions"
)

// Part is an amount of a count that has to be subtracted.
type Part struct {
	Count  Count
	Amount int64
}

// queued is a stored Part.
type queued struct {
	Key      string   `json:"k"`
	Counters []string `json:"c"`
	Token    string   `json:"t"`
	Unknown  bool     `json:"u,omitzero"`
	Amount   int64    `json:"n"`
}

// SubtractAll subtracts all parts. SubtractAll stores the parts for which its time does not suffice, and those whose
// subtraction failed, in the queue that SubtractQueued empties (docs/decisions.md#recipient-limit).
func (l *Limiter) SubtractAll(ctx context.Context, parts []Part) error {
	first, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		first, cancel = context.WithDeadline(ctx, deadline.Add(-l.queueTime))
	}
	defer cancel()
	left, _ := l.subtract(first, parts)
	return l.Queue(ctx, left)
}

// Queue stores parts for SubtractQueued.
func (l *Limiter) Queue(ctx context.Context, left []Part) error {
	var names []string
	for chunk := range slices.Chunk(left, partsInItem) {
		stored := make([]queued, len(chunk))
		for i, p := range chunk {
			stored[i] = queued{Key: p.Count.pk, Token: p.Count.token, Unknown: p.Count.unknown, Amount: min(p.Amount, p.Count.By)}
			for _, c := range p.Count.counters {
				stored[i].Counters = append(stored[i].Counters, c.name)
			}
		}
		value, err := json.Marshal(stored)
		if err != nil {
			return fmt.Errorf("ratelimit: encode subtractions: %w", err)
		}
		name := "subtract#" + uuid.NewString()
		expires := l.clock.Now().Add(project.Day + keepAfterWindow).Unix() // the counters have expired by then
		err = l.update(ctx, name, "SET v = :v, expires = :expires", dynamo.Item{":v": dynamo.Bytes(value), ":expires": dynamo.Number(expires)})
		if err != nil {
			return fmt.Errorf("ratelimit: queue subtractions: %w", err)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	return l.update(ctx, queueKey, "ADD queued :names", dynamo.Item{":names": &types.AttributeValueMemberSS{Value: names}})
}

// subtract subtracts parts until ctx ends, and returns the parts that may be left.
func (l *Limiter) subtract(ctx context.Context, parts []Part) (left []Part, failed error) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(subtractionsAtOnce)
	for _, p := range parts {
		group.Go(func() error {
			err := ctx.Err()
			if err == nil {
				err = l.Subtract(ctx, p.Count, p.Amount)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, p)
			}
			return err
		})
	}
	failed = group.Wait()
	return left, failed
}

// SubtractQueued subtracts what the queue holds, and returns the number of parts. An item whose parts are not all subtracted
// stays in the queue: Subtract subtracts each count once.
func (l *Limiter) SubtractQueued(ctx context.Context) (subtracted int, failed error) {
	queue, err := l.get(ctx, queueKey)
	if err != nil {
		return 0, fmt.Errorf("ratelimit: read the queue of subtractions: %w", err)
	}
	names, _ := queue["queued"].(*types.AttributeValueMemberSS)
	if names == nil {
		return 0, nil
	}
	for _, name := range names.Value {
		n, err := l.subtractItem(ctx, name)
		subtracted += n
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("ratelimit: %s: %w", name, err))
		}
	}
	return subtracted, failed
}

// subtractItem subtracts what one item of the queue holds, and removes the item's name from the queue.
func (l *Limiter) subtractItem(ctx context.Context, name string) (int, error) {
	item, err := l.get(ctx, name)
	if err != nil {
		return 0, err
	}
	var stored []queued
	if value := dynamo.BytesOf(item["v"]); value != nil { // nil: the item has expired
		if err := json.Unmarshal(value, &stored); err != nil {
			return 0, err
		}
	}
	parts := make([]Part, len(stored))
	for i, s := range stored {
		parts[i] = Part{Count{pk: s.Key, token: s.Token, unknown: s.Unknown, By: s.Amount}, s.Amount}
		for _, c := range s.Counters {
			parts[i].Count.counters = append(parts[i].Count.counters, counterLimit{name: c})
		}
	}
	if left, err := l.subtract(ctx, parts); err != nil {
		return len(parts) - len(left), err
	}
	return len(parts), l.update(ctx, queueKey, "DELETE queued :names", dynamo.Item{":names": &types.AttributeValueMemberSS{Value: []string{name}}})
}

// get reads an item of the queue.
func (l *Limiter) get(ctx context.Context, key string) (dynamo.Item, error) {
	out, err := l.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &l.table, Key: dynamo.Item{"pk": dynamo.Text(key)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// update writes an item of the queue by an expression whose repetition changes nothing.
func (l *Limiter) update(ctx context.Context, key, expression string, values dynamo.Item) error {
	_, _, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: dynamo.Item{"pk": dynamo.Text(key)}, UpdateExpression: &expression, ExpressionAttributeValues: values,
	})
	return err
}

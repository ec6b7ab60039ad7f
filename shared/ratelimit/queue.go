package ratelimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

const (
	// subtractionsAtOnce is as many as a client of DynamoDB keeps connections.
	subtractionsAtOnce = 10
	// timeToQueue is the end of the time of SubtractAll, in which the counts that are left go to the queue.
	timeToQueue = time.Second
	// countsInItem bounds an item of the queue to 300 KB. An item of DynamoDB holds 400 KB.
	countsInItem = 1000
	// queueKey is the key of the item that names the items of the queue.
	queueKey = "subtractions"
)

// SubtractAll subtracts counts, and returns the number of those that it has subtracted. SubtractAll stores the counts
// whose subtraction gets no response in that time in SubtractQueued's queue
// (docs/decisions/requests.md#recipient-limit).
func (l *Limiter) SubtractAll(ctx context.Context, counts []Count) (subtracted int, err error) {
	first, begin := ctx, ctx
	if end, ok := ctx.Deadline(); ok {
		var stop, cancel context.CancelFunc
		first, stop = context.WithDeadline(ctx, end.Add(-l.queueTime))
		begin, cancel = context.WithDeadline(ctx, end.Add(-l.queueTime*3/2)) // so that what has begun can end
		defer stop()
		defer cancel()
	}
	var mu sync.Mutex
	var left []Count
	var group errgroup.Group
	group.SetLimit(subtractionsAtOnce)
	for _, c := range counts {
		group.Go(func() error {
			again, err := true, error(nil)
			if begin.Err() == nil {
				again, err = l.subtract(first, &c)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case again:
				left = append(left, c)
				return nil
			case err == nil:
				subtracted++
			}
			return err
		})
	}
	return subtracted, errors.Join(group.Wait(), l.Queue(ctx, left))
}

// Queue stores counts for SubtractQueued.
func (l *Limiter) Queue(ctx context.Context, counts []Count) (failed error) {
	for some := range slices.Chunk(counts, countsInItem) {
		value, err := json.Marshal(some)
		if err != nil {
			return fmt.Errorf("ratelimit: encode counts: %w", err)
		}
		name := "subtract#" + rand.Text()
		expires := l.clock.Now().Add(project.Day + keepAfterWindow).Unix() // the counters have expired by then
		_, err = l.updateQueue(ctx, name, "SET v = :v, expires = :expires", nil,
			dynamo.Item{":v": dynamo.Bytes(value), ":expires": dynamo.Number(expires)})
		if err == nil {
			_, err = l.updateQueue(ctx, queueKey, "ADD queued :name", nil, nameSet(name))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// SubtractQueued subtracts what the queue holds, and returns the number of counts. Each item of the queue is claimed by
// one run, so that no count is subtracted twice: what a run that dies has claimed stays counted. What a run cannot
// subtract returns to the queue.
func (l *Limiter) SubtractQueued(ctx context.Context) (subtracted int, failed error) {
	out, err := l.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &l.table, Key: dynamo.Item{"pk": dynamo.Text(queueKey)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, fmt.Errorf("ratelimit: read the queue of subtractions: %w", err)
	}
	names, _ := out.Item["queued"].(*types.AttributeValueMemberSS)
	if names == nil {
		return 0, nil
	}
	begin := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		begin, cancel = context.WithDeadline(ctx, end.Add(-2*l.queueTime))
		defer cancel()
	}
	claimable, run := "attribute_exists(v) AND (attribute_not_exists(run) OR run = :run)",
		dynamo.Item{":run": dynamo.Text(rand.Text())}
	for _, name := range names.Value {
		if begin.Err() != nil {
			break // the next run has the time for an item
		}
		item, err := l.updateQueue(ctx, name, "SET run = :run", &claimable, run)
		if _, gone := dynamo.ConditionFailed(err); err != nil && !gone {
			failed = errors.Join(failed, err)
			continue
		}
		var counts []Count // none of an item that has expired or was claimed
		if err == nil {
			err = json.Unmarshal(dynamo.BytesOf(item["v"]), &counts)
			n, left := l.SubtractAll(ctx, counts)
			subtracted, failed = subtracted+n, errors.Join(failed, err, left)
		}
		_, err = l.updateQueue(ctx, queueKey, "DELETE queued :name", nil, nameSet(name))
		failed = errors.Join(failed, err)
	}
	return subtracted, failed
}

func nameSet(name string) dynamo.Item {
	return dynamo.Item{":name": &types.AttributeValueMemberSS{Value: []string{name}}}
}

// updateQueue writes an item of the queue by an expression whose repetition changes nothing, and returns the item.
func (l *Limiter) updateQueue(ctx context.Context, key, expression string, condition *string,
	values dynamo.Item) (dynamo.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	out, _, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: dynamo.Item{"pk": dynamo.Text(key)}, UpdateExpression: &expression,
		ConditionExpression:       condition,
		ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return nil, fmt.Errorf("ratelimit: queue item %s: %w", key, err)
	}
	return out.Attributes, nil
}

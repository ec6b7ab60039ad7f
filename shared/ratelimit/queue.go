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
	subtracted, left, err := l.subtractAll(ctx, counts)
	return subtracted, errors.Join(err, l.Queue(ctx, left))
}

// subtractAll subtracts counts, and returns those whose subtraction got no response in the time.
func (l *Limiter) subtractAll(ctx context.Context, counts []Count) (subtracted int, left []Count, err error) {
	first, begin := ctx, ctx
	if end, ok := ctx.Deadline(); ok {
		var stop, cancel context.CancelFunc
		first, stop = context.WithDeadline(ctx, end.Add(-l.queueTime))
		begin, cancel = context.WithDeadline(ctx, end.Add(-l.queueTime*3/2)) // so that what has begun can end
		defer stop()
		defer cancel()
	}
	var mu sync.Mutex
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
			case errors.Is(err, errSubtracted):
				return nil
			case err == nil:
				subtracted++
			}
			return err
		})
	}
	err = group.Wait()
	return subtracted, left, err
}

// Queue stores counts for SubtractQueued.
func (l *Limiter) Queue(ctx context.Context, counts []Count) (failed error) {
	for some := range slices.Chunk(counts, countsInItem) {
		for i := range some {
			some[i].ID = rand.Text()
		}
		value, err := json.Marshal(some)
		if err != nil {
			return fmt.Errorf("ratelimit: encode counts: %w", err)
		}
		name := "subtract#" + rand.Text()
		expires := l.clock.Now().Add(project.Day + keepAfterWindow).Unix() // the counters have expired by then
		err = l.updateQueue(ctx, name, "SET v = :v, expires = :expires",
			dynamo.Item{":v": dynamo.Bytes(value), ":expires": dynamo.Number(expires)})
		if err == nil {
			err = l.updateQueue(ctx, queueKey, "ADD queued :name", nameSet(name))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// SubtractQueued subtracts what the queue holds, and returns the number of counts. An item leaves the queue once each
// of its counts is subtracted: until then the next run begins the item again, also where this run dies. The ID of a
// count keeps two runs from subtracting the count twice.
func (l *Limiter) SubtractQueued(ctx context.Context) (subtracted int, failed error) {
	queue, err := l.readQueue(ctx, queueKey)
	names, _ := queue["queued"].(*types.AttributeValueMemberSS)
	if names == nil {
		return 0, err
	}
	begin := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		begin, cancel = context.WithDeadline(ctx, end.Add(-2*l.queueTime))
		defer cancel()
	}
	for _, name := range names.Value {
		if begin.Err() != nil {
			break // the next run has the time for an item
		}
		item, err := l.readQueue(ctx, name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		var counts []Count // none of an item that has expired
		if item != nil {
			err = json.Unmarshal(dynamo.BytesOf(item["v"]), &counts)
		}
		n, left, refused := l.subtractAll(ctx, counts)
		subtracted, failed = subtracted+n, errors.Join(failed, err, refused)
		if len(left) == 0 {
			failed = errors.Join(failed, l.updateQueue(ctx, queueKey, "DELETE queued :name", nameSet(name)))
		}
	}
	return subtracted, failed
}

func nameSet(name string) dynamo.Item {
	return dynamo.Item{":name": &types.AttributeValueMemberSS{Value: []string{name}}}
}

// readQueue returns an item of the queue, nil where there is none.
func (l *Limiter) readQueue(ctx context.Context, key string) (dynamo.Item, error) {
	out, err := l.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &l.table, Key: dynamo.Item{"pk": dynamo.Text(key)}, ConsistentRead: new(true),
	})
	if err != nil {
		return nil, fmt.Errorf("ratelimit: read queue item %s: %w", key, err)
	}
	return out.Item, nil
}

// updateQueue writes an item of the queue by an expression whose repetition changes nothing.
func (l *Limiter) updateQueue(ctx context.Context, key, expression string, values dynamo.Item) error {
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	_, _, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: dynamo.Item{"pk": dynamo.Text(key)}, UpdateExpression: &expression,
		ExpressionAttributeValues: values,
	})
	if err != nil {
		return fmt.Errorf("ratelimit: queue item %s: %w", key, err)
	}
	return nil
}

// errSubtracted reports that a queued count was subtracted before.
var errSubtracted = errors.New("ratelimit: subtracted before")

// updater is UpdateItem of a DynamoDB client.
type updater func(context.Context, *dynamodb.UpdateItemInput,
	...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)

// subtraction returns what updates the item of a count: for a queued one a transaction that stores the ID of the count,
// too, unless it is stored. The error beside a stored ID is errSubtracted.
func (l *Limiter) subtraction(c *Count) updater {
	if c.ID == "" {
		return l.client.UpdateItem
	}
	once := types.TransactWriteItem{Update: &types.Update{
		TableName: &l.table, Key: dynamo.Item{"pk": dynamo.Text("subtracted#" + c.ID)},
		UpdateExpression: new("SET expires = :expires"), ConditionExpression: new("attribute_not_exists(pk)"),
		ExpressionAttributeValues: dynamo.Item{":expires": dynamo.Number(c.Expires)},
	}}
	return func(ctx context.Context, in *dynamodb.UpdateItemInput,
		options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
		counter := types.TransactWriteItem{Update: &types.Update{
			TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression,
			ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
			ExpressionAttributeValues:           in.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
		}}
		_, err := l.client.TransactWriteItems(ctx,
			&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{once, counter}}, options...)
		if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
			for i, reason := range canceled.CancellationReasons { // beside the error, which has the status of the response
				switch failed := aws.ToString(reason.Code) == "ConditionalCheckFailed"; {
				case failed && i == 0:
					return nil, errors.Join(errSubtracted, err)
				case failed:
					return nil, errors.Join(&types.ConditionalCheckFailedException{Item: reason.Item}, err)
				}
			}
		}
		return &dynamodb.UpdateItemOutput{}, err
	}
}

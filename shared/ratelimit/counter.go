package ratelimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

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
	// Subtracting is the stamp of a subtraction that may have taken effect, with which a repeat takes effect once.
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

// update returns the write that adds an amount to a count's counters where each fulfils the condition on its bound.
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
	room   int64 // what still fitted
	limits string
	limit  project.RecipientLimit
}

// cached returns the refusal of a counter by these limits, and false where this instance has cached none.
func (l *Limiter) cached(pk string, limits any) (reached, bool) {
	r, ok := l.reached.Get(pk)
	return r, ok && r.limits == fmt.Sprint(limits)
}

// cache caches a refusal for cacheReached, but not beyond the end of its window.
func (l *Limiter) cache(pk string, end time.Time, r reached) {
	l.reached.Put(pk, r, min(cacheReached, end.Sub(l.clock.Now())))
}

// rest returns the time until the end of a window in whole seconds, at least 1.
func rest(end, now time.Time) time.Duration {
	return max(time.Second, (end.Sub(now) + time.Second - 1).Truncate(time.Second))
}

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

// SubtractAll subtracts counts, and returns the number of those that are subtracted. Counts whose subtraction gets no
// response in that time go to SubtractQueued's queue (docs/decisions/requests.md#recipient-limit).
func (l *Limiter) SubtractAll(ctx context.Context, counts []Count) (subtracted int, err error) {
	subtracted, left, err := l.subtractAll(ctx, counts)
	return subtracted, errors.Join(err, l.Queue(ctx, left))
}

// subtractAll subtracts counts, and returns those whose subtraction got no response in the time.
func (l *Limiter) subtractAll(ctx context.Context, counts []Count) (subtracted int, left []Count, err error) {
	first := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		first, cancel = context.WithDeadline(ctx, end.Add(-l.queueTime))
		defer cancel()
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(subtractionsAtOnce)
	for _, c := range counts {
		group.Go(func() error {
			again, err := l.subtract(first, &c)
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
// of its counts is subtracted; until then the next run begins again, and the ID of a count keeps it from a second time.
func (l *Limiter) SubtractQueued(ctx context.Context) (subtracted int, failed error) {
	queue, err := l.read(ctx, queueKey)
	names, _ := queue["queued"].(*types.AttributeValueMemberSS)
	if names == nil {
		return 0, err
	}
	end, limited := ctx.Deadline()
	for _, name := range names.Value {
		if limited && time.Until(end) < 2*l.queueTime {
			return subtracted, failed // the next run has the time for an item
		}
		n, err := l.subtractItem(ctx, name)
		subtracted, failed = subtracted+n, errors.Join(failed, err)
	}
	return subtracted, failed
}

// subtractItem subtracts what an item of the queue holds. An item that has expired or cannot be decoded holds nothing.
func (l *Limiter) subtractItem(ctx context.Context, name string) (subtracted int, err error) {
	item, err := l.read(ctx, name)
	if err != nil {
		return 0, err
	}
	var counts []Count
	if item != nil {
		err = json.Unmarshal(dynamo.BytesOf(item["v"]), &counts)
	}
	subtracted, left, refused := l.subtractAll(ctx, counts)
	if err = errors.Join(err, refused); len(left) > 0 {
		return subtracted, err
	}
	return subtracted, errors.Join(err, l.updateQueue(ctx, queueKey, "DELETE queued :name", nameSet(name)))
}

func nameSet(name string) dynamo.Item {
	return dynamo.Item{":name": &types.AttributeValueMemberSS{Value: []string{name}}}
}

// read returns the item of a key, nil where there is none.
func (l *Limiter) read(ctx context.Context, key string) (dynamo.Item, error) {
	return dynamo.Get(ctx, l.client, l.table, dynamo.Item{"pk": dynamo.Text(key)})
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
type updater = dynamo.Call[dynamodb.UpdateItemInput, dynamodb.UpdateItemOutput]

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
		for i, reason := range dynamo.Reasons(err) { // beside the error, which has the status of the response
			switch failed := dynamo.Refused(reason); {
			case failed && i == 0:
				return nil, errors.Join(errSubtracted, err)
			case failed:
				return nil, errors.Join(&types.ConditionalCheckFailedException{Item: reason.Item}, err)
			}
		}
		return &dynamodb.UpdateItemOutput{}, err
	}
}

// Package ratelimit counts a project's requests in fixed windows, over all running instances.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
	"svcapi/shared/project"
)

// keep is how long a window's item outlives the window, so that an instance whose clock is behind
// does not find it deleted and count anew.
const keep = time.Hour

// Decision is the answer to one request.
type Decision struct {
	Allowed bool
	// RetryAfter is how long the window lasts, in whole seconds, at least 1; set when not Allowed.
	RetryAfter time.Duration
}

// Limiter counts in DynamoDB, and remembers the windows that it has seen exhausted. It is safe for
// concurrent use.
type Limiter struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time

	mu        sync.Mutex
	exhausted map[string]exhaustion // by project and environment
}

// exhaustion lasts until the window ends, or the operator changes the limit.
type exhaustion struct {
	until time.Time
	limit project.RateLimit
}

// New returns a limiter on the table of transient items.
func New(client *dynamodb.Client, table string) *Limiter {
	return &Limiter{client: client, table: table, now: time.Now, exhausted: map[string]exhaustion{}}
}

// Count counts one request and tells whether it is within the limit. A count whose answer was lost
// may be counted twice, never too little.
func (l *Limiter) Count(ctx context.Context, projectID, env string, limit project.RateLimit) (Decision, error) {
	if over, exhausted := l.Exhausted(projectID, env, limit); exhausted {
		return over, nil
	}
	now := l.now()
	start, end := window(limit, now)
	owner := projectID + "#" + env
	_, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           &l.table,
		Key:                 map[string]types.AttributeValue{"pk": attr.Text(fmt.Sprintf("rl#%s#%d", owner, start))},
		UpdateExpression:    aws.String("ADD n :one SET expires = :expires"),
		ConditionExpression: aws.String("attribute_not_exists(n) OR n < :limit"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":one":     attr.Number(1),
			":limit":   attr.Number(int64(limit.Requests)),
			":expires": attr.Number(end.Add(keep).Unix()),
		},
	})
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return Decision{Allowed: true}, nil
	case errors.As(err, &refused):
		l.remember(owner, exhaustion{until: end, limit: limit}, now)
		return over(end, now), nil
	}
	return Decision{}, fmt.Errorf("ratelimit: %w", err)
}

// Exhausted tells from memory that the window's limit is reached, so that a request that will be
// refused anyway need not write anything. A limit below one request is always reached.
func (l *Limiter) Exhausted(projectID, env string, limit project.RateLimit) (Decision, bool) {
	now := l.now()
	if limit.Requests < 1 {
		_, end := window(limit, now)
		return over(end, now), true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e, known := l.exhausted[projectID+"#"+env]
	if !known || !now.Before(e.until) || e.limit != limit {
		return Decision{}, false
	}
	return over(e.until, now), true
}

// window is the one that now lies in: its start, in seconds, and its end.
func window(limit project.RateLimit, now time.Time) (start int64, end time.Time) {
	length := int64(max(limit.Window/time.Second, 1))
	start = now.Unix() - now.Unix()%length
	return start, time.Unix(start+length, 0)
}

func over(end, now time.Time) Decision {
	return Decision{RetryAfter: max(time.Second, (end.Sub(now) + time.Second - 1).Truncate(time.Second))}
}

func (l *Limiter) remember(owner string, e exhaustion, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, old := range l.exhausted { // windows that are over
		if !now.Before(old.until) {
			delete(l.exhausted, other)
		}
	}
	l.exhausted[owner] = e
}

// Package ratelimit counts a project's requests in fixed windows, over all running instances.
package ratelimit

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
	"svcapi/shared/awsclient"
	"svcapi/shared/clock"
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

// Limiter counts in DynamoDB, and remembers what it has seen exhausted. It is safe for concurrent use.
//
// The window of a project that is kept in parts has a counter for each, with a quota of its own; the
// quotas add up to the limit. A request is counted in any part that has not reached its quota, so that
// all of the limit can be used.
type Limiter struct {
	client *dynamodb.Client
	table  string
	clock  clock.Clock

	mu   sync.Mutex
	seen map[string]exhaustion // by project and environment
}

// exhaustion lasts until the window ends, or the operator changes the limit.
type exhaustion struct {
	until time.Time
	limit project.RateLimit
	parts map[int]bool // whose quota is reached
}

// New returns a limiter on the table of transient items.
func New(client *dynamodb.Client, table string) *Limiter {
	return &Limiter{client: client, table: table, seen: map[string]exhaustion{}}
}

// Count counts one request and tells whether it is within the limit. A count whose answer was lost
// may be counted twice, never too little.
func (l *Limiter) Count(ctx context.Context, p *project.Project, env string) (Decision, error) {
	now := l.clock.Now()
	start, end := window(p.Limit, now)
	owner := p.ID + "#" + env
	quotas := quotas(p, start)
	exhausted := l.exhausted(owner, p.Limit, now)
	if len(quotas) == len(exhausted) {
		return over(end, now), nil
	}
	for part := range shuffled(len(quotas)) {
		if exhausted[part] {
			continue
		}
		counted, err := l.count(ctx, counter(owner, start, part), quotas[part], end)
		if err != nil {
			return Decision{}, fmt.Errorf("ratelimit: %w", err)
		}
		if counted {
			return Decision{Allowed: true}, nil
		}
		l.remember(owner, exhaustion{until: end, limit: p.Limit}, part, now)
	}
	return over(end, now), nil
}

// Exhausted tells from memory that the window's limit is reached, so that a request that will be
// refused anyway need not write anything. A limit below one request is always reached.
func (l *Limiter) Exhausted(p *project.Project, env string) (Decision, bool) {
	now := l.clock.Now()
	start, end := window(p.Limit, now)
	if len(l.exhausted(p.ID+"#"+env, p.Limit, now)) < len(quotas(p, start)) {
		return Decision{}, false
	}
	return over(end, now), true
}

// quotas shares the limit out to the parts in which this window is counted: no part of a small limit
// has nothing.
func quotas(p *project.Project, start int64) []int {
	parts := min(p.Parts.At(time.Unix(start, 0)), p.Limit.Requests)
	all := make([]int, max(parts, 0))
	for part := range all {
		all[part] = (p.Limit.Requests + part) / parts
	}
	return all
}

// shuffled gives the numbers below n in a random order that costs nothing: all, from any on.
func shuffled(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for first, i := rand.IntN(n), 0; i < n && yield((first+i)%n); i++ {
		}
	}
}

// counter is the key of a part's counter; the first part's is that of a window that is counted whole.
func counter(owner string, start int64, part int) string {
	if part == 0 {
		return fmt.Sprintf("rl#%s#%d", owner, start)
	}
	return fmt.Sprintf("rl#%s#%d#%d", owner, start, part)
}

// count adds one to a counter that is below its quota.
func (l *Limiter) count(ctx context.Context, counter string, quota int, end time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.WriteTimeout)
	defer cancel()
	_, err := awsclient.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:           &l.table,
		Key:                 map[string]types.AttributeValue{"pk": attr.Text(counter)},
		UpdateExpression:    aws.String("ADD n :one SET expires = :expires"),
		ConditionExpression: aws.String("attribute_not_exists(n) OR n < :limit"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":one":     attr.Number(1),
			":limit":   attr.Number(int64(quota)),
			":expires": attr.Number(end.Add(keep).Unix()),
		},
	})
	if _, refused := attr.Refused(err); refused {
		return false, nil
	}
	return err == nil, err
}

// exhausted is the parts that this window was seen exhausted in.
func (l *Limiter) exhausted(owner string, limit project.RateLimit, now time.Time) map[int]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.seen[owner]
	if !now.Before(e.until) || e.limit != limit {
		return nil
	}
	return maps.Clone(e.parts)
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

func (l *Limiter) remember(owner string, e exhaustion, part int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.seen, func(_ string, old exhaustion) bool { return !now.Before(old.until) })
	if old := l.seen[owner]; old.until.Equal(e.until) && old.limit == e.limit {
		e.parts = old.parts
	} else {
		e.parts = map[int]bool{}
	}
	e.parts[part] = true
	l.seen[owner] = e
}

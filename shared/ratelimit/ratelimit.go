// Package ratelimit counts a project's requests in fixed windows, its messages to each number, and its credits and SMS
// units of a day, over all running instances. The project's record holds the limits and the windows (package project).
// A request over a limit is 429 or 402; docs/limits-and-429.md says how an operator finds the reason.
package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

// keepAfterWindow is how long an item outlives its window, so that no instance with a late clock counts from 0 again.
const keepAfterWindow = time.Hour

// Decision is the result of the count of one request.
type Decision struct {
	Allowed bool
	Limit   int // requests in a window
	// Remaining is the number of requests that the window has left; where the limit has several quotas, an estimate.
	Remaining int
	Reset     time.Duration // the rest of the window, in whole seconds, at least 1
}

// Error implements error, for a request that is not allowed.
func (d Decision) Error() string { return fmt.Sprintf("ratelimit: %d requests in the window", d.Limit) }

// Limiter counts requests in DynamoDB, and caches which windows are exhausted. A Limiter is safe for concurrent use
// (docs/decisions/requests.md#rate-limit).
//
// A large limit has several quotas, which add up to the limit, and a counter for each of them. A request is counted by
// any counter that has not reached its quota, so that the whole limit can be used.
type Limiter struct {
	client *dynamodb.Client
	table  string
	clock  cache.Clock

	reached *cache.Map[string, reached] // by counter

	mu      sync.Mutex
	writers []*writer                     // guarded by mu, like their fields
	crowded *cache.Map[string, time.Time] // until when a counter is taken to have more writers than slots

	queueTime time.Duration // the end of the time of SubtractAll
	large     int           // largeLimit
}

// New returns a limiter on the table of transient items.
func New(client *dynamodb.Client, table string) *Limiter {
	return &Limiter{
		client: client, table: table, queueTime: timeToQueue,
		reached: cache.New[string, reached](maxReached), crowded: cache.New[string, time.Time](maxReached), large: largeLimit,
	}
}

// Count counts one request against the limit. A repeated write counts once.
func (l *Limiter) Count(ctx context.Context, p *project.Project, env string) (Decision, error) {
	now := l.clock.Now()
	start, end := window(p.Limit, now)
	owner := p.ID + "#" + env
	quotas := l.quotas(p.Limit)
	for _, i := range rand.Perm(len(quotas)) {
		pk := counter(owner, start, i)
		if _, exhausted := l.cached(pk, p.Limit); exhausted {
			continue
		}
		c, item, err := l.add(ctx, newCount(pk, 1, end, "n"), []int64{int64(quotas[i])}, types.ReturnValueUpdatedNew)
		n := int64(0)
		if err == nil && c.By > 0 {
			n, err = dynamo.NumberOf(item["n"])
		}
		if err != nil {
			return Decision{}, fmt.Errorf("ratelimit: %w", err)
		}
		if c.By > 0 {
			d := decide(p, end, now)
			d.Allowed, d.Remaining = true, max(0, quotas[i]-int(n))*len(quotas)
			return d, nil
		}
		l.reached.Put(pk, reached{until: end, limits: fmt.Sprint(p.Limit)}) // nothing is subtracted from a window
	}
	return decide(p, end, now), nil
}

// Exhausted reports from the cache that the window's limit is reached. A limit below one request is always reached.
func (l *Limiter) Exhausted(p *project.Project, env string) (Decision, bool) {
	now := l.clock.Now()
	start, end := window(p.Limit, now)
	for i := range l.quotas(p.Limit) {
		if _, exhausted := l.cached(counter(p.ID+"#"+env, start, i), p.Limit); !exhausted {
			return Decision{}, false
		}
	}
	return decide(p, end, now), true
}

const (
	// largeLimit is the number of requests in a window above which a limit has several quotas: one item of DynamoDB takes
	// 1,000 writes a second. No smaller number is the quota of the first counter then, so that the counter never exceeds
	// its quota because an operator raises the limit.
	largeLimit = 1000
	mostQuotas = 16
)

// quotas distributes a limit over its counters. No counter has a quota of 0.
func (l *Limiter) quotas(limit project.RateLimit) []int {
	first := max(limit.Requests/mostQuotas, min(limit.Requests, l.large))
	if first <= 0 {
		return nil
	}
	left := limit.Requests - first
	all := []int{first}
	for others := min(left, mostQuotas-1); others > 0; others-- {
		all = append(all, left/others)
		left -= left / others
	}
	return all
}

// counter returns the key of a counter of a window.
func counter(owner string, start int64, i int) string {
	if i == 0 {
		return fmt.Sprintf("rl#%s#%d", owner, start)
	}
	return fmt.Sprintf("rl#%s#%d#%d", owner, start, i)
}

// window returns the window that holds the time: its start, in seconds, and its end.
func window(limit project.RateLimit, now time.Time) (start int64, end time.Time) {
	length := int64(max(limit.Window/time.Second, 1))
	start = now.Unix() - now.Unix()%length
	return start, time.Unix(start+length, 0)
}

// decide returns the decision for a request in an exhausted window.
func decide(p *project.Project, end, now time.Time) Decision {
	return Decision{Limit: max(0, p.Limit.Requests), Reset: rest(end, now)}
}

// Package ratelimit counts a project's requests in fixed windows, its messages to each number, and its credits and SMS units
// of a day, over all running instances. The project's record holds the limits and the windows (package project).
// A request over a limit is 429 or 402; docs/limits.md says how an operator finds the reason.
package ratelimit

import (
	"context"
	"fmt"
	"maps"
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
	// Remaining is the number of requests that the window has left; of a project with several shards, an estimate.
	Remaining int
	Reset     time.Duration // the rest of the window, in whole seconds, at least 1
}

// Limiter counts requests in DynamoDB, and caches which windows are exhausted. A Limiter is safe for concurrent use
// (docs/decisions/requests.md#rate-limit).
//
// The window of a project with several shards has a counter for each shard, with a quota of its own; the quotas add up to
// the limit. A request is counted in any shard that has not reached its quota, so that the whole limit can be used.
type Limiter struct {
	client *dynamodb.Client
	table  string
	clock  cache.Clock

	mu      sync.Mutex
	windows map[string]exhaustion // by project and environment

	reached *cache.Map[string, reached] // by counter

	writers []*writer                     // guarded by mu, like their fields
	crowded *cache.Map[string, time.Time] // until when a counter is taken to have more writers than slots

	queueTime time.Duration // the end of the time of SubtractAll
}

// exhaustion says which shards of a window are exhausted, until the window ends or the operator changes the limit.
type exhaustion struct {
	until  time.Time
	limit  project.RateLimit
	shards map[int]bool // shards with a reached quota
}

// New returns a limiter on the table of transient items.
func New(client *dynamodb.Client, table string) *Limiter {
	return &Limiter{
		client: client, table: table, windows: map[string]exhaustion{}, queueTime: timeToQueue,
		reached: cache.New[string, reached](maxReached), crowded: cache.New[string, time.Time](maxReached),
	}
}

// Count counts one request against the limit. A repeated write counts once.
func (l *Limiter) Count(ctx context.Context, p *project.Project, env string) (Decision, error) {
	now := l.clock.Now()
	start, end := window(p.Limit, now)
	owner := p.ID + "#" + env
	quotas := quotas(p, start)
	exhausted := l.exhausted(owner, p.Limit, now)
	if len(quotas) == len(exhausted) {
		return decide(p, end, now), nil
	}
	for _, shard := range rand.Perm(len(quotas)) {
		if exhausted[shard] {
			continue
		}
		c := newCount(counter(owner, start, shard), 1, end, "n")
		c, item, err := l.add(ctx, c, []int64{int64(quotas[shard])}, types.ReturnValueUpdatedNew)
		n := int64(0)
		if err == nil && c.By > 0 {
			n, err = dynamo.NumberOf(item["n"])
		}
		if err != nil {
			return Decision{}, fmt.Errorf("ratelimit: %w", err)
		}
		if c.By > 0 {
			d := decide(p, end, now)
			d.Allowed, d.Remaining = true, max(0, quotas[shard]-int(n))*len(quotas)
			return d, nil
		}
		l.cacheExhausted(owner, exhaustion{until: end, limit: p.Limit}, shard, now)
	}
	return decide(p, end, now), nil
}

// Exhausted reports from the cache that the window's limit is reached. A limit below one request is always reached.
func (l *Limiter) Exhausted(p *project.Project, env string) (Decision, bool) {
	now := l.clock.Now()
	start, end := window(p.Limit, now)
	if len(l.exhausted(p.ID+"#"+env, p.Limit, now)) < len(quotas(p, start)) {
		return Decision{}, false
	}
	return decide(p, end, now), true
}

// quotas distributes the limit over the shards that count this window. No shard of a small limit has a quota of 0.
func quotas(p *project.Project, start int64) []int {
	shards := min(p.Shards.At(time.Unix(start, 0)), p.Limit.Requests)
	all := make([]int, max(shards, 0))
	for shard := range all {
		all[shard] = (p.Limit.Requests + shard) / shards
	}
	return all
}

// counter returns the key of a shard's counter. The first shard's key is that of a window with a single counter.
func counter(owner string, start int64, shard int) string {
	if shard == 0 {
		return fmt.Sprintf("rl#%s#%d", owner, start)
	}
	return fmt.Sprintf("rl#%s#%d#%d", owner, start, shard)
}

// exhausted returns the shards in which this instance has seen the window exhausted.
func (l *Limiter) exhausted(owner string, limit project.RateLimit, now time.Time) map[int]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.windows[owner]
	if !now.Before(e.until) || e.limit != limit {
		return nil
	}
	return maps.Clone(e.shards)
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

// cacheExhausted caches that a shard of a window is exhausted, and forgets windows that have ended.
func (l *Limiter) cacheExhausted(owner string, e exhaustion, shard int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.windows, func(_ string, old exhaustion) bool { return !now.Before(old.until) })
	if old := l.windows[owner]; old.until.Equal(e.until) && old.limit == e.limit {
		e.shards = old.shards
	} else {
		e.shards = map[int]bool{}
	}
	e.shards[shard] = true
	l.windows[owner] = e
}

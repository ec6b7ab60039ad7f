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
	// Remaining is the number of requests that the window has left; where the limit has several quotas, an estimate.
	Remaining int
	Reset     time.Duration // the rest of the window, in whole seconds, at least 1
}

// Limiter counts requests in DynamoDB, and caches which windows are exhausted. A Limiter is safe for concurrent use
// (docs/decisions/requests.md#rate-limit).
//
// A large limit has several quotas, which add up to the limit, and a counter for each of them. A request is counted by any
// counter that has not reached its quota, so that the whole limit can be used.
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
	large     int           // largeLimit
}

// exhaustion says which quotas of a window are reached, until the window ends or the operator changes the limit.
type exhaustion struct {
	until  time.Time
	limit  project.RateLimit
	quotas map[int]bool
}

// New returns a limiter on the table of transient items.
func New(client *dynamodb.Client, table string) *Limiter {
	return &Limiter{
		client: client, table: table, windows: map[string]exhaustion{}, queueTime: timeToQueue,
		reached: cache.New[string, reached](maxReached), crowded: cache.New[string, time.Time](maxReached), large: largeLimit,
	}
}

// Count counts one request against the limit. A repeated write counts once.
func (l *Limiter) Count(ctx context.Context, p *project.Project, env string) (Decision, error) {
	now := l.clock.Now()
	start, end := window(p.Limit, now)
	owner := p.ID + "#" + env
	quotas := l.quotas(p.Limit)
	exhausted := l.exhausted(owner, p.Limit, now)
	if len(quotas) == len(exhausted) {
		return decide(p, end, now), nil
	}
	for _, i := range rand.Perm(len(quotas)) {
		if exhausted[i] {
			continue
		}
		c := newCount(counter(owner, start, i), 1, end, "n")
		c, item, err := l.add(ctx, c, []int64{int64(quotas[i])}, types.ReturnValueUpdatedNew)
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
		l.cacheExhausted(owner, exhaustion{until: end, limit: p.Limit}, i, now)
	}
	return decide(p, end, now), nil
}

// Exhausted reports from the cache that the window's limit is reached. A limit below one request is always reached.
func (l *Limiter) Exhausted(p *project.Project, env string) (Decision, bool) {
	now := l.clock.Now()
	_, end := window(p.Limit, now)
	if len(l.exhausted(p.ID+"#"+env, p.Limit, now)) < len(l.quotas(p.Limit)) {
		return Decision{}, false
	}
	return decide(p, end, now), true
}

const (
	// largeLimit is the number of requests in a window above which a limit has several quotas: one item of DynamoDB takes 1,000
	// writes a second. No smaller number is the quota of the first counter then, so that the counter never exceeds its quota
	// because an operator raises the limit.
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

// exhausted returns the quotas of the window that this instance has seen reached.
func (l *Limiter) exhausted(owner string, limit project.RateLimit, now time.Time) map[int]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.windows[owner]
	if !now.Before(e.until) || e.limit != limit {
		return nil
	}
	return maps.Clone(e.quotas)
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

// cacheExhausted caches that a quota of a window is reached, and forgets windows that have ended.
func (l *Limiter) cacheExhausted(owner string, e exhaustion, quota int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.windows, func(_ string, old exhaustion) bool { return !now.Before(old.until) })
	if old := l.windows[owner]; old.until.Equal(e.until) && old.limit == e.limit {
		e.quotas = old.quotas
	} else {
		e.quotas = map[int]bool{}
	}
	e.quotas[quota] = true
	l.windows[owner] = e
}

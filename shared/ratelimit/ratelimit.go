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

	reached *cache.Expiring[string, reached] // by counter, and by crowded

	mu      sync.Mutex
	writers []*writer // guarded by mu, like their fields

	queueTime time.Duration // the end of the time of SubtractAll
	writeTime time.Duration // of one write of a counter
	large     int           // largeLimit
}

// New returns a limiter on the table of transient items.
func New(client *dynamodb.Client, table string) *Limiter {
	return &Limiter{
		client: client, table: table, queueTime: timeToQueue, writeTime: dynamo.WriteTimeout,
		reached: cache.NewExpiring[string, reached](maxReached), large: largeLimit,
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
		l.reached.Put(pk, reached{limits: fmt.Sprint(p.Limit)}, end.Sub(now)) // nothing is subtracted from a window
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

// RecipientRefusal is the refusal of a message to a number that has got as many messages as the project may send.
type RecipientRefusal struct {
	Limit project.RecipientLimit
	Reset time.Duration // the rest of the window, in whole seconds, at least 1
}

// Error implements error.
func (r *RecipientRefusal) Error() string {
	return fmt.Sprintf("ratelimit: %d messages to one number in %s", r.Limit.Messages, r.Limit.Window)
}

// windowCounter returns the counter of a recipient window at a time, and the end of the window.
func windowCounter(l project.RecipientLimit, now time.Time) (counter string, end time.Time) {
	start, end := window(project.RateLimit{Window: l.Window}, now)
	length := max(1, int64(l.Window/time.Second))
	return fmt.Sprintf("w%d.%d", length, start%int64(project.Day/time.Second)/length), end
}

// counterOf returns the key of the item that counts the messages to a number on one UTC day.
func counterOf(p *project.Project, number string, now time.Time) string {
	start, _ := midnight(now)
	return "to#" + p.ID + "#" + p.RecipientID(number) + "#" + start.Format(time.DateOnly)
}

// RecipientReached returns the refusal that this instance has cached for the number, or nil where there is none.
func (l *Limiter) RecipientReached(p *project.Project, number string) *RecipientRefusal {
	now := l.clock.Now()
	r, ok := l.cached(counterOf(p, number, now), p.Limits.Recipients)
	if !ok {
		return nil
	}
	_, end := windowCounter(r.limit, now)
	return &RecipientRefusal{r.limit, rest(end, now)}
}

// CountMessage counts one message to a number in all recipient windows of the project, or in none where one has reached
// its limit. CountMessage returns what it may have counted (docs/decisions/requests.md#recipient-limit).
func (l *Limiter) CountMessage(ctx context.Context, p *project.Project,
	number string) (Count, *RecipientRefusal, error) {
	now := l.clock.Now()
	_, end := midnight(now)
	pk := counterOf(p, number, now)
	var counters []string
	var limits []int64
	for _, limit := range p.Limits.Recipients {
		counter, _ := windowCounter(limit, now)
		counters, limits = append(counters, counter), append(limits, int64(limit.Messages))
	}
	c, item, err := l.add(ctx, newCount(pk, 1, end, counters...), limits, types.ReturnValueNone)
	switch {
	case err != nil:
		return c, nil, fmt.Errorf("ratelimit: count message: %w", err)
	case c.By > 0:
		return c, nil, nil
	}
	refusal := &RecipientRefusal{}
	var last time.Time
	for _, limit := range p.Limits.Recipients {
		counter, end := windowCounter(limit, now)
		if n, _ := dynamo.NumberOf(item[counter]); n >= int64(limit.Messages) && end.After(last) { // absent: 0
			last, refusal.Limit, refusal.Reset = end, limit, rest(end, now)
		}
	}
	l.cache(pk, last, reached{limits: fmt.Sprint(p.Limits.Recipients), limit: refusal.Limit})
	return Count{}, refusal, nil
}

// midnight returns the start and the end of the UTC day that holds the time.
func midnight(now time.Time) (start, end time.Time) {
	start = now.UTC().Truncate(project.Day)
	return start, start.Add(project.Day)
}

// Unit is the unit of a daily limit.
type Unit string

// The units of daily limits.
const (
	Credits Unit = "credits"
	Units   Unit = "units"
)

// Daily is a project's limit of credits or SMS units in a UTC day.
type Daily struct {
	Project string
	Unit    Unit
	Most    int64
}

// Day is the state of a daily limit after a count. If the count was refused, only Limit and Start are set.
type Day struct {
	Limit   Daily
	Start   time.Time
	Counted int64
	alerted int64 // the limit of the last alert; 0: none
}

// Error implements error, for a count that was refused.
func (s Day) Error() string {
	return fmt.Sprintf("ratelimit: %d %s of the day", s.Limit.Most, s.Limit.Unit)
}

func (d Daily) key(start time.Time) string {
	return "day#" + d.Project + "#" + string(d.Unit) + "#" + start.Format(time.DateOnly)
}

// End returns when the day ends.
func (s Day) End() time.Time { return s.Start.Add(project.Day) }

// DailyReached reports from the cache that an amount does not fit into the day that holds the time.
func (l *Limiter) DailyReached(d Daily, amount int64, at time.Time) (Day, bool) {
	start, _ := midnight(at)
	r, ok := l.cached(d.key(start), d.Most)
	return Day{Limit: d, Start: start}, amount > d.Most || ok && amount > r.room
}

// CountDaily adds an amount to the day that holds the time, or returns the zero Count where the sum would exceed the
// limit. Beside an error CountDaily returns what it may have counted (docs/decisions/requests.md#daily-limit).
func (l *Limiter) CountDaily(ctx context.Context, d Daily, amount int64, at time.Time) (Count, Day, error) {
	start, end := midnight(at)
	state := Day{Limit: d, Start: start}
	if amount > d.Most {
		return Count{}, state, nil
	}
	pk := d.key(start)
	c, item, err := l.add(ctx, newCount(pk, amount, end, "n"), []int64{d.Most}, types.ReturnValueAllNew)
	if err != nil {
		return c, Day{}, fmt.Errorf("ratelimit: count %s of the day: %w", d.Unit, err)
	}
	if c.By == 0 {
		n, _ := dynamo.NumberOf(item["n"])
		l.cache(pk, end, reached{room: d.Most - n, limits: fmt.Sprint(d.Most)})
		return Count{}, state, nil
	}
	state.alerted, _ = dynamo.NumberOf(item["alerted"]) // absent: 0
	state.Counted, err = dynamo.NumberOf(item["n"])
	return c, state, err
}

// Near reports that the day's sum has reached 80 % of the limit, and that no request has alerted of the limit.
func (s Day) Near() bool {
	return s.Counted >= s.Limit.Most-s.Limit.Most/5 && s.alerted != s.Limit.Most
}

// FirstAlert reports whether the caller is the first one to alert of this day's limit.
func (l *Limiter) FirstAlert(ctx context.Context, s Day) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	_, ambiguous, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                 &l.table,
		Key:                       dynamo.Item{"pk": dynamo.Text(s.Limit.key(s.Start))},
		UpdateExpression:          new("SET alerted = :most"),
		ConditionExpression:       new("attribute_exists(n) AND (attribute_not_exists(alerted) OR alerted <> :most)"),
		ExpressionAttributeValues: dynamo.Item{":most": dynamo.Number(s.Limit.Most)},
	})
	if _, conflict := dynamo.ConditionFailed(err); conflict {
		return ambiguous > 0, nil // an earlier attempt may have taken effect: two alerts are better than none
	}
	return err == nil, err
}

// Counted returns what has been counted in the day that holds the time.
func (l *Limiter) Counted(ctx context.Context, d Daily, at time.Time) (int64, error) {
	start, _ := midnight(at)
	item, err := l.read(ctx, d.key(start))
	if err != nil || item == nil {
		return 0, err
	}
	return dynamo.NumberOf(item["n"])
}

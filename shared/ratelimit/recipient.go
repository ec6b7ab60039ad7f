package ratelimit

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

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

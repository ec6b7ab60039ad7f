package ratelimit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
	"svcapi/shared/awsclient"
	"svcapi/shared/project"
)

const (
	// day is the length of the windows of the daily limits, and the part of each recipient window (project.RecipientLimit).
	day = 24 * time.Hour
	// maxReached bounds the numbers and the days whose limits an instance caches as reached.
	maxReached = 10_000
	// cacheReached is how long an instance refuses from memory. Other instances may subtract counts meanwhile.
	cacheReached = 10 * time.Second
)

// Count is what one write has added to counters. The zero Count has added nothing.
type Count struct {
	pk         string
	attributes []string // the counters of the item
	By         int64    // added to each counter
}

// reached is a cached refusal.
type reached struct {
	until  time.Time
	room   int64 // what still fitted
	limits string
	limit  project.RecipientLimit
}

// RecipientRefusal is the refusal of a message to a number that has got as many messages as the project may send.
type RecipientRefusal struct {
	Limit project.RecipientLimit
	Reset time.Duration // the rest of the window, in whole seconds, at least 1
}

// slot returns the counter of a recipient window at a time, and the end of the window.
func slot(l project.RecipientLimit, now time.Time) (counter string, end time.Time) {
	start, end := window(project.RateLimit{Window: l.Window}, now)
	length := max(1, int64(l.Window/time.Second))
	return fmt.Sprintf("w%d.%d", length, start%int64(day/time.Second)/length), end
}

// midnight returns the start and the end of the UTC day that holds the time.
func midnight(now time.Time) (start, end time.Time) {
	start = now.UTC().Truncate(day)
	return start, start.Add(day)
}

// counterOf returns the key of the item that counts the messages to a number on one UTC day.
func counterOf(p *project.Project, number string, now time.Time) string {
	start, _ := midnight(now)
	return "to#" + p.ID + "#" + p.RecipientID(number) + "#" + start.Format(time.DateOnly)
}

// RecipientReached returns the refusal of a message that this instance has seen refused a moment ago, nil without one.
func (l *Limiter) RecipientReached(p *project.Project, number string) *RecipientRefusal {
	now := l.clock.Now()
	r, ok := l.reached.Get(counterOf(p, number, now))
	if !ok || !now.Before(r.until) || r.limits != fmt.Sprint(p.Limits.Recipients) {
		return nil
	}
	_, end := slot(r.limit, now)
	return &RecipientRefusal{r.limit, rest(end, now)}
}

// CountMessage counts one message to a number in all recipient windows of the project, or in none where one window has
// reached its limit: all windows of a number are counters of one item, so that one conditional write decides. A count whose
// response was lost may count twice, and never too little (docs/decisions.md#recipient-limit).
func (l *Limiter) CountMessage(ctx context.Context, p *project.Project, number string) (Count, *RecipientRefusal, error) {
	now := l.clock.Now()
	_, end := midnight(now)
	c := Count{pk: counterOf(p, number, now), By: 1}
	var conditions []string
	update := c.update(&l.table, end)
	for i, limit := range p.Limits.Recipients {
		counter, _ := slot(limit, now)
		c.attributes = append(c.attributes, counter)
		most := fmt.Sprintf(":most%d", i)
		conditions = append(conditions, fmt.Sprintf("(attribute_not_exists(#n%d) OR #n%d < %s)", i, i, most))
		update.ExpressionAttributeValues[most] = attr.Number(int64(limit.Messages))
	}
	c.add(update, conditions...)
	_, stored, err := l.write(ctx, update)
	switch {
	case err != nil:
		return Count{}, nil, fmt.Errorf("ratelimit: count message: %w", err)
	case stored == nil:
		return c, nil, nil
	}
	refusal := &RecipientRefusal{}
	var last time.Time
	for i, limit := range p.Limits.Recipients {
		n, _ := attr.NumberOf(stored[c.attributes[i]]) // absent: 0
		if _, end := slot(limit, now); n >= int64(limit.Messages) && end.After(last) {
			last, refusal.Limit, refusal.Reset = end, limit, rest(end, now)
		}
	}
	l.reached.Put(c.pk, reached{until: earlier(last, now.Add(cacheReached)), limits: fmt.Sprint(p.Limits.Recipients), limit: refusal.Limit})
	return Count{}, refusal, nil
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

// Day is the state of a daily limit after a count that was not refused. After a refusal only Limit and Start are set.
type Day struct {
	Limit   Daily
	Start   time.Time
	Counted int64
	alerted int64 // the limit that an alert was claimed for; 0: none
	pk      string
}

func (d Daily) key(start time.Time) string {
	return "day#" + d.Project + "#" + string(d.Unit) + "#" + start.Format(time.DateOnly)
}

// End returns when the day ends.
func (s Day) End() time.Time { return s.Start.Add(day) }

// DailyReached reports from the cache that an amount does not fit into the day that holds the time.
func (l *Limiter) DailyReached(d Daily, amount int64, at time.Time) (Day, bool) {
	start, _ := midnight(at)
	r, ok := l.reached.Get(d.key(start))
	return Day{Limit: d, Start: start}, amount > d.Most || ok && l.clock.Now().Before(r.until) && r.limits == fmt.Sprint(d.Most) && amount > r.room
}

// CountDaily adds an amount to the day that holds the time, where the day's sum stays within the limit. Otherwise CountDaily
// adds nothing and returns the zero Count. A count whose response was lost may count twice, and never too little
// (docs/decisions.md#daily-limit).
func (l *Limiter) CountDaily(ctx context.Context, d Daily, amount int64, at time.Time) (Count, Day, error) {
	start, end := midnight(at)
	state := Day{Limit: d, Start: start}
	if amount > d.Most {
		return Count{}, state, nil
	}
	c := Count{pk: d.key(start), attributes: []string{"n"}, By: amount}
	update := c.update(&l.table, end)
	update.ExpressionAttributeValues[":room"] = attr.Number(d.Most - amount)
	update.ReturnValues = types.ReturnValueAllNew
	c.add(update, "(attribute_not_exists(#n0) OR #n0 <= :room)")
	item, stored, err := l.write(ctx, update)
	if err != nil {
		return Count{}, Day{}, fmt.Errorf("ratelimit: count %s of the day: %w", d.Unit, err)
	}
	if stored != nil {
		n, _ := attr.NumberOf(stored["n"])
		l.reached.Put(c.pk, reached{until: earlier(end, l.clock.Now().Add(cacheReached)), room: d.Most - n, limits: fmt.Sprint(d.Most)})
		return Count{}, state, nil
	}
	state.pk = c.pk
	state.alerted, _ = attr.NumberOf(item["alerted"]) // absent: 0
	state.Counted, err = attr.NumberOf(item["n"])
	return c, state, err
}

// Near reports that the day's sum has reached 80 % of the limit, and that no request has claimed the alert.
func (s Day) Near() bool {
	return s.Counted >= s.Limit.Most-s.Limit.Most/5 && s.alerted != s.Limit.Most
}

// ClaimAlert reports whether the caller is the one that alerts of this day's limit.
func (l *Limiter) ClaimAlert(ctx context.Context, s Day) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.WriteTimeout)
	defer cancel()
	_, ambiguous, err := awsclient.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                 &l.table,
		Key:                       map[string]types.AttributeValue{"pk": attr.Text(s.pk)},
		UpdateExpression:          aws.String("SET alerted = :most"),
		ConditionExpression:       aws.String("attribute_exists(n) AND (attribute_not_exists(alerted) OR alerted <> :most)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":most": attr.Number(s.Limit.Most)},
	})
	if _, refused := attr.Refused(err); refused {
		return ambiguous > 0, nil // an earlier attempt may have taken effect: two alerts are better than none
	}
	return err == nil, err
}

// Counted returns what has been counted in the day that holds the time.
func (l *Limiter) Counted(ctx context.Context, d Daily, at time.Time) (int64, error) {
	start, _ := midnight(at)
	out, err := l.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &l.table, Key: map[string]types.AttributeValue{"pk": attr.Text(d.key(start))}, ConsistentRead: aws.Bool(true),
	})
	if err != nil || out.Item == nil {
		return 0, err
	}
	return attr.NumberOf(out.Item["n"])
}

// Subtract subtracts an amount of a count from its counters. Subtract takes effect once or not at all, so that a lost response
// never lets more through than the limit.
func (l *Limiter) Subtract(ctx context.Context, c Count, amount int64) error {
	if amount <= 0 || c.pk == "" {
		return nil
	}
	l.reached.DeleteFunc(c.pk, func(reached) bool { return true })
	names, assignments, conditions := map[string]string{}, []string{}, []string{}
	for i, counter := range c.attributes {
		names[fmt.Sprintf("#n%d", i)] = counter
		assignments = append(assignments, fmt.Sprintf("#n%d = #n%d - :by", i, i))
		conditions = append(conditions, fmt.Sprintf("#n%d >= :by", i))
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.WriteTimeout)
	defer cancel()
	err := awsclient.WriteOnce(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                 &l.table,
		Key:                       map[string]types.AttributeValue{"pk": attr.Text(c.pk)},
		UpdateExpression:          aws.String("SET " + strings.Join(assignments, ", ")),
		ConditionExpression:       aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": attr.Number(min(amount, c.By))},
	})
	if _, refused := attr.Refused(err); refused {
		return nil // the item has expired
	}
	return err
}

// update returns the write of the count's item, still without counters and conditions.
func (c Count) update(table *string, end time.Time) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                table,
		Key:                      map[string]types.AttributeValue{"pk": attr.Text(c.pk)},
		ExpressionAttributeNames: map[string]string{},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":by": attr.Number(c.By), ":expires": attr.Number(end.Add(keepAfterWindow).Unix()),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// add completes the write: it adds to each counter under all conditions.
func (c Count) add(update *dynamodb.UpdateItemInput, conditions ...string) {
	var sums []string
	for i, counter := range c.attributes {
		name := fmt.Sprintf("#n%d", i)
		update.ExpressionAttributeNames[name] = counter
		sums = append(sums, name+" :by")
	}
	update.UpdateExpression = aws.String("ADD " + strings.Join(sums, ", ") + " SET expires = :expires")
	update.ConditionExpression = aws.String(strings.Join(conditions, " AND "))
}

// write makes a conditional write, and returns the new item where the write asks for it, or the stored item where the
// condition failed.
func (l *Limiter) write(ctx context.Context, update *dynamodb.UpdateItemInput) (item, stored attr.Item, err error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.WriteTimeout)
	defer cancel()
	out, _, err := awsclient.Write(ctx, l.client.UpdateItem, update)
	if stored, refused := attr.Refused(err); refused {
		if stored == nil {
			stored = attr.Item{}
		}
		return nil, stored, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return out.Attributes, nil, nil
}

// rest returns the time until the end of a window in whole seconds, at least 1.
func rest(end, now time.Time) time.Duration {
	return max(time.Second, (end.Sub(now) + time.Second - 1).Truncate(time.Second))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

package ratelimit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

const (
	// maxReached bounds the numbers and the days whose limits an instance caches as reached.
	maxReached = 10_000
	// cacheReached is how long an instance refuses from memory. Other instances may subtract counts meanwhile.
	cacheReached = 10 * time.Second
)

// Count is what one write has added to counters. The zero Count has added nothing.
type Count struct {
	pk       string
	counters []counterLimit // of the item
	By       int64          // added to each counter
}

// counterLimit is a counter with its limit.
type counterLimit struct {
	name string
	most int64
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
	return fmt.Sprintf("w%d.%d", length, start%int64(project.Day/time.Second)/length), end
}

// midnight returns the start and the end of the UTC day that holds the time.
func midnight(now time.Time) (start, end time.Time) {
	start = now.UTC().Truncate(project.Day)
	return start, start.Add(project.Day)
}

// counterOf returns the key of the item that counts the messages to a number on one UTC day.
func counterOf(p *project.Project, number string, now time.Time) string {
	start, _ := midnight(now)
	return "to#" + p.ID + "#" + p.RecipientID(number) + "#" + start.Format(time.DateOnly)
}

// RecipientReached returns the refusal that this instance has cached for the number, or nil where there is none.
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
// reached its limit. A lost response may mean two counts, and never too few (docs/decisions.md#recipient-limit).
func (l *Limiter) CountMessage(ctx context.Context, p *project.Project, number string) (Count, *RecipientRefusal, error) {
	now := l.clock.Now()
	_, end := midnight(now)
	c := Count{pk: counterOf(p, number, now), By: 1}
	for _, limit := range p.Limits.Recipients {
		counter, _ := slot(limit, now)
		c.counters = append(c.counters, counterLimit{counter, int64(limit.Messages)})
	}
	added, item, err := l.add(ctx, c, end, types.ReturnValueNone)
	switch {
	case err != nil:
		return Count{}, nil, fmt.Errorf("ratelimit: count message: %w", err)
	case added:
		return c, nil, nil
	}
	refusal := &RecipientRefusal{}
	var last time.Time
	for _, limit := range p.Limits.Recipients {
		counter, end := slot(limit, now)
		if n, _ := dynamo.NumberOf(item[counter]); n >= int64(limit.Messages) && end.After(last) { // absent: 0
			last, refusal.Limit, refusal.Reset = end, limit, rest(end, now)
		}
	}
	l.cache(c.pk, last, reached{limits: fmt.Sprint(p.Limits.Recipients), limit: refusal.Limit})
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

// Day is the state of a daily limit after a count. If the count was refused, only Limit and Start are set.
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
func (s Day) End() time.Time { return s.Start.Add(project.Day) }

// DailyReached reports from the cache that an amount does not fit into the day that holds the time.
func (l *Limiter) DailyReached(d Daily, amount int64, at time.Time) (Day, bool) {
	start, _ := midnight(at)
	r, ok := l.reached.Get(d.key(start))
	return Day{Limit: d, Start: start}, amount > d.Most || ok && l.clock.Now().Before(r.until) && r.limits == fmt.Sprint(d.Most) && amount > r.room
}

// CountDaily adds an amount to the day that holds the time, or returns the zero Count where the sum would exceed the
// limit. A count whose response was lost may count twice, and never too little (docs/decisions.md#daily-limit).
func (l *Limiter) CountDaily(ctx context.Context, d Daily, amount int64, at time.Time) (Count, Day, error) {
	start, end := midnight(at)
	state := Day{Limit: d, Start: start}
	if amount > d.Most {
		return Count{}, state, nil
	}
	c := Count{pk: d.key(start), counters: []counterLimit{{"n", d.Most}}, By: amount}
	added, item, err := l.add(ctx, c, end, types.ReturnValueAllNew)
	if err != nil {
		return Count{}, Day{}, fmt.Errorf("ratelimit: count %s of the day: %w", d.Unit, err)
	}
	if !added {
		n, _ := dynamo.NumberOf(item["n"])
		l.cache(c.pk, end, reached{room: d.Most - n, limits: fmt.Sprint(d.Most)})
		return Count{}, state, nil
	}
	state.pk = c.pk
	state.alerted, _ = dynamo.NumberOf(item["alerted"]) // absent: 0
	state.Counted, err = dynamo.NumberOf(item["n"])
	return c, state, err
}

// Near reports that the day's sum has reached 80 % of the limit, and that no request has claimed the alert.
func (s Day) Near() bool {
	return s.Counted >= s.Limit.Most-s.Limit.Most/5 && s.alerted != s.Limit.Most
}

// ClaimAlert reports whether the caller is the one that alerts of this day's limit.
func (l *Limiter) ClaimAlert(ctx context.Context, s Day) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	_, ambiguous, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                 &l.table,
		Key:                       map[string]types.AttributeValue{"pk": dynamo.Text(s.pk)},
		UpdateExpression:          aws.String("SET alerted = :most"),
		ConditionExpression:       aws.String("attribute_exists(n) AND (attribute_not_exists(alerted) OR alerted <> :most)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":most": dynamo.Number(s.Limit.Most)},
	})
	if _, refused := dynamo.Refused(err); refused {
		return ambiguous > 0, nil // an earlier attempt may have taken effect: two alerts are better than none
	}
	return err == nil, err
}

// Counted returns what has been counted in the day that holds the time.
func (l *Limiter) Counted(ctx context.Context, d Daily, at time.Time) (int64, error) {
	start, _ := midnight(at)
	out, err := l.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &l.table, Key: map[string]types.AttributeValue{"pk": dynamo.Text(d.key(start))}, ConsistentRead: aws.Bool(true),
	})
	if err != nil || out.Item == nil {
		return 0, err
	}
	return dynamo.NumberOf(out.Item["n"])
}

// Subtract subtracts an amount of a count from its counters. Subtract takes effect once or not at all, so that a lost response
// never lets more through than the limit.
func (l *Limiter) Subtract(ctx context.Context, c Count, amount int64) error {
	if amount <= 0 || c.pk == "" {
		return nil
	}
	l.reached.DeleteFunc(c.pk, func(reached) bool { return true })
	names, assignments, conditions := map[string]string{}, []string{}, []string{}
	for i, counter := range c.counters {
		names[fmt.Sprintf("#n%d", i)] = counter.name
		assignments = append(assignments, fmt.Sprintf("#n%d = #n%d - :by", i, i))
		conditions = append(conditions, fmt.Sprintf("#n%d >= :by", i))
	}
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	err := dynamo.WriteOnce(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                 &l.table,
		Key:                       map[string]types.AttributeValue{"pk": dynamo.Text(c.pk)},
		UpdateExpression:          aws.String("SET " + strings.Join(assignments, ", ")),
		ConditionExpression:       aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": dynamo.Number(min(amount, c.By))},
	})
	if _, refused := dynamo.Refused(err); refused {
		return nil // the item has expired
	}
	return err
}

// cache caches a refusal for cacheReached, but not beyond the end of its window.
func (l *Limiter) cache(pk string, end time.Time, r reached) {
	if r.until = l.clock.Now().Add(cacheReached); end.Before(r.until) {
		r.until = end
	}
	l.reached.Put(pk, r)
}

// add adds the count to all of its counters, or to none where one of them would exceed its limit. add returns the item: after
// an addition the attributes that the parameter returns asks for, otherwise the stored item.
func (l *Limiter) add(ctx context.Context, c Count, end time.Time, returns types.ReturnValue) (added bool, item dynamo.Item, err error) {
	names, sums, conditions := map[string]string{}, []string{}, []string{}
	values := dynamo.Item{":by": dynamo.Number(c.By), ":expires": dynamo.Number(end.Add(keepAfterWindow).Unix())}
	for i, counter := range c.counters {
		name, room := fmt.Sprintf("#n%d", i), fmt.Sprintf(":room%d", i)
		names[name], values[room] = counter.name, dynamo.Number(counter.most-c.By)
		sums = append(sums, name+" :by")
		conditions = append(conditions, fmt.Sprintf("(attribute_not_exists(%s) OR %s <= %s)", name, name, room))
	}
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	out, _, err := dynamo.Write(ctx, l.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           &l.table,
		Key:                                 dynamo.Item{"pk": dynamo.Text(c.pk)},
		UpdateExpression:                    aws.String("ADD " + strings.Join(sums, ", ") + " SET expires = :expires"),
		ConditionExpression:                 aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if stored, refused := dynamo.Refused(err); refused {
		return false, stored, nil
	}
	if err != nil {
		return false, nil, err
	}
	return true, out.Attributes, nil
}

// rest returns the time until the end of a window in whole seconds, at least 1.
func rest(end, now time.Time) time.Duration {
	return max(time.Second, (end.Sub(now) + time.Second - 1).Truncate(time.Second))
}

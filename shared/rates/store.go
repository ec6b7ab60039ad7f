package rates

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

// Store stores rates in one table. Readers see one item as a whole, whatever happens to a writer.
//
//	stored     current          the set in use
//	stored     source#<name>    the last valid fetch of a source, and its last failure
//	stored     pin              an operator's choice of the source
//	history    <time>#<number>  the outcome of a fetch
//	project#<ID>  <environment>  the set fetched with a project's own key
type Store struct {
	client *dynamodb.Client
	table  string
}

// NewStore returns a store on the table.
func NewStore(client *dynamodb.Client, table string) *Store { return &Store{client, table} }

const (
	storedKey   = "stored"
	currentKey  = "current"
	pinKey      = "pin"
	sourceKey   = "source#"
	historyKey  = "history"
	projectKey  = "project#"
	historyLife = 90 * 24 * time.Hour
)

// ErrChanged reports that another writer has changed the item since it was read.
var ErrChanged = errors.New("the rates were changed meanwhile")

// Source is the stored state of one source.
type Source struct {
	Table   *Table    `json:"-"` // nil before the first fetch, and for the central bank
	Bank    Bank      `json:"-"` // the values of the central bank
	Fetched time.Time `json:"fetched"`
	Failure string    `json:"failure"` // of the last fetch; empty after a valid fetch
	Tried   time.Time `json:"tried"`   // the time of the last fetch, valid or not
	// Failures counts the failed fetches since the last valid one, and FetchesToday the fetches on the day of Tried in
	// Colombo. Both are of the central bank alone.
	Failures     int `json:"-"`
	FetchesToday int `json:"-"`
}

// Pin is an operator's choice of the only source.
type Pin struct {
	Source string    `json:"source"`
	Reason string    `json:"reason"`
	Actor  string    `json:"actor"`
	At     time.Time `json:"at"`
}

// Stored holds the rates of the service for all projects.
type Stored struct {
	Current *Set // nil before the first fetch
	Sources map[string]Source
	Pin     *Pin // nil without an operator's choice
	version int64
}

// Table returns the table in use, or nil before the first fetch.
func (s *Stored) Table() *Table {
	if s.Current == nil {
		return nil
	}
	return &s.Current.Table
}

// Current reads the set in use, which may be a moment old. Current returns nil before the first fetch.
func (s *Store) Current(ctx context.Context) (*Set, error) {
	item, err := s.get(ctx, storedKey, currentKey, false)
	if err != nil || item == nil {
		return nil, err
	}
	return decodeSet(item)
}

// Stored reads the rates of the service consistently.
func (s *Store) Stored(ctx context.Context) (*Stored, error) {
	stored := &Stored{Sources: map[string]Source{}}
	err := s.query(ctx, dynamo.Partition(s.table, storedKey), 0, func(i item) (err error) {
		key := dynamo.TextOf(i["sk"])
		name, isSource := strings.CutPrefix(key, sourceKey)
		switch {
		case key == currentKey:
			stored.version = numberOf(i["version"])
			stored.Current, err = decodeSet(i)
		case key == pinKey:
			stored.Pin = &Pin{dynamo.TextOf(i["source"]), dynamo.TextOf(i["reason"]), dynamo.TextOf(i["actor"]), timeOf(i["at"])}
		case isSource:
			stored.Sources[name], err = decodeSource(i)
		}
		return err
	})
	return stored, err
}

// PutCurrent replaces the set in use. PutCurrent returns ErrChanged where the set was replaced after the read of
// stored.
func (s *Store) PutCurrent(ctx context.Context, stored *Stored, set *Set) error {
	i := item{"rates": jsonText(set), "version": dynamo.Number(stored.version + 1)}
	in := dynamodb.PutItemInput{ConditionExpression: new("attribute_not_exists(pk)")}
	if stored.version > 0 {
		in.ConditionExpression = new("version = :v")
		in.ExpressionAttributeValues = item{":v": dynamo.Number(stored.version)}
	}
	return s.put(ctx, storedKey, currentKey, i, in)
}

// PutSource stores a valid fetch of a source. PutSource returns ErrChanged where a newer fetch is stored.
func (s *Store) PutSource(ctx context.Context, name string, source Source) error {
	i := item{}
	if source.Table != nil {
		i["rates"], i["date"] = jsonText(source.Table), dynamo.Text(stamp(source.Table.Date))
	}
	if source.Bank != nil {
		i["bank"] = jsonText(source.Bank)
	}
	i["fetched"], i["tried"] = dynamo.Text(stamp(source.Fetched)), dynamo.Text(stamp(source.Tried))
	if source.FetchesToday > 0 {
		i["failures"], i["fetches_today"] = dynamo.Number(int64(source.Failures)), dynamo.Number(int64(source.FetchesToday))
	}
	if source.Failure != "" {
		i["failure"] = dynamo.Text(source.Failure)
	}
	newest := "fetched"
	if i["date"] != nil {
		newest = "date"
	}
	return s.put(ctx, storedKey, sourceKey+name, i, dynamodb.PutItemInput{
		ConditionExpression:      new("attribute_not_exists(#newest) OR #newest <= :newest"),
		ExpressionAttributeNames: map[string]string{"#newest": newest}, ExpressionAttributeValues: item{":newest": i[newest]},
	})
}

// ClaimFetch stores that a fetch from a source begins. The fetch counts as failed until its result is stored, so that a
// run that dies is followed by a pause. ClaimFetch returns the claimed state, and ErrChanged with that state where
// another run has begun a fetch since before was read.
func (s *Store) ClaimFetch(ctx context.Context, name string, before Source, at time.Time) (Source, error) {
	claimed := before
	claimed.Tried, claimed.Failures, claimed.FetchesToday = at, before.Failures+1, 1
	if DayOf(before.Tried) == DayOf(at) {
		claimed.FetchesToday += before.FetchesToday
	}
	claim := rand.Text() // two runs may begin in the same millisecond
	values := item{
		":at": dynamo.Text(stamp(at)), ":claim": dynamo.Text(claim),
		":failures": dynamo.Number(int64(claimed.Failures)), ":fetches": dynamo.Number(int64(claimed.FetchesToday)),
	}
	condition := "attribute_not_exists(tried)"
	if !before.Tried.IsZero() {
		condition = "tried = :before"
		values[":before"] = dynamo.Text(stamp(before.Tried))
	}
	const change = "SET tried = :at, claim = :claim, failures = :failures, fetches_today = :fetches"
	err := s.update(ctx, storedKey, sourceKey+name, change, &condition, values)
	if stored, conflict := dynamo.ConditionFailed(err); conflict {
		if dynamo.TextOf(stored["claim"]) == claim {
			return claimed, nil // an earlier attempt of this write took effect
		}
		return claimed, ErrChanged
	}
	return claimed, err
}

// PutFailure stores the failure of a source's last fetch, beside its last valid fetch.
func (s *Store) PutFailure(ctx context.Context, name, failure string, at time.Time) error {
	return s.update(ctx, storedKey, sourceKey+name, "SET failure = :failure, tried = :at", nil,
		item{":failure": dynamo.Text(failure), ":at": dynamo.Text(stamp(at))})
}

// PutPin stores the operator's choice of the source, or removes the choice when pin is nil.
func (s *Store) PutPin(ctx context.Context, pin *Pin) error {
	if pin == nil {
		_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.table, Key: key(storedKey, pinKey)})
		return err
	}
	return s.put(ctx, storedKey, pinKey, item{
		"source": dynamo.Text(pin.Source), "reason": dynamo.Text(pin.Reason), "actor": dynamo.Text(pin.Actor),
		"at": dynamo.Text(stamp(pin.At)),
	}, dynamodb.PutItemInput{})
}

// Event is one entry of the history.
type Event struct {
	At      time.Time `json:"at"`
	Source  string    `json:"source"`  // empty for an event that concerns all sources
	Outcome string    `json:"outcome"` // taken, refused, failed, pinned or unpinned
	Detail  string    `json:"detail"`  // the reason, for people
	Actor   string    `json:"actor"`   // schedule, or an operator's ARN
	Set     *Set      `json:"-"`       // the set in use after the event, where the event changed the set
}

// PutEvent adds an event to the history for 90 days. The place distinguishes events of the same time.
func (s *Store) PutEvent(ctx context.Context, e Event, place int) error {
	i := item{}
	if e.Set != nil {
		i["rates"] = jsonText(e.Set)
	}
	i["by"], i["outcome"], i["detail"], i["actor"] = dynamo.Text(e.Source), dynamo.Text(e.Outcome), dynamo.Text(e.Detail),
		dynamo.Text(e.Actor)
	i["expires"] = dynamo.Number(e.At.Add(historyLife).Unix())
	return s.put(ctx, historyKey, eventTime(e.At)+"#"+strconv.Itoa(place), i, dynamodb.PutItemInput{})
}

func eventTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// timeOfEvent returns the time in the key of an event, zero for no item.
func timeOfEvent(i item) time.Time {
	at, _, _ := strings.Cut(dynamo.TextOf(i["sk"]), "#")
	return parseTime(at)
}

// History reads up to most events, the newest first.
func (s *Store) History(ctx context.Context, most int) ([]Event, error) {
	var events []Event
	newest := dynamo.Partition(s.table, historyKey)
	newest.ScanIndexForward, newest.Limit = new(false), new(int32(100))
	err := s.query(ctx, newest, most, func(i item) (err error) {
		e := Event{
			At: timeOfEvent(i), Source: dynamo.TextOf(i["by"]), Outcome: dynamo.TextOf(i["outcome"]),
			Detail: dynamo.TextOf(i["detail"]), Actor: dynamo.TextOf(i["actor"]),
		}
		if i["rates"] != nil {
			e.Set, err = decodeSet(i)
		}
		events = append(events, e)
		return err
	})
	return events, err
}

// UsedOn reads the newest set that was in use on a day in UTC or before the day. Where no such set is stored, UsedOn
// returns nil and the first day that has a set, zero for none.
func (s *Store) UsedOn(ctx context.Context, day, now time.Time) (set *Set, first time.Time, err error) {
	search := func(from, to time.Time, forward bool) (found item, err error) {
		err = s.query(ctx, &dynamodb.QueryInput{
			KeyConditionExpression: new("pk = :pk AND sk BETWEEN :from AND :to"),
			FilterExpression:       new("attribute_exists(rates)"),
			ScanIndexForward:       &forward, Limit: new(int32(4)),
			ExpressionAttributeValues: item{":pk": dynamo.Text(historyKey), ":from": dynamo.Text(eventTime(from)),
				":to": dynamo.Text(eventTime(to))},
		}, 1, func(i item) error {
			found = i
			return nil
		})
		return found, err
	}
	start := now.Add(-historyLife) // an expired item may still be there
	if end := day.AddDate(0, 0, 1); end.After(start) && !day.After(now) {
		if i, err := search(start, end, false); err != nil {
			return nil, time.Time{}, err
		} else if i != nil {
			set, err = decodeSet(i)
			return set, day, err
		}
	}
	i, err := search(start, now, true)
	return nil, timeOfEvent(i).Truncate(24 * time.Hour), err
}

// ProjectRates is the set fetched with a project's own key, and the attempts to fetch the set.
type ProjectRates struct {
	Set    *Set // nil before the first fetch
	Tried  time.Time
	Failed time.Time // zero for never; before Tried: an attempt is running, or has succeeded
}

// ProjectRates reads the rates of a project's own key, consistently or a moment old.
func (s *Store) ProjectRates(ctx context.Context, projectID string, env project.Environment,
	consistent bool) (ProjectRates, error) {
	i, err := s.get(ctx, projectKey+projectID, string(env), consistent)
	if err != nil || i == nil {
		return ProjectRates{}, err
	}
	r := ProjectRates{Tried: timeOf(i["tried"]), Failed: timeOf(i["failed"])}
	if i["rates"] != nil {
		r.Set, err = decodeSet(i)
	}
	return r, err
}

// Claim reports whether this claimant may fetch the rates of a project's own key now. Claim permits one of several
// claimants, and none while the last attempt is younger than pause, or than again after a failure. The name of a
// claimant is unique.
func (s *Store) Claim(ctx context.Context, projectID string, env project.Environment, claimant string, now time.Time,
	pause, again time.Duration) (bool, error) {
	condition := "attribute_not_exists(tried) OR tried <= :pause OR (failed >= tried AND failed <= :again)"
	err := s.update(ctx, projectKey+projectID, string(env), "SET tried = :now, claimant = :me", &condition, item{
		":now": dynamo.Text(stamp(now)), ":me": dynamo.Text(claimant),
		":pause": dynamo.Text(stamp(now.Add(-pause))), ":again": dynamo.Text(stamp(now.Add(-again))),
	})
	if stored, conflict := dynamo.ConditionFailed(err); conflict {
		return dynamo.TextOf(stored["claimant"]) == claimant, nil // an earlier attempt of this write took effect
	}
	return err == nil, err
}

// PutProjectRates stores a set that was fetched with a project's own key under a claim.
func (s *Store) PutProjectRates(ctx context.Context, projectID string, env project.Environment, set *Set,
	tried time.Time) error {
	i := item{"rates": jsonText(set), "tried": dynamo.Text(stamp(tried))}
	return s.put(ctx, projectKey+projectID, string(env), i, dynamodb.PutItemInput{})
}

// FailProjectRates stores the time of a failed attempt under a claim.
func (s *Store) FailProjectRates(ctx context.Context, projectID string, env project.Environment, at time.Time) error {
	return s.update(ctx, projectKey+projectID, string(env), "SET failed = :at", nil, item{":at": dynamo.Text(stamp(at))})
}

// put stores an item with the condition of the input. put returns ErrChanged where the condition fails.
func (s *Store) put(ctx context.Context, pk, sk string, i item, in dynamodb.PutItemInput) error {
	maps.Copy(i, key(pk, sk))
	in.TableName, in.Item = &s.table, i
	_, err := s.client.PutItem(ctx, &in)
	if _, conflict := dynamo.ConditionFailed(err); conflict {
		return ErrChanged
	}
	return err
}

// update changes an item on a condition, nil for none. The error of a failed condition has the stored item.
func (s *Store) update(ctx context.Context, pk, sk, expression string, condition *string, values item) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: key(pk, sk),
		UpdateExpression: &expression, ConditionExpression: condition, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

func (s *Store) get(ctx context.Context, pk, sk string, consistent bool) (item, error) {
	out, err := s.client.GetItem(ctx,
		&dynamodb.GetItemInput{TableName: &s.table, Key: key(pk, sk), ConsistentRead: &consistent})
	if err != nil {
		return nil, fmt.Errorf("read rates: %w", err)
	}
	return out.Item, nil
}

// query calls use with up to most items; 0 means all items.
func (s *Store) query(ctx context.Context, in *dynamodb.QueryInput, most int, use func(item) error) error {
	in.TableName = &s.table
	seen := 0
	for pages := dynamodb.NewQueryPaginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read rates: %w", err)
		}
		for _, i := range page.Items {
			if err := use(i); err != nil {
				return fmt.Errorf("rates item %s/%s: %w", dynamo.TextOf(i["pk"]), dynamo.TextOf(i["sk"]), err)
			}
			if seen++; seen == most {
				return nil
			}
		}
	}
	return nil
}

// item is an item of the table. Its attribute rates is the JSON of a Set or of a Table: DynamoDB's numbers would lose
// trailing zeros, and a map costs more to read.
type item = dynamo.Item

// jsonText returns an attribute with the JSON of rates or of records. Their codes are those of ISO 4217, and their
// numbers and days are valid, so that JSON can always be written.
func jsonText(v any) types.AttributeValue {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(fmt.Errorf("JSON of rates: %w", err))
	}
	return dynamo.Text(string(text))
}

// decodeSet reads a Set, or a Table as a Set without the central bank's values.
func decodeSet(i item) (*Set, error) {
	var s Set
	if err := json.Unmarshal([]byte(dynamo.TextOf(i["rates"])), &s); err != nil {
		return nil, err
	}
	if s.Rates[s.Base].Cmp(One()) != 0 || s.Date.IsZero() {
		return nil, fmt.Errorf("the item has no valid rates for base %q", s.Base)
	}
	return &s, nil
}

func decodeSource(i item) (s Source, err error) {
	s = Source{
		Fetched: timeOf(i["fetched"]), Failure: dynamo.TextOf(i["failure"]), Tried: timeOf(i["tried"]),
		Failures: int(numberOf(i["failures"])), FetchesToday: int(numberOf(i["fetches_today"])),
	}
	if i["rates"] != nil {
		var set *Set
		if set, err = decodeSet(i); err == nil {
			s.Table = &set.Table
		}
	}
	if bank := dynamo.TextOf(i["bank"]); bank != "" {
		err = errors.Join(err, json.Unmarshal([]byte(bank), &s.Bank))
	}
	return s, err
}

// stamp formats a time for an attribute: in UTC and of one width, so that texts compare as times do.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s) // zero for a text that is not a time
	return t
}

func timeOf(v types.AttributeValue) time.Time { return parseTime(dynamo.TextOf(v)) }

func key(pk, sk string) item { return item{"pk": dynamo.Text(pk), "sk": dynamo.Text(sk)} }

// numberOf returns a number, or 0 for any other value.
func numberOf(v types.AttributeValue) int64 {
	n, _ := dynamo.NumberOf(v)
	return n
}

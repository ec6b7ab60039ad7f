package rates

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"svcapi/shared/attr"
	"svcapi/shared/project"
)

// Store keeps rates in one table. Everything that a reader sees is one item, so
// it is whole whatever happens to a writer.
//
//	held       current          the set that requests are answered from
//	held       source#<name>    the last good fetch of a source, and its last trouble
//	held       pin              an operator's choice of source
//	history    <time>#<number>  what became of a fetch
//	project#<ID>  <environment>  the set fetched with a project's own key
type Store struct {
	client *dynamodb.Client
	table  string
}

// NewStore returns a store over the table.
func NewStore(client *dynamodb.Client, table string) *Store { return &Store{client, table} }

const (
	heldKey     = "held"
	currentKey  = "current"
	pinKey      = "pin"
	sourceKey   = "source#"
	historyKey  = "history"
	projectKey  = "project#"
	historyLife = 90 * 24 * time.Hour
)

// ErrChanged says that somebody else has written meanwhile.
var ErrChanged = errors.New("the rates were changed meanwhile")

// Source is what is held of one source.
type Source struct {
	Table   *Table // nil: never fetched, and for the central bank
	Bank    Bank   // of the central bank alone
	Fetched time.Time
	// Trouble is what was wrong with the last fetch; empty: nothing.
	Trouble string
	Tried   time.Time // of the last fetch, good or not
}

// Pin is an operator's choice: no other source is asked.
type Pin struct {
	Source, Reason, Actor string
	At                    time.Time
}

// Held is everything that the service holds for all projects.
type Held struct {
	Current *Set // nil: none yet
	Sources map[string]Source
	Pin     *Pin // nil: none
	version int64
}

// Current is the set that requests are answered from; nil: none yet. It may be
// a moment old.
func (s *Store) Current(ctx context.Context) (*Set, error) {
	item, err := s.get(ctx, heldKey, currentKey, false)
	if err != nil || item == nil {
		return nil, err
	}
	return decodeSet(item)
}

// Held reads everything, as it is now.
func (s *Store) Held(ctx context.Context) (*Held, error) {
	held := &Held{Sources: map[string]Source{}}
	err := s.query(ctx, &dynamodb.QueryInput{
		KeyConditionExpression: aws.String("pk = :pk"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: item{":pk": attr.Text(heldKey)},
	}, 0, func(i item) (err error) {
		key := attr.TextOf(i["sk"])
		name, isSource := strings.CutPrefix(key, sourceKey)
		switch {
		case key == currentKey:
			held.version = numberOf(i["version"])
			held.Current, err = decodeSet(i)
		case key == pinKey:
			held.Pin = &Pin{attr.TextOf(i["source"]), attr.TextOf(i["reason"]), attr.TextOf(i["actor"]), timeOf(i["at"])}
		case isSource:
			held.Sources[name], err = decodeSource(i)
		}
		return err
	})
	return held, err
}

// PutCurrent replaces the set in use, unless it was replaced since held was read: then the error is ErrChanged.
func (s *Store) PutCurrent(ctx context.Context, held *Held, set *Set) error {
	i, err := encodeSet(set)
	if err != nil {
		return err
	}
	i["pk"], i["sk"], i["version"] = attr.Text(heldKey), attr.Text(currentKey), attr.Number(held.version+1)
	in := &dynamodb.PutItemInput{TableName: &s.table, Item: i, ConditionExpression: aws.String("attribute_not_exists(pk)")}
	if held.version > 0 {
		in.ConditionExpression = aws.String("version = :v")
		in.ExpressionAttributeValues = item{":v": attr.Number(held.version)}
	}
	_, err = s.client.PutItem(ctx, in)
	if _, refused := attr.Refused(err); refused {
		return ErrChanged
	}
	return err
}

// PutSource keeps a source's good fetch, unless a newer one is held: then the error is ErrChanged.
func (s *Store) PutSource(ctx context.Context, name string, source Source) error {
	i := item{}
	if source.Table != nil {
		var err error
		if i, err = encodeTable(source.Table); err != nil {
			return err
		}
	}
	if source.Bank != nil {
		bank, err := json.Marshal(source.Bank, json.Deterministic(true))
		if err != nil {
			return err
		}
		i["bank"] = attr.Text(string(bank))
	}
	i["pk"], i["sk"] = attr.Text(heldKey), attr.Text(sourceKey+name)
	i["fetched"], i["tried"] = attr.Text(stamp(source.Fetched)), attr.Text(stamp(source.Tried))
	if source.Trouble != "" {
		i["trouble"] = attr.Text(source.Trouble)
	}
	condition, values := "attribute_not_exists(fetched) OR fetched <= :f", item{":f": i["fetched"]}
	if i["date"] != nil {
		condition = "attribute_not_exists(#d) OR #d <= :d"
		values = item{":d": i["date"]}
	}
	in := &dynamodb.PutItemInput{TableName: &s.table, Item: i, ConditionExpression: &condition, ExpressionAttributeValues: values}
	if i["date"] != nil {
		in.ExpressionAttributeNames = map[string]string{"#d": "date"}
	}
	_, err := s.client.PutItem(ctx, in)
	if _, refused := attr.Refused(err); refused {
		return ErrChanged
	}
	return err
}

// PutTrouble notes what was wrong with a source's last fetch, beside its last good one.
func (s *Store) PutTrouble(ctx context.Context, name, trouble string, at time.Time) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: key(heldKey, sourceKey+name),
		UpdateExpression:          aws.String("SET trouble = :t, tried = :at"),
		ExpressionAttributeValues: item{":t": attr.Text(trouble), ":at": attr.Text(stamp(at))},
	})
	return err
}

// PutPin sets the operator's choice; nil takes it away.
func (s *Store) PutPin(ctx context.Context, pin *Pin) error {
	if pin == nil {
		_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.table, Key: key(heldKey, pinKey)})
		return err
	}
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.table, Item: item{
		"pk": attr.Text(heldKey), "sk": attr.Text(pinKey), "source": attr.Text(pin.Source), "reason": attr.Text(pin.Reason),
		"actor": attr.Text(pin.Actor), "at": attr.Text(stamp(pin.At)),
	}})
	return err
}

// Event is one entry of the history.
type Event struct {
	At     time.Time
	Source string // empty: none
	What   string // taken, refused, failed, pinned or unpinned
	Detail string // why, for people
	Actor  string // schedule, or an operator's ARN
	Set    *Set   // as it was from then on, where it changed
}

// PutEvent adds to the history, where it stays for 90 days. The place parts events of one time.
func (s *Store) PutEvent(ctx context.Context, e Event, place int) error {
	i := item{}
	if e.Set != nil {
		var err error
		if i, err = encodeSet(e.Set); err != nil {
			return err
		}
	}
	i["pk"], i["sk"] = attr.Text(historyKey), attr.Text(e.At.UTC().Format("2006-01-02T15:04:05.000000000Z")+"#"+strconv.Itoa(place))
	i["by"], i["what"], i["detail"], i["actor"] = attr.Text(e.Source), attr.Text(e.What), attr.Text(e.Detail), attr.Text(e.Actor)
	i["expires"] = attr.Number(e.At.Add(historyLife).Unix())
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.table, Item: i})
	return err
}

// History is the newest events, at most so many, the newest first.
func (s *Store) History(ctx context.Context, most int) ([]Event, error) {
	var events []Event
	err := s.query(ctx, &dynamodb.QueryInput{
		KeyConditionExpression: aws.String("pk = :pk"), ScanIndexForward: aws.Bool(false), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: item{":pk": attr.Text(historyKey)}, Limit: aws.Int32(100),
	}, most, func(i item) error {
		at, _, _ := strings.Cut(attr.TextOf(i["sk"]), "#")
		e := Event{At: parseTime(at), Source: attr.TextOf(i["by"]), What: attr.TextOf(i["what"]), Detail: attr.TextOf(i["detail"]), Actor: attr.TextOf(i["actor"])}
		if i["rates"] != nil {
			var err error
			if e.Set, err = decodeSet(i); err != nil {
				return err
			}
		}
		events = append(events, e)
		return nil
	})
	return events, err
}

// Own is the set fetched with a project's own key, and the attempts at it.
type Own struct {
	Set    *Set // nil: none yet
	Tried  time.Time
	Failed time.Time // zero: never; before Tried: an attempt is under way, or succeeded
}

// Own reads a project's own set. Now asks for it as it is now; else it may be a moment old.
func (s *Store) Own(ctx context.Context, projectID string, env project.Environment, now bool) (Own, error) {
	i, err := s.get(ctx, projectKey+projectID, string(env), now)
	if err != nil || i == nil {
		return Own{}, err
	}
	own := Own{Tried: timeOf(i["tried"]), Failed: timeOf(i["failed"])}
	if i["rates"] != nil {
		own.Set, err = decodeSet(i)
	}
	return own, err
}

// Claim asks to fetch a project's own set now. It is given to one of all who
// ask: to nobody while the last attempt is younger than pause, or than again
// where it has failed. The claimant is unique to who asks.
func (s *Store) Claim(ctx context.Context, projectID string, env project.Environment, claimant string, now time.Time, pause, again time.Duration) (bool, error) {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: key(projectKey+projectID, string(env)),
		UpdateExpression:    aws.String("SET tried = :now, claimant = :me"),
		ConditionExpression: aws.String("attribute_not_exists(tried) OR tried <= :pause OR (failed >= tried AND failed <= :again)"),
		ExpressionAttributeValues: item{
			":now": attr.Text(stamp(now)), ":me": attr.Text(claimant), ":pause": attr.Text(stamp(now.Add(-pause))), ":again": attr.Text(stamp(now.Add(-again))),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if no, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return attr.TextOf(no.Item["claimant"]) == claimant, nil // a retried write that had taken effect
	}
	return err == nil, err
}

// PutOwn keeps a project's own set, fetched under a claim.
func (s *Store) PutOwn(ctx context.Context, projectID string, env project.Environment, set *Set, tried time.Time) error {
	i, err := encodeSet(set)
	if err != nil {
		return err
	}
	i["pk"], i["sk"], i["tried"] = attr.Text(projectKey+projectID), attr.Text(string(env)), attr.Text(stamp(tried))
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.table, Item: i})
	return err
}

// FailOwn notes that the attempt under a claim has failed.
func (s *Store) FailOwn(ctx context.Context, projectID string, env project.Environment, at time.Time) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: key(projectKey+projectID, string(env)),
		UpdateExpression: aws.String("SET failed = :at"), ExpressionAttributeValues: item{":at": attr.Text(stamp(at))},
	})
	return err
}

func (s *Store) get(ctx context.Context, pk, sk string, consistent bool) (item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: key(pk, sk), ConsistentRead: &consistent})
	if err != nil {
		return nil, fmt.Errorf("read rates: %w", err)
	}
	return out.Item, nil
}

// query gives each item found to use, at most so many; 0: all.
func (s *Store) query(ctx context.Context, in *dynamodb.QueryInput, most int, use func(item) error) error {
	in.TableName = &s.table
	seen := 0
	for pages := dynamodb.NewQueryPaginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read rates: %w", err)
		}
		for _, i := range page.Items {
			if most > 0 && seen == most {
				return nil
			}
			seen++
			if err := use(i); err != nil {
				return fmt.Errorf("rates item %s/%s: %w", attr.TextOf(i["pk"]), attr.TextOf(i["sk"]), err)
			}
		}
	}
	return nil
}

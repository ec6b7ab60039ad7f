// Package burner parses e-mail addresses, and stores the domains that an operator judges for a project or for the
// stage. The domains are in the Projects table under their own keys, so that the project's record stays small: pk
// "burner#<project ID>" or, for the stage, "burner#", and sk the domain. An allowed domain has the attribute allowed.
// The item "difference" of the stage is what the published lists have changed.
package burner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

const (
	partition = "burner#"
	// maxBatch is DynamoDB's limit for the items of a BatchGetItem and of a transaction.
	maxBatch = 100
	// batchTries bounds the requests for items that DynamoDB leaves unprocessed.
	batchTries = 4
	batchPause = 50 * time.Millisecond
)

// errUnfinished reports that DynamoDB left items of a batch unprocessed in every attempt.
var errUnfinished = errors.New("batch left unfinished")

// Stage is in place of a project's ID for the domains of all projects.
const Stage = ""

// Judgement is what an operator has stored about a domain and its subdomains.
type Judgement int

// The judgements.
const (
	None Judgement = iota
	Disposable
	Allowed // not disposable, whatever the global list says
)

// Store reads and changes the judged domains of projects and of the stage. Domains are lower-case ASCII.
type Store struct {
	db    *dynamodb.Client
	table string
}

// NewStore returns a store on the Projects table.
func NewStore(db *dynamodb.Client, table string) *Store { return &Store{db, table} }

func keyOf(projectID, domain string) dynamo.Item {
	return dynamo.Item{"pk": dynamo.Text(partition + projectID), "sk": dynamo.Text(domain)}
}

// Find returns the judgement of a project about a domain: that of the domain itself, or else of the nearest parent with
// at least two labels. Find makes one read for up to a hundred labels.
func (s *Store) Find(ctx context.Context, projectID, domain string) (Judgement, error) {
	var keys []dynamo.Item
	for d := domain; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
		keys = append(keys, keyOf(projectID, d))
	}
	nearest, judgement := "", None
	for tries := 0; len(keys) > 0; {
		batch := keys[:min(maxBatch, len(keys))]
		out, err := s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			s.table: {Keys: batch, ProjectionExpression: new(projection), ConsistentRead: new(true)},
		}})
		if err != nil {
			return None, fmt.Errorf("read the project's own domains: %w", err)
		}
		for _, item := range out.Responses[s.table] {
			if d, j := decode(item); len(d) > len(nearest) {
				nearest, judgement = d, j
			}
		}
		unprocessed := out.UnprocessedKeys[s.table].Keys
		if len(unprocessed) == len(batch) {
			if tries++; tries == batchTries {
				return None, fmt.Errorf("read the project's own domains: %w", errUnfinished)
			}
			select {
			case <-time.After(batchPause << tries):
			case <-ctx.Done():
				return None, ctx.Err()
			}
		}
		keys = append(unprocessed, keys[len(batch):]...)
	}
	return judgement, nil
}

const projection = "sk, allowed, packed, outcome"

func decode(item dynamo.Item) (domain string, j Judgement) {
	if item["allowed"] != nil {
		return dynamo.TextOf(item["sk"]), Allowed
	}
	return dynamo.TextOf(item["sk"]), Disposable
}

// Put stores the judgement about domains of a project or of the stage, in place of an earlier one.
func (s *Store) Put(ctx context.Context, projectID string, j Judgement, domains ...string) error {
	return s.write(ctx, domains, func(domain string) types.TransactWriteItem {
		item := keyOf(projectID, domain)
		if j == Allowed {
			item["allowed"] = &types.AttributeValueMemberBOOL{Value: true}
		}
		return types.TransactWriteItem{Put: &types.Put{TableName: &s.table, Item: item}}
	})
}

// Remove removes the judgements about domains, and ignores domains without one.
func (s *Store) Remove(ctx context.Context, projectID string, domains ...string) error {
	return s.write(ctx, domains, func(domain string) types.TransactWriteItem {
		return types.TransactWriteItem{Delete: &types.Delete{TableName: &s.table, Key: keyOf(projectID, domain)}}
	})
}

// write changes the items of different domains, in transactions, which leave no item unprocessed.
func (s *Store) write(ctx context.Context, domains []string, change func(string) types.TransactWriteItem) error {
	for batch := range slices.Chunk(domains, maxBatch) {
		changes := make([]types.TransactWriteItem, len(batch))
		for i, domain := range batch {
			changes[i] = change(domain)
		}
		_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: changes})
		if err != nil {
			return fmt.Errorf("change judged domains: %w", err)
		}
	}
	return nil
}

// Domains holds judged domains in alphabetical order.
type Domains struct {
	Disposable []string `json:"domains"`
	Allowed    []string `json:"allowed"`
	// Difference is of the stage: what the published lists have changed.
	Difference Difference `json:"-"`
}

// Difference is the difference of the published lists to the compiled table, and the outcome of the last fetches.
type Difference struct {
	Outcome
	Packed []byte // functions/security/disposable reads it; nil before the first good fetch
}

// Outcome is the outcome of fetches. The JSON form is stored, and is the output of "svc burner status".
type Outcome struct {
	Fetched time.Time      `json:"fetched"` // the last good fetch; zero before the first
	Since   time.Time      `json:"since"`   // the first fetch, good or not
	Tried   time.Time      `json:"tried"`
	Failure string         `json:"failure"` // of the last fetch; empty after a good one
	Sources map[string]int `json:"sources"` // domains by address
	Domains int            `json:"domains"` // of the list in use
	Added   int            `json:"added"`
	Removed int            `json:"removed"`
}

// Age returns the time since the last good fetch, or else since the first fetch.
func (o *Outcome) Age(now time.Time) time.Duration {
	if o.Fetched.IsZero() {
		return now.Sub(o.Since)
	}
	return now.Sub(o.Fetched)
}

const difference = "difference" // a sort key that is no domain

// PutDifference stores the outcome of a fetch. A difference without packed domains keeps those that are stored.
func (s *Store) PutDifference(ctx context.Context, d Difference) error {
	outcome, err := json.Marshal(d.Outcome)
	if err != nil {
		return err
	}
	update, values := "SET outcome = :outcome", dynamo.Item{":outcome": dynamo.Text(string(outcome))}
	if d.Packed != nil {
		update, values[":packed"] = update+", packed = :packed", dynamo.Bytes(d.Packed)
	}
	_, err = s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: keyOf(Stage, difference), UpdateExpression: &update, ExpressionAttributeValues: values,
	})
	return err
}

// Of returns the domains with a judgement.
func (d *Domains) Of(j Judgement) []string {
	if j == Allowed {
		return d.Allowed
	}
	return d.Disposable
}

// List returns the judged domains of a project or of the stage.
func (s *Store) List(ctx context.Context, projectID string) (Domains, error) {
	domains := Domains{Disposable: []string{}, Allowed: []string{}}
	in := dynamo.Partition(s.table, partition+projectID)
	in.ProjectionExpression = new(projection)
	_, err := dynamo.Query(ctx, s.db, in, func(item dynamo.Item) error {
		switch domain, j := decode(item); {
		case domain == difference:
			domains.Difference.Packed = dynamo.BytesOf(item["packed"])
			return json.Unmarshal([]byte(dynamo.TextOf(item["outcome"])), &domains.Difference.Outcome)
		case j == Allowed:
			domains.Allowed = append(domains.Allowed, domain)
		default:
			domains.Disposable = append(domains.Disposable, domain)
		}
		return nil
	})
	if err != nil {
		return Domains{}, fmt.Errorf("list judged domains: %w", err)
	}
	return domains, nil
}

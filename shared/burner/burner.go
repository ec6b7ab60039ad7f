// Package burner parses e-mail addresses, and stores the disposable domains that a project has added for itself. The domains
// are in the Projects table under their own keys, so that the project's record stays small: pk "burner#<project ID>", sk the
// domain.
package burner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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

// Store reads and changes projects' own domains. Domains are lower-case ASCII.
type Store struct {
	db    *dynamodb.Client
	table string
}

// NewStore returns a store on the Projects table.
func NewStore(db *dynamodb.Client, table string) *Store { return &Store{db, table} }

type key = dynamo.Item

func keyOf(projectID, domain string) key {
	return key{"pk": dynamo.Text(partition + projectID), "sk": dynamo.Text(domain)}
}

// Lists reports whether a project lists a domain or one of its parents with at least two labels. Lists makes one read for up
// to a hundred labels.
func (s *Store) Lists(ctx context.Context, projectID, domain string) (bool, error) {
	var keys []key
	for d := domain; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
		keys = append(keys, keyOf(projectID, d))
	}
	for tries := 0; len(keys) > 0; {
		batch := keys[:min(maxBatch, len(keys))]
		out, err := s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			s.table: {Keys: batch, ProjectionExpression: aws.String("sk"), ConsistentRead: aws.Bool(true)},
		}})
		if err != nil {
			return false, fmt.Errorf("read the project's own domains: %w", err)
		}
		if len(out.Responses[s.table]) > 0 {
			return true, nil
		}
		unprocessed := out.UnprocessedKeys[s.table].Keys
		if len(unprocessed) == len(batch) {
			if tries++; tries == batchTries {
				return false, fmt.Errorf("read the project's own domains: %w", errUnfinished)
			}
			select {
			case <-time.After(batchPause << tries):
			case <-ctx.Done():
				return false, ctx.Err()
			}
		}
		keys = append(unprocessed, keys[len(batch):]...)
	}
	return false, nil
}

// Add adds domains to the list. Listed domains stay.
func (s *Store) Add(ctx context.Context, projectID string, domains ...string) error {
	return s.write(ctx, domains, func(domain string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: &s.table, Item: keyOf(projectID, domain)}}
	})
}

// Remove removes domains from the list, and ignores domains that are not on the list.
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
			return fmt.Errorf("change the project's own domains: %w", err)
		}
	}
	return nil
}

// List returns a project's own domains in alphabetical order.
func (s *Store) List(ctx context.Context, projectID string) ([]string, error) {
	pages := dynamodb.NewQueryPaginator(s.db, &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("sk"),
		KeyConditionExpression:    aws.String("pk = :pk"),
		ExpressionAttributeValues: key{":pk": dynamo.Text(partition + projectID)},
	})
	domains := []string{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the project's own domains: %w", err)
		}
		for _, item := range page.Items {
			domains = append(domains, dynamo.TextOf(item["sk"]))
		}
	}
	return domains, nil
}

package project

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/dynamo"
)

// Day is the window of the daily limits. Each recipient window divides a day, so that one item a day counts all
// windows.
const Day = 24 * time.Hour

// Store reads projects in the Projects table. The operator's command line changes them (shared/project/admin).
type Store struct {
	db    *dynamodb.Client
	table string
}

// NewStore returns a store on a table with the keys pk and sk.
func NewStore(db *dynamodb.Client, table string) *Store {
	return &Store{db: db, table: table}
}

// Load reads a project with its credentials and integrations, consistently, and returns nil where none exists.
func (s *Store) Load(ctx context.Context, projectID string) (*Record, error) {
	pages := dynamodb.NewQueryPaginator(s.db, &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            new(true),
		KeyConditionExpression:    new("pk = :project"),
		ExpressionAttributeValues: dynamo.Item{":project": dynamo.Text(projectID)},
	})
	var items []dynamo.Item
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read project %s: %w", projectID, err)
		}
		items = append(items, page.Items...)
	}
	return Decode(items)
}

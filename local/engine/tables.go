package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/local/template"
)

// Client returns a client of an engine, which accepts any credentials.
func Client(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: &url,
		Region:       template.Region,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

// CreateTables creates the template's tables. names holds names by logical ID; other tables have the template's names.
// The engine knows no tags, no point-in-time recovery and no deletion protection.
func CreateTables(ctx context.Context, client *dynamodb.Client, from *template.Template,
	names map[string]string) error {
	for _, table := range from.Tables {
		name := table.Name
		if given, ok := names[table.LogicalID]; ok {
			name = given
		}
		if err := create(ctx, client, table, name); err != nil {
			return fmt.Errorf("create table %s as %s: %w", table.LogicalID, name, err)
		}
	}
	return nil
}

// DropTables deletes the named tables, of which some may be absent.
func DropTables(ctx context.Context, client *dynamodb.Client, names map[string]string) error {
	var failed []error
	for _, name := range names {
		_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		if _, absent := errors.AsType[*types.ResourceNotFoundException](err); err != nil && !absent {
			failed = append(failed, fmt.Errorf("delete %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

func create(ctx context.Context, client *dynamodb.Client, table template.Table, name string) error {
	input := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: table.Attributes, KeySchema: table.Keys, GlobalSecondaryIndexes: table.Indexes,
	}
	if _, err := client.CreateTable(ctx, input); err != nil {
		return err
	}
	if table.TTL == "" {
		return nil
	}
	_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: &table.TTL, Enabled: new(true),
		},
	})
	return err
}

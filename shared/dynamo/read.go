package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Scan calls visit for each item that a scan finds, and stops at the first error of visit.
func Scan(ctx context.Context, client *dynamodb.Client, in *dynamodb.ScanInput, visit func(Item) error) error {
	for pages := dynamodb.NewScanPaginator(client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read %s: %w", *in.TableName, err)
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// Query calls visit for each item that a query finds, and returns the read units of the query.
func Query(ctx context.Context, client *dynamodb.Client, in *dynamodb.QueryInput,
	visit func(Item) error) (units float64, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	for pages := dynamodb.NewQueryPaginator(client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return units, fmt.Errorf("read %s: %w", *in.TableName, err)
		}
		if page.ConsumedCapacity != nil {
			units += aws.ToFloat64(page.ConsumedCapacity.CapacityUnits)
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return units, err
			}
		}
	}
	return units, nil
}

// Partition returns a consistent query of the items with one value of the attribute pk.
func Partition(pk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("pk = :p"),
		ExpressionAttributeValues: Item{":p": Text(pk)},
		ConsistentRead:            aws.Bool(true),
	}
}

package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go/middleware"

	"svcapi/shared/dynamo"
)

// dryRunError ends a command with --dry-run at its first write. Everything before that write was validated.
type dryRunError struct{ writes []string }

func (e *dryRunError) Error() string { return "dry run: would " + strings.Join(e.writes, "; ") }

// refuseWrites makes every write of an AWS client fail with a dryRunError.
func refuseWrites(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("svc:DryRun",
		func(ctx context.Context, in middleware.InitializeInput,
			next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			if writes := describeWrites(in.Parameters); len(writes) > 0 {
				return middleware.InitializeOutput{}, middleware.Metadata{}, &dryRunError{writes}
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}

// describeWrites describes the changes of a call, and returns nothing for a call that reads.
func describeWrites(input any) (writes []string) {
	add := func(verb string, table *string, item dynamo.Item) {
		key := dynamo.TextOf(item["pk"])
		if sort := dynamo.TextOf(item["sk"]); sort != "" {
			key += " / " + sort
		}
		writes = append(writes, fmt.Sprintf("%s %s in %s", verb, key, aws.ToString(table)))
	}
	secret := func(verb string, name *string) { writes = append(writes, verb+" the secret "+aws.ToString(name)) }
	switch in := input.(type) {
	case *dynamodb.PutItemInput:
		add("write", in.TableName, in.Item)
	case *dynamodb.UpdateItemInput:
		add("change", in.TableName, in.Key)
	case *dynamodb.DeleteItemInput:
		add("delete", in.TableName, in.Key)
	case *dynamodb.TransactWriteItemsInput:
		for _, w := range in.TransactItems {
			switch {
			case w.Put != nil:
				add("write", w.Put.TableName, w.Put.Item)
			case w.Update != nil:
				add("change", w.Update.TableName, w.Update.Key)
			case w.Delete != nil:
				add("delete", w.Delete.TableName, w.Delete.Key)
			}
		}
	case *dynamodb.UpdateTableInput:
		writes = append(writes, "change the table "+aws.ToString(in.TableName))
	case *dynamodb.UpdateContinuousBackupsInput:
		writes = append(writes, "change the backups of the table "+aws.ToString(in.TableName))
	case *secretsmanager.CreateSecretInput:
		secret("make", in.Name)
	case *secretsmanager.UpdateSecretInput:
		secret("encrypt", in.SecretId)
	case *secretsmanager.PutSecretValueInput:
		secret("write", in.SecretId)
	case *secretsmanager.RestoreSecretInput:
		secret("restore", in.SecretId)
	case *secretsmanager.DeleteSecretInput:
		secret("delete", in.SecretId)
	}
	return writes
}

// printDryRun prints the first write of a command.
func (a *App) printDryRun(e *dryRunError) error {
	writes, rows := List(e.writes, func(w string) (string, []string) { return w, []string{w} })
	err := a.Print(map[string]any{"dry_run": true, "writes": writes}, Table{Header: []string{"WOULD"}, Rows: rows})
	a.Note("Dry run: nothing was changed. A real run begins with the above.")
	return err
}

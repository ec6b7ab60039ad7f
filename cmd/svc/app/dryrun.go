package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go/middleware"

	"svcapi/shared/attr"
)

// dryRunError ends a command with --dry-run at its first write. Everything before that write was validated.
type dryRunError struct{ writes []string }

func (e *dryRunError) Error() string { return "dry run: would " + strings.Join(e.writes, "; ") }

// refuseWrites makes every write of an AWS client fail with a dryRunError.
func refuseWrites(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("svc:DryRun",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			if writes := describeWrites(in.Parameters); len(writes) > 0 {
				return middleware.InitializeOutput{}, middleware.Metadata{}, &dryRunError{writes}
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}

// describeWrites describes the changes of a call, and returns nothing for a call that reads.
func describeWrites(input any) []string {
	one := func(verb string, table *string, item attr.Item) []string {
		key := attr.TextOf(item["pk"])
		if sort := attr.TextOf(item["sk"]); sort != "" {
			key += " / " + sort
		}
		return []string{fmt.Sprintf("%s %s in %s", verb, key, aws.ToString(table))}
	}
	secret := func(verb string, name *string) []string {
		return []string{fmt.Sprintf("%s the secret %s", verb, aws.ToString(name))}
	}
	switch in := input.(type) {
	case *dynamodb.PutItemInput:
		return one("write", in.TableName, in.Item)
	case *dynamodb.UpdateItemInput:
		return one("change", in.TableName, in.Key)
	case *dynamodb.DeleteItemInput:
		return one("delete", in.TableName, in.Key)
	case *dynamodb.TransactWriteItemsInput:
		var writes []string
		for _, w := range in.TransactItems {
			writes = append(writes, describeTransacted(w, one)...)
		}
		return writes
	case *dynamodb.BatchWriteItemInput:
		var writes []string
		for table, requests := range in.RequestItems {
			for _, r := range requests {
				if r.PutRequest != nil {
					writes = append(writes, one("write", &table, r.PutRequest.Item)...)
				} else if r.DeleteRequest != nil {
					writes = append(writes, one("delete", &table, r.DeleteRequest.Key)...)
				}
			}
		}
		return writes
	case *dynamodb.UpdateTableInput:
		return []string{"change the table " + aws.ToString(in.TableName)}
	case *dynamodb.UpdateContinuousBackupsInput:
		return []string{"change the backups of the table " + aws.ToString(in.TableName)}
	case *secretsmanager.CreateSecretInput:
		return secret("make", in.Name)
	case *secretsmanager.PutSecretValueInput:
		return secret("write", in.SecretId)
	case *secretsmanager.RestoreSecretInput:
		return secret("restore", in.SecretId)
	case *secretsmanager.DeleteSecretInput:
		return secret("delete", in.SecretId)
	}
	return nil
}

func describeTransacted(w types.TransactWriteItem, one func(string, *string, attr.Item) []string) []string {
	switch {
	case w.Put != nil:
		return one("write", w.Put.TableName, w.Put.Item)
	case w.Update != nil:
		return one("change", w.Update.TableName, w.Update.Key)
	case w.Delete != nil:
		return one("delete", w.Delete.TableName, w.Delete.Key)
	}
	return nil
}

// printDryRun prints the first write of a command.
func (a *App) printDryRun(e *dryRunError) error {
	t := Table{Header: []string{"WOULD"}}
	for _, w := range e.writes {
		t.Rows = append(t.Rows, []string{w})
	}
	err := a.Print(struct {
		DryRun bool     `json:"dry_run"`
		Writes []string `json:"writes"`
	}{true, e.writes}, t)
	a.Note("Dry run: nothing was changed. A real run begins with the above.")
	return err
}

// Confirm asks before a step that cannot be undone. A dry run ends there.
func (a *App) Confirm(ctx context.Context, yes bool, question string) error {
	if a.DryRun {
		return &dryRunError{[]string{"ask: " + question}}
	}
	return a.Console.confirm(ctx, yes, question)
}

// Package protect holds the command "svc protect".
package protect

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
)

// Command returns "svc protect".
func Command(a *app.App) *cobra.Command {
	o := &options{App: a}
	return a.Command(&cobra.Command{
		Use:   "protect",
		Short: "Protect the tables of projects and money from deletion, after a deployment or a restore",
		Long: `Switch deletion protection and point-in-time recovery on for the tables of
projects, wallets and the ledger. The template cannot protect them: a creation
that fails could not delete a protected table, and its repetition would find it.

The command may be repeated; it changes nothing where all is on.`,
		Example: `  svc protect --stage prod`,
	}, nil, o.run)
}

type options struct{ *app.App }

func (o *options) run(ctx context.Context, s *app.Stack) error {
	if o.Local {
		return app.Usagef("--local: the local stack deletes its tables when it ends")
	}
	tables, err := protect(ctx, s)
	if err != nil {
		return err
	}
	t := app.Table{Header: []string{"TABLE", "DELETION PROTECTION", "RECOVERY"}}
	for _, p := range tables {
		t.Rows = append(t.Rows, []string{p.Table, p.Protection, p.Recovery})
	}
	return o.Print(tables, t)
}

// protected is what was done to one table.
type protected struct {
	Table      string `json:"table"`
	Protection string `json:"deletion_protection"`
	Recovery   string `json:"recovery"`
}

// The results of one protection.
const (
	already    = "was on"
	switchedOn = "switched on"
)

// protect protects the tables that outlive the stack.
func protect(ctx context.Context, s *app.Stack) ([]protected, error) {
	var done []protected
	for _, short := range []string{"projects", "wallets", "ledger"} {
		name := s.Table(short)
		out, err := s.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		p := protected{Table: name, Protection: already}
		if !aws.ToBool(out.Table.DeletionProtectionEnabled) {
			p.Protection = switchedOn
			if _, err := s.DB.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(true)}); err != nil {
				return nil, fmt.Errorf("protect %s: %w", name, err)
			}
		}
		if p.Recovery, err = switchRecoveryOn(ctx, s.DB, name); err != nil {
			return nil, fmt.Errorf("recovery of %s: %w", name, err)
		}
		done = append(done, p)
	}
	return done, nil
}

// switchRecoveryOn switches point-in-time recovery on.
func switchRecoveryOn(ctx context.Context, db *dynamodb.Client, name string) (string, error) {
	out, err := db.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &name})
	if err != nil {
		return "", err
	}
	if b := out.ContinuousBackupsDescription; b != nil && b.PointInTimeRecoveryDescription != nil &&
		b.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
		return already, nil
	}
	_, err = db.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: &name, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	return switchedOn, err
}

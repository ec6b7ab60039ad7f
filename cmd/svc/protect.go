package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/cmd/svc/app"
)

func protectTables(ctx context.Context, s *app.Stack) error {
	if s.Local {
		return app.Usagef("--local: the local stack deletes its tables when it ends")
	}
	var all []protected
	for _, short := range app.KeptTables() { // before the first write
		out, err := s.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: new(s.Table(short))})
		if err != nil {
			return fmt.Errorf("protect %s: %w", s.Table(short), err)
		}
		protection := protections[aws.ToBool(out.Table.DeletionProtectionEnabled)]
		all = append(all, protected{Table: s.Table(short), Protection: protection})
	}
	for i := range all {
		if err := all[i].protect(ctx, s); err != nil {
			return fmt.Errorf("protect %s: %w", all[i].Table, err)
		}
	}
	return app.PrintList(s.App, "TABLE, DELETION PROTECTION, RECOVERY", "", all, func(p protected) []string {
		return []string{p.Table, p.Protection, p.Recovery}
	})
}

// protected is what was done to one table.
type protected struct {
	Table      string `json:"table"`
	Protection string `json:"deletion_protection"`
	Recovery   string `json:"recovery"`
}

// protections are the texts of a protection that was on before, or was not.
var protections = map[bool]string{true: "was on", false: "switched on"}

// protect switches on each protection that is off, and notes the outcome for recovery.
func (p *protected) protect(ctx context.Context, s *app.Stack) error {
	if p.Protection != protections[true] {
		_, err := s.DB.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &p.Table, DeletionProtectionEnabled: new(true)})
		if err != nil {
			return err
		}
	}
	on, err := s.HasRecovery(ctx, p.Table)
	if p.Recovery = protections[on]; err == nil && !on {
		err = p.recover(ctx, s)
	}
	return err
}

// The pauses between two attempts at recovery, each twice as long as the pause before it, and their sum.
const (
	firstPause, longestPause = time.Second, 30 * time.Second
	longestWait              = 30 * time.Minute
)

// recover switches recovery on. DynamoDB answers ContinuousBackupsUnavailableException while it prepares the backups of
// a new or restored table ("UpdateContinuousBackups", Amazon DynamoDB API reference).
func (p *protected) recover(ctx context.Context, s *app.Stack) error {
	for pause, waited := firstPause, time.Duration(0); ; pause = min(2*pause, longestPause) {
		_, err := s.DB.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
			TableName: &p.Table,
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{
				PointInTimeRecoveryEnabled: new(true),
			},
		})
		if _, early := errors.AsType[*types.ContinuousBackupsUnavailableException](err); !early || waited >= longestWait {
			return err
		}
		s.Note("%s: DynamoDB prepares the table's backups (ContinuousBackupsUnavailableException); the next attempt "+
			"is in %s.", p.Table, pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			waited += pause
		}
	}
}

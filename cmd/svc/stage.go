package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secretstypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/secret"
)

// protectTables switches on what keeps the tables of projects and money.
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
			PointInTimeRecoverySpecification: &dynamodbtypes.PointInTimeRecoverySpecification{
				PointInTimeRecoveryEnabled: new(true),
			},
		})
		if _, early := errors.AsType[*dynamodbtypes.ContinuousBackupsUnavailableException](err); !early ||
			waited >= longestWait {
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

func secretsCommand(a *app.App) *cobra.Command {
	return app.Group("secrets", a.Command("rekey", nil, rekeySecrets), &cobra.Command{
		Use: "rotate", Hidden: true, Args: cobra.ArbitraryArgs, // for those who look for it here
		RunE: func(*cobra.Command, []string) error {
			return app.Usagef(`"svc vendor account" sets and rotates the key of a vendor, "svc credential rotate" a client's ` +
				"secret")
		},
	})
}

func rekeySecrets(ctx context.Context, s *app.Stack) error {
	if s.Local {
		return app.Usagef("--local: the local stack has no KMS key")
	}
	key, err := stackKey(ctx, s)
	if err != nil {
		return err
	}
	secrets, err := listSecrets(ctx, s)
	if err != nil {
		return err
	}
	var f app.Findings
	step := s.Progress("secrets", len(secrets))
	for _, entry := range secrets {
		name := aws.ToString(entry.Name)
		if at := entry.DeletedDate; at != nil {
			f.Add(app.Warning, "secret", name, "it is scheduled for deletion on "+app.Second(*at)+", and keeps its key",
				"Keep the old key until then: no restored secret can be read without it.")
		} else {
			var done string
			err := secret.Repeat(func() (err error) { done, err = encryptSecret(ctx, s, entry, key); return err })
			f.AddIf(!f.Failed("secret", name, err), app.OK, "secret", name, done, "")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		step()
	}
	if s.DryRun {
		s.Note("Dry run: nothing was changed.")
	}
	return s.PrintFindings(f.Found, true)
}

// stackKey returns the KMS key of the deployed stack, empty for the key of AWS, after a check that the functions can
// read that key and that new secrets get the key.
func stackKey(ctx context.Context, s *app.Stack) (key string, err error) {
	stack, err := s.DeployedStack(ctx)
	if err != nil {
		return "", err
	}
	if strings.HasSuffix(string(stack.Status), "_IN_PROGRESS") {
		return "", fmt.Errorf("%w: the stack is %s, and its functions may not read the key yet", app.ErrRefused, stack.Status)
	}
	if key = stack.Parameters["KmsKeyArn"]; !isKey(s.Secrets.Key, key) {
		return "", app.Failf(app.ExitRefused, "Set it first: export SVC_KMS_KEY="+key,
			"refused: the stack's KmsKeyArn is %q, and SVC_KMS_KEY, which new secrets get, is %q", key, s.Secrets.Key)
	}
	return key, nil
}

// listSecrets returns all secrets of the stage, also those that are scheduled for deletion.
func listSecrets(ctx context.Context, s *app.Stack) (all []secretstypes.SecretListEntry, err error) {
	prefix := "svc/" + s.Stage + "/"
	pages := secretsmanager.NewListSecretsPaginator(s.Vault, &secretsmanager.ListSecretsInput{
		Filters:                []secretstypes.Filter{{Key: secretstypes.FilterNameStringTypeName, Values: []string{prefix}}},
		IncludePlannedDeletion: new(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the secrets of the stage: %w", err)
		}
		for _, entry := range page.SecretList {
			if strings.HasPrefix(aws.ToString(entry.Name), prefix) {
				all = append(all, entry)
			}
		}
	}
	return all, nil
}

// encryptSecret writes the value of a secret again with the key, and returns what was done. UpdateSecret with a key and
// no value would keep the version readable with the old key, and leave a version alone that the caller may not encrypt.
func encryptSecret(ctx context.Context, s *app.Stack, entry secretstypes.SecretListEntry, key string) (string, error) {
	current, token, err := secret.Next(ctx, s.Vault, aws.ToString(entry.ARN))
	other := func(id string) bool { return !isKey(id, key) }
	switch {
	case err != nil:
		return "", err
	case isKey(aws.ToString(entry.KmsKeyId), key) && len(current.KmsKeyIds) > 0 &&
		!slices.ContainsFunc(current.KmsKeyIds, other):
		return "it has the key already", nil
	case s.DryRun:
		return "it would be encrypted again", nil
	}
	value, err := s.Vault.GetSecretValue(ctx,
		&secretsmanager.GetSecretValueInput{SecretId: entry.ARN, VersionId: current.VersionId})
	if err == nil {
		_, err = s.Vault.UpdateSecret(ctx, &secretsmanager.UpdateSecretInput{
			SecretId: entry.ARN, KmsKeyId: &key, SecretString: value.SecretString, ClientRequestToken: &token,
		})
	}
	return "it was encrypted again", err
}

// isKey reports whether an ID or an ARN names the key. Lists of secrets have no name for the key of AWS, lists of
// versions have the name DefaultEncryptionKey.
func isKey(id, key string) bool {
	if key == "" {
		return id == "" || id == "DefaultEncryptionKey"
	}
	return id[strings.LastIndex(id, "/")+1:] == key[strings.LastIndex(key, "/")+1:]
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/shared/secret"
)

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
func listSecrets(ctx context.Context, s *app.Stack) (all []types.SecretListEntry, err error) {
	prefix := "svc/" + s.Stage + "/"
	pages := secretsmanager.NewListSecretsPaginator(s.Vault, &secretsmanager.ListSecretsInput{
		Filters:                []types.Filter{{Key: types.FilterNameStringTypeName, Values: []string{prefix}}},
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
func encryptSecret(ctx context.Context, s *app.Stack, entry types.SecretListEntry, key string) (string, error) {
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

package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/shared/project"
)

// Writer changes the secrets of a stage for operators. Simultaneous writers may overwrite each other's account.
type Writer struct {
	client *secretsmanager.Client
	stage  string
	Key    string // the KMS key that encrypts new secrets; empty: the key of AWS
}

// NewWriter returns a writer of a stage's secrets.
func NewWriter(client *secretsmanager.Client, stage string) *Writer {
	return &Writer{client: client, stage: stage}
}

// Put replaces all secret fields of a vendor account, and does not change the other accounts of the secret.
func (w *Writer) Put(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string, fields map[string]string) error {
	return w.change(ctx, Name(w.stage, kind, owner), func(value accounts) {
		if value[env] == nil {
			value[env] = map[string]map[string]string{}
		}
		value[env][vendor] = maps.Clone(fields)
	})
}

// Delete removes a vendor account. Delete deletes a secret without accounts, with the default recovery time of AWS.
func (w *Writer) Delete(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) error {
	return w.change(ctx, Name(w.stage, kind, owner), func(value accounts) {
		if delete(value[env], vendor); len(value[env]) == 0 {
			delete(value, env)
		}
	})
}

// Fields reads the secret fields of a vendor account without a cache. Fields returns empty values for an absent account.
func (w *Writer) Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) (Values, error) {
	value, _, err := read(ctx, w.client, Name(w.stage, kind, owner))
	return Values(value[env][vendor]), err
}

// Deleted reports whether a secret is scheduled for deletion and cannot be read.
func (w *Writer) Deleted(ctx context.Context, kind project.Kind, owner string) (bool, error) {
	_, found, err := read(ctx, w.client, Name(w.stage, kind, owner))
	return found == deleted, err
}

// change edits the value of a secret. A secret without accounts is deleted, with the default recovery time of AWS.
func (w *Writer) change(ctx context.Context, name string, edit func(accounts)) error {
	value, found, err := read(ctx, w.client, name)
	if err != nil {
		return err
	}
	if value == nil {
		value = accounts{}
	}
	edit(value)
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("secret %s: %w", name, errFormat)
	}
	text := aws.String(string(encoded))
	switch {
	case len(value) == 0 && found != present:
	case len(value) == 0:
		_, err = w.client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &name})
	case found == absent:
		in := &secretsmanager.CreateSecretInput{Name: &name, Description: aws.String("Accounts at vendors, written by svc."), SecretString: text}
		if w.Key != "" {
			in.KmsKeyId = &w.Key
		}
		_, err = w.client.CreateSecret(ctx, in)
	default:
		if found == deleted {
			_, err = w.client.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: &name})
		}
		if err == nil {
			_, err = w.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &name, SecretString: text})
		}
	}
	if err != nil {
		return fmt.Errorf("write secret %s: %w", name, err)
	}
	return nil
}

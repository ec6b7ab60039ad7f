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

// Writer changes the secrets of a stage for operators. Two writers of the same secret at the same time may overwrite each
// other's vendor.
type Writer struct {
	client *secretsmanager.Client
	stage  string
	key    string
}

// NewWriter returns a writer of a stage's secrets.
func NewWriter(client *secretsmanager.Client, stage string) *Writer {
	return &Writer{client: client, stage: stage}
}

// WithKey returns a writer that encrypts new secrets with a KMS key; empty means the key of AWS.
func (w *Writer) WithKey(arn string) *Writer {
	other := *w
	other.key = arn
	return &other
}

// Put replaces all secret fields of a vendor account, and does not change the other vendors of the secret.
func (w *Writer) Put(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string, fields map[string]string) error {
	return w.change(ctx, Name(w.stage, kind, owner, env), func(value accounts) { value[vendor] = maps.Clone(fields) })
}

// Delete removes a vendor account. Delete deletes a secret without accounts, with the default recovery time of AWS.
func (w *Writer) Delete(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) error {
	return w.change(ctx, Name(w.stage, kind, owner, env), func(value accounts) { delete(value, vendor) })
}

// Fields reads the secret fields of a vendor account without a cache. Fields returns empty values for an absent account.
func (w *Writer) Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) (Values, error) {
	value, _, err := read(ctx, w.client, Name(w.stage, kind, owner, env))
	return Values(value[vendor]), err
}

// Deleted reports whether a secret is scheduled for deletion, so that nobody can read it.
func (w *Writer) Deleted(ctx context.Context, kind project.Kind, owner string, env project.Environment) (bool, error) {
	_, found, err := read(ctx, w.client, Name(w.stage, kind, owner, env))
	return found == deleted, err
}

func (w *Writer) change(ctx context.Context, name string, edit func(accounts)) error {
	value, found, err := read(ctx, w.client, name)
	if err != nil {
		return err
	}
	if value == nil {
		value = accounts{}
	}
	edit(value)
	if len(value) == 0 {
		if found != present {
			return nil
		}
		if _, err := w.client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &name}); err != nil {
			return fmt.Errorf("delete secret %s: %w", name, err)
		}
		return nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("secret %s: %w", name, errFormat)
	}
	switch found {
	case absent:
		in := &secretsmanager.CreateSecretInput{
			Name: &name, Description: aws.String("Accounts at vendors, written by svc."), SecretString: aws.String(string(encoded)),
		}
		if w.key != "" {
			in.KmsKeyId = &w.key
		}
		_, err = w.client.CreateSecret(ctx, in)
	case deleted:
		if _, err = w.client.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: &name}); err != nil {
			return fmt.Errorf("restore secret %s: %w", name, err)
		}
		fallthrough
	case present:
		_, err = w.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &name, SecretString: aws.String(string(encoded))})
	}
	if err != nil {
		return fmt.Errorf("write secret %s: %w", name, err)
	}
	return nil
}

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

// Writer changes the secrets of a stage, for operators. Two writers at the same
// secret at the same moment may overwrite each other's vendor.
type Writer struct {
	client *secretsmanager.Client
	stage  string
	key    string
}

// NewWriter makes a writer of a stage's secrets.
func NewWriter(client *secretsmanager.Client, stage string) *Writer {
	return &Writer{client: client, stage: stage}
}

// WithKey is the same writer with the KMS key that new secrets are encrypted with; empty means AWS's own.
func (w *Writer) WithKey(arn string) *Writer {
	other := *w
	other.key = arn
	return &other
}

// Put sets the secret fields of a vendor account, in the place of all that it
// had, and leaves the other vendors of the same secret as they are.
func (w *Writer) Put(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string, fields map[string]string) error {
	return w.change(ctx, Name(w.stage, kind, owner, env), func(value accounts) { value[vendor] = maps.Clone(fields) })
}

// Delete removes a vendor account. A secret without accounts is deleted with the service's usual time to recover it.
func (w *Writer) Delete(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) error {
	return w.change(ctx, Name(w.stage, kind, owner, env), func(value accounts) { delete(value, vendor) })
}

// Fields reads the secret fields of a vendor account as they are now; empty when there are none.
func (w *Writer) Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) (Values, error) {
	value, _, err := read(ctx, w.client, Name(w.stage, kind, owner, env))
	return Values(value[vendor]), err
}

// Deleted tells whether a secret is scheduled for deletion: it is there, and nobody can read it.
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
		return fmt.Errorf("secret %s: %w", name, errForm)
	}
	switch found {
	case absent:
		in := &secretsmanager.CreateSecretInput{
			Name:         &name,
			Description:  aws.String("Accounts at vendors, written by svc."),
			SecretString: aws.String(string(encoded)),
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
		_, err = w.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
			SecretId:     &name,
			SecretString: aws.String(string(encoded)),
		})
	}
	if err != nil {
		return fmt.Errorf("write secret %s: %w", name, err)
	}
	return nil
}

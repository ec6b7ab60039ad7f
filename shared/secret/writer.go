// Package secret changes the secrets of accounts at vendors for operators (docs/decisions/operating.md#vendor-secrets).
package secret

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"

	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// ErrChanged reports that another operator has changed the same fields after the caller read them.
var ErrChanged = errors.New("another operator has changed the account meanwhile")

// Writer changes the secrets of a stage for operators. Simultaneous writers do not overwrite each other's fields.
type Writer struct {
	client *secretsmanager.Client
	stage  string
	Key    string // the KMS key that encrypts new secrets; empty: the key of AWS
}

// NewWriter returns a writer of a stage's secrets.
func NewWriter(client *secretsmanager.Client, stage string) *Writer {
	return &Writer{client: client, stage: stage}
}

// Change is a change of a vendor account: from the fields that the operator has read to those that the account gets.
type Change struct {
	Environment   project.Environment
	Vendor        string
	Before, After map[string]string // empty for an absent account
}

// merge makes the change in the stored accounts, and keeps what other operators have changed in other fields. merge
// returns ErrChanged where a field has a third value, or has gone.
func (c Change) merge(stored upstream.SecretAccounts) error {
	now, fields, names, lost := stored[c.Environment][c.Vendor], map[string]string{}, map[string]string{},
		upstream.SecretValues{}
	maps.Copy(fields, now)
	maps.Copy(names, c.Before)
	maps.Copy(names, c.After)
	for name := range names {
		before, after := c.Before[name], c.After[name]
		switch {
		case now[name] == after, now[name] != "" && before == after:
		case now[name] != before:
			lost[name] = ""
		default:
			if fields[name] = after; after == "" {
				delete(fields, name)
			}
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("%w: %s of %s in %s", ErrChanged, lost, c.Vendor, c.Environment)
	}
	if stored[c.Environment] == nil {
		stored[c.Environment] = map[string]map[string]string{}
	}
	if stored[c.Environment][c.Vendor] = fields; len(fields) == 0 {
		delete(stored[c.Environment], c.Vendor)
	}
	return nil
}

// Fields reads the secret fields of a vendor account without a cache; empty values: there is no such account.
func (w *Writer) Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment,
	vendor string) (upstream.SecretValues, error) {
	value, _, err := upstream.ReadSecret(ctx, w.client, upstream.SecretName(w.stage, kind, owner), nil)
	return upstream.SecretValues(value[env][vendor]), err
}

// Deleted reports whether a secret is scheduled for deletion and cannot be read.
func (w *Writer) Deleted(ctx context.Context, kind project.Kind, owner string) (bool, error) {
	_, found, err := upstream.ReadSecret(ctx, w.client, upstream.SecretName(w.stage, kind, owner), nil)
	return found == upstream.SecretDeleted, err
}

// Delete schedules the secret of an owner for deletion, where there is one: nothing reads the secret any more, and
// Secrets Manager deletes it after 30 days (its default). Delete returns the name of a secret that is scheduled.
func (w *Writer) Delete(ctx context.Context, kind project.Kind, owner string) (name string, err error) {
	name = upstream.SecretName(w.stage, kind, owner)
	_, found, err := upstream.ReadSecret(ctx, w.client, name, nil)
	switch found {
	case upstream.SecretPresent: // readable or not
		_, err = w.client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &name})
	case upstream.SecretAbsent:
		name = ""
	}
	return name, err
}

// tries are the largest numbers of attempts that end in an error of another operator's change, by its code. Before each
// ResourceExistsException a write took effect. A deletion can refuse one attempt, and a restored secret the next one.
var tries = map[string]int{"ResourceExistsException": 50, "InvalidRequestException": 3}

// Repeat repeats a write, a bounded number of times, while changes of other operators cause its errors.
func Repeat(write func() error) error {
	for failed := map[string]int{}; ; {
		err := write()
		refused, ok := errors.AsType[smithy.APIError](err)
		if !ok {
			return err
		}
		code := refused.ErrorCode()
		if failed[code]++; failed[code] >= tries[code] {
			return err
		}
	}
}

// seen is what earlier attempts of a Put have seen.
type seen struct {
	exists   bool   // the secret exists, perhaps without a value
	deleted  string // the version whose accounts ended with the deletion of the secret
	restored bool   // the Put has restored the secret
}

// Put makes changes of one owner's accounts, all or none, and keeps what other operators change at the same time. Put
// returns ErrChanged where another operator has changed the same fields. A secret that is scheduled for deletion is
// restored with the changed accounts alone, unless another operator writes between the restoration and the value.
func (w *Writer) Put(ctx context.Context, kind project.Kind, owner string, changes ...Change) error {
	name, before := upstream.SecretName(w.stage, kind, owner), seen{}
	err := Repeat(func() error { return w.put(ctx, name, changes, &before) })
	if err != nil && before.restored {
		return fmt.Errorf("secret %s was restored, perhaps with its old accounts; delete it before a repeat: %w", name, err)
	}
	return err
}

// put makes one attempt. The write of the value fails where the version that put has read is not the newest.
func (w *Writer) put(ctx context.Context, name string, changes []Change, before *seen) error {
	current, token := types.SecretVersionsListEntry{}, ""
	value, found, err := upstream.ReadSecret(ctx, w.client, name, nil)
	if err == nil && (found != upstream.SecretAbsent || before.exists) {
		if current, token, err = Next(ctx, w.client, name); err == nil {
			value, found, err = upstream.ReadSecret(ctx, w.client, name, current.VersionId) // the version that the token follows
		}
	}
	if err != nil {
		return err
	}
	if value == nil || aws.ToString(current.VersionId) == before.deleted {
		value = upstream.SecretAccounts{}
	}
	for _, c := range changes {
		if err := c.merge(value); err != nil {
			return fmt.Errorf("secret %s: %w", name, err)
		}
	}
	encoded, err := json.Marshal(value)
	if err == nil {
		err = w.write(ctx, name, found, token, string(encoded), before)
	}
	if err != nil {
		before.exists = true // after each error that Repeat repeats
		if _, scheduled := errors.AsType[*types.InvalidRequestException](err); scheduled {
			before.deleted = aws.ToString(current.VersionId)
		}
		return fmt.Errorf("write secret %s: %w", name, err)
	}
	return nil
}

func (w *Writer) write(ctx context.Context, name string, found upstream.SecretState, token, value string,
	before *seen) (err error) {
	if found == upstream.SecretAbsent {
		in := &secretsmanager.CreateSecretInput{Name: &name, SecretString: &value}
		if in.Description = new("Accounts at vendors, written by svc."); w.Key != "" {
			in.KmsKeyId = &w.Key
		}
		_, err = w.client.CreateSecret(ctx, in)
		return err
	}
	if found == upstream.SecretDeleted {
		_, err = w.client.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: &name})
		before.restored = err == nil
	}
	if err == nil {
		_, err = w.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
			SecretId: &name, SecretString: &value, ClientRequestToken: &token,
		})
	}
	return err
}

// Next returns the current version of a secret and the token of a write that follows that version. All writers that
// read a version have the same token, which becomes the ID of the next version, and Secrets Manager accepts a token
// with one value only ("PutSecretValue", API reference; docs/decisions/operating.md#secret-writers). Where an operator
// has moved AWSCURRENT back to a version with a successor, the token follows the newest successor.
func Next(
	ctx context.Context, client *secretsmanager.Client, name string,
) (current types.SecretVersionsListEntry, token string, err error) {
	ids := map[string]bool{}
	pages := secretsmanager.NewListSecretVersionIdsPaginator(client, &secretsmanager.ListSecretVersionIdsInput{
		SecretId: &name, IncludeDeprecated: new(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return current, "", fmt.Errorf("list the versions of secret %s: %w", name, err)
		}
		for _, v := range page.Versions {
			if ids[aws.ToString(v.VersionId)] = true; slices.Contains(v.VersionStages, "AWSCURRENT") {
				current = v
			}
		}
	}
	if current.VersionId == nil {
		return current, "", fmt.Errorf("secret %s has no current version: delete the secret, or give it the value {}", name)
	}
	for token = aws.ToString(current.VersionId); ids[token]; {
		sum := sha256.Sum256([]byte(token))
		token = hex.EncodeToString(sum[:])
	}
	return current, token, nil
}

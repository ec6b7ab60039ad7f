package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

// ManagedOwner is the owner of the service's own vendor accounts; any other owner is a project ID.
const ManagedOwner = "managed"

// Owner returns the owner of the account that an integration uses.
func Owner(mode project.Mode, projectID string) string {
	if mode == project.Managed {
		return ManagedOwner
	}
	return projectID
}

// SecretName returns the name of a secret: svc/<stage>/<kind>/<owner>/accounts.
func SecretName(stage string, kind project.Kind, owner string) string {
	return strings.Join([]string{"svc", stage, string(kind), owner, "accounts"}, "/")
}

// SecretValues are the secret fields of a vendor account by name, read-only. Printed, logged or encoded, they show
// names.
type SecretValues map[string]string

// Names returns the sorted names of the fields.
func (v SecretValues) Names() []string { return slices.Sorted(maps.Keys(v)) }

// Format prints the names for every verb, and in texts of package slog.
func (v SecretValues) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, v.Names()) }

// MarshalJSON encodes only the names.
func (v SecretValues) MarshalJSON() ([]byte, error) { return json.Marshal(v.Names()) }

// SecretAccounts is the value of a secret: the fields by environment and vendor.
type SecretAccounts map[project.Environment]map[string]map[string]string

// errFormat has no cause, because an error of the decoder may contain a piece of the value.
var errFormat = errors.New("the value is not a JSON object {environment: {vendor: {field: value}}}")

// ReadSecret reads a version of a secret, nil for the current one. ReadSecret returns an empty value for a secret that
// does not exist or is scheduled for deletion.
func ReadSecret(ctx context.Context, client *secretsmanager.Client, name string,
	version *string) (value SecretAccounts, found SecretState, err error) {
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name, VersionId: version})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return nil, SecretAbsent, nil
	}
	if _, scheduled := errors.AsType[*types.InvalidRequestException](err); scheduled {
		return nil, SecretDeleted, nil
	}
	if err != nil {
		return nil, SecretAbsent, fmt.Errorf("read secret %s: %w", name, err)
	}
	if json.Unmarshal([]byte(aws.ToString(out.SecretString)), &value) != nil {
		return nil, SecretPresent, fmt.Errorf("secret %s: %w", name, errFormat)
	}
	return value, SecretPresent, nil
}

// SecretState is the state of a secret in Secrets Manager.
type SecretState int

// The states of a secret.
const (
	SecretAbsent  SecretState = iota
	SecretDeleted             // scheduled for deletion: svc can restore the secret, and no program can read it
	SecretPresent
)

// NewSecretsClient returns a client for Secrets Manager, which responds more slowly than DynamoDB.
func NewSecretsClient(cfg aws.Config, options ...func(*secretsmanager.Options)) *secretsmanager.Client {
	return secretsmanager.NewFromConfig(cfg, append([]func(*secretsmanager.Options){func(o *secretsmanager.Options) {
		o.HTTPClient = dynamo.HTTPClient(2 * dynamo.AttemptTimeout)
		o.Retryer = dynamo.Retryer(dynamo.Backoff)
		o.RetryMaxAttempts = dynamo.Attempts
	}}, options...)...)
}

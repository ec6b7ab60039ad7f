// Package secret stores the accounts at vendors in AWS Secrets Manager: one secret for each stage, kind of integration
// and owner (docs/decisions/operating.md#vendor-secrets). The value is a JSON object {environment: {vendor: {field:
// value}}}.
package secret

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

	"svcapi/shared/project"
)

// Managed is the owner of the service's own vendor accounts; any other owner is a project ID.
const Managed = "managed"

// Owner returns the owner of the account that an integration uses.
func Owner(mode project.Mode, projectID string) string {
	if mode == project.Managed {
		return Managed
	}
	return projectID
}

// Name returns the name of a secret: svc/<stage>/<kind>/<owner>/accounts.
func Name(stage string, kind project.Kind, owner string) string {
	return strings.Join([]string{"svc", stage, string(kind), owner, "accounts"}, "/")
}

// Values are the secret fields of a vendor account by name, read-only. Printed, logged or encoded, they show names.
type Values map[string]string

// Names returns the sorted names of the fields.
func (v Values) Names() []string { return slices.Sorted(maps.Keys(v)) }

// Format prints the names for every verb, and in texts of package slog.
func (v Values) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, v.Names()) }

// MarshalJSON encodes only the names.
func (v Values) MarshalJSON() ([]byte, error) { return json.Marshal(v.Names()) }

// accounts is the value of a secret: the fields by environment and vendor.
type accounts map[project.Environment]map[string]map[string]string

// errFormat has no cause, because an error of the decoder may contain a piece of the value.
var errFormat = errors.New("the value is not a JSON object {environment: {vendor: {field: value}}}")

// read reads a version of a secret, nil for the current one. read returns an empty value for a secret that does not
// exist or is scheduled for deletion.
func read(ctx context.Context, client *secretsmanager.Client, name string,
	version *string) (value accounts, found state, err error) {
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name, VersionId: version})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return nil, absent, nil
	}
	if _, scheduled := errors.AsType[*types.InvalidRequestException](err); scheduled {
		return nil, deleted, nil
	}
	if err != nil {
		return nil, absent, fmt.Errorf("read secret %s: %w", name, err)
	}
	if json.Unmarshal([]byte(aws.ToString(out.SecretString)), &value) != nil {
		return nil, present, fmt.Errorf("secret %s: %w", name, errFormat)
	}
	return value, present, nil
}

// state is the state of a secret in Secrets Manager.
type state int

const (
	absent  state = iota
	deleted       // scheduled for deletion: svc can restore the secret, and no program can read it
	present
)

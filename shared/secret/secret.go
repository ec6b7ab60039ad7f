// Package secret stores the accounts at vendors in AWS Secrets Manager: one secret for each stage, kind of integration and
// owner (docs/decisions.md#vendor-secrets). The value of a secret is a JSON object {environment: {vendor: {field: value}}}.
package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// String returns the names.
func (v Values) String() string { return "[" + strings.Join(v.Names(), " ") + "]" }

// Format prints the names for every verb.
func (v Values) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, v.String()) }

// LogValue returns the names for structured logs.
func (v Values) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalJSON encodes only the names.
func (v Values) MarshalJSON() ([]byte, error) { return json.Marshal(v.Names()) }

// accounts is the value of a secret: the fields by environment and vendor.
type accounts map[project.Environment]map[string]map[string]string

// errFormat has no cause, because an error of the decoder may contain a piece of the value.
var errFormat = errors.New("the value is not a JSON object {environment: {vendor: {field: value}}}")

// read reads a secret. read returns an empty value for a secret that does not exist or is scheduled for deletion. Release 1.0.0
// wrote a secret for each environment: read returns the values of both where the secret of both is absent. Where one of these
// is deleted, a writer may have moved both since the first read, and read looks for the secret again.
func read(ctx context.Context, client *secretsmanager.Client, name string) (accounts, state, error) {
	var value accounts
	found, err := readValue(ctx, client, name, &value)
	if found != absent || err != nil {
		return value, found, err
	}
	moved := false
	for _, env := range project.Environments() {
		var old map[string]map[string]string
		found, err := readValue(ctx, client, oldName(name, env), &old)
		if err != nil {
			return nil, absent, err
		}
		moved = moved || found == deleted
		if found == present && len(old) > 0 {
			if value == nil {
				value = accounts{}
			}
			value[env] = old
		}
	}
	if moved {
		var both accounts
		if found, err := readValue(ctx, client, name, &both); found != absent || err != nil {
			return both, found, err
		}
	}
	return value, absent, nil
}

// oldName returns the name under which release 1.0.0 stored one environment of a secret.
func oldName(name string, env project.Environment) string {
	return strings.TrimSuffix(name, "accounts") + string(env)
}

// readValue decodes the value of the secret with that name, where the secret is present.
func readValue(ctx context.Context, client *secretsmanager.Client, name string, value any) (state, error) {
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return absent, nil
	}
	if _, scheduled := errors.AsType[*types.InvalidRequestException](err); scheduled {
		return deleted, nil
	}
	if err != nil {
		return absent, fmt.Errorf("read secret %s: %w", name, err)
	}
	if json.Unmarshal([]byte(aws.ToString(out.SecretString)), value) != nil {
		return present, fmt.Errorf("secret %s: %w", name, errFormat)
	}
	return present, nil
}

// state is the state of a secret in Secrets Manager.
type state int

const (
	absent  state = iota
	deleted       // scheduled for deletion: svc can restore the secret, and no program can read it
	present
)

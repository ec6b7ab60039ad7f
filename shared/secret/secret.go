// Package secret keeps the accounts at vendors in AWS Secrets Manager: one
// secret for each stage, kind of integration, owner and environment, whose
// value is one JSON object {vendor: {field: value}}.
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

// Owner tells whose account an integration uses.
func Owner(mode project.Mode, projectID string) string {
	if mode == project.Managed {
		return Managed
	}
	return projectID
}

// Name is the secret's name: svc/<stage>/<kind>/<owner>/<environment>.
func Name(stage string, kind project.Kind, owner string, env project.Environment) string {
	return strings.Join([]string{"svc", stage, string(kind), owner, string(env)}, "/")
}

// Values are the secret fields of one vendor account, by name. However they are
// printed, logged or encoded, only the names show. Not to be changed by readers.
type Values map[string]string

// Names lists the fields, sorted.
func (v Values) Names() []string { return slices.Sorted(maps.Keys(v)) }

// String lists the names.
func (v Values) String() string { return "[" + strings.Join(v.Names(), " ") + "]" }

// Format prints the names for every verb.
func (v Values) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, v.String()) }

// LogValue gives the names to structured logs.
func (v Values) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalJSON encodes the names alone.
func (v Values) MarshalJSON() ([]byte, error) { return json.Marshal(v.Names()) }

// accounts is the value of a secret.
type accounts map[string]map[string]string

// errForm has no cause: an error of the decoder may hold a piece of the value.
var errForm = errors.New("the value is no JSON object of the form {vendor: {field: value}}")

// read reads a secret. One that does not exist, or is scheduled for deletion, is empty without an error.
func read(ctx context.Context, client *secretsmanager.Client, name string) (accounts, state, error) {
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	var missing *types.ResourceNotFoundException
	var unusable *types.InvalidRequestException
	switch {
	case errors.As(err, &missing):
		return nil, absent, nil
	case errors.As(err, &unusable):
		return nil, deleted, nil
	case err != nil:
		return nil, absent, fmt.Errorf("read secret %s: %w", name, err)
	}
	var value accounts
	if json.Unmarshal([]byte(aws.ToString(out.SecretString)), &value) != nil {
		return nil, present, fmt.Errorf("secret %s: %w", name, errForm)
	}
	return value, present, nil
}

// state is what Secrets Manager holds under a name.
type state int

const (
	absent  state = iota // nothing
	deleted              // scheduled for deletion: it can be restored, not read
	present
)

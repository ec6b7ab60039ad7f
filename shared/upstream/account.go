package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"svcapi/shared/project"
)

// Field is one setting or one secret field of a vendor.
type Field struct {
	Name        string `json:"name"`        // as in the integration's settings or in the secret
	Description string `json:"description"` // for operators
	Required    bool   `json:"required"`
	Pattern     string `json:"-"` // regular expression that matches the complete value; empty for any text
}

// Spec describes a vendor and its fields, as one row of a function's vendor table.
type Spec struct {
	Name     string  `json:"name"`     // in integrations: lower case, no spaces
	Title    string  `json:"title"`    // as the vendor writes the name
	Endpoint string  `json:"endpoint"` // base URL for integrations without the setting "endpoint"
	Settings []Field `json:"settings"`
	Secrets  []Field `json:"secrets"`
	// ManagedAction is the IAM action with which the function's role sends for a Managed integration, which then has no
	// secret fields. Empty: a Managed integration needs the secret fields, too.
	ManagedAction string `json:"managed_action"`
}

// EndpointSetting is a setting of every vendor: the base URL of its API.
const EndpointSetting = "endpoint"

// Account is a project's integration with a vendor, with its secret fields.
type Account struct {
	Project     string // the project's ID
	Integration project.Integration
	Endpoint    string            // without a trailing slash
	Settings    map[string]string // of the integration
	Secrets     SecretValues
	Owner       string // of the secret: the project's ID, or ManagedOwner
}

// Redact returns the account's secret values, which no text may contain.
func (a Account) Redact() []string { return slices.Collect(maps.Values(a.Secrets)) }

// ErrIncomplete reports an integration with an unknown vendor, or with a missing or invalid setting or secret field.
var ErrIncomplete = errors.New("incomplete integration")

// Secrets reads the secret fields of a vendor. The functions use a cache, and svc uses the writer.
type Secrets interface {
	Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment,
		vendor string) (SecretValues, error)
}

// Resolve returns the account of an integration. The error for an incomplete integration wraps ErrIncomplete.
func (c *Client) Resolve(ctx context.Context, projectID string, in project.Integration, spec *Spec,
	secrets Secrets) (Account, error) {
	account := Account{Project: projectID, Integration: in, Settings: in.Settings, Owner: Owner(in.Mode, projectID)}
	account.Endpoint = strings.TrimRight(cmp.Or(in.Settings[EndpointSetting], spec.Endpoint), "/")
	if account.Endpoint != "" {
		if err := c.validateEndpoint(account.Endpoint); err != nil {
			return Account{}, fmt.Errorf("%w: %s: %w", ErrIncomplete, in.Vendor, err)
		}
	}
	needsSecret := len(spec.Secrets) > 0 && (in.Mode != project.Managed || spec.ManagedAction == "")
	if needsSecret {
		fields, err := secrets.Fields(ctx, in.Kind, account.Owner, in.Environment, in.Vendor)
		if err != nil {
			return Account{}, fmt.Errorf("read secret of %s: %w", in.Vendor, err)
		}
		account.Secrets = fields
	}
	if missing := Missing(spec.Settings, account.Settings); len(missing) > 0 {
		return Account{}, fmt.Errorf("%w: %s lacks settings %v", ErrIncomplete, in.Vendor, missing)
	}
	if missing := Missing(spec.Secrets, account.Secrets); needsSecret && len(missing) > 0 {
		return Account{}, fmt.Errorf("%w: %s lacks secret fields %v", ErrIncomplete, in.Vendor, missing)
	}
	return account, nil
}

// Missing returns the sorted names of the required fields without a value.
func Missing(fields []Field, values map[string]string) []string {
	var missing []string
	for _, f := range fields {
		if f.Required && values[f.Name] == "" {
			missing = append(missing, f.Name)
		}
	}
	slices.Sort(missing)
	return missing
}

// validateEndpoint accepts https URLs without user, query and fragment, and also http URLs on the local stack.
func (c *Client) validateEndpoint(endpoint string) error {
	return ValidateEndpoint(endpoint, c.cfg.Local)
}

// ValidateEndpoint returns the reason why an integration cannot have the endpoint
// (docs/decisions/operating.md#vendor-endpoints). The local stack also takes http.
func ValidateEndpoint(endpoint string, local bool) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("endpoint is not a plain URL")
	case u.Scheme == "https", u.Scheme == "http" && local:
		return nil
	}
	return errors.New("endpoint is not https")
}

// Accounts returns the accounts of the complete integrations in their order, and ErrIncomplete where there is none.
func (c *Client) Accounts(ctx context.Context, projectID string, integrations []project.Integration,
	find func(vendor string) *Spec, secrets Secrets) ([]Account, error) {
	var accounts []Account
	var incomplete []error
	for _, in := range integrations {
		spec := find(in.Vendor)
		if spec == nil {
			incomplete = append(incomplete, fmt.Errorf("%w: vendor %s is unknown", ErrIncomplete, in.Vendor))
			continue
		}
		account, err := c.Resolve(ctx, projectID, in, spec, secrets)
		switch {
		case errors.Is(err, ErrIncomplete):
			incomplete = append(incomplete, err)
		case err != nil:
			return nil, err
		default:
			accounts = append(accounts, account)
		}
	}
	if len(accounts) == 0 {
		return nil, cmp.Or(errors.Join(incomplete...), ErrIncomplete)
	}
	return accounts, nil
}

package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"svcapi/shared/project"
	"svcapi/shared/secret"
)

// Field is one setting or one secret field of a vendor.
type Field struct {
	Name        string // as in the integration's settings or in the secret
	Description string // for operators
	Required    bool
	Pattern     string // regular expression that a value matches whole; empty: any text
}

// Spec is what a vendor needs, one row of a function's vendor table.
type Spec struct {
	Name     string // as integrations name it: lower case, no spaces
	Title    string // as the vendor writes it
	Endpoint string // base URL unless the integration's setting "endpoint" says otherwise
	Settings []Field
	Secrets  []Field
	// ManagedWithoutSecret says that a Managed integration authenticates by the
	// function's own role.
	ManagedWithoutSecret bool
}

// EndpointSetting is the setting that every vendor takes: the base URL of its API.
const EndpointSetting = "endpoint"

// Account is a vendor as one project uses it: its integration with the secret.
type Account struct {
	Project     string // its ID
	Integration project.Integration
	Endpoint    string            // without a trailing slash
	Settings    map[string]string // those of the integration
	Secrets     secret.Values
	Owner       string // whose secret it is: the project's ID, or secret.Managed
}

// Redact are the account's secret values, to be kept out of every text.
func (a Account) Redact() []string {
	return slices.Collect(maps.Values(a.Secrets))
}

// ErrIncomplete says that an integration cannot be used as it is: its vendor
// is unknown, or a setting or secret field is missing or malformed.
var ErrIncomplete = errors.New("incomplete integration")

// Secrets finds the secret fields of a vendor: the functions' cache does, and
// the operator's writer.
type Secrets interface {
	Fields(ctx context.Context, kind project.Kind, owner string, env project.Environment, vendor string) (secret.Values, error)
}

// Resolve makes an account of an integration. The error wraps ErrIncomplete
// where the integration is the reason.
func (c *Client) Resolve(ctx context.Context, projectID string, in project.Integration, spec *Spec, secrets Secrets) (Account, error) {
	account := Account{Project: projectID, Integration: in, Endpoint: spec.Endpoint, Settings: in.Settings, Owner: secret.Owner(in.Mode, projectID)}
	if own := in.Settings[EndpointSetting]; own != "" {
		account.Endpoint = own
	}
	account.Endpoint = strings.TrimRight(account.Endpoint, "/")
	if account.Endpoint != "" {
		if err := c.checkEndpoint(account.Endpoint); err != nil {
			return Account{}, fmt.Errorf("%w: %s: %w", ErrIncomplete, in.Vendor, err)
		}
	}
	needsSecret := len(spec.Secrets) > 0 && (in.Mode != project.Managed || !spec.ManagedWithoutSecret)
	if needsSecret {
		fields, err := secrets.Fields(ctx, in.Kind, account.Owner, in.Environment, in.Vendor)
		if err != nil {
			return Account{}, fmt.Errorf("read secret of %s: %w", in.Vendor, err)
		}
		account.Secrets = fields
	}
	if missing := absent(spec.Settings, account.Settings); len(missing) > 0 {
		return Account{}, fmt.Errorf("%w: %s lacks settings %v", ErrIncomplete, in.Vendor, missing)
	}
	if missing := absent(spec.Secrets, account.Secrets); needsSecret && len(missing) > 0 {
		return Account{}, fmt.Errorf("%w: %s lacks secret fields %v", ErrIncomplete, in.Vendor, missing)
	}
	return account, nil
}

func absent(fields []Field, values map[string]string) []string {
	var missing []string
	for _, f := range fields {
		if f.Required && values[f.Name] == "" {
			missing = append(missing, f.Name)
		}
	}
	slices.Sort(missing)
	return missing
}

// checkEndpoint accepts https URLs without user, query or fragment, and http
// ones on the local stack.
func (c *Client) checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("endpoint is no plain URL")
	case u.Scheme == "https", u.Scheme == "http" && c.cfg.Local:
		return nil
	}
	return errors.New("endpoint is not https")
}

// Accounts resolves integrations in their order, each with the spec that find
// knows of its vendor. Incomplete ones are left out; the error wraps
// ErrIncomplete when none is left.
func (c *Client) Accounts(ctx context.Context, projectID string, integrations []project.Integration, find func(vendor string) *Spec, secrets Secrets) ([]Account, error) {
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
		return nil, errors.Join(incomplete...)
	}
	return accounts, nil
}

// WithFresh makes a call with an account. Where the vendor refuses the
// credentials and the secret has changed since it was read (a rotation), the
// call is made once more with the new one.
func WithFresh[T any](ctx context.Context, secrets *secret.Cache, account Account, call func(Account) (T, error)) (T, error) {
	result, err := call(account)
	if err == nil || ClassOf(err) != CredentialsRefused || len(account.Secrets) == 0 {
		return result, err
	}
	in := account.Integration
	fresh, changed, readErr := secrets.Refresh(ctx, in.Kind, account.Owner, in.Environment, in.Vendor, account.Secrets)
	if readErr != nil || !changed {
		return result, err
	}
	account.Secrets = fresh
	return call(account)
}

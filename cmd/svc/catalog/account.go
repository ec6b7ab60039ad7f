package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Account names the secret fields of one owner's account at a vendor.
type Account struct {
	Offer       Offer
	Owner       string // secret.Managed for the service itself, or a project's ID
	Environment project.Environment
}

// Name returns the name of the secret that holds the fields.
func (t Account) Name(s *app.Stack) string {
	return secret.Name(s.Stage, t.Offer.Kind, t.Owner)
}

// Stored reads the stored fields.
func (t Account) Stored(ctx context.Context, s *app.Stack) (secret.Values, error) {
	return s.Secrets.Fields(ctx, t.Offer.Kind, t.Owner, t.Environment, t.Offer.Spec.Name)
}

// Put stores the fields.
func (t Account) Put(ctx context.Context, s *app.Stack, fields secret.Values) error {
	return s.Secrets.Put(ctx, t.Offer.Kind, t.Owner, t.Environment, t.Offer.Spec.Name, fields)
}

// AccountView is an account in the format for programs, without the values of its fields.
type AccountView struct {
	Secret string   `json:"secret"`
	Vendor string   `json:"vendor"`
	Fields []string `json:"fields"`
}

// View returns the account with its field names, for programs and for people.
func (t Account) View(s *app.Stack, fields secret.Values) (AccountView, [][]string) {
	v := AccountView{t.Name(s), t.Offer.Spec.Name, fields.Names()}
	return v, [][]string{{"Secret", v.Secret}, {"Vendor", v.Vendor}, {"Fields", strings.Join(v.Fields, ", ")}}
}

// Staged are new secret fields of an account that are not yet stored.
type Staged secret.Values

// Fields returns the staged fields for every account.
func (s Staged) Fields(context.Context, project.Kind, string, project.Environment, string) (secret.Values, error) {
	return secret.Values(s), nil
}

// maxSecretFile is the largest value of Secrets Manager, in bytes.
const maxSecretFile = 64 << 10

// ReadSecrets returns the stored secret fields of a vendor with new values from a file, from standard input ("-") or from
// a terminal. ReadSecrets asks at the terminal when ask is set or a required field is missing. An empty value in a file
// removes the field. No value is an argument of a command or occurs in an error.
func ReadSecrets(ctx context.Context, a *app.App, spec upstream.Spec, stored secret.Values, file string, ask bool) (fields secret.Values, changed bool, err error) {
	var given map[string]string
	switch {
	case file != "":
		given, err = readSecretFile(a, file)
	case a.Hidden != nil && (ask || len(upstream.Missing(spec.Secrets, stored)) > 0):
		given, err = askSecrets(ctx, a, spec, stored)
	}
	if err != nil {
		return nil, false, err
	}
	fields = secret.Values{}
	maps.Copy(fields, stored)
	for name, value := range given {
		if find(spec.Secrets, name) == nil {
			return nil, false, app.Usagef("%s has no secret field %q; it has %s", spec.Title, name, names(spec.Secrets))
		}
		if value == "" {
			delete(fields, name)
		} else {
			fields[name] = value
		}
	}
	return fields, !maps.Equal(fields, stored), nil
}

func readSecretFile(a *app.App, file string) (map[string]string, error) {
	from, err := a.Read(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	if file == "-" {
		file = "standard input"
	}
	content, err := io.ReadAll(io.LimitReader(from, maxSecretFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var given map[string]string
	if len(content) > maxSecretFile || json.Unmarshal(content, &given) != nil || given == nil {
		return nil, app.Usagef(`%s must be a JSON object of texts, such as {"api_key": "..."}`, file)
	}
	return given, nil
}

func askSecrets(ctx context.Context, a *app.App, spec upstream.Spec, stored secret.Values) (map[string]string, error) {
	given := map[string]string{}
	for _, f := range spec.Secrets {
		keep := "Enter: none"
		if stored[f.Name] != "" {
			keep = "Enter: as stored"
		} else if f.Required {
			keep = "required"
		}
		fmt.Fprintf(a.Errs, "%s %s (%s; %s): ", spec.Title, f.Name, f.Description, keep)
		value, err := a.Hidden(ctx)
		fmt.Fprintln(a.Errs)
		if err != nil {
			return nil, err
		}
		if value != "" {
			given[f.Name] = value
		}
	}
	return given, nil
}

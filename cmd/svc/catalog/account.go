package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	sms "svcapi/functions/sms/vendors"
	lookup "svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Account names the secret fields of one owner's account at a vendor.
type Account struct {
	Offer       Offer
	Owner       string // upstream.ManagedOwner for the service itself, or a project's ID
	Environment project.Environment
	// Stored are the fields before a change, and Fields after it.
	Stored, Fields upstream.SecretValues
	// Tried is the result of a test of the fields.
	Tried string
}

// ReadAccount reads the stored fields of an owner's account.
func ReadAccount(ctx context.Context, s *app.Stack, o Offer, owner string, env project.Environment) (Account, error) {
	stored, err := s.Secrets.Fields(ctx, o.Kind, owner, env, o.Spec.Name)
	return Account{o, owner, env, stored, stored, "not tried"}, err
}

// Changed reports whether the fields differ from the stored fields.
func (t *Account) Changed() bool { return !maps.Equal(t.Stored, t.Fields) }

// Put stores the changed fields of one owner's accounts, all or none.
func Put(ctx context.Context, s *app.Stack, accounts []Account) error {
	var changes []secret.Change
	for _, t := range accounts {
		if t.Changed() {
			c := secret.Change{Environment: t.Environment, Vendor: t.Offer.Spec.Name, Before: t.Stored, After: t.Fields}
			changes = append(changes, c)
		}
	}
	if changes == nil {
		return nil
	}
	return s.Secrets.Put(ctx, accounts[0].Offer.Kind, accounts[0].Owner, changes...)
}

// Staged are new secret fields of an account that are not yet stored.
type Staged upstream.SecretValues

// Fields returns the staged fields for every account.
func (s Staged) Fields(context.Context, project.Kind, string, project.Environment,
	string) (upstream.SecretValues, error) {
	return upstream.SecretValues(s), nil
}

// maxSecretFile is the largest value of Secrets Manager, in bytes.
const maxSecretFile = 64 << 10

// SecretInput reads new secret fields of accounts from a file, from standard input ("-") or from a terminal. No value
// is an argument of a command or occurs in an error.
type SecretInput struct {
	File  string
	given map[string]string // of the file; nil without one
}

// AddFlag adds the flag that names the file.
func (in *SecretInput) AddFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&in.File, "secrets", "", "file with a JSON object of the secret fields, - for standard input")
}

// Parse reads the file, if one is given.
func (in *SecretInput) Parse(a *app.App, spec upstream.Spec) error {
	if in.File == "" {
		return nil
	}
	content, err := a.Read(in.File, maxSecretFile)
	if err != nil {
		return err
	}
	if json.Unmarshal(content, &in.given) != nil || in.given == nil {
		return app.Usagef(`%s must be a JSON object of texts, such as {"api_key": "..."}`, in.File)
	}
	for name := range in.given {
		if find(spec.Secrets, name) == nil {
			return app.Usagef("%s has no secret field %q; it has %s", spec.Title, name, names(spec.Secrets))
		}
	}
	return nil
}

// Read sets the new fields of accounts at one vendor. Without a file Read asks at the terminal when ask is set or a
// required field is missing. An empty value in a file removes the field.
func (in *SecretInput) Read(ctx context.Context, s *app.Stack, accounts []Account, ask bool) (err error) {
	spec := accounts[0].Offer.Spec
	missing := func(t Account) bool { return len(upstream.Missing(spec.Secrets, t.Stored)) > 0 }
	given := in.given
	if given == nil && s.Hidden != nil && (ask || slices.ContainsFunc(accounts, missing)) {
		given, err = askSecrets(ctx, s, spec, accounts)
	}
	if err != nil {
		return err
	}
	for i := range accounts {
		fields := upstream.SecretValues{}
		maps.Copy(fields, accounts[i].Stored)
		for name, value := range given {
			if fields[name] = value; value == "" {
				delete(fields, name)
			}
		}
		accounts[i].Fields = fields
	}
	return nil
}

func askSecrets(ctx context.Context, s *app.Stack, spec upstream.Spec, accounts []Account) (map[string]string, error) {
	given := map[string]string{}
	for _, f := range spec.Secrets {
		keep := "Enter: as stored"
		if slices.ContainsFunc(accounts, func(t Account) bool { return t.Stored[f.Name] == "" }) {
			if keep = "Enter: none"; f.Required {
				keep = "required"
			}
		}
		fmt.Fprintf(s.Errs, "%s %s (%s; %s): ", spec.Title, f.Name, f.Description, keep)
		value, err := s.Hidden(ctx)
		fmt.Fprintln(s.Errs)
		if err != nil {
			return nil, err
		}
		if value != "" {
			given[f.Name] = value
		}
	}
	return given, nil
}

// anyAddress is the address of a test look-up: a public resolver.
var anyAddress = netip.MustParseAddr("9.9.9.9")

// noTest is the result for an account at a vendor without a call that has no effect.
const noTest = "complete; the vendor has no call that tests an account without sending anything"

// TestAccount makes one call with an account at a vendor of Offers, and returns the result for the operator. The call
// sends and changes nothing.
func TestAccount(ctx context.Context, s *app.Stack, account upstream.Account) (string, error) {
	switch account.Integration.Kind {
	case project.SMS:
		balancer, ok := sms.NewTable(s.AWS).Find(account.Integration.Vendor).New(s.Vendors, account).(sms.Balancer)
		if !ok {
			return noTest, nil
		}
		balance, err := balancer.Balance(ctx)
		return "balance at the vendor: " + balance, err
	case project.Security:
		return lookUp(ctx, s, lookup.Risks(), account)
	case project.Location:
		return lookUp(ctx, s, lookup.Places(), account)
	}
	return noTest, nil
}

// lookUp makes one look-up at a vendor.
func lookUp[T any](ctx context.Context, s *app.Stack, rows []lookup.Vendor[T],
	account upstream.Account) (string, error) {
	vendor := lookup.Find(rows, account.Integration.Vendor)
	if vendor.OnDisk() {
		return noTest, nil
	}
	_, err := vendor.Ask(ctx, lookup.Caller{Client: s.Vendors, Account: account}, anyAddress)
	if errors.Is(err, lookup.ErrUnknown) {
		err = nil
	}
	return "the vendor responds to look-ups", err
}

// CheckRight compares the origination identity of a Managed integration without secrets with the identities that the
// stack lets the function's role send from. CheckRight returns what the role lacks, and an error where that cannot be
// found out.
func CheckRight(ctx context.Context, s *app.Stack, i project.Integration) (lacks string, err error) {
	o, err := Find(string(i.Kind), i.Vendor)
	action := o.Spec.ManagedAction
	if err != nil || s.Local || i.Mode != project.Managed || action == "" {
		return "", err
	}
	stack, err := s.DeployedStack(ctx)
	if err != nil {
		return "", err
	}
	function, err := arn.Parse(stack.Outputs["SmsFunctionArn"])
	if err != nil {
		return "", errors.New("the stack " + s.StackName() + " does not name the function " + string(i.Kind))
	}
	identity := sms.OriginationIdentity(i.Settings, s.AWS.Region, function)
	if identity == "" {
		return "", errors.New("sender_id is a phone number, and no ARN of one")
	}
	if slices.Contains(strings.Split(stack.Parameters["SmsOriginationIdentityArns"], ","), identity) {
		return "", nil
	}
	return fmt.Sprintf("the role of the function lacks %s on %s: SmsOriginationIdentityArns does not name it",
		action, identity), nil
}

// NotChecked is the beginning of the text about a right that CheckRight could not check.
const NotChecked = "the right of the function's role was not checked: "

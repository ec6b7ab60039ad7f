// Package catalog holds what the commands of svc share about vendors: the list of vendors, their accounts, and the
// integrations of projects.
package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	sms "svcapi/functions/sms/vendors"
	lookup "svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates/sources"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// Offer is one vendor that integrations of a kind can name.
type Offer struct {
	Kind project.Kind
	Spec upstream.Spec
	// BuiltIn vendors are the service itself, its database files or the test values, and have no endpoint.
	BuiltIn bool
}

// Offers returns every vendor of the tables of the functions.
func Offers() []Offer {
	var all []Offer
	for _, v := range sms.NewTable(aws.Config{}) {
		all = append(all, Offer{Kind: project.SMS, Spec: v.Spec, BuiltIn: v.Name == project.TestVendor})
	}
	for _, v := range lookup.Risks() {
		all = append(all, Offer{Kind: project.Security, Spec: v.Spec, BuiltIn: v.OnDisk()})
	}
	for _, v := range lookup.Places() {
		all = append(all, Offer{Kind: project.Location, Spec: v.Spec, BuiltIn: v.OnDisk()})
	}
	for _, v := range sources.Table() {
		all = append(all, Offer{Kind: project.Currency, Spec: v.Spec})
	}
	for _, kind := range []project.Kind{project.Barcode, project.PDF} {
		all = append(all, Offer{Kind: kind, Spec: upstream.Spec{Name: "builtin", Title: "Built in"}, BuiltIn: true})
	}
	return all
}

// ValidateKind returns an error for an unknown kind.
func ValidateKind(kind string) error {
	if kind == "qrcode" || kind == "qr" {
		return app.Usagef("QR codes belong to the kind barcode, and there is no kind %q", kind)
	}
	if !slices.Contains(admin.Kinds(), project.Kind(kind)) {
		return app.Usagef("unknown kind %q; the kinds are %s", kind, strings.Join(kinds(nil), ", "))
	}
	return nil
}

// Find returns the vendor that the operator names, or the only vendor of a kind without a name.
func Find(kind, vendor string) (Offer, error) {
	if err := ValidateKind(kind); err != nil {
		return Offer{}, err
	}
	offers := slices.DeleteFunc(Offers(), func(o Offer) bool { return string(o.Kind) != kind })
	for _, o := range offers {
		if o.Spec.Name == vendor || vendor == "" && len(offers) == 1 {
			return o, nil
		}
	}
	problem := "missing VENDOR"
	if vendor != "" {
		problem = fmt.Sprintf("no vendor %q", vendor)
	}
	return Offer{}, app.Usagef("%s; the vendors of kind %s are %s", problem, kind,
		strings.Join(vendors([]string{kind}), ", "))
}

// FindByArguments returns the vendor of the arguments KIND and VENDOR. VENDOR may be absent.
func FindByArguments(args []string) (Offer, error) { return Find(args[0], strings.Join(args[1:], "")) }

// ValidateArguments returns an error for an unknown KIND or VENDOR among the arguments. Both may be absent.
func ValidateArguments(args []string) (err error) {
	switch len(args) {
	case 1:
		err = ValidateKind(args[0])
	case 2:
		_, err = Find(args[0], args[1])
	}
	return err
}

// Values returns the kinds, and the vendors of the kind before them or of SMS, for "svc completion".
func Values() map[string]func(before []string) []string {
	return map[string]func([]string) []string{"KIND": kinds, "VENDOR": vendors}
}

func kinds([]string) (names []string) {
	for _, kind := range admin.Kinds() {
		names = append(names, string(kind))
	}
	return names
}

func vendors(before []string) (names []string) {
	kind := project.Kind(before[len(before)-1])
	for _, o := range Offers() {
		if o.Kind == kind || o.Kind == project.SMS && ValidateKind(string(kind)) != nil {
			names = append(names, o.Spec.Name)
		}
	}
	return names
}

// Settings returns the vendor's settings and the endpoint, which is a setting of every remote vendor.
func (o Offer) Settings() []upstream.Field {
	if o.BuiltIn || find(o.Spec.Settings, upstream.EndpointSetting) != nil {
		return o.Spec.Settings
	}
	return append(slices.Clip(o.Spec.Settings),
		upstream.Field{Name: upstream.EndpointSetting, Description: "base URL instead of the vendor's, https"})
}

// Apply returns settings with the changes of NAME=VALUE texts.
func (o Offer) Apply(before map[string]string, given []string) (map[string]string, error) {
	after := map[string]string{}
	maps.Copy(after, before)
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, app.Usagef("--setting is NAME=VALUE, not %q", text)
		}
		field := find(o.Settings(), name)
		if field == nil && find(o.Spec.Secrets, name) != nil {
			return nil, app.Usagef("%s is a secret field: give it at the prompt or with --secrets, never as an argument", name)
		}
		if field == nil {
			return nil, app.Usagef("%s has no setting %q; it has %s", o.Spec.Title, name, names(o.Settings()))
		}
		if value != "" && field.Pattern != "" && !regexp.MustCompile(field.Pattern).MatchString(value) {
			return nil, app.Usagef("%s cannot be %q; it is: %s", name, value, field.Description)
		}
		if after[name] = value; value == "" {
			delete(after, name)
		}
	}
	return after, nil
}

// WithSandbox adds the sandbox's endpoint to settings without an endpoint on the local stack, and reports whether the
// endpoint was added.
func (o Offer) WithSandbox(s *app.Stack, settings map[string]string) (map[string]string, bool) {
	if s.Running.SandboxURL == "" || o.BuiltIn || settings[upstream.EndpointSetting] != "" {
		return settings, false
	}
	with := map[string]string{}
	maps.Copy(with, settings)
	with[upstream.EndpointSetting] = s.Running.SandboxURL + "/" + o.Spec.Name
	return with, true
}

// find returns the field with that name, or nil.
func find(fields []upstream.Field, name string) *upstream.Field {
	if at := slices.IndexFunc(fields, func(f upstream.Field) bool { return f.Name == name }); at >= 0 {
		return &fields[at]
	}
	return nil
}

func names(fields []upstream.Field) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = f.Name
	}
	return strings.Join(texts, ", ")
}

// View is an integration in the format for programs.
type View struct {
	project.Integration
	// Incomplete is the reason why the integration cannot be used; empty for a complete integration.
	Incomplete string    `json:"incomplete"`
	Updated    time.Time `json:"updated"`
	SetAside   bool      `json:"set_aside"` // while the vendor is out
}

// ViewAll returns a project's integrations.
func ViewAll(ctx context.Context, s *app.Stack, rec *project.Record) ([]View, error) {
	views := []View{}
	for _, i := range rec.Integrations {
		v, err := ViewOf(ctx, s, rec.ID, i)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// ViewOf returns one integration, and validates whether the integration is complete.
func ViewOf(ctx context.Context, s *app.Stack, projectID string, i project.Integration) (View, error) {
	v := View{Integration: i, Updated: i.Updated, SetAside: i.SetAside}
	_, err := Resolve(ctx, s, projectID, i)
	_, unknown := errors.AsType[*app.FailureError](err) // the kind or the vendor
	if unknown || errors.Is(err, upstream.ErrIncomplete) {
		v.Incomplete, err = strings.TrimPrefix(err.Error(), upstream.ErrIncomplete.Error()+": "), nil
	}
	return v, err
}

// Resolve returns the account of an integration, with its stored secret fields.
func Resolve(ctx context.Context, s *app.Stack, projectID string, i project.Integration) (upstream.Account, error) {
	o, err := Find(string(i.Kind), i.Vendor)
	if err != nil {
		return upstream.Account{}, err
	}
	return s.Vendors.Resolve(ctx, projectID, i, &o.Spec, s.Secrets)
}

// State returns the state of an integration for people.
func State(i project.Integration) string {
	switch {
	case i.Active:
		return "active"
	case i.SetAside:
		return "set aside"
	}
	return "inactive"
}

// Table returns integrations for people.
func Table(views []View) app.Table {
	const header = "ENVIRONMENT, KIND, VENDOR, MODE, STATE, PRIORITY, SETTINGS, INCOMPLETE"
	return app.TableOf(header, `No integrations. "svc integration set" creates one.`, views, func(v View) []string {
		var settings []string
		for _, name := range slices.Sorted(maps.Keys(v.Settings)) {
			settings = append(settings, name+"="+v.Settings[name])
		}
		return []string{string(v.Environment), string(v.Kind), v.Vendor, string(v.Mode), State(v.Integration),
			strconv.Itoa(v.Priority), strings.Join(settings, " "), v.Incomplete}
	})
}

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
	content, err := a.Read(in.File, 64<<10) // bytes, the largest value of Secrets Manager
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

// lookUp makes one look-up at a vendor, of a public resolver.
func lookUp[T any](ctx context.Context, s *app.Stack, rows []lookup.Vendor[T],
	account upstream.Account) (string, error) {
	vendor := upstream.Find(rows, account.Integration.Vendor)
	if vendor.OnDisk() {
		return noTest, nil
	}
	_, err := vendor.Ask(ctx, lookup.Caller{Client: s.Vendors, Account: account}, netip.MustParseAddr("9.9.9.9"))
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

// Package demo creates the projects that the local stack starts with. Their credentials are fixed, so that committed
// events and examples work unchanged; the credentials are valid nowhere else.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/local/sandbox"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

// Credential is the pair that a client authenticates with.
type Credential struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// Project is a demo project with its credentials.
type Project struct {
	ID          string                             `json:"project_id"`
	Credentials map[project.Environment]Credential `json:"credentials"`

	// Faults are what "svc doctor" finds of the project because the project exists to show it.
	Faults []Fault `json:"faults,omitempty"`

	// Name is the project's name in the local stack: its ID, unless the name is a reserved word.
	Name string `json:"-"`
	// About describes the project in a few words.
	About string `json:"-"`
}

// Fault is a finding of "svc doctor": its check and a part of its detail.
type Fault struct {
	Check  string `json:"check"`
	Detail string `json:"detail"`
}

// Target is where the projects are created.
type Target struct {
	Projects *admin.Store
	Credit   *books.Store
	Secrets  *secret.Writer
	Rates    *rates.Store
	Prices   wallet.Prices
	Sandbox  string // the vendor sandbox's base URL
}

// ClosedURL is an address that refuses connections: no program can listen on port 0, which is reserved (RFC 6335).
const ClosedURL = "http://127.0.0.1:0"

// limits of the projects' requests.
var (
	wide   = project.RateLimit{Requests: 100_000, Window: time.Minute}
	narrow = project.RateLimit{Requests: 5, Window: time.Minute}
)

const plenty = 10_000_000 // credits

// plan is one row of the table of projects.
type plan struct {
	name, about string
	mode        project.Mode // of every integration; empty: there are none
	closed      int          // how many vendors of each chain refuse connections, counted from the first
	bare        bool         // its integrations have neither secrets nor settings
	all         bool         // the project has the inactive integrations, too
	paused      bool
	trial       []string          // destinations; nil: not on trial
	limit       project.RateLimit // zero: wide
	credits     int64
	barcodes    int64 // credits for so many, besides
	faults      []Fault
}

var noCredits = []Fault{{"wallet", "it has Managed integrations and no credits"}}

// plans is the table of projects.
var plans = []plan{
	{name: "managed", about: "every integration Managed, 10,000,000 credits", mode: project.Managed,
		all: true, credits: plenty},
	{name: "byok", about: "every integration Manual (BYOK), no credits", mode: project.BYOK, all: true},
	{name: "broke", about: "as managed, no credits", mode: project.Managed, faults: noCredits},
	{name: "race", about: "as managed, credits for exactly 100 barcodes", mode: project.Managed,
		barcodes: 100, faults: noCredits},
	{name: "paused", about: "as managed, paused", mode: project.Managed, credits: plenty, paused: true,
		faults: []Fault{{"paused", "every request gets 503 project_paused"}}},
	{name: "trial", about: "as managed, SMS to 0771234567 only", mode: project.Managed, credits: plenty,
		trial: []string{"0771234567"}},
	{name: "limited", about: "as managed, 5 requests in 60 s", mode: project.Managed, credits: plenty, limit: narrow},
	{name: "bare", about: "no integrations", credits: plenty,
		faults: []Fault{{"integrations", "it has credentials and no active integration"}}},
	{name: "incomplete", about: "Manual integrations without secrets or settings", mode: project.BYOK, bare: true,
		faults: []Fault{{"integration", " lacks settings ["}, {"integration", " lacks secret fields ["}}},
	{name: "unreachable", about: "Managed, vendors on a closed port", mode: project.Managed,
		closed: math.MaxInt, credits: plenty},
	{name: "failover", about: "Managed, each chain's first vendor on a closed port", mode: project.Managed,
		closed: 1, credits: plenty},
}

// builtIn is the vendor of a kind whose work the service does itself: it has no endpoint.
const builtIn = "builtin"

// chains are the vendors of each kind in their order: those that are active in every project with integrations, then
// those that only the projects managed and byok configure, without being active. A further vendor is one name.
var chains = []struct {
	kind             project.Kind
	active, inactive []string
}{
	{project.SMS, []string{"quicksend", "twilio"}, []string{
		"notifylk", "textlk", "ultimatesms", "smslenz", "hutch", "dialog", "dialogv2", "aws",
	}},
	{project.Security, []string{"ipgeolocation", "ipinfo"}, []string{
		"proxycheck", "vpnapi", "maxmind", "ip-api", "ipqualityscore", "ip2location",
	}},
	{project.Location, []string{"ip-api", "ipinfo"}, []string{"ipinfo-lite", "ipgeolocation", "maxmind"}},
	{project.Currency, []string{"openexchangerates", "exchangerateapi"}, []string{"frankfurter"}},
	{project.Barcode, []string{builtIn}, nil},
	{project.PDF, []string{builtIn}, nil},
}

// settings are those of every vendor of a kind.
var settings = map[project.Kind]map[string]string{project.SMS: {"sender_id": "SVCDemo", "unit_price": "0.64"}}

// suffixes end the client IDs.
var suffixes = map[project.Environment]string{project.Development: "localdev", project.Production: "localprd"}

// ID is the project ID of the demo project of a name. A reserved word such as "managed" cannot be an ID.
func ID(name string) string {
	if !project.ValidID(name) {
		return "demo-" + name
	}
	return name
}

// CredentialOf is the fixed credential of the demo project of a name.
func CredentialOf(name string, env project.Environment) Credential {
	return Credential{
		ClientID:     "svc_" + ID(name) + "_" + suffixes[env],
		ClientSecret: "svcs_local-" + name + "-" + string(env),
	}
}

// Secrets are the client secrets of all demo projects.
func Secrets() []string {
	var all []string
	for _, p := range plans {
		for _, env := range admin.Environments() {
			all = append(all, CredentialOf(p.name, env).ClientSecret)
		}
	}
	return all
}

// Create creates every demo project and returns the projects in the table's order. A project that exists is an error.
func Create(ctx context.Context, to Target) ([]Project, error) {
	if err := errors.Join(to.accounts(ctx, upstream.ManagedOwner), to.week(ctx)); err != nil {
		return nil, err
	}
	projects := make([]Project, len(plans))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, p := range plans {
		faults := append([]Fault{{"limits", "no daily limit"}}, p.faults...) // no project has one by default
		projects[i] = Project{ID: ID(p.name), Name: p.name, About: p.about, Faults: faults,
			Credentials: map[project.Environment]Credential{}}
		for _, env := range admin.Environments() {
			projects[i].Credentials[env] = CredentialOf(p.name, env)
		}
		group.Go(func() error {
			if err := to.create(ctx, p); err != nil {
				return fmt.Errorf("demo project %s: %w", p.name, err)
			}
			return nil
		})
	}
	return projects, group.Wait()
}

// week stores rates of the seven days before today: those of the sandbox, less a thousandth for each day.
func (to Target) week(ctx context.Context) error {
	for n := 1; n <= 7; n++ {
		day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -n)
		set := rates.Set{Table: rates.Table{
			Source: "openexchangerates", Base: "USD", Date: day, Fetched: day, Rates: map[string]rates.Decimal{},
		}}
		factor, _ := rates.Parse(fmt.Sprintf("0.%d", 1000-n))
		for code, text := range sandbox.Rates() {
			rate, err := rates.Parse(text.String())
			if err != nil {
				return err
			}
			set.Rates[code] = rates.Convert(rate, factor)
		}
		set.Rates[set.Base] = rates.One()
		event := rates.Event{At: day, Source: set.Source, Outcome: "taken", Actor: "schedule", Set: &set}
		if err := to.Rates.PutEvent(ctx, event, 0); err != nil {
			return err
		}
	}
	return nil
}

func (to Target) create(ctx context.Context, p plan) error {
	id := ID(p.name)
	var integrations []project.Integration
	var credentials []project.Credential
	for _, env := range admin.Environments() {
		integrations = append(integrations, to.integrations(p, env)...)
		c := CredentialOf(p.name, env)
		credentials = append(credentials, project.Credential{
			ClientID: c.ClientID, Environment: env, Active: true,
			Secrets: []project.SecretDigest{{Digest: project.DigestSecret(c.ClientSecret), Created: time.Now().UTC()}},
		})
	}
	_, err := to.Projects.CreateProject(ctx, project.Project{
		ID: id, Name: "Demo: " + p.name, Paused: p.paused, Limit: cmp.Or(p.limit,
			wide), Trial: p.trial != nil, TrialDestinations: p.trial,
	}, integrations...)
	if err == nil {
		err = errors.Join(to.Projects.AddCredential(ctx, id, credentials...), to.wallet(ctx, p))
	}
	if err == nil && p.mode == project.BYOK && !p.bare {
		err = to.accounts(ctx, id)
	}
	return err
}

func (to Target) wallet(ctx context.Context, p plan) error {
	id, credits := ID(p.name), p.credits+p.barcodes*to.Prices[wallet.Barcode]
	if err := to.Credit.CreateWallet(ctx, id); err != nil || credits == 0 {
		return err
	}
	return to.Credit.Grant(ctx, wallet.Entry{
		Project: id, Key: wallet.NewKey(time.Now(), "demo"), Credits: credits, Reason: "demo", Actor: "local",
	})
}

// integrations returns a project's integrations in an environment.
func (to Target) integrations(p plan, env project.Environment) []project.Integration {
	if p.mode == "" {
		return nil
	}
	var list []project.Integration
	for _, c := range chains {
		vendors := slices.Clone(c.active)
		if p.all {
			vendors = append(vendors, c.inactive...)
		}
		for n, vendor := range vendors {
			i := project.Integration{
				Kind: c.kind, Environment: env, Vendor: vendor, Mode: p.mode, Active: n < len(c.active),
				Priority: 10 * (n + 1), Settings: map[string]string{},
			}
			if !p.bare {
				maps.Copy(i.Settings, settings[c.kind])
			}
			if vendor != builtIn {
				i.Settings["endpoint"] = to.Sandbox + "/" + vendor
				if n < p.closed {
					i.Settings["endpoint"] = ClosedURL
				}
			}
			list = append(list, i)
		}
	}
	return list
}

// accounts stores an owner's accounts at every vendor, for both environments.
func (to Target) accounts(ctx context.Context, owner string) error {
	for _, c := range chains {
		var changes []secret.Change
		for _, vendor := range slices.Concat(c.active, c.inactive) {
			for _, env := range admin.Environments() {
				if account := sandbox.Account(vendor); len(account) > 0 {
					changes = append(changes, secret.Change{Environment: env, Vendor: vendor, After: account})
				}
			}
		}
		if len(changes) > 0 {
			if err := to.Secrets.Put(ctx, c.kind, owner, changes...); err != nil {
				return err
			}
		}
	}
	return nil
}

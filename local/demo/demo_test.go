package demo

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	sms "svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/shared/books"
	lookup "svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates"
	"svcapi/shared/rates/sources"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/secretstest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// specs are the vendors of each kind as the functions know them.
var specs = map[project.Kind]func(string) *upstream.Spec{
	project.SMS: sms.NewTable(aws.Config{}).Spec, project.Currency: sources.Spec,
	project.Security: specIn(lookup.Risks()), project.Location: specIn(lookup.Places()),
}

func specIn[T any](table []lookup.Vendor[T]) func(string) *upstream.Spec {
	return func(name string) *upstream.Spec {
		if v := upstream.Find(table, name); v != nil {
			return &v.Spec
		}
		return nil
	}
}

// TestVendorsAreComplete checks every vendor against what its vendor needs.
func TestVendorsAreComplete(t *testing.T) {
	for _, chain := range chains {
		for _, vendor := range slices.Concat(chain.active, chain.inactive) {
			if vendor == builtIn {
				continue
			}
			spec := specs[chain.kind](vendor)
			if spec == nil {
				t.Errorf("%s %s: no function knows the vendor", chain.kind, vendor)
				continue
			}
			for _, c := range []struct {
				what   string
				fields []upstream.Field
				has    map[string]string
			}{{"setting", spec.Settings, settings[chain.kind]}, {"secret field", spec.Secrets, sandbox.Account(vendor)}} {
				for name := range c.has {
					if !slices.ContainsFunc(c.fields, func(f upstream.Field) bool { return f.Name == name }) {
						t.Errorf("%s %s: its vendor has no %s %s", chain.kind, vendor, c.what, name)
					}
				}
				for _, f := range c.fields {
					if f.Required && c.has[f.Name] == "" && f.Name != upstream.EndpointSetting { // Create sets the endpoint
						t.Errorf("%s %s lacks the %s %s", chain.kind, vendor, c.what, f.Name)
					}
				}
			}
		}
	}
}

// TestCreate makes the projects and checks what a request would meet in each.
func TestCreate(t *testing.T) {
	db, tables := enginetest.Client(t)
	to := Target{
		Projects: admin.NewStore(db, tables.Projects),
		Credit:   books.NewStore(db, tables.Tables),
		Secrets:  secret.NewWriter(secretsmanager.New(secretstest.Start(t)), "local"),
		Rates:    rates.NewStore(db, tables.Rates),
		Prices:   wallet.Prices{wallet.Barcode: 7},
		Sandbox:  "http://sandbox",
	}
	created := must.Get(Create(t.Context(), to)).Or(t)
	const good = "http://sandbox/quicksend,http://sandbox/twilio"
	wants := map[string]struct {
		mode      project.Mode
		balance   int64
		endpoints string // of the SMS chain
		paused    bool
		trial     bool
		requests  int
		secret    bool
	}{
		"managed":     {project.Managed, plenty, good, false, false, 100_000, true},
		"byok":        {project.BYOK, 0, good, false, false, 100_000, true},
		"broke":       {project.Managed, 0, good, false, false, 100_000, true},
		"race":        {project.Managed, 700, good, false, false, 100_000, true},
		"paused":      {project.Managed, plenty, good, true, false, 100_000, true},
		"trial":       {project.Managed, plenty, good, false, true, 100_000, true},
		"limited":     {project.Managed, plenty, good, false, false, 5, true},
		"bare":        {"", plenty, "", false, false, 100_000, false},
		"incomplete":  {project.BYOK, 0, good, false, false, 100_000, false},
		"unreachable": {project.Managed, plenty, ClosedURL + "," + ClosedURL, false, false, 100_000, true},
		"failover":    {project.Managed, plenty, ClosedURL + ",http://sandbox/twilio", false, false, 100_000, true},
	}
	if len(created) != len(wants) {
		t.Errorf("%d projects, want %d", len(created), len(wants))
	}
	cache := project.NewCache(to.Projects.Store, time.Minute)
	for _, p := range created {
		want := wants[p.Name]
		for _, env := range admin.Environments() {
			rec, got, err := cache.Authenticate(t.Context(), p.Credentials[env].ClientID,
				p.Credentials[env].ClientSecret, string(env))
			if err != nil || got != env {
				t.Errorf("%s %s: %v", p.ID, env, err)
				continue
			}
			if rec.Paused != want.paused || rec.Trial != want.trial || rec.Limit.Requests != want.requests ||
				rec.Limit.Window != time.Minute {
				t.Errorf("%s: %+v", p.ID, rec.Project)
			}
			chain := rec.Active(project.SMS, env)
			endpoints := ""
			for i, in := range chain {
				if i > 0 {
					endpoints += ","
				}
				endpoints += in.Settings["endpoint"]
				fields, err := to.Secrets.Fields(t.Context(), project.SMS, upstream.Owner(in.Mode, p.ID), env, in.Vendor)
				if err != nil || in.Mode != want.mode || (len(fields) > 0) != want.secret ||
					(in.Settings["sender_id"] != "") != want.secret {
					t.Errorf("%s: %+v with %d secret fields, %v", p.ID, in, len(fields), err)
				}
			}
			if endpoints != want.endpoints {
				t.Errorf("%s: chain %q, want %q", p.ID, endpoints, want.endpoints)
			}
			if n := len(rec.Active(project.Barcode, env)); (n == 1) != (want.mode != "") {
				t.Errorf("%s: %d barcode integrations", p.ID, n)
			}
		}
		if balance, err := to.Credit.Balance(t.Context(), p.ID); err != nil || balance != want.balance {
			t.Errorf("%s: balance %d, %v; want %d", p.ID, balance, err, want.balance)
		}
	}
	if _, err := Create(t.Context(), to); err == nil {
		t.Error("made twice without an error")
	}
}

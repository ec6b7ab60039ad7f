package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/functions/sms/uncertain"
	"svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/secret"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/secretstest"
	"svcapi/test/wallettest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

var testAges = Ages{Period: 2 * time.Minute, First: 2 * time.Minute, Absent: 10 * time.Minute}

// docs/decisions/extensions.md#resolver: questions after 2, 10 and 60 minutes, then hourly for a day.
func TestDue(t *testing.T) {
	for offset := time.Duration(0); offset < testAges.Period; offset += 7 * time.Second {
		var asked []time.Duration
		for age := offset; age < 30*time.Hour; age += testAges.Period {
			if testAges.due(age) {
				asked = append(asked, (age - offset).Round(testAges.Period))
			}
		}
		if len(asked) != 26 || offset == 0 &&
			(asked[0] != 2*time.Minute || asked[1] != 10*time.Minute || asked[2] != time.Hour || asked[25] != 24*time.Hour) {
			t.Fatalf("from %s: %v", offset, asked)
		}
	}
}

// docs/decisions/extensions.md#resolver: what a vendor's certain response resolves, and what stays for the operator.
func TestResolve(t *testing.T) {
	const dialog, twilio = "dialogv2", "twilio"
	rotated := func(_ *project.Integration, a *upstream.Account) {
		a.Secrets = map[string]string{"username": "u", "password": "before"}
	}
	for _, c := range []struct {
		name   string
		chain  string          // the project's integrations
		vendor string          // named by the reference; empty: the request died without one
		sent   bool            // the vendor has accepted the message
		status sandbox.Outcome // of the vendor's response; empty: the sandbox's usual response
		age    time.Duration
		change func(*project.Integration, *upstream.Account) // the integration now, or the account of the send
		want   string                                        // the result, or "not asked"
		reason string
	}{
		{"found", dialog, dialog, true, "", 2 * time.Minute, nil, "confirmed", "dialogv2: completed (sent)"},
		{"found, by a disabled integration", dialog, dialog, true, "", time.Hour,
			func(in *project.Integration, _ *upstream.Account) { in.Active = false }, "confirmed", "dialogv2: completed (sent)"},
		{"absent", dialog, dialog, false, "", 10 * time.Minute, nil, "refunded", "dialogv2: 103 (not_found)"},
		{"absent, and may be on its way", dialog, dialog, false, "", 3*time.Minute + 59*time.Second, nil, "open", ""},
		{"absent in an account with another password", dialog, dialog, false, "", time.Hour, rotated, "open", ""},
		{"absent at an endpoint that is new", dialog, dialog, false, "", time.Hour,
			func(_ *project.Integration, a *upstream.Account) { a.Endpoint += "/before" }, "open", ""},
		{"an internal error", dialog, dialog, true, "999", time.Hour, nil, "failed", ""},
		{"a word of no document", dialog, dialog, true, "paused", time.Hour, nil, "open", ""},
		{"between two questions", dialog, dialog, true, "", 30 * time.Minute, nil, "not asked", ""},
		{"after a day", dialog, dialog, true, "", 25 * time.Hour, nil, "not asked", ""},
		{"of an integration that is Manual now", dialog, dialog, true, "", time.Hour,
			func(in *project.Integration, _ *upstream.Account) { in.Mode = project.BYOK }, "not asked", ""},
		{"of an integration that is gone", twilio, dialog, true, "", time.Hour, nil, "not asked", ""},
		{"found by a search", twilio, twilio, true, "", 2 * time.Minute, nil, "confirmed", "twilio: delivered (delivered)"},
		{"found by a search in another account", twilio, twilio, true, "", 2 * time.Minute, rotated, "open", ""},
		{"not found by a search", twilio, twilio, false, "", time.Hour, nil, "open", ""},
		{"without a status call", "quicksend", "quicksend", true, "", time.Hour, nil, "not asked", ""},
		{"died, and found at the second vendor", "twilio dialogv2", "", true, "", 2 * time.Minute, nil, "confirmed",
			"dialogv2: completed (sent)"},
		{"died, and absent", "twilio dialogv2", "", false, "", time.Hour, nil, "open", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			var account upstream.Account
			for vendor := range strings.FieldsSeq(c.chain) {
				account = f.integrate(vendor, c.change)
			}
			key := f.charge(c.vendor, account)
			if c.sent {
				vendor := account.Integration.Vendor
				account.Endpoint, account.Secrets = f.sandbox.URL+"/"+vendor, sandbox.Account(vendor)
				message := vendors.Message{To: []string{number}, Text: "m",
					Key: vendors.SendKey(projectID+"/production/"+string(key), 0)}
				_, err := f.Vendors.Find(vendor).New(f.Client, account).Send(t.Context(), message)
				must.Succeed(f.t, err)
			}
			f.sandbox.Forget()
			must.Succeed(f.t, f.sandbox.SetRules(sandbox.Rule{Operation: "status", Outcome: c.status}))
			f.Now = func() time.Time { return time.Now().Add(c.age) }
			results, err := f.Run(t.Context())
			must.Succeed(f.t, err)
			got := "not asked"
			for result := range results {
				if got = string(result); result == uncertain.Open && len(f.sandbox.Calls()) == 0 {
					got = "not asked"
				}
			}
			resolved, err := f.Credits.Resolved(t.Context(), projectID)
			must.Succeed(f.t, err)
			for _, e := range resolved {
				if r := e.Resolution; string(r.Verdict) != got || r.Reason != c.reason || r.Actor != "sms/resolve" {
					t.Errorf("%+v", r)
				}
			}
			balance, err := f.Credits.Balance(t.Context(), projectID)
			if want := map[bool]int64{true: 100, false: 90}[got == "refunded"]; err != nil || got != c.want || balance != want ||
				(len(resolved) == 1) != (c.reason != "") {
				t.Errorf("%s, balance %d, %v", got, balance, err)
			}
		})
	}
}

// TestFailing checks that one run sends no second question to a vendor that has failed.
func TestFailing(t *testing.T) {
	f := newFixture(t)
	account := f.integrate("dialogv2", nil)
	f.charge("dialogv2", account)
	f.charge("dialogv2", account)
	must.Succeed(f.t, f.sandbox.SetRules(sandbox.Rule{Operation: "login", Outcome: sandbox.Closed}))
	f.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if results, err := f.Run(t.Context()); err != nil || results[failed] != 2 || len(f.sandbox.Calls()) != 1 {
		t.Errorf("%v, %v, %d calls", results, err, len(f.sandbox.Calls()))
	}
}

// A panic of an adapter, and a project that is gone, fail one send and do not end the run.
func TestFailuresOfOneSend(t *testing.T) {
	f := newFixture(t)
	account := f.integrate("dialogv2", nil)
	f.charge("dialogv2", account)
	f.charge("dialogv2", account)
	f.Now = func() time.Time { return time.Now().Add(time.Hour) }
	f.Vendors.Find("dialogv2").New = func(*upstream.Client, upstream.Account) vendors.Adapter { panic("broken") }
	if results, err := f.Run(t.Context()); err != nil || results[failed] != 2 {
		t.Errorf("panics: %v, %v", results, err)
	}
	client, empty := enginetest.Client(t)
	f.Projects = project.NewStore(client, empty.Projects)
	if results, err := f.Run(t.Context()); err != nil || results[failed] != 2 {
		t.Errorf("no project: %v, %v", results, err)
	}
}

const number, projectID = "+94771234567", "acme"

// fixture is a resolver whose project has 100 credits.
type fixture struct {
	*Resolver
	t       *testing.T
	sandbox *sandbox.Server
	admin   *admin.Store // of the projects
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	client, tables := enginetest.Client(t)
	s, err := sandbox.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = s.Close() })
	reader := secretsmanager.New(secretstest.Start(t))
	log := telemetry.New(io.Discard, telemetry.Config{})
	f := &fixture{t: t, sandbox: s, admin: admin.NewStore(client, tables.Projects),
		Resolver: &Resolver{Ages: testAges, Log: log, Asker: &uncertain.Asker{
			Credits: books.NewStore(client, tables.Tables), Projects: project.NewStore(client, tables.Projects),
			Client: upstream.New(upstream.Config{TimeoutSeconds: 5, Local: true}), Secrets: upstream.NewSecretCache(reader,
				"test", upstream.SecretConfig{}, log),
			Vendors: vendors.NewTable(aws.Config{Region: "eu-west-1"}), Absent: testAges.Absent, Actor: "sms/resolve",
		}}}
	for _, vendor := range []string{"dialogv2", "twilio", "quicksend"} {
		change := secret.Change{Environment: project.Production, Vendor: vendor, After: sandbox.Account(vendor)}
		must.Succeed(f.t, secret.NewWriter(reader, "test").Put(t.Context(), project.SMS, upstream.ManagedOwner, change))
	}
	_, err = f.admin.CreateProject(t.Context(),
		project.Project{ID: projectID, Name: "p", Limit: project.RateLimit{Requests: 1, Window: time.Hour}})
	must.Succeed(f.t, errors.Join(err, f.Credits.CreateWallet(t.Context(), projectID)))
	must.Succeed(f.t, f.Credits.Grant(t.Context(), wallettest.Movement(projectID, time.Now(), "g", 100)))
	return f
}

// integrate stores a Managed integration, and returns its account. change may change either.
func (f *fixture) integrate(vendor string, change func(*project.Integration, *upstream.Account)) upstream.Account {
	in := project.Integration{
		Kind: project.SMS, Environment: project.Production, Vendor: vendor, Mode: project.Managed, Active: true,
		Settings: map[string]string{"sender_id": "Demo", "endpoint": f.sandbox.URL + "/" + vendor},
	}
	account := upstream.Account{Integration: in, Endpoint: in.Settings["endpoint"], Settings: in.Settings,
		Secrets: sandbox.Account(vendor), Owner: upstream.ManagedOwner}
	if change != nil {
		change(&in, &account)
	}
	must.Succeed(f.t, f.admin.PutIntegration(f.t.Context(), projectID, in))
	return account
}

// charge leaves an uncertain charge of 10 credits. It has a reference where a vendor is given.
func (f *fixture) charge(vendor string, by upstream.Account) wallet.Key {
	f.t.Helper()
	record, err := f.Projects.Load(f.t.Context(), projectID)
	must.Succeed(f.t, err)
	r := &wallet.Reservation{
		Project: projectID, Began: time.Now(), Credits: 10, Price: wallet.SMS, Environment: "production", RequestID: "r",
		Irrevocable: true,
	}
	must.Succeed(f.t, f.Credits.Reserve(f.t.Context(), r))
	o := wallet.Outcome{Uncertain: true}
	if vendor != "" {
		by.Integration.Vendor = vendor
		sealer := vendors.NewSealer(&record.Project, project.Production)
		o.Reference = sealer.Seal(by, vendors.SendKey(sealer.Scope+string(r.Key), 0), "", number, "m")
	}
	must.Succeed(f.t, errors.Join(f.Credits.Mark(f.t.Context(), r), f.Credits.Capture(f.t.Context(), r, o)))
	return r.Key
}

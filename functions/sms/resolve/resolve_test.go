package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/functions/sms/reference"
	"svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/local/secrets"
	"svcapi/local/template"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

var testAges = Ages{Period: 2 * time.Minute, First: 2 * time.Minute, Absent: 10 * time.Minute}

// docs/decisions.md#resolver: questions after 2, 10 and 60 minutes, then hourly for a day, whenever the runs begin.
func TestDue(t *testing.T) {
	for offset := time.Duration(0); offset < testAges.Period; offset += 7 * time.Second {
		var asked []time.Duration
		for age := offset; age < 30*time.Hour; age += testAges.Period {
			if testAges.due(age) {
				asked = append(asked, (age - offset).Round(testAges.Period))
			}
		}
		if len(asked) != 26 || offset == 0 && (asked[0] != 2*time.Minute || asked[1] != 10*time.Minute || asked[2] != time.Hour || asked[25] != 24*time.Hour) {
			t.Fatalf("from %s: %v", offset, asked)
		}
	}
}

// docs/decisions.md#resolver: what a vendor's certain response resolves, with the evidence, and what stays for the operator.
func TestResolve(t *testing.T) {
	const dialog, twilio = "dialogv2", "twilio"
	for _, c := range []struct {
		name   string
		chain  string          // the project's integrations
		vendor string          // named by the reference; empty: the request died without one
		sent   bool            // the vendor has accepted the message
		status sandbox.Outcome // of the vendor's response; empty: that of its own accord
		age    time.Duration
		change func(*project.Integration, *upstream.Account) // the integration now, or the account of the send
		want   string                                        // verdict, "failed", "asked" or "not asked"
		reason string
	}{
		{"found", dialog, dialog, true, "", 2 * time.Minute, nil, "confirmed", "dialogv2: completed (sent)"},
		{"found, by a disabled integration", dialog, dialog, true, "", time.Hour,
			func(in *project.Integration, _ *upstream.Account) { in.Active = false }, "confirmed", "dialogv2: completed (sent)"},
		{"absent", dialog, dialog, false, "", 10 * time.Minute, nil, "refunded", "dialogv2: 103 (not_found)"},
		{"absent, and may be on its way", dialog, dialog, false, "", 3*time.Minute + 59*time.Second, nil, "asked", ""},
		{"absent in an account with another password", dialog, dialog, false, "", time.Hour,
			func(_ *project.Integration, a *upstream.Account) {
				a.Secrets = map[string]string{"username": "u", "password": "before"}
			}, "asked", ""},
		{"absent at an endpoint that is new", dialog, dialog, false, "", time.Hour,
			func(_ *project.Integration, a *upstream.Account) { a.Endpoint += "/before" }, "asked", ""},
		{"an internal error", dialog, dialog, true, "999", time.Hour, nil, "failed", ""},
		{"a word of no document", dialog, dialog, true, "paused", time.Hour, nil, "asked", ""},
		{"between two questions", dialog, dialog, true, "", 30 * time.Minute, nil, "not asked", ""},
		{"after a day", dialog, dialog, true, "", 25 * time.Hour, nil, "not asked", ""},
		{"of an integration that is Manual now", dialog, dialog, true, "", time.Hour,
			func(in *project.Integration, _ *upstream.Account) { in.Mode = project.BYOK }, "not asked", ""},
		{"of an integration that is gone", twilio, dialog, true, "", time.Hour, nil, "not asked", ""},
		{"found by a search", twilio, twilio, true, "", 2 * time.Minute, nil, "confirmed", "twilio: delivered (delivered)"},
		{"not found by a search", twilio, twilio, false, "", time.Hour, nil, "asked", ""},
		{"without a status call", "quicksend", "quicksend", true, "", time.Hour, nil, "not asked", ""},
		{"died, and found at the second vendor", "twilio dialogv2", "", true, "", 2 * time.Minute, nil, "confirmed", "dialogv2: completed (sent)"},
		{"died, and absent", "twilio dialogv2", "", false, "", time.Hour, nil, "asked", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			var last upstream.Account
			for vendor := range strings.FieldsSeq(c.chain) {
				in := project.Integration{
					Kind: project.SMS, Environment: project.Production, Vendor: vendor, Mode: project.Managed, Active: true,
					Settings: map[string]string{"sender_id": "Demo", "endpoint": f.sandbox.URL + "/" + vendor},
				}
				last = upstream.Account{Integration: in, Endpoint: in.Settings["endpoint"], Settings: in.Settings, Secrets: sandbox.Accounts[vendor], Owner: secret.Managed}
				if c.change != nil {
					c.change(&in, &last)
				}
				f.must(f.Projects.PutIntegration(t.Context(), projectID, in))
			}
			key := f.charge(c.vendor, last)
			if c.sent {
				account := last
				account.Endpoint, account.Secrets = f.sandbox.URL+"/"+last.Integration.Vendor, sandbox.Accounts[last.Integration.Vendor]
				message := vendors.Message{To: number, Text: "m", Key: reference.Key(projectID+"/production/"+string(key), 0)}
				_, err := f.Vendors.Find(last.Integration.Vendor).New(f.Client, account).Send(t.Context(), message)
				f.must(err)
			}
			f.sandbox.Forget()
			f.must(f.sandbox.SetRules(sandbox.Rule{Operation: "status", Outcome: c.status}))
			f.Now = func() time.Time { return time.Now().Add(c.age) }
			report, err := f.Run(t.Context())
			f.must(err)
			entries, err := f.Credits.Entries(t.Context(), projectID, key.Day())
			f.must(err)
			got, asked := "not asked", len(f.sandbox.Calls()) > 0
			for _, e := range entries {
				switch r := e.Resolution; {
				case e.Key == key && r.Verdict != "":
					if got = string(r.Verdict); r.Reason != c.reason || r.Actor != actor || report.Resolved[r.Verdict] != 1 {
						t.Errorf("%+v, %+v", r, report)
					}
				case e.Key == key && report.Failed == 1:
					got = "failed"
				case e.Key == key && asked:
					got = "asked"
				case e.State == credit.Refunded && (e.Reason != c.reason || e.Refunds != key):
					t.Errorf("the refund is %+v", e)
				}
			}
			if balance, err := f.Credits.Balance(t.Context(), projectID); err != nil || got != c.want || balance != map[bool]int64{true: 100, false: 90}[got == "refunded"] {
				t.Errorf("%s, balance %d, %v", got, balance, err)
			}
		})
	}
}

// A vendor that fails is asked once in a run, and an operator who is first is no failure.
func TestFailing(t *testing.T) {
	f := newFixture(t)
	in := project.Integration{
		Kind: project.SMS, Environment: project.Production, Vendor: "dialogv2", Mode: project.Managed, Active: true,
		Settings: map[string]string{"sender_id": "Demo", "endpoint": f.sandbox.URL + "/dialogv2"},
	}
	f.must(f.Projects.PutIntegration(t.Context(), projectID, in))
	account := upstream.Account{Integration: in, Endpoint: in.Settings["endpoint"], Secrets: sandbox.Accounts["dialogv2"], Owner: secret.Managed}
	keys := []credit.Key{f.charge("dialogv2", account), f.charge("dialogv2", account)}
	f.must(f.sandbox.SetRules(sandbox.Rule{Operation: "login", Outcome: sandbox.Closed}))
	f.Now = func() time.Time { return time.Now().Add(time.Hour) }
	report, err := f.Run(t.Context())
	if calls := len(f.sandbox.Calls()); err != nil || report.Failed != 2 || calls != 1 {
		t.Errorf("%+v, %v, %d calls", report, err, calls)
	}
	f.must(f.sandbox.SetRules())
	for _, key := range keys {
		_, err := f.Credits.Resolve(t.Context(), projectID, key, credit.Resolution{Verdict: credit.VerdictConfirmed, Reason: "r", Actor: "operator"})
		f.must(err)
		verdict, err := f.resolve(t.Context(), send{projectID, credit.Entry{Key: key, Environment: "production", Reference: f.last}}, map[string]bool{})
		if verdict != "" || err != nil {
			t.Errorf("%q, %v after the operator", verdict, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Run(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v without time", err)
	}
}

const number, projectID = "+94771234567", "acme"

// fixture is a resolver whose project has 100 credits.
type fixture struct {
	*Resolver
	t       *testing.T
	sandbox *sandbox.Server
	last    string // the reference of the last charge
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	client, tables := enginetest.Client(t)
	s, err := sandbox.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	vault, err := secrets.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = vault.Close() })
	reader := secretsmanager.New(secretsmanager.Options{
		Region: template.Region, BaseEndpoint: &vault.URL, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	log := telemetry.New(io.Discard, telemetry.Config{})
	f := &fixture{t: t, sandbox: s, Resolver: &Resolver{
		Credits: credit.NewStore(client, tables.Tables), Projects: project.NewStore(client, tables.Projects),
		Client: upstream.New(upstream.Config{TimeoutSeconds: 5, Local: true}), Secrets: secret.New(reader, "test", secret.Config{}, log),
		Vendors: vendors.NewTable(aws.Config{Region: "eu-west-1"}), Ages: testAges, Log: log,
	}}
	for _, vendor := range []string{"dialogv2", "twilio", "quicksend"} {
		change := secret.Change{Environment: project.Production, Vendor: vendor, After: sandbox.Accounts[vendor]}
		f.must(secret.NewWriter(reader, "test").Put(t.Context(), project.SMS, secret.Managed, change))
	}
	_, err = f.Projects.CreateProject(t.Context(), project.Project{ID: projectID, Name: "p", Limit: project.RateLimit{Requests: 1, Window: time.Hour}})
	f.must(errors.Join(err, f.Credits.CreateWallet(t.Context(), projectID)))
	f.must(f.Credits.Grant(t.Context(), credit.Movement{Project: projectID, ID: credit.NewKey(time.Now(), "g"), Credits: 100, Actor: "test", Reason: "test"}))
	return f
}

// charge leaves an uncertain charge of 10 credits. It has a reference where a vendor is given.
func (f *fixture) charge(vendor string, by upstream.Account) credit.Key {
	f.t.Helper()
	record, err := f.Projects.Load(f.t.Context(), projectID)
	f.must(err)
	r := &credit.Reservation{
		Project: projectID, Key: credit.NewKey(time.Now(), "r"), Credits: 10, Price: credit.SMS, Environment: "production", RequestID: "r", Irrevocable: true,
	}
	o := credit.Outcome{Uncertain: true}
	if vendor != "" {
		by.Integration.Vendor = vendor
		sealer := reference.New(&record.Project, project.Production)
		o.Reference = sealer.Seal(by, reference.Key(sealer.Scope+string(r.Key), 0), "", number)
		f.last = o.Reference
	}
	f.must(errors.Join(f.Credits.Reserve(f.t.Context(), r), f.Credits.Mark(f.t.Context(), r), f.Credits.Capture(f.t.Context(), r, o)))
	return r.Key
}

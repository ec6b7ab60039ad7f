package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"svcapi/cmd/svc/app"
	"svcapi/local/demo"
	"svcapi/local/engine"
	"svcapi/local/template"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
	"svcapi/test/conntest"
	"svcapi/test/enginetest"
)

// newDoctorFixture returns a fixture with a test server in place of the gateway.
func newDoctorFixture(t *testing.T) *fixture {
	p := newFixture(t)
	p.announced["base_url"] = p.gateway(http.StatusUnauthorized, `{"error":{"code":"unauthorized"}}`, true)
	p.announce(nil)
	return p
}

// serve returns the URL of a server until the end of the test.
func serve(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// gateway returns the URL of a server with the same response to every request.
func (f *fixture) gateway(status int, body string, withRequestID bool) string {
	return serve(f.t, func(w http.ResponseWriter, _ *http.Request) {
		if withRequestID {
			w.Header().Set("X-SVC-Request-ID", "1")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// refuse responds to a call of AWS with an error, and returns true.
func refuse(w http.ResponseWriter, code string) bool {
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"__type":%q,"message":"refused"}`, code)
	return true
}

// between proxies to an AWS endpoint the requests to which respond, by their operation, does not respond itself.
func (f *fixture) between(target string, respond func(http.ResponseWriter, *http.Request, string) bool,
	clock time.Duration) string {
	to, err := url.Parse(target)
	f.must(err)
	proxy := conntest.Buffer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(clock).UTC().Format(http.TimeFormat))
			return nil
		},
	})
	return serve(f.t, func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if !respond(w, r, operation) {
			proxy.ServeHTTP(w, r)
		}
	})
}

// diagnose runs doctor and returns the findings. A broken one means exit code 1.
func (f *fixture) diagnose(args string, worst app.Severity) []app.Finding {
	f.t.Helper()
	exit := map[app.Severity]int{app.Broken: app.ExitFailed}[worst]
	out := f.run(call{args: "doctor --output json " + args, exit: exit, reports: true})
	return decodeText[[]app.Finding](f.t, out)
}

// expect looks for a finding. Every finding must have advice.
func expect(t *testing.T, found []app.Finding, s app.Severity, check, pattern string) {
	t.Helper()
	for _, f := range found {
		if f.Severity == s && f.Check == check && regexp.MustCompile(pattern).MatchString(f.Subject+": "+f.Detail) {
			if f.Advice == "" {
				t.Errorf("%+v: no advice", f)
			}
			return
		}
	}
	t.Errorf("no %s %s like %q among %+v", s, check, pattern, found)
}

// follow runs the command that a finding advises.
func (f *fixture) follow(found app.Finding) {
	f.t.Helper()
	args, isCommand := strings.CutPrefix(found.Advice, "svc ")
	args, local := strings.CutSuffix(args, " --local")
	switch {
	case found.Advice == "" || found.Check == "settler" || found.Check == "reserved":
	case !isCommand || !local:
		f.t.Errorf("%s %s: the advice is no command for the local stack: %q", found.Check, found.Subject, found.Advice)
	default:
		f.run(shows(strings.ReplaceAll(args, "_", "~")).typing("value-1", "value-2"))
	}
}

// TestDoctorOnDemo: on the local stack doctor reports no fault that the demo has on purpose, and every other fault of
// the same projects.
func TestDoctorOnDemo(t *testing.T) {
	p := newDoctorFixture(t)
	s := p.stack()
	projects, err := demo.Create(t.Context(), demo.Target{
		Projects: s.Projects, Credit: s.Credits, Secrets: s.Secrets, Rates: s.Rates,
		Prices: wallet.Prices{wallet.Barcode: 100}, Sandbox: s.Running.SandboxURL,
	})
	p.must(err)
	byName := map[string]demo.Project{}
	for _, project := range projects {
		byName[project.Name] = project
	}
	p.announce(map[string]any{"projects": byName})
	p.runAll([]call{
		shows("rates sync", "taken"),
		shows("doctor", "All checks passed").notes("0 warnings, 0 broken", "are faults that the demo has on purpose"),
		shows("doctor --all", `ok +paused +paused +.*on purpose`, `ok +wallet +broke .*on purpose`,
			`ok +integrations +bare production .*on purpose`, `ok +integration +incomplete .*on purpose`),
		{args: "project pause broke"},
		{args: "integration disable incomplete barcode builtin --env both"},
		{args: "integration disable incomplete pdf builtin --env both"},
		{args: "credit alert paused 20000000"},
	})
	p.deleteWallet("race")
	found := p.diagnose("", app.Broken)
	expect(t, found, app.Warning, "paused", "^broke: ")
	expect(t, found, app.Warning, "wallet", "^paused: .*below its alert")
	expect(t, found, app.Broken, "wallet", "^race: .*no wallet")
	if len(found) != 3 {
		t.Errorf("%+v", found)
	}
}

// TestProbe: the probe repeats a request while functions do not know the credential, and always revokes the credential.
func TestProbe(t *testing.T) {
	p := newDoctorFixture(t)
	p.run(call{args: "project create Good --id good"})
	for _, c := range []struct {
		unknown, status, asked int
		want                   app.Severity
	}{
		{0, http.StatusOK, 1, app.OK},
		{2, http.StatusOK, 3, app.OK},
		{2, http.StatusInternalServerError, 3, app.Broken},
		{probeAttempts, http.StatusOK, probeAttempts, app.Broken},
	} {
		asked := 0
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-SVC-Request-ID", "1")
			if asked++; asked <= c.unknown {
				w.WriteHeader(http.StatusUnauthorized)
			} else {
				w.WriteHeader(c.status)
			}
			_, _ = io.WriteString(w, "{}")
		})
		d := &diagnosis{Stack: p.stack(), Only: "good", Pause: time.Millisecond}
		d.Probe(t.Context(), url)
		if asked != c.asked || len(d.Found) != 1 || d.Found[0].Severity != c.want {
			t.Errorf("%+v: asked %d times, found %+v", c, asked, d.Found)
		}
	}
	p.run(shows("credential list good", "revoked").without("active"))
}

// TestDoctorOnStacks: doctor reports each broken stage, and nothing on a complete one.
func TestDoctorOnStacks(t *testing.T) {
	p := newDoctorFixture(t)
	p.runAll([]call{
		{args: "project create Good --id good"},
		{args: "credential issue good"},
		{args: "integration set good barcode builtin --mode managed"},
		{args: "credit grant good 5 --reason test"},
		shows("doctor", "warning +rates").notes("1 warning, 0 broken"),
		shows("rates sync", "taken"),
		shows("doctor", "All checks passed").notes(`\d+ in order, 0 warnings, 0 broken`),
		misuse("doctor --probe"),
		finds("doctor --project nobody", "not found"),
	})
	engineURL := enginetest.URL(t)
	refusing := func(target, refused, code string) string {
		return p.between(target, func(w http.ResponseWriter, _ *http.Request, operation string) bool {
			return operation == refused && refuse(w, code)
		}, 0)
	}
	never := func(http.ResponseWriter, *http.Request, string) bool { return false }
	late := func(clock time.Duration) string { return p.between(engineURL, never, clock) }
	const nowhere, denied = "http://127.0.0.1:1", "AccessDeniedException"
	for _, c := range []struct {
		name, key, value string // of the file of the local stack
		check, pattern   string
		severity         app.Severity
	}{
		{"wrong stage", "stage", "nowhere", "stage", "no stage nowhere, only .*" + p.stage, app.Broken},
		{"no engine", "dynamodb_url", nowhere, "table", "connection refused", app.Broken},
		{"no secrets endpoint", "secrets_url", nowhere, "secrets", "connection refused", app.Broken},
		{"no gateway", "base_url", nowhere, "gateway", "connection refused", app.Broken},
		{"no base URL", "base_url", "", "stack", "does not name its base URL", app.Broken},
		{"something else responds", "base_url", p.gateway(http.StatusForbidden, `{"message":"Forbidden"}`, false), "gateway",
			"HTTP 403, which is not a response of the API", app.Broken},
		{"the function fails", "base_url", p.gateway(http.StatusInternalServerError, `{"error":{"code":"internal_error"}}`,
			true), "gateway", "HTTP 500 internal_error", app.Broken},
		{"clock far off", "dynamodb_url", late(10 * time.Minute), "clock", "(9m5\\ds|10m) ?", app.Broken},
		{"clock off", "dynamodb_url", late(-time.Minute), "clock", "off", app.Warning},
		{"no permission on tables", "dynamodb_url", refusing(engineURL, "DescribeTable", denied), "table", "AccessDenied",
			app.Broken},
		{"no permission to query", "dynamodb_url", refusing(engineURL, "Query", denied), "project", "good: .*AccessDenied",
			app.Broken},
		{"no permission on secrets", "secrets_url", refusing(p.vault.URL, "GetSecretValue", denied), "secrets",
			"AccessDenied", app.Broken},
		{"expired session", "dynamodb_url", refusing(engineURL, "DescribeTable", "ExpiredTokenException"), "table",
			"ExpiredToken", app.Broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.announce(map[string]any{c.key: c.value})
			expect(t, p.diagnose("", c.severity), c.severity, c.check, c.pattern)
		})
	}
	p.announce(nil)

	s := p.stack()
	held, err := s.Rates.Stored(t.Context())
	p.must(err)
	held.Current.Fetched = time.Now().Add(-7 * time.Hour)
	p.must(s.Rates.PutCurrent(t.Context(), held, held.Current))
	expect(t, p.diagnose("", app.Broken), app.Broken, "rates", "fetched 7h0m0s ago")
	p.run(shows("rates sync", "taken"))

	// Tables with wrong properties. The test creates them again for the end of the fixture.
	for i := range p.tables.Tables {
		table := &p.tables.Tables[i]
		whole := *table
		if table.LogicalID != "Transient" && table.LogicalID != "Ledger" {
			continue
		}
		drop := func() {
			_, err := s.DB.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table.Name})
			p.must(err)
		}
		drop()
		expect(t, p.diagnose("", app.Broken), app.Broken, "table", table.Name+": the table does not exist")
		table.TTL, table.Indexes, table.Attributes = "", nil, table.Attributes[:len(table.Keys)]
		only := &template.Template{Tables: p.tables.Tables[i : i+1]}
		p.must(engine.CreateTables(t.Context(), s.DB, only, nil))
		if table.LogicalID == "Transient" {
			expect(t, p.diagnose("", app.Warning), app.Warning, "table", "nothing in it expires")
		} else {
			expect(t, p.diagnose("", app.Broken), app.Broken, "table", "lacks its index")
		}
		drop()
		*table = whole
		p.must(engine.CreateTables(t.Context(), s.DB, only, nil))
	}
}

// TestDoctorOnProjects: doctor reports a problem for the projects that have it, and for no other project.
func TestDoctorOnProjects(t *testing.T) {
	p := newDoctorFixture(t)
	const account = `{"email":"a@example.com","api_key":"topsecret"}`
	for _, id := range []string{"good", "paused", "nobody", "idle", "no-secret", "no-setting", "gone-secret", "empty",
		"no-wallet", "low", "stuck", "uncertain", "rotating", "on-trial", "unknown", "unlimited"} {
		p.run(call{args: "project create Test --id " + id})
		if id != "nobody" && id != "rotating" {
			p.run(call{args: "credential issue " + id})
		}
		if id != "idle" {
			p.run(call{args: "integration set " + id + " barcode builtin --mode managed"})
		}
		if id != "empty" && id != "no-wallet" {
			p.run(call{args: "credit grant " + id + " 100 --reason test"})
		}
	}
	p.runAll([]call{
		{args: "project create Test --id bare"},
		{args: "project pause paused"},
		{args: "project trial on-trial on"},
		{args: "integration set no-secret sms quicksend --mode byok --setting sender~id=A --incomplete"},
		shows("integration set no-setting sms quicksend --mode byok --incomplete --secrets -").given(account),
		shows("integration set gone-secret sms quicksend --mode byok --setting sender~id=A --secrets -").given(account),
		{args: "credit alert low 101"},
		{args: "credit grant uncertain 10000 --reason test"},
		{args: "credential issue unlimited --env prod"},
		{args: "integration set unlimited barcode builtin --mode managed --env prod"},
		shows("integration set unlimited sms quicksend --mode byok --env prod --setting sender~id=A --secrets -").
			given(account),
	})
	ctx, s := context.Background(), p.stack()
	_, err := s.Vault.DeleteSecret(ctx,
		&secretsmanager.DeleteSecretInput{SecretId: new(upstream.SecretName(p.stage, project.SMS, "gone-secret"))})
	p.must(err)
	p.must(s.Projects.PutIntegration(ctx, "unknown",
		project.Integration{Kind: project.SMS, Environment: project.Development, Vendor: "carrierpigeon",
			Mode: project.BYOK, Active: true}))
	old := project.SecretDigest{Created: time.Now().AddDate(0, 0, -30)}
	p.must(s.Projects.AddCredential(ctx, "rotating", project.Credential{
		ClientID: "svc_rotating_aaaaaaaa", Environment: project.Development, Active: true,
		Secrets: []project.SecretDigest{old, old},
	}))
	p.deleteWallet("no-wallet")
	p.must(s.Credits.Reserve(ctx, &wallet.Reservation{Project: "stuck", Began: time.Now().Add(-time.Hour), Credits: 1,
		Price: wallet.SMS, Environment: "development", RequestID: "r", Irrevocable: true}))
	p.uncertainSMS("uncertain", "r")
	stored, err := s.DB.Query(ctx, &dynamodb.QueryInput{
		TableName: new(s.Table("projects")), KeyConditionExpression: new("pk = :id"),
		ExpressionAttributeValues: dynamo.Item{":id": dynamo.Text("good")},
	})
	p.must(err)
	p.run(notFound("integration set managed sms quicksend --mode byok"))
	for _, item := range stored.Items { // a project from before its ID was reserved
		maps.Copy(item, walletKey("managed"))
		_, err := s.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: new(s.Table("projects")), Item: item})
		p.must(err)
	}
	p.runAll([]call{
		refused("integration set managed sms quicksend --mode byok --setting sender~id=A --secrets -",
			"service's own vendor accounts").given(account),
		misuse("project create Test --id managed", "not managed, all"),
	})

	found := p.diagnose("--all", app.Broken)
	for _, c := range []struct {
		project        string
		severity       app.Severity
		check, pattern string
	}{
		{"paused", app.Warning, "paused", "project_paused"},
		{"nobody", app.Broken, "credential", "no live credential"},
		{"idle", app.Broken, "integrations", "no active integration"},
		{"bare", app.Warning, "integrations", "neither credentials nor integrations"},
		{"no-secret", app.Broken, "integration", "lacks secret fields"},
		{"no-setting", app.Broken, "integration", "lacks settings"},
		{"gone-secret", app.Broken, "secret", "scheduled for deletion"},
		{"unknown", app.Broken, "integration", "carrierpigeon"},
		{"empty", app.Broken, "wallet", "no credits"},
		{"no-wallet", app.Broken, "wallet", "no wallet"},
		{"low", app.Warning, "wallet", "below its alert of 101"},
		{"stuck", app.Broken, "settler", "requests that ended long ago hold a lease"},
		{"uncertain", app.Warning, "uncertain", "1 SMS"},
		{"rotating", app.Warning, "rotation", "older secret still works"},
		{"managed", app.Broken, "reserved", "401 unauthorized"},
		{"on-trial", app.Warning, "trial", "no destination"},
		{"unlimited", app.Warning, "limits", "no daily limit of credits"},
		{"unlimited", app.Warning, "limits", "no daily limit of SMS units"},
	} {
		expect(t, found, c.severity, c.check, c.project+`.*`+c.pattern)
		if slices.ContainsFunc(found, func(f app.Finding) bool {
			return f.Severity == app.OK && f.Check == "project" && f.Subject == c.project
		}) {
			t.Errorf("%s is said to be in order", c.project)
		}
		if got := p.diagnose("--project "+c.project, c.severity); len(got) == 0 {
			t.Errorf("%s alone: nothing found", c.project)
		}
	}
	for _, f := range found {
		p.follow(f)
	}
	for _, id := range []string{"good", "unlimited"} { // unlimited has the limits that doctor advised
		if got := p.diagnose("--project "+id, app.OK); len(got) != 0 {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

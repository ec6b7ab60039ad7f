package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/cmd/svc/credential"
	creditcmd "svcapi/cmd/svc/credit"
	"svcapi/local/engine"
	"svcapi/local/sandbox"
	"svcapi/local/secrets"
	"svcapi/local/template"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/upstream"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a stage with the template's tables and a secrets endpoint, in the file of the local stack, with the output
// of all commands.
type fixture struct {
	t         *testing.T
	stage     string
	tables    *template.Template // for the stage
	sandbox   *sandbox.Server
	vault     *secrets.Server
	dir       string         // with the file of the local stack
	announced map[string]any // the content of that file
	// printed is the output of all commands without the outputs that show a client secret.
	printed strings.Builder
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, stage: "t" + strings.ToLower(rand.Text()[:8]), dir: t.TempDir()}
	var err error
	f.tables, err = template.Load(map[string]string{"Stage": f.stage})
	f.must(err)
	db := engine.Client(enginetest.URL(t))
	f.must(engine.CreateTables(t.Context(), db, f.tables, nil))
	t.Cleanup(func() {
		for _, table := range f.tables.Tables {
			if _, err := db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table.Name}); err != nil {
				t.Error(err)
			}
		}
	})
	f.vault, err = secrets.Start()
	f.must(err)
	t.Cleanup(func() { _ = f.vault.Close() })
	f.sandbox, err = sandbox.Start()
	f.must(err)
	t.Cleanup(func() { _ = f.sandbox.Close() })
	f.announced = map[string]any{"stage": f.stage, "dynamodb_url": enginetest.URL(t), "secrets_url": f.vault.URL,
		"sandbox_url": f.sandbox.URL}
	f.announce(nil)
	inner := filepath.Join(f.dir, "a", "b")
	f.must(os.MkdirAll(inner, 0o755))
	t.Chdir(inner) // the file is found from below
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// announce writes the file of the local stack with some changed values.
func (f *fixture) announce(changes map[string]any) {
	f.t.Helper()
	content := maps.Clone(f.announced)
	maps.Copy(content, changes)
	text, err := json.Marshal(content)
	f.must(err)
	f.must(os.MkdirAll(filepath.Join(f.dir, ".local"), 0o755))
	f.must(os.WriteFile(filepath.Join(f.dir, ".local", "demo.json"), text, 0o600))
}

// write returns the name of a new file in the form of an argument.
func (f *fixture) write(text string) string {
	file := filepath.Join(f.t.TempDir(), "file")
	f.must(os.WriteFile(file, []byte(text), 0o600))
	return strings.ReplaceAll(file, "_", "~")
}

// signIn sets the environment of an operator at AWS whose endpoints are at url.
func signIn(t *testing.T, url string) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "LOCALSVC", "AWS_SECRET_ACCESS_KEY": "local", "AWS_PROFILE": "",
		"AWS_REGION":      "eu-west-1",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
}

// call is one command line with its input and the expected output.
type call struct {
	args  string // separated by spaces; _ is a space within an argument
	stdin string
	// typed are the lines of a terminal without echo; nil means that the input is no terminal.
	typed  []string
	beside func() // runs before each of these lines
	exit   int
	out    []string // patterns of standard output
	errs   []string // patterns of standard error
	absent string   // a pattern that standard output must not match
	// reports means that the command prints its findings and also ends in an error.
	reports bool
}

// run runs a command line, checks the outputs and the exit code, and returns the outputs.
func (c call) run(t *testing.T, flags ...string) (string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	k := app.Console{In: strings.NewReader(c.stdin), Out: &out, Errs: &errs}
	if typed := c.typed; typed != nil {
		k.Terminal = true
		k.Hidden = func(context.Context) (string, error) {
			if len(typed) == 0 {
				return "", errors.New("asked more often than expected")
			}
			if c.beside != nil {
				c.beside()
			}
			line := typed[0]
			typed = typed[1:]
			return line, nil
		}
	}
	args := strings.Fields(c.args)
	for i := range args {
		args[i] = strings.NewReplacer("_", " ", "~", "_").Replace(args[i])
	}
	if exit := run(t.Context(), k, append(args, flags...)); exit != c.exit {
		t.Errorf("%s: exit %d, want %d\n%s%s", c.args, exit, c.exit, out.String(), errs.String())
	}
	check := func(what, text string, patterns []string) {
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(text) {
				t.Errorf("%s: %s has no %q:\n%s", c.args, what, p, text)
			}
		}
	}
	check("output", out.String(), c.out)
	check("standard error", errs.String(), c.errs)
	if c.absent != "" && regexp.MustCompile(c.absent).MatchString(out.String()) {
		t.Errorf("%s: output has %q:\n%s", c.args, c.absent, out.String())
	}
	if c.exit != 0 && out.Len() > 0 && !c.reports {
		t.Errorf("%s: failed, but printed\n%s", c.args, out.String())
	}
	return out.String(), errs.String()
}

// state returns every item of the stage's tables, and the current version of each secret.
func (f *fixture) state() map[string]bool {
	f.t.Helper()
	s, state := f.stack(), map[string]bool{}
	add := func(parts ...any) {
		text, err := json.Marshal(parts)
		f.must(err)
		state[string(text)] = true
	}
	for _, table := range f.tables.Tables {
		out, err := s.DB.Scan(f.t.Context(), &dynamodb.ScanInput{TableName: &table.Name}) // one page: tests have few items
		f.must(err)
		for _, item := range out.Items {
			add(table.Name, item)
		}
	}
	pages := secretsmanager.NewListSecretsPaginator(s.Vault, &secretsmanager.ListSecretsInput{
		Filters: []types.Filter{{Key: types.FilterNameStringTypeName,
			Values: []string{"svc/"}}}, IncludePlannedDeletion: new(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(f.t.Context())
		f.must(err)
		for _, entry := range page.SecretList {
			out, err := s.Vault.ListSecretVersionIds(f.t.Context(),
				&secretsmanager.ListSecretVersionIdsInput{SecretId: entry.Name})
			f.must(err)
			add(entry.Name, entry.DeletedDate, out.Versions)
		}
	}
	return state
}

// run runs a command line on the local stack. A refused command and a dry run must change neither tables nor secrets.
func (f *fixture) run(c call) string {
	f.t.Helper()
	out, _ := f.runOn(c, nil)
	return out
}

// runOn is run where the state before the command may be known. runOn returns the state after it where it read that.
func (f *fixture) runOn(c call, before map[string]bool) (_ string, after map[string]bool) {
	f.t.Helper()
	still := slices.Contains([]int{app.ExitUsage, app.ExitNotFound, app.ExitRefused}, c.exit) ||
		strings.Contains(c.args, "--dry-run")
	if still && before == nil {
		before = f.state()
	}
	out, errs := c.run(f.t, "--local")
	if still {
		if after = f.state(); !maps.Equal(before, after) {
			f.t.Errorf("%s: the command changed something", c.args)
		}
	}
	f.printed.WriteString(errs)
	if !strings.HasPrefix(c.args, "credential issue") && !strings.HasPrefix(c.args, "credential rotate") {
		f.printed.WriteString(out)
	}
	return out, after
}

func (f *fixture) runAll(calls []call) {
	f.t.Helper()
	var state map[string]bool
	for _, c := range calls {
		_, state = f.runOn(c, state)
	}
}

// decode runs a command with --output json and decodes what it prints.
func decode[T any](f *fixture, args string) (v T) {
	f.t.Helper()
	out := f.run(call{args: args + " --output json"})
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		f.t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return v
}

// stack opens the stack of the commands, to check their effects.
func (f *fixture) stack() *app.Stack {
	f.t.Helper()
	s, err := (&app.App{Local: true}).Open(f.t.Context())
	f.must(err)
	return s
}

func TestProjects(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "project list", out: []string{"No projects yet"}},
		{args: "project list --output json", out: []string{`^\[\]\n$`}},
		{args: "project create Acme_Ltd --id acme --requests 5 --window 90s",
			out: []string{`Project +acme\n`, `Name +Acme Ltd\n`, `5 per 1m30s`, `Trial +no\n`, `State +running`}, errs: []string{
				`Not limited: messages to one number, credits of a day, SMS units of a day. This command limits them:\n` +
					`svc project limits acme --per-recipient 5/10m,20/24h --daily-credits 5000000 --daily-units 2000 --local\n`}},
		{args: "project create Safe --id safe --per-recipient 3/1h --daily-credits 7",
			out: []string{`Per recipient +3/1h\n`, `Daily credits +7 `},
			errs: []string{`^Not limited: SMS units of a day. This command limits them:\nsvc project limits safe ` +
				`--daily-units 2000 --local\n$`}},
		{args: "project create Acme --id acme", exit: app.ExitRefused,
			errs: []string{"project acme: exists already", "another ID"}},
		{args: "project create Acme --requests 0", exit: app.ExitUsage, errs: []string{"limit of 0"}},
		{args: "project create Acme --requests abc", exit: app.ExitUsage,
			errs: []string{`svc: --requests is a whole number, not "abc"\n`}},
		{args: "project create Acme --window ten", exit: app.ExitUsage,
			errs: []string{`svc: --window is a time such as 90s or 5m, not "ten"\n`}},
		{args: "project create Acme --trial", exit: app.ExitUsage, errs: []string{"--trial needs --allow"}},
		{args: "project create Acme --allow 0771234567", exit: app.ExitUsage, errs: []string{"--trial"}},
		{args: "project create", exit: app.ExitUsage, errs: []string{"missing NAME\n", "--help"}},
		{args: "project create Two --id two --trial --allow 0771234567 --allow +94717654321",
			out: []string{`yes, to: \+94771234567, \+94717654321`}},
		{args: "project create Chosen --output json",
			out: []string{`"project_id": "[a-z2-7]{12}"`, `"limit_requests": 600`, `"limit_seconds": 60`}},
		{args: "project list", out: []string{`PROJECT +NAME +STATE`, `acme +Acme Ltd +running +0 +0 +5 per 1m30s +no`,
			`two +Two +running +0 +0 +600 per 1m +yes`}},
		{args: "project pause acme", out: []string{"State +paused"}},
		{args: "project show acme", out: []string{"State +paused", "Balance +0 credits",
			"No credentials", "No integrations"}},
		{args: "project resume acme", out: []string{"State +running"}},
		{args: "project show nobody", exit: app.ExitNotFound,
			errs: []string{"project nobody: not found", "svc project list"}},
		{args: "project", out: []string{"Usage:", "resume"}},
		{args: "projects", exit: app.ExitUsage},
		{args: "project list --output yaml", exit: app.ExitUsage,
			errs: []string{`--output is one of csv, json, table, not "yaml"`}},
		{args: "project list --sort name", exit: app.ExitUsage, errs: []string{"--sort is one of balance, project"}},
		{args: "project list --colour", exit: app.ExitUsage, errs: []string{"unknown flag"}},
		{args: "project list --stage prod", exit: app.ExitUsage, errs: []string{"--local goes without"}},
	})
	f.run(call{args: "project show two --output json",
		out: []string{`"trial": true,\n +"trial_destinations": \[`,
			`"balance": 0,\n +"credentials": \[\],\n +"integrations": \[\]`}})
}

// TestCredentials: a secret is shown once and works; two can be live during a rotation.
func TestCredentials(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "credential issue acme --env staging", exit: app.ExitUsage,
			errs: []string{`--env is one of both, dev, development, prod, production, not "staging"`}},
		{args: "credential issue acme --env prod",
			out: []string{"Environment +production", `Client ID +svc_acme_[a-z2-7]{8}`,
				`Client secret +svcs_\S{43}`}, errs: []string{"shown this once"}},
		{args: "credential issue acme --env prod",
			out: []string{`Request +curl -sS -H 'X-API-KEY: svc_acme_\S+' -H 'X-API-SECRET: svcs_\S+' -H 'X-ENV: production' ` +
				`.*'BASE_URL/utilities/barcode/generate'`}},
		{args: "credential list acme",
			out: []string{`CLIENT ID +ENVIRONMENT +STATE +LIVE SECRETS\nsvc_acme_\S+ +production +active +1\nsvc_acme_\S+ ` +
				`+production +active +1\n$`}, absent: "svcs_"},
	})
	if both := decode[[]credential.Issued](f, "credential issue acme --env both"); len(both) != 2 ||
		both[0].Environment != project.Development || both[1].Environment != project.Production {
		t.Errorf("--env both issued %d credentials", len(both))
	}
	first := decode[credential.Issued](f, "credential issue acme")
	clientID := strings.ReplaceAll(first.ClientID, "_", "~")
	second := decode[credential.Issued](f, "credential rotate "+clientID)
	if second.ClientID != first.ClientID || second.ProjectID != "acme" || second.ClientSecret == first.ClientSecret {
		t.Errorf("%+v after %+v", second.ClientID, first.ClientID)
	}
	live := func(want ...bool) {
		t.Helper()
		cache := project.NewCache(f.stack().Projects.Store, 0)
		for i, s := range []string{first.ClientSecret, second.ClientSecret} {
			_, env, err := cache.Authenticate(t.Context(), first.ClientID, s, "")
			if (err == nil) != want[i] || err == nil && env != project.Development {
				t.Errorf("secret %d: %v", i+1, err)
			}
		}
	}
	live(true, true)
	f.runAll([]call{
		// The client may use the older secret still: no third one ends it.
		{args: "credential rotate " + clientID, exit: app.ExitRefused,
			errs: []string{"a rotation is open", "--finish", "--replace"}},
		{args: "credential rotate " + clientID + " --replace --finish", exit: app.ExitUsage, errs: []string{"not both"}},
	})
	lost := second
	second = decode[credential.Issued](f, "credential rotate "+clientID+" --replace")
	if second.ClientSecret == lost.ClientSecret {
		t.Error("--replace made no other secret")
	}
	live(true, true)
	f.runAll([]call{
		{args: "project show acme", out: []string{first.ClientID + ` +development +active +2`, `production +active +1`}},
		{args: "credential rotate " + clientID + " --finish", out: []string{"one live secret"}},
	})
	live(false, true)
	f.runAll([]call{
		{args: "credential revoke " + clientID, exit: app.ExitRefused,
			errs: []string{`Revoke svc_acme.*\nsvc: Not confirmed. Run again with --yes.\n$`}},
		{args: "credential revoke " + clientID, typed: []string{}, stdin: "n\n", exit: app.ExitRefused,
			errs: []string{`\[y/N\] svc: Not confirmed. Run again with --yes.`}},
		{args: "credential revoke " + clientID + " --yes", out: []string{"revoked"}},
		{args: "credential revoke " + clientID, typed: []string{}, stdin: "y\n", out: []string{"revoked"}},
		{args: "credential rotate " + clientID, exit: app.ExitUsage, errs: []string{"revoked"}},
		{args: "credential revoke svc~acme~aaaaaaaa --yes", exit: app.ExitNotFound},
		{args: "project show acme", out: []string{first.ClientID + ` +development +revoked +0`}},
	})
	live(false, false)
	for _, s := range []string{first.ClientSecret, second.ClientSecret} {
		if strings.Contains(f.printed.String(), s) {
			t.Error("a client secret was printed outside its one showing")
		}
	}
}

// TestIntegrations: settings and secret fields follow the vendor's table; secrets come from a prompt, standard input or
// a file, and are never printed.
func TestIntegrations(t *testing.T) {
	f := newFixture(t)
	const key = "topsecret-1"
	file := f.write(`{"email":"file@example.com","api_key":"topsecret-2"}`)
	const set = "integration set acme sms quicksend --mode byok --setting sender~id=Acme"
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "integration list acme", out: []string{"No integrations"}},
		{args: "integration set acme sms quicksend", exit: app.ExitUsage, errs: []string{"--mode"}},
		{args: "integration set acme sms quicksend --mode free --setting sender~id=Acme", exit: app.ExitUsage,
			errs: []string{`--mode is one of byok, managed, manual, not "free"`}},
		{args: "integration set acme sms quicksend --mode byok --setting api~key=" + key, exit: app.ExitUsage,
			errs: []string{"never as an argument"}},
		{args: "integration set acme sms quicksend --mode byok --setting sender", exit: app.ExitUsage,
			errs: []string{"NAME=VALUE"}},
		{args: set + " --setting unit~price=0,64", exit: app.ExitUsage,
			errs: []string{`unit_price cannot be "0,64"; it is: .*plain decimal such as 0.64`}},
		{args: set + " --setting unit~price=-1", exit: app.ExitUsage, errs: []string{`unit_price cannot be`}},
		{args: set + " --setting native~check~cost=True", exit: app.ExitUsage,
			errs: []string{`native_check_cost cannot be "True"; it is: true asks`}},
		{args: "integration set acme sms aws --mode byok --setting message~type=promo", exit: app.ExitUsage,
			errs: []string{`message_type cannot be "promo"; .*PROMOTIONAL`}},
		{args: set, exit: app.ExitRefused, errs: []string{"lacks secret fields", "api_key", "--incomplete"}},
		{args: set + " --secrets -", stdin: `{"api_key":"` + key, exit: app.ExitUsage,
			errs: []string{"JSON object of texts"}},
		{args: set + " --secrets -", stdin: `{"password":"` + key + `"}`, exit: app.ExitUsage,
			errs: []string{`no secret field "password"`}},
		{args: set + " --setting endpoint=ftp://x", stdin: "", typed: []string{"a@example.com", key}, exit: app.ExitUsage,
			errs: []string{`endpoint is not https: "ftp://x"`}},
		{args: set + " --incomplete --inactive",
			out: []string{`development +sms +quicksend +byok +inactive +0 +endpoint=http://127\S+/quicksend sender_id=Acme ` +
				`+quicksend lacks secret fields`}, errs: []string{"Endpoint: the sandbox, http://127.*/quicksend"}},
		{args: set, typed: []string{"a@example.com", key},
			out:  []string{`byok +inactive +0 +endpoint=\S+ sender_id=Acme +-\n`},
			errs: []string{`api_key \(API key of the account; required\)`}},
		{args: "integration enable acme sms quicksend", out: []string{"byok +active"}},
		{args: "integration set acme sms quicksend --priority 4",
			out: []string{`byok +active +4 +endpoint=\S+ sender_id=Acme`}},
		{args: "integration set acme sms quicksend", typed: []string{}, out: []string{`byok +active +4`}},
		{args: "integration set acme sms quicksend --ask", typed: []string{"", ""}, out: []string{`byok +active +4`},
			errs: []string{"as stored"}},
		{args: set + " --env prod --secrets -", stdin: `{"email":"b@example.com","api_key":"topsecret-3"}`,
			out: []string{`production +sms +quicksend +byok +active +0`}},
		{args: set + " --env prod --secrets " + file, out: []string{`production`}},
		{args: "integration list acme", out: []string{`development +sms`, `production +sms`}},
		{args: "integration list acme --env prod", out: []string{`production +sms`}, absent: "development"},
		{args: "integration disable acme sms quicksend --env prod", out: []string{"byok +inactive"}},
		{args: "integration disable acme sms twilio", exit: app.ExitNotFound, errs: []string{"development/sms/twilio"}},

		// Managed integrations use the service's account.
		{args: "integration set acme sms twilio --mode managed --incomplete", exit: app.ExitRefused,
			errs: []string{"share one mode",
				`svc integration set acme sms twilio --mode managed --incomplete --local --replace\nsvc integration disable acme ` +
					`sms quicksend --env development --local\n`}},
		{args: "integration set acme sms quicksend --mode managed --env prod --secrets -", stdin: `{}`, exit: app.ExitUsage,
			errs: []string{"vendor account"}},
		{args: "integration set acme sms quicksend --mode managed --env prod", exit: app.ExitRefused,
			errs: []string{"lacks secret fields", "vendor account"}},
		{args: "vendor account sms quicksend --env prod --secrets -", stdin: `{"email":"m@example.com"}`,
			exit: app.ExitRefused, errs: []string{"needs api_key"}},
		{args: "vendor account sms quicksend --env prod", typed: []string{"m@example.com", "topsecret-4"},
			out: []string{"svc/" + f.stage + "/sms/managed/accounts", "api_key, email"}},
		{args: "integration set acme sms quicksend --mode managed --env prod",
			out: []string{`production +sms +quicksend +managed +inactive`}},
		{args: "integration enable acme sms quicksend --env prod", out: []string{`managed +active`}},
		{args: "vendor account sms aws", exit: app.ExitUsage, errs: []string{"the function's own role"}},

		// The built-in vendors need nothing.
		{args: "integration set acme barcode builtin --mode byok",
			out: []string{`barcode +builtin +byok +active +0 +- +-\n`}},
		{args: "integration set acme security test --mode managed --env both", exit: app.ExitUsage,
			errs: []string{"the vendor test exists only in development"}},
		{args: "integration set acme location test --mode managed", out: []string{"test +managed +active"}},
		{args: "integration check acme location test", out: []string{"complete"}},
		{args: "integration set acme barcode builtin --setting endpoint=https://x", exit: app.ExitUsage,
			errs: []string{"no setting"}},
	})

	for _, c := range []struct {
		owner         string
		env           project.Environment
		email, apiKey string
	}{
		{"acme", project.Development, "a@example.com", key},
		{"acme", project.Production, "file@example.com", "topsecret-2"},
		{upstream.ManagedOwner, project.Production, "m@example.com", "topsecret-4"},
	} {
		got, err := f.stack().Secrets.Fields(t.Context(), project.SMS, c.owner, c.env, "quicksend")
		if err != nil || !maps.Equal(got, upstream.SecretValues{"email": c.email, "api_key": c.apiKey}) {
			t.Errorf("%s %s: %v, %v", c.owner, c.env, got, err)
		}
	}
	list := decode[[]catalog.View](f, "integration list acme")
	if len(list) != 4 || list[3].Kind != project.SMS || list[3].Mode != project.Managed || list[3].Incomplete != "" {
		t.Errorf("%+v", list)
	}
	f.runAll([]call{
		// Both environments at once: the fields are read once, and a missing integration changes nothing.
		{args: "integration set acme sms textlk --mode byok --env both --setting sender~id=Acme --secrets -",
			stdin: `{"api_token":"topsecret-5"}`, exit: app.ExitRefused, errs: []string{"share one mode"}},
		{args: "integration set acme sms textlk --mode byok --env both --inactive --setting sender~id=Acme --secrets -",
			stdin: `{"api_token":"topsecret-5"}`, out: []string{`development +sms +textlk +byok +inactive .*\nproduction +sms ` +
				`+textlk +byok +inactive`}},
		{args: "integration set acme sms textlk --env both --ask", typed: []string{""},
			errs: []string{"api_token .*Enter: as stored"}},
		// Another operator changes the integration while this one types.
		{args: "integration set acme sms textlk --env dev --ask --priority 7", typed: []string{""}, beside: func() {
			f.run(call{args: "integration set acme sms textlk --env dev --setting unit~price=0.9"})
			f.run(call{args: "integration enable acme sms textlk --env dev"})
		}, out: []string{`byok +active +7 +.*unit_price=0.9`}},
		{args: "integration disable acme sms textlk --env both",
			out: []string{`development .*inactive(.|\n)*production .*inactive`}},
		{args: "integration list acme --env both", out: []string{`development +sms +textlk`, `production +sms +textlk`}},
		{args: "sms test acme textlk --env both --to 0771234567 --yes", exit: app.ExitUsage,
			errs: []string{`--env is one of dev, development, prod, production, not "both"`}},
		{args: "vendor account sms textlk --env both --secrets -", stdin: `{"api_token":"topsecret-6"}`,
			out: []string{"Environment +development(.|\\n)*Environment +production"}},
		// A move of both environments to another vendor, and of one to another mode, in one write.
		{args: "integration set acme sms textlk --mode managed --env both"},
		{args: "integration enable acme sms textlk --env both", exit: app.ExitRefused, errs: []string{
			`\nsvc integration set acme sms textlk --env both --local --replace\nsvc integration disable acme sms quicksend ` +
				`--env development --local\n$`}},
		{args: "integration set acme sms textlk --env both --replace --dry-run", out: []string{
			`acme / project in`, `development#sms#quicksend`, `development#sms#textlk`, `production#sms#quicksend`,
			`production#sms#textlk`}},
		{args: "integration set acme sms textlk --env both --replace",
			out: []string{`development +sms +quicksend +byok +inactive`,
				`development +sms +textlk +managed +active`, `production +sms +quicksend +managed +inactive`,
				`production +sms +textlk +managed +active`}},
		{args: "integration set acme sms quicksend --env dev --mode manual --replace",
			out: []string{`quicksend +byok +active`, `textlk +managed +inactive`}},
		// The vendor of test values replaces the others and is replaced, as any vendor.
		{args: "integration set acme sms test --env dev --mode manual --replace",
			out: []string{`quicksend +byok +inactive`, `test +byok +active`}},
		{args: "integration set acme sms quicksend --env dev --replace",
			out: []string{`quicksend +byok +active`, `test +byok +inactive`}},
	})
	// The local stack calls no real vendor by default.
	for _, o := range catalog.Offers() {
		if o.BuiltIn {
			continue
		}
		response, err := http.Get(f.sandbox.URL + "/" + o.Spec.Name + "/")
		f.must(err)
		_ = response.Body.Close()
		if calls := f.sandbox.Calls(); len(calls) == 0 || calls[len(calls)-1].Vendor != o.Spec.Name {
			t.Errorf("the sandbox does not play %s", o.Spec.Name)
		}
	}
	if strings.Contains(f.printed.String(), "topsecret") {
		t.Errorf("a vendor's secret was printed:\n%s", f.printed.String())
	}
}

// TestOutage: a vendor that is out is set aside for all projects that have another one, and --end makes exactly those
// active again, also after an interruption (docs/decisions/operating.md#vendor-outage).
func TestOutage(t *testing.T) {
	f := newFixture(t)
	set := func(project, vendor, rest string) call {
		return call{args: "integration set " + project + " sms " + vendor + " --env prod --mode managed --setting " +
			"sender~id=A " + rest}
	}
	f.runAll([]call{
		{args: "vendor account sms quicksend --env both --secrets -", stdin: `{"email":"` + sandbox.QuickSendEmail +
			`","api_key":"` + sandbox.QuickSendAPIKey + `"}`},
		{args: "vendor account sms twilio --env prod --secrets -", stdin: `{"account_sid":"` + sandbox.TwilioAccountSID +
			`","auth_token":"` + sandbox.TwilioAuthToken + `"}`},
		{args: "project create A --id chain"}, set("chain", "quicksend", ""), set("chain", "twilio", "--priority 2"),
		{args: "integration set chain sms quicksend --env dev --mode managed --setting sender~id=A"},
		{args: "project create A --id last"}, set("last", "quicksend", ""), set("last", "textlk", "--incomplete"),
		{args: "project create A --id off"}, set("off", "quicksend", "--inactive"),
		{args: "project create A --id second"}, set("second", "quicksend", "--priority 1"), set("second", "twilio", ""),
	})
	const out, end = "vendor outage sms quicksend --env production", "vendor outage sms quicksend --env prod --end"
	f.runAll([]call{
		{args: "integration disable chain sms quicksend", exit: app.ExitUsage,
			errs: []string{"both environments of chain have sms quicksend: give --env development, production or both"}},
		{args: "integration set chain sms quicksend --priority 3", exit: app.ExitUsage, errs: []string{"give --env"}},
		{args: "integration list", out: []string{`sms +quicksend +development +managed +active +0 +chain\n`,
			`sms +quicksend +production +managed +active +0 +chain last\n`, `quicksend +production +managed +inactive +0 +off`,
			`quicksend +production +managed +active +1 +second\n`, `twilio +production +managed +active +2 +chain`}},
		{args: "integration list --env dev", out: []string{"quicksend"}, absent: "production"},
		{args: "vendor outage sms quicksend", exit: app.ExitUsage, errs: []string{"give --env"}},
		{args: "vendor outage sms nobody --env prod", exit: app.ExitUsage},
		{args: out + " --apply --end", exit: app.ExitUsage, errs: []string{"give --apply"}},
		{args: out + " --also-last", exit: app.ExitUsage, errs: []string{"give --apply"}},
		{args: "vendor outage sms hutch --env prod", out: []string{"No project uses sms hutch in production."}},
		{args: out, out: []string{`chain +active +twilio +-\n`, `last +active +- +no other vendor\n`,
			`second +active +twilio`}, absent: "off", errs: []string{"svc vendor outage .* --apply"}},
		{args: out + " --apply --dry-run", out: []string{"."}},
	})
	// interrupted after the first project
	f.must(f.stack().Projects.EditIntegrations(t.Context(), "chain",
		func(rec *project.Record) ([]project.Integration, error) {
			i := admin.Integration(rec, project.Production, project.SMS, "quicksend")
			i.Active, i.SetAside = false, true
			return []project.Integration{*i}, nil
		}))
	f.runAll([]call{
		{args: out + " --apply", exit: app.ExitFailed, reports: true,
			out:  []string{`chain +set_aside +twilio`, `last +left +- +no other vendor`, `second +set_aside +twilio`},
			errs: []string{"1 project is left as before", "--also-last"}},
		{args: "integration list chain", out: []string{`production +sms +quicksend +managed +set aside`,
			`development +sms +quicksend +managed +active`}},
		{args: "integration enable second sms quicksend --env prod", out: []string{"active +1"}}, // the operator's own choice
		{args: "integration disable second sms quicksend --env prod", out: []string{"inactive +1"}},
		{args: out + " --apply --also-last", out: []string{`last +set_aside`}},
		{args: "integration list last", out: []string{`quicksend +managed +set aside`}},
		{args: "integration disable chain sms twilio", out: []string{"twilio +managed +inactive"}},
		{args: "vendor account sms textlk --env prod --project chain --secrets -", stdin: "{}", exit: app.ExitNotFound},
		{args: end, out: []string{`chain +restored`, `last +restored`}, absent: "off|second"},
		{args: end, out: []string{"No project uses"}},
		{args: "integration list --env prod", out: []string{`quicksend +production +managed +active +0 +chain last\n`,
			`quicksend +production +managed +inactive +0 +off\n`, `quicksend +production +managed +inactive +1 +second\n`}},
	})
}

// TestCredits: a grant counts once by its ID and names its actor; the ledger shows it.
func TestCredits(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "project create Acme --id acme"},
		{args: "credit balance acme", out: []string{"Balance +0 credits"}},
		{args: "credit ledger acme", out: []string{"No entries"}},
		{args: "credit grant acme -5 --reason x", exit: app.ExitUsage,
			errs: []string{`CREDITS is not negative here; "svc credit adjust PROJECT --by CREDITS" removes`}},
		{args: "credit grant acme 2305843009213693952 --reason x", exit: app.ExitUsage,
			errs: []string{`CREDITS is a whole number from 1 to 2,305,843,009,213,693,951, not "2305843009213693952"`}},
		{args: "credit adjust acme --by 99999999999999999999 --reason x", exit: app.ExitUsage,
			errs: []string{`--by is a whole number from -2,305,843,009,213,693,951 to 2,305,843,009,213,693,951, not "9{20}"`}},
		{args: "credit grant acme --reason x", exit: app.ExitUsage, errs: []string{"svc: missing CREDITS, or --file\n"}},
		{args: "credit balance acme acme", exit: app.ExitUsage, errs: []string{`svc: one argument too many: "acme"`}},
		{args: "credit grant acme 5", exit: app.ExitUsage, errs: []string{"--reason"}},
		{args: "credit grant acme 5 --reason x --id 7", exit: app.ExitUsage, errs: []string{"--id"}},
		{args: "credit ledger acme --day monday", exit: app.ExitUsage,
			errs: []string{"--day is a UTC date such as 2026-03-31, today or yesterday.* not \"monday\""}},
		{args: "credit ledger acme --days 0", exit: app.ExitUsage},
		{args: "credit ledger acme --month 11", exit: app.ExitUsage, errs: []string{"such as 2026-03"}},
		{args: "credit ledger acme --month 2026-03 --day today", exit: app.ExitUsage, errs: []string{"or --month, or"}},
		{args: "credit ledger acme --from yesterday --to 2021-01-01", exit: app.ExitUsage,
			errs: []string{"--from is not after --to"}},
		{args: "credit ledger acme --to yesterday", exit: app.ExitUsage, errs: []string{"--from with --to"}},
		{args: "credit ledger acme --from 2019-12-31", exit: app.ExitUsage,
			errs: []string{"--from is of 2019-12-31; it can be of 2020-01-01 to today"}},
	})
	g := decode[creditcmd.Moved](f, "credit grant acme 10000000 --reason invoice_2031")
	if g.Balance != 10_000_000 || g.Actor != "local" {
		t.Errorf("%+v", g)
	}
	id := string(g.ID)
	f.runAll([]call{
		{args: "credit grant acme 10000000 --reason again --id " + id, out: []string{"Balance +10,000,000 credits"}},
		{args: "credit grant acme 7 --reason again --id " + id, exit: app.ExitRefused,
			errs: []string{"^svc: .*another movement.*\n +Omit --id"}},
		{args: "credit grant acme 7 --reason more", out: []string{"Balance +10,000,007 credits"}},
		{args: "credit balance acme", out: []string{`10,000,007 credits \(10.000007 USD\)`}},
		{args: "project show acme", out: []string{`Balance +10,000,007 credits \(10.000007 USD\)`}},
		{args: "credit ledger acme", out: []string{`^ID +TIME +STATE +CREDITS +USD +OPERATION .*\n` + id +
			` .*\+10,000,000 +\+10.00 `}},
		{args: "credit ledger acme --output csv",
			out: []string{`^ID,TIME,STATE,CREDITS,USD,OPERATION,ENVIRONMENT,VENDOR,VENDOR ID,REQUEST,NOTE,` +
				`REFERENCE\n` + id + `,20\S+Z,grant,10000000,10.00,,,,,[0-9a-f-]+,"invoice 2031, by local",\n`}},
		{args: "credit ledger acme --days 2",
			out: []string{`:\d\d UTC +grant +\+10,000,000 .* invoice 2031, by local`,
				`grant +\+7 .* more, by local`}, absent: "again"},
		{args: "credit ledger acme --days 2 --output json",
			out: []string{`"id": "` + id + `",\n +"state": "grant",\n +"credits": 10000000`, `"actor": "local"`}},
		{args: "credit ledger acme --day 2020-01-01", out: []string{"No entries"}},
		{args: "credit ledger acme --day yesterday", out: []string{"No entries"}},
		{args: "credit ledger acme --days 400", out: []string{id}},
		{args: "credit ledger acme --from yesterday", out: []string{id}},
		{args: "credit ledger acme --month " + time.Now().UTC().Format("2006-01"), out: []string{id}},
		{args: "credit ledger acme --uncertain", out: []string{"No entries"}},
	})
}

// TestVendors: svc lists each vendor with its settings and secret fields.
func TestVendors(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		{args: "vendor list", out: []string{
			`sms +quicksend +QuickSend.lk +sender_id\* .*endpoint .* +email\* api_key\*\n`,
			`location +ipinfo-lite +ipinfo.io Lite +endpoint +token\*`, `pdf +builtin +Built in`,
			`\n\nKIND +VENDOR +TITLE .*\nsecurity `}},
		{args: "vendor list sms quicksend", out: []string{
			`sms +quicksend +QuickSend.lk +sender_id +setting +yes`, `sms +quicksend +QuickSend.lk +endpoint +setting +no`,
			`sms +quicksend +QuickSend.lk +api_key +secret +yes`}, absent: "twilio"},
		{args: "vendor list sms aws", out: []string{`sms +aws +.* +access_key_id +secret +byok only`}},
		{args: "vendor list sms nobody", exit: app.ExitUsage, errs: []string{`no vendor "nobody"`}},
		{args: "vendor list sms ultimatesms",
			out: []string{`sms +ultimatesms +Ultimate SMS \(gateway of your choice\) +endpoint +setting +yes`}},
		{args: "vendor list pdf", out: []string{"builtin"}, absent: "sms"},
		{args: "vendor list fax", exit: app.ExitUsage},
	})
	for _, o := range catalog.Offers() {
		for _, f := range append(o.Settings(), o.Spec.Secrets...) {
			if _, err := regexp.Compile(f.Pattern); err != nil {
				t.Errorf("%s %s: %v", o.Spec.Name, f.Name, err)
			}
		}
	}
}

// TestNoStack: the error of a command that cannot reach a stack.
func TestNoStack(t *testing.T) {
	f := newFixture(t)
	const nowhere = "http://127.0.0.1:1"
	t.Chdir(t.TempDir())
	f.run(call{args: "project list", exit: app.ExitFailed, errs: []string{"no local stack", "make run"}})
	t.Chdir(f.dir)
	for _, c := range []struct {
		changes map[string]any
		errs    string
	}{
		{map[string]any{"dynamodb_url": 5}, "make run"},
		{map[string]any{"stage": "nowhere"}, "tables of the stage do not exist"},
		{map[string]any{"dynamodb_url": nowhere, "secrets_url": nowhere}, "connection was refused"},
	} {
		f.announce(c.changes)
		f.run(call{args: "project list", exit: app.ExitFailed, errs: []string{c.errs}})
	}
	signIn(t, "")
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	for _, c := range []call{
		{args: "project list", exit: app.ExitUsage, errs: []string{"--region"}},
		{args: "project list --region us-east-1", exit: app.ExitFailed,
			errs: []string{"no AWS credentials.*\n.*aws sso login"}},
		{args: "project list --region us-east-1 --profile nobody", exit: app.ExitFailed,
			errs: []string{"no AWS credentials"}},
	} {
		c.run(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	k := app.Console{In: strings.NewReader(""), Out: &out, Errs: &errs}
	if exit := run(ctx, k, []string{"project", "list", "--local"}); exit != app.ExitInterrupted {
		t.Errorf("interrupted: exit %d, %s", exit, errs.String())
	}
}

// TestStage: with AWS credentials, commands use the tables of --stage at the endpoints of the AWS_ variables.
func TestStage(t *testing.T) {
	f := newFixture(t)
	f.run(call{args: "project create Acme --id acme"})
	signIn(t, enginetest.URL(t))
	for _, c := range []struct {
		stage string
		call
	}{
		{"", call{args: "project list --stage " + f.stage, out: []string{"acme"}}},
		{f.stage, call{args: "project list", out: []string{"acme"}}},
		{f.stage, call{args: "project list --stage other", exit: app.ExitFailed}},
		{"", call{args: "project list", exit: app.ExitFailed}},
	} {
		t.Setenv("SVC_STAGE", c.stage)
		c.run(t)
	}
}

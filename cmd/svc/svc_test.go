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
	dir       string         // with the file and the logs of the local stack
	announced map[string]any // the content of that file
	// printed is the output of all commands without the outputs that show a client secret.
	printed strings.Builder
}

// newFixture returns a stage after the commands of its set-up. No command of the test may print a secret of a vendor.
func newFixture(t *testing.T, setUp ...string) *fixture {
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
	t.Cleanup(func() {
		for _, s := range append(sandbox.Secrets(), "topsecret") {
			if strings.Contains(f.printed.String(), s) {
				t.Errorf("a vendor's secret was printed:\n%s", f.printed.String())
			}
		}
	})
	f.announced = map[string]any{"stage": f.stage, "dynamodb_url": enginetest.URL(t), "secrets_url": f.vault.URL,
		"sandbox_url": f.sandbox.URL, "log_dir": f.dir}
	f.announce(nil)
	inner := filepath.Join(f.dir, "a", "b")
	f.must(os.MkdirAll(inner, 0o755))
	t.Chdir(inner) // the file is found from below
	for _, args := range setUp {
		f.run(call{args: args})
	}
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

// accountAt returns the secret fields that the sandbox accepts as a vendor, as JSON.
func accountAt(vendor string) string {
	text, _ := json.Marshal(sandbox.Account(vendor)) // texts have no error
	return string(text)
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

// shows is a command that succeeds, with patterns of its output; the next ones fail, with patterns of their error.
func shows(args string, out ...string) call { return call{args: args, out: out} }
func misuse(args string, errs ...string) call {
	return call{args: args, exit: app.ExitUsage, errs: errs}
}
func notFound(args string, errs ...string) call {
	return call{args: args, exit: app.ExitNotFound, errs: errs}
}
func refused(args string, errs ...string) call {
	return call{args: args, exit: app.ExitRefused, errs: errs}
}
func fails(args string, errs ...string) call {
	return call{args: args, exit: app.ExitFailed, errs: errs}
}

// finds is a command that prints its findings and also ends in an error.
func finds(args string, out ...string) call {
	return call{args: args, exit: app.ExitFailed, out: out, reports: true}
}

// The methods return the command with another input or other expectations.
func (c call) given(stdin string) call     { c.stdin = stdin; return c }
func (c call) typing(lines ...string) call { c.typed = append([]string{}, lines...); return c }
func (c call) notes(errs ...string) call   { c.errs = errs; return c }
func (c call) without(pattern string) call { c.absent = pattern; return c }

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
		Filters:                []types.Filter{{Key: types.FilterNameStringTypeName, Values: []string{"svc/"}}},
		IncludePlannedDeletion: new(true),
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
	return decodeText[T](f.t, f.run(call{args: args + " --output json"}))
}

// decodeText decodes what a command with --output json has printed.
func decodeText[T any](t *testing.T, out string) (v T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v\n%s", err, out)
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
		shows("project list", "No projects yet"),
		shows("project list --output json", `^\[\]\n$`),
		shows("project create Acme_Ltd --id acme --requests 5 --window 90s", `Project +acme\n`, `Name +Acme Ltd\n`,
			`5 per 1m30s`, `Trial +no\n`, `State +running`).notes(`Not limited: messages to one number, credits of a day, SMS ` +
			`units of a day. This command limits them:\nsvc project limits acme --per-recipient 5/10m,20/24h --daily-credits ` +
			`5000000 --daily-units 2000 --local\n`),
		shows("project create Safe --id safe --per-recipient 3/1h --daily-credits 7", `Per recipient +3/1h\n`,
			`Daily credits +7 `).notes(`^Not limited: SMS units of a day. This command limits them:\nsvc project limits safe ` +
			`--daily-units 2000 --local\n$`),
		refused("project create Acme --id acme", "project acme: exists already", "another ID"),
		misuse("project create Acme --requests 0", "limit of 0"),
		misuse("project create Acme --requests abc", `svc: --requests is a whole number, not "abc"\n`),
		misuse("project create Acme --window ten", `svc: --window is a time such as 90s or 5m, not "ten"\n`),
		misuse("project create Acme --trial", "--trial needs --allow"),
		misuse("project create Acme --allow 0771234567", "--trial"),
		misuse("project create", "missing NAME\n", "--help"),
		shows("project create Two --id two --trial --allow 0771234567 --allow +94717654321",
			`yes, to: \+94771234567, \+94717654321`),
		shows("project create Chosen --output json", `"project_id": "[a-z2-7]{12}"`, `"limit_requests": 600`,
			`"limit_seconds": 60`),
		shows("project list", `PROJECT +NAME +STATE`, `acme +Acme Ltd +running +0 +0 +5 per 1m30s +no`,
			`two +Two +running +0 +0 +600 per 1m +yes`),
		shows("project pause acme", "State +paused"),
		shows("project show acme", "State +paused", "Balance +0 credits", "No credentials", "No integrations"),
		shows("project resume acme", "State +running"),
		notFound("project show nobody", "project nobody: not found", "svc project list"),
		shows("project", "Usage:", "resume"),
		misuse("projects"),
		misuse("project list --output yaml", `--output is one of csv, json, table, not "yaml"`),
		misuse("project list --sort name", "--sort is one of balance, project"),
		misuse("project list --colour", "unknown flag"),
		misuse("project list --stage prod", "--local goes without"),
	})
	f.run(shows("project show two --output json", `"trial": true,\n +"trial_destinations": \[`,
		`"balance": 0,\n +"credentials": \[\],\n +"integrations": \[\]`))
}

// TestCredentials: a secret is shown once and works; two can be live during a rotation.
func TestCredentials(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme")
	f.runAll([]call{
		misuse("credential issue acme --env staging",
			`--env is one of both, dev, development, prod, production, not "staging"`),
		shows("credential issue acme --env prod", "Environment +production", `Client ID +svc_acme_[a-z2-7]{8}`,
			`Client secret +svcs_\S{43}`).notes("shown this once"),
		shows("credential issue acme --env prod", `Request +curl -sS -H 'X-API-KEY: svc_acme_\S+' -H 'X-API-SECRET: `+
			`svcs_\S+' -H 'X-ENV: production' .*'BASE_URL/utilities/barcode/generate'`),
		shows("credential list acme", `CLIENT ID +ENVIRONMENT +STATE +LIVE `+
			`SECRETS\nsvc_acme_\S+ +production +active +1\nsvc_acme_\S+ +production +active +1\n$`).without("svcs_"),
	})
	if both := decode[[]issuedSecret](f, "credential issue acme --env both"); len(both) != 2 ||
		both[0].Environment != project.Development || both[1].Environment != project.Production {
		t.Errorf("--env both issued %d credentials", len(both))
	}
	first := decode[issuedSecret](f, "credential issue acme")
	clientID := strings.ReplaceAll(first.ClientID, "_", "~")
	second := decode[issuedSecret](f, "credential rotate "+clientID)
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
		refused("credential rotate "+clientID, "a rotation is open", "--finish", "--replace"),
		misuse("credential rotate "+clientID+" --replace --finish", "not both"),
	})
	lost := second
	second = decode[issuedSecret](f, "credential rotate "+clientID+" --replace")
	if second.ClientSecret == lost.ClientSecret {
		t.Error("--replace made no other secret")
	}
	live(true, true)
	f.runAll([]call{
		shows("project show acme", first.ClientID+` +development +active +2`, `production +active +1`),
		shows("credential rotate "+clientID+" --finish", "one live secret"),
	})
	live(false, true)
	f.runAll([]call{
		refused("credential revoke "+clientID, `Revoke svc_acme.*\nsvc: Not confirmed. Run again with --yes.\n$`),
		refused("credential revoke "+clientID, `\[y/N\] svc: Not confirmed. Run again with --yes.`).given("n\n").typing(),
		shows("credential revoke "+clientID+" --yes", "revoked"),
		shows("credential revoke "+clientID, "revoked").given("y\n").typing(),
		misuse("credential rotate "+clientID, "revoked"),
		notFound("credential revoke svc~acme~aaaaaaaa --yes"),
		shows("project show acme", first.ClientID+` +development +revoked +0`),
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
	f := newFixture(t, "project create Acme --id acme")
	const key = "topsecret-1"
	file := f.write(`{"email":"file@example.com","api_key":"topsecret-2"}`)
	const set = "integration set acme sms quicksend --mode byok --setting sender~id=Acme"
	f.runAll([]call{
		shows("integration list acme", "No integrations"),
		misuse("integration set acme sms quicksend", "--mode"),
		misuse("integration set acme sms quicksend --mode free --setting sender~id=Acme",
			`--mode is one of byok, managed, manual, not "free"`),
		misuse("integration set acme sms quicksend --mode byok --setting api~key="+key, "never as an argument"),
		misuse("integration set acme sms quicksend --mode byok --setting sender", "NAME=VALUE"),
		misuse(set+" --setting unit~price=0,64", `unit_price cannot be "0,64"; it is: .*plain decimal such as 0.64`),
		misuse(set+" --setting unit~price=-1", `unit_price cannot be`),
		misuse(set+" --setting native~check~cost=True", `native_check_cost cannot be "True"; it is: true asks`),
		misuse("integration set acme sms aws --mode byok --setting message~type=promo",
			`message_type cannot be "promo"; .*PROMOTIONAL`),
		refused(set, "lacks secret fields", "api_key", "--incomplete"),
		misuse(set+" --secrets -", "JSON object of texts").given(`{"api_key":"` + key),
		misuse(set+" --secrets -", `no secret field "password"`).given(`{"password":"` + key + `"}`),
		misuse(set+" --setting endpoint=ftp://x", `endpoint is not https: "ftp://x"`).typing("a@example.com", key),
		shows(set+" --incomplete --inactive",
			`development +sms +quicksend +byok +inactive +0 +endpoint=http://127\S+/quicksend sender_id=Acme +quicksend lacks `+
				`secret fields`).notes("Endpoint: the sandbox, http://127.*/quicksend"),
		shows(set, `byok +inactive +0 +endpoint=\S+ sender_id=Acme +-\n`).
			notes(`api_key \(API key of the account; required\)`).typing("a@example.com", key),
		shows("integration enable acme sms quicksend", "byok +active"),
		shows("integration set acme sms quicksend --priority 4", `byok +active +4 +endpoint=\S+ sender_id=Acme`),
		shows("integration set acme sms quicksend", `byok +active +4`).typing(),
		shows("integration set acme sms quicksend --ask", `byok +active +4`).notes("as stored").typing("", ""),
		shows(set+" --env prod --secrets -", `production +sms +quicksend +byok +active +0`).
			given(`{"email":"b@example.com","api_key":"topsecret-3"}`),
		shows(set+" --env prod --secrets "+file, `production`),
		shows("integration list acme", `development +sms`, `production +sms`),
		shows("integration list acme --env prod", `production +sms`).without("development"),
		shows("integration disable acme sms quicksend --env prod", "byok +inactive"),
		notFound("integration disable acme sms twilio", "development/sms/twilio"),

		// Managed integrations use the service's account.
		refused("integration set acme sms twilio --mode managed --incomplete", "share one mode", `svc integration set acme `+
			`sms twilio --mode managed --incomplete --local --replace\nsvc integration disable acme sms quicksend --env `+
			`development --local\n`),
		misuse("integration set acme sms quicksend --mode managed --env prod --secrets -", "vendor account").given(`{}`),
		refused("integration set acme sms quicksend --mode managed --env prod", "lacks secret fields", "vendor account"),
		refused("vendor account sms quicksend --env prod --secrets -", "needs api_key").given(`{"email":"m@example.com"}`),
		shows("vendor account sms quicksend --env prod", "svc/"+f.stage+"/sms/managed/accounts", "api_key, email").
			typing("m@example.com", "topsecret-4"),
		shows("integration set acme sms quicksend --mode managed --env prod",
			`production +sms +quicksend +managed +inactive`),
		shows("integration enable acme sms quicksend --env prod", `managed +active`),
		misuse("vendor account sms aws", "the function's own role"),

		// The built-in vendors need nothing.
		shows("integration set acme barcode builtin --mode byok", `barcode +builtin +byok +active +0 +- +-\n`),
		misuse("integration set acme security test --mode managed --env both", "the vendor test exists only in development"),
		shows("integration set acme location test --mode managed", "test +managed +active"),
		shows("integration check acme location test", "complete"),
		misuse("integration set acme barcode builtin --setting endpoint=https://x", "no setting"),
	})

	stored := func(owner string, env project.Environment, email, apiKey string) {
		t.Helper()
		got, err := f.stack().Secrets.Fields(t.Context(), project.SMS, owner, env, "quicksend")
		if err != nil || !maps.Equal(got, upstream.SecretValues{"email": email, "api_key": apiKey}) {
			t.Errorf("%s %s: %v, %v", owner, env, got, err)
		}
	}
	stored("acme", project.Development, "a@example.com", key)
	stored("acme", project.Production, "file@example.com", "topsecret-2")
	stored(upstream.ManagedOwner, project.Production, "m@example.com", "topsecret-4")
	list := decode[[]catalog.View](f, "integration list acme")
	if len(list) != 4 || list[3].Kind != project.SMS || list[3].Mode != project.Managed || list[3].Incomplete != "" {
		t.Errorf("%+v", list)
	}
	f.runAll([]call{
		// Both environments at once: the fields are read once, and a missing integration changes nothing.
		refused("integration set acme sms textlk --mode byok --env both --setting sender~id=Acme --secrets -",
			"share one mode").given(`{"api_token":"topsecret-5"}`),
		shows("integration set acme sms textlk --mode byok --env both --inactive --setting sender~id=Acme --secrets -",
			`development +sms +textlk +byok +inactive .*\nproduction +sms +textlk +byok +inactive`).
			given(`{"api_token":"topsecret-5"}`),
		shows("integration set acme sms textlk --env both --ask").notes("api_token .*Enter: as stored").typing(""),
		// Another operator changes the integration while this one types.
		{args: "integration set acme sms textlk --env dev --ask --priority 7", typed: []string{""}, beside: func() {
			f.run(call{args: "integration set acme sms textlk --env dev --setting unit~price=0.9"})
			f.run(call{args: "integration enable acme sms textlk --env dev"})
		}, out: []string{`byok +active +7 +.*unit_price=0.9`}},
		shows("integration disable acme sms textlk --env both", `development .*inactive(.|\n)*production .*inactive`),
		shows("integration list acme --env both", `development +sms +textlk`, `production +sms +textlk`),
		misuse("sms test acme textlk --env both --to 0771234567 --yes",
			`--env is one of dev, development, prod, production, not "both"`),
		shows("vendor account sms textlk --env both --secrets -", "Environment +development(.|\\n)*Environment +production").
			given(`{"api_token":"topsecret-6"}`),
		// A move of both environments to another vendor, and of one to another mode, in one write.
		{args: "integration set acme sms textlk --mode managed --env both"},
		refused("integration enable acme sms textlk --env both", `\nsvc integration set acme sms textlk --env both --local `+
			`--replace\nsvc integration disable acme sms quicksend --env development --local\n$`),
		shows("integration set acme sms textlk --env both --replace --dry-run", `acme / project in`,
			`development#sms#quicksend`, `development#sms#textlk`, `production#sms#quicksend`, `production#sms#textlk`),
		shows("integration set acme sms textlk --env both --replace", `development +sms +quicksend +byok +inactive`,
			`development +sms +textlk +managed +active`, `production +sms +quicksend +managed +inactive`,
			`production +sms +textlk +managed +active`),
		shows("integration set acme sms quicksend --env dev --mode manual --replace", `quicksend +byok +active`,
			`textlk +managed +inactive`),
		// The vendor of test values replaces the others and is replaced, as any vendor.
		shows("integration set acme sms test --env dev --mode manual --replace", `quicksend +byok +inactive`,
			`test +byok +active`),
		shows("integration set acme sms quicksend --env dev --replace", `quicksend +byok +active`, `test +byok +inactive`),
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
}

// TestOutage: a vendor that is out is set aside for all projects that have another one, and --end makes exactly those
// active again, also after an interruption (docs/decisions/operating.md#vendor-outage).
func TestOutage(t *testing.T) {
	f := newFixture(t)
	set := func(project, vendor, rest string) call {
		return call{args: "integration set " + project + " sms " + vendor + " --env prod --mode managed --setting " +
			"sender~id=A " + rest}
	}
	const out, end = "vendor outage sms quicksend --env production", "vendor outage sms quicksend --env prod --end"
	f.runAll([]call{
		shows("vendor account sms quicksend --env both --secrets -").given(accountAt("quicksend")),
		shows("vendor account sms twilio --env prod --secrets -").given(accountAt("twilio")),
		{args: "project create A --id chain"}, set("chain", "quicksend", ""), set("chain", "twilio", "--priority 2"),
		{args: "integration set chain sms quicksend --env dev --mode managed --setting sender~id=A"},
		{args: "project create A --id last"}, set("last", "quicksend", ""), set("last", "textlk", "--incomplete"),
		{args: "project create A --id off"}, set("off", "quicksend", "--inactive"),
		{args: "project create A --id second"}, set("second", "quicksend", "--priority 1"), set("second", "twilio", ""),
		misuse("integration disable chain sms quicksend",
			"both environments of chain have sms quicksend: give --env development, production or both"),
		misuse("integration set chain sms quicksend --priority 3", "give --env"),
		shows("integration list", `sms +quicksend +development +managed +active +0 +chain\n`,
			`sms +quicksend +production +managed +active +0 +chain last\n`, `quicksend +production +managed +inactive +0 +off`,
			`quicksend +production +managed +active +1 +second\n`, `twilio +production +managed +active +2 +chain`),
		shows("integration list --env dev", "quicksend").without("production"),
		misuse("vendor outage sms quicksend", "give --env"),
		misuse("vendor outage sms nobody --env prod"),
		misuse(out+" --apply --end", "give --apply"),
		misuse(out+" --also-last", "give --apply"),
		shows("vendor outage sms hutch --env prod", "No project uses sms hutch in production."),
		shows(out, `chain +active +twilio +-\n`, `last +active +- +no other vendor\n`, `second +active +twilio`).
			notes("svc vendor outage .* --apply").without("off"),
		shows(out+" --apply --dry-run", "."),
	})
	// interrupted after the first project
	f.must(f.stack().Projects.EditIntegrations(t.Context(), "chain",
		func(rec *project.Record) ([]project.Integration, error) {
			i := admin.Integration(rec, project.Production, project.SMS, "quicksend")
			i.Active, i.SetAside = false, true
			return []project.Integration{*i}, nil
		}))
	f.runAll([]call{
		finds(out+" --apply", `chain +set_aside +twilio`, `last +left +- +no other vendor`, `second +set_aside +twilio`).
			notes("1 project is left as before", "--also-last"),
		shows("integration list chain", `production +sms +quicksend +managed +set aside`,
			`development +sms +quicksend +managed +active`),
		shows("integration enable second sms quicksend --env prod", "active +1"), // the operator's own choice
		shows("integration disable second sms quicksend --env prod", "inactive +1"),
		shows(out+" --apply --also-last", `last +set_aside`),
		shows("integration list last", `quicksend +managed +set aside`),
		shows("integration disable chain sms twilio", "twilio +managed +inactive"),
		notFound("vendor account sms textlk --env prod --project chain --secrets -").given("{}"),
		shows(end, `chain +restored`, `last +restored`).without("off|second"),
		shows(end, "No project uses"),
		shows("integration list --env prod", `quicksend +production +managed +active +0 +chain last\n`,
			`quicksend +production +managed +inactive +0 +off\n`, `quicksend +production +managed +inactive +1 +second\n`),
	})
}

// TestCredits: a grant counts once by its ID and names its actor; the ledger shows it.
func TestCredits(t *testing.T) {
	f := newFixture(t, "project create Acme --id acme")
	f.runAll([]call{
		shows("credit balance acme", "Balance +0 credits"),
		shows("credit ledger acme", "No entries"),
		misuse("credit grant acme -5 --reason x",
			`CREDITS is not negative here; "svc credit adjust PROJECT --by CREDITS" removes`),
		misuse("credit grant acme 2305843009213693952 --reason x",
			`CREDITS is a whole number from 1 to 2,305,843,009,213,693,951, not "2305843009213693952"`),
		misuse("credit adjust acme --by 99999999999999999999 --reason x",
			`--by is a whole number from -2,305,843,009,213,693,951 to 2,305,843,009,213,693,951, not "9{20}"`),
		misuse("credit grant acme --reason x", "svc: missing CREDITS, or --file\n"),
		misuse("credit balance acme acme", `svc: one argument too many: "acme"`),
		misuse("credit grant acme 5", "--reason"),
		misuse("credit grant acme 5 --reason x --id 7", "--id"),
		misuse("credit ledger acme --day monday",
			"--day is a UTC date such as 2026-03-31, today or yesterday.* not \"monday\""),
		misuse("credit ledger acme --days 0"),
		misuse("credit ledger acme --month 11", "such as 2026-03"),
		misuse("credit ledger acme --month 2026-03 --day today", "or --month, or"),
		misuse("credit ledger acme --from yesterday --to 2021-01-01", "--from is not after --to"),
		misuse("credit ledger acme --to yesterday", "--from with --to"),
		misuse("credit ledger acme --from 2019-12-31", "--from is of 2019-12-31; it can be of 2020-01-01 to today"),
	})
	g := decode[movedCredits](f, "credit grant acme 10000000 --reason invoice_2031")
	if g.Balance != 10_000_000 || g.Actor != "local" {
		t.Errorf("%+v", g)
	}
	id := string(g.ID)
	f.runAll([]call{
		shows("credit grant acme 10000000 --reason again --id "+id, "Balance +10,000,000 credits"),
		refused("credit grant acme 7 --reason again --id "+id, "^svc: .*another movement.*\n +Omit --id"),
		shows("credit grant acme 7 --reason more", "Balance +10,000,007 credits"),
		shows("credit balance acme", `10,000,007 credits \(10.000007 USD\)`),
		shows("project show acme", `Balance +10,000,007 credits \(10.000007 USD\)`),
		shows("credit ledger acme", `^ID +TIME +STATE +CREDITS +USD +OPERATION .*\n`+id+` .*\+10,000,000 +\+10.00 `),
		shows("credit ledger acme --output csv",
			`^ID,TIME,STATE,CREDITS,USD,OPERATION,ENVIRONMENT,VENDOR,VENDOR ID,REQUEST,NOTE,REFERENCE\n`+id+
				`,20\S+Z,grant,10000000,10.00,,,,,[0-9a-f-]+,"invoice 2031, by local",\n`),
		shows("credit ledger acme --days 2", `:\d\d UTC +grant +\+10,000,000 .* invoice 2031, by local`,
			`grant +\+7 .* more, by local`).without("again"),
		shows("credit ledger acme --days 2 --output json", `"id": "`+id+`",\n +"state": "grant",\n +"credits": 10000000`,
			`"actor": "local"`),
		shows("credit ledger acme --day 2020-01-01", "No entries"),
		shows("credit ledger acme --day yesterday", "No entries"),
		shows("credit ledger acme --days 400", id),
		shows("credit ledger acme --from yesterday", id),
		shows("credit ledger acme --month "+time.Now().UTC().Format("2006-01"), id),
	})
}

// TestVendors: svc lists each vendor with its settings and secret fields.
func TestVendors(t *testing.T) {
	f := newFixture(t)
	f.runAll([]call{
		shows("vendor list", `sms +quicksend +QuickSend.lk +sender_id\* .*endpoint .* +email\* api_key\*\n`,
			`location +ipinfo-lite +ipinfo.io Lite +endpoint +token\*`, `pdf +builtin +Built in`,
			`\n\nKIND +VENDOR +TITLE .*\nsecurity `),
		shows("vendor list sms quicksend", `sms +quicksend +QuickSend.lk +sender_id +setting +yes`,
			`sms +quicksend +QuickSend.lk +endpoint +setting +no`, `sms +quicksend +QuickSend.lk +api_key +secret +yes`).
			without("twilio"),
		shows("vendor list sms aws", `sms +aws +.* +access_key_id +secret +byok only`),
		misuse("vendor list sms nobody", `no vendor "nobody"`),
		shows("vendor list sms ultimatesms",
			`sms +ultimatesms +Ultimate SMS \(gateway of your choice\) +endpoint +setting +yes`),
		shows("vendor list pdf", "builtin").without("sms"),
		misuse("vendor list fax"),
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
	f.run(fails("project list", "no local stack", "make run"))
	t.Chdir(f.dir)
	for _, c := range []struct {
		changes map[string]any
		errs    string
	}{
		{map[string]any{"dynamodb_url": 5}, "make run"},
		{map[string]any{"stage": "nowhere"}, "tables of the stage do not exist"},
		{map[string]any{"dynamodb_url": nowhere, "secrets_url": nowhere}, "connection was refused"}, // stays for the last call
	} {
		f.announce(c.changes)
		f.run(fails("project list", c.errs))
	}
	signIn(t, "")
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	misuse("project list", "--region").run(t)
	fails("project list --region us-east-1", "no AWS credentials.*\n.*aws sso login").run(t)
	fails("project list --region us-east-1 --profile nobody", "no AWS credentials").run(t)
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
	f := newFixture(t, "project create Acme --id acme")
	signIn(t, enginetest.URL(t))
	t.Setenv("SVC_STAGE", "")
	shows("project list --stage "+f.stage, "acme").run(t)
	fails("project list").run(t)
	t.Setenv("SVC_STAGE", f.stage)
	shows("project list", "acme").run(t)
	fails("project list --stage other").run(t)
}

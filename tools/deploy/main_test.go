package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"

	"svcapi/test/must"
)

// cloud responds to the calls of the AWS CLI and the SAM CLI as an account with one stack and its tables would. What a
// real account does is known only where "make smoke-aws" was run.
type cloud struct {
	template []byte
	status   string // of the stack
	tables   map[string]bool
	imports  func(all []string) []string // what a change set would import
	version  int
	price    string
	commands []string
	refuse   string // a command that fails
	accept   string // a command that succeeds, whatever it says
	chosen   bool   // functions use the ID that the client sends
}

func newCloud(t *testing.T) (*cloud, *terminal) {
	template, err := os.ReadFile("../../template.yaml")
	must.Succeed(t, err)
	docs, err := filepath.Abs("../../docs")
	must.Succeed(t, err)
	c := &cloud{template: template, tables: map[string]bool{}, price: "10000",
		imports: func(all []string) []string { return all }}
	t.Chdir(t.TempDir())
	must.Succeed(t, errors.Join(os.MkdirAll(filepath.Dir(packaged), 0o755), os.Symlink(docs, "docs")))
	return c, &terminal{run: c.run, region: "eu-west-1"}
}

var errRefused = errors.New("exit status 255")

func (c *cloud) run(_ context.Context, call command) (string, error) {
	text := call.String()
	c.commands = append(c.commands, text)
	has := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(" "+text+" ", word) })
	}
	if c.refuse != "" && has(c.refuse) {
		return "", errRefused
	}
	switch {
	case has("sam deploy", badBoundary) && (c.accept == "" || !has(c.accept)):
		c.status = map[bool]string{true: "ROLLBACK_COMPLETE", false: "UPDATE_ROLLBACK_COMPLETE"}[c.status == ""]
		return "", errRefused
	case has("sam deploy"):
		for _, short := range kept {
			c.tables["svc-smoke-"+short] = true
		}
		c.status = "UPDATE_COMPLETE"
		for _, argument := range call.args {
			if value, ok := strings.CutPrefix(argument, "PriceSms="); ok {
				c.price = value
			}
		}
		c.version++
	case has("restore-table"), has("detect-stack-drift"): // a page, which ends with what it began with
	case has("sam package"):
		return "", os.WriteFile(packaged, c.template, 0o600)
	case has("delete-stack"):
		c.status = ""
	case has("StackStatus"):
		return c.status + "\n", nil
	case has("list-tables"):
		return strings.Join(slices.Sorted(maps.Keys(c.tables)), "\t"), nil
	case has("describe-change-set"):
		var ids []string
		for _, name := range c.imports(slices.Sorted(maps.Keys(c.tables))) {
			short := name[strings.LastIndex(name, "-")+1:]
			ids = append(ids, strings.ToUpper(short[:1])+short[1:])
		}
		return strings.Join(ids, "\t"), nil
	case has("SourceBucket"):
		return "bucket", nil
	case has("curl", "/currency/codes"):
		id := uuid.NewString()
		if _, sent, _ := strings.Cut(text, "x-amzn-RequestId: "); c.chosen {
			id = sent[:len(id)]
		}
		return "401 X-SVC-Request-ID " + id + " x-amzn-RequestId " + id, nil
	case has("BaseUrl"):
		return "https://api.example.com/api/v1", nil
	case has("describe-stack-resource"):
		return "svc-smoke-SmsFunction-1", nil
	case has("get-function-configuration"):
		return strings.Repeat("I", c.version) + "\t" + c.price, nil
	case has("delete-table"):
		clear(c.tables)
	}
	return "", nil
}

func noon() time.Time { return time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC) }

// TestSmoke: the rehearsal leaves nothing, and reports each step. make emulator runs its commands.
func TestSmoke(t *testing.T) {
	c, terminal := newCloud(t)
	must.Succeed(t, smoke(t.Context(), terminal, ".", noon))
	if len(c.tables) != 0 || c.status != "" {
		t.Errorf("left: %v, %s", c.tables, c.status)
	}
	report, err := os.ReadFile("smoke-20260331-1200.md")
	must.Succeed(t, err)
	for _, step := range steps {
		if !strings.Contains(string(report), ". "+step.title+": done\n") {
			t.Errorf("the report has no %q done", step.title)
		}
	}
}

// TestSmokeFails: each step notices what it is there to find, and the report says where the rehearsal ended.
func TestSmokeFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cloud)
		step   string
	}{
		"a table was left before":   {func(c *cloud) { c.tables["svc-smoke-ledger"] = true }, "The account is ready"},
		"the build fails":           {func(c *cloud) { c.refuse = "sam build" }, "The build"},
		"the bad creation succeeds": {func(c *cloud) { c.accept = "sam deploy" }, "A creation that fails leaves nothing"},
		"a wallet differs from the ledger": {func(c *cloud) { c.refuse = "ledger verify --stage smoke " },
			"Its repetition succeeds"},
		"an acceptance test fails":  {func(c *cloud) { c.refuse = "make acceptance" }, "Acceptance tests, without an SMS"},
		"a client chooses the ID":   {func(c *cloud) { c.chosen = true }, "A request ID that the client sends is not used"},
		"a parameter has no effect": {func(c *cloud) { c.refuse = "PriceSms=12345" }, "A changed parameter takes effect"},
		"a restored ledger differs": {func(c *cloud) { c.refuse = "ledger verify --stage smoke-restored" },
			"A restore under the old names"},
		"the change set imports not all": {func(c *cloud) { c.imports = func(all []string) []string { return all[1:] } },
			"It is deployed again with its tables"},
		"the change set imports another one": {func(c *cloud) {
			c.imports = func(all []string) []string { return append(all, "x") }
		}, "It is deployed again with its tables"},
		"what is left cannot be deleted": {func(c *cloud) { c.refuse = "delete-secret" }, "All is removed"},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, terminal := newCloud(t)
			c.change(cloud)
			err := smoke(t.Context(), terminal, ".", noon)
			if err == nil || !strings.HasPrefix(err.Error(), c.step+": ") {
				t.Errorf("%v, want a failure of %q", err, c.step)
			}
			report, err := os.ReadFile("smoke-20260331-1200.md")
			if err != nil || !strings.Contains(string(report), ". "+c.step+": FAILED\n") ||
				!strings.Contains(string(report), "docs/uninstall.md") {
				t.Errorf("%v: %s", err, report)
			}
			if strings.Contains(name, "change set") &&
				slices.ContainsFunc(cloud.commands, func(s string) bool { return strings.Contains(s, "execute-change-set") }) {
				t.Error("the change set was executed")
			}
		})
	}
}

// TestRedeploy: the stage prod of samconfig.toml is deployed with its parameters around its tables.
func TestRedeploy(t *testing.T) {
	commands, noCommands := os.ReadFile("testdata/redeploy.txt")
	p, err := readStage("../../samconfig.toml", "prod")
	must.Succeed(t, errors.Join(err, noCommands))
	p.parameters = append(p.parameters, "KmsKeyArn=''")
	if _, err := readStage("../../samconfig.toml", "nowhere"); err == nil {
		t.Error("a stage that samconfig.toml does not have")
	}
	c, terminal := newCloud(t)
	if err := terminal.redeploy(t.Context(), p); err == nil || !strings.Contains(err.Error(), "no tables") {
		t.Errorf("without tables: %v", err)
	}
	c.refuse, c.tables["svc-prod-ledger"], terminal.err = "change-set-create-complete", true, nil
	if err := terminal.redeploy(t.Context(), p); err == nil ||
		!strings.Contains(err.Error(), "describe-events --stack-name svc-prod --filters FailedEvents=true") {
		t.Errorf("a change set that is refused: %v", err)
	}
	c.refuse, c.commands, terminal.err = "", nil, nil
	for _, name := range kept {
		c.tables["svc-prod-"+name] = true
	}
	must.Succeed(t, terminal.redeploy(t.Context(), p))
	if got := strings.Join(c.commands, "\n") + "\n"; got != string(commands) {
		t.Errorf("testdata/redeploy.txt differs from what was called:\n%s", got)
	}
	text, err := os.ReadFile(literal)
	must.Succeed(t, err)
	type table struct {
		DeletionPolicy string `yaml:"DeletionPolicy"`
		Properties     struct {
			TableName yaml.Node `yaml:"TableName"`
		} `yaml:"Properties"`
	}
	var got, was struct {
		Parameters map[string]any   `yaml:"Parameters"`
		Resources  map[string]table `yaml:"Resources"`
	}
	must.Succeed(t, errors.Join(yaml.Unmarshal(text, &got), yaml.Unmarshal(c.template, &was)))
	for id, name := range map[string]string{
		"Projects": "svc-prod-projects", "Wallets": "svc-prod-wallets", "Ledger": "svc-prod-ledger",
		"Movements": "svc-prod-movements", "Resolutions": "svc-prod-resolutions",
	} {
		if r := got.Resources[id]; r.Properties.TableName.Value != name || r.Properties.TableName.Tag != "!!str" ||
			r.DeletionPolicy != "Retain" {
			t.Errorf("%s is %+v", id, r)
		}
	}
	if r := got.Resources["Transient"]; r.Properties.TableName.Tag != "!Sub" || r.DeletionPolicy != "Delete" {
		t.Errorf("Transient is %+v", r)
	}
	if !strings.Contains(string(text), "LoggingLevel: 'OFF'") {
		t.Error("OFF has lost its quotes: YAML 1.1 reads false")
	}
	if len(got.Resources) != len(was.Resources) || len(got.Parameters) != len(was.Parameters) {
		t.Errorf("%d resources of %d, %d parameters of %d", len(got.Resources), len(was.Resources),
			len(got.Parameters), len(was.Parameters))
	}
	for name, template := range map[string][]byte{
		"without tables":         []byte("Resources: {}"),
		"with a table that goes": bytes.Replace(c.template, []byte("    DeletionPolicy: RetainExceptOnCreate\n"), nil, 1),
	} {
		if _, err := writeNames(template, "prod"); err == nil {
			t.Errorf("a template %s", name)
		}
	}
	// of sam package
	long := bytes.ReplaceAll(c.template, []byte("TableName: !Sub "), []byte("TableName:\n        Fn::Sub: "))
	again, err := writeNames(long, "prod")
	if err != nil || strings.Count(string(again), "TableName: svc-prod-") != len(kept) {
		t.Errorf("the long form: %v", err)
	}
}

// TestScript: the commands of a page are those of its blocks, below a heading where one is named, and none that the
// page marks.
func TestScript(t *testing.T) {
	const page = "# A\n\n1. x\n   ```sh\n   a \\\n     b\n   ```\n## B\n```json\nc\n```\n```sh not run: " +
		"why\nd\n```\n```sh\n# e\nf\n```\n## C\n"
	for heading, want := range map[string]string{
		"": "a \\\n  b\n# not run, why: d\n# e\nf\n", "A": "a \\\n  b\n", "B": "# not run, why: d\n# e\nf\n", "C": "",
		"D": "",
	} {
		file := filepath.Join(t.TempDir(), "page.md")
		must.Succeed(t, os.WriteFile(file, []byte(page), 0o600))
		if got, err := script(file, heading); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", heading, got, err, want)
		}
	}
	_, terminal := newCloud(t)
	r := &rehearsal{terminal: terminal}
	if r.follow(t.Context(), "docs/uninstall.md", "Deploy again", "no such text", ""); r.err == nil {
		t.Error("a text that the page does not have is replaced")
	}
}

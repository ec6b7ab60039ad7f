package acceptance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/local/demo"
	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/test/clocktest"
	"svcapi/test/must"
)

// credential is what a client authenticates with.
type credential struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// tenant is a project of a test.
type tenant struct {
	id        string
	dev, prod credential
}

// integration is how a test connects its project to a vendor.
type integration struct {
	kind     project.Kind // empty: SMS
	vendor   string
	mode     project.Mode
	env      project.Environment // empty: development
	endpoint string              // empty: the sandbox's; elsewhere for an operator's own
	priority int
	bare     bool // without settings and secrets
}

// plan is a project as a test wants it. The zero value has neither integrations nor credits.
type plan struct {
	limit        int // requests a day; 0: no limit that a test meets
	credits      int64
	prod         bool // a credential for production too
	integrations []integration
}

var tenants atomic.Int64

// make makes a project.
func (p plan) make(t *testing.T) *tenant {
	t.Helper()
	clocktest.AwayFromWindowEnd(t)
	made := &tenant{id: fmt.Sprintf("accept-%d-%d", time.Now().Unix(), tenants.Add(1))}
	svc[any](t, "", "project", "create", "Acceptance: "+t.Name(), "--id", made.id,
		"--requests", strconv.Itoa(cmp.Or(p.limit, 1_000_000)), "--window", "24h")
	fixture.mu.Lock()
	fixture.projects = append(fixture.projects, made.id)
	fixture.mu.Unlock()
	made.dev = issue(t, made.id, project.Development)
	if p.prod {
		made.prod = issue(t, made.id, project.Production)
	}
	for _, i := range p.integrations {
		made.connect(t, i)
	}
	if p.credits > 0 {
		made.grant(t, p.credits)
	}
	return made
}

// svc runs the operator's command line and returns what it prints.
func svc[T any](t *testing.T, input string, args ...string) (printed T) {
	t.Helper()
	output := must.Get(fixture.command(context.Background(), input, args...)).Or(t)
	must.Succeed(t, json.Unmarshal(output, &printed))
	return printed
}

func issue(t *testing.T, projectID string, env project.Environment) credential {
	t.Helper()
	return remember(svc[credential](t, "", "credential", "issue", projectID, "--env", string(env)))
}

// remember keeps a secret for the search through the logs.
func remember(c credential) credential {
	fixture.mu.Lock()
	defer fixture.mu.Unlock()
	fixture.secrets = append(fixture.secrets, c.Secret)
	return c
}

// onDisk is the vendor whose data are files of the function: it has neither endpoint nor secrets.
const onDisk = "maxmind-mmdb"

// alone reports whether the vendor has neither endpoint nor secrets.
func (i integration) alone() bool { return i.vendor == onDisk || i.vendor == project.TestVendor }

// connect connects the project to a vendor.
func (p *tenant) connect(t *testing.T, i integration) {
	t.Helper()
	sandboxURL := ""
	if fixture.stack != nil {
		sandboxURL = fixture.stack.SandboxURL
	}
	secrets, args := i.command(p.id, sandboxURL)
	svc[any](t, secrets, args...)
}

// command returns the command that connects a project to the vendor, and the secrets that the command reads.
func (i integration) command(id, sandboxURL string) (secrets string, args []string) {
	i.env, i.kind = cmp.Or(i.env, project.Development), cmp.Or(i.kind, project.SMS)
	if i.endpoint == "" && sandboxURL != "" && !i.alone() {
		i.endpoint = sandboxURL + "/" + i.vendor
	}
	args = []string{"integration", "set", id, string(i.kind), i.vendor, "--env", string(i.env), "--mode", string(i.mode),
		"--priority", strconv.Itoa(i.priority)}
	if i.endpoint != "" {
		args = append(args, "--setting", "endpoint="+i.endpoint)
	}
	switch {
	case i.bare:
		args = append(args, "--incomplete")
	case i.kind == project.SMS:
		args = append(args, "--setting", "sender_id=SVCTest", "--setting", "unit_price=0.64")
	}
	if i.mode == project.BYOK && !i.alone() {
		args = append(args, "--secrets", "-")
	}
	if i.bare {
		return "{}", args
	}
	text, _ := json.Marshal(sandbox.Account(i.vendor)) // texts
	return string(text), args
}

func (p *tenant) grant(t *testing.T, credits int64) {
	t.Helper()
	svc[any](t, "", "credit", "grant", p.id, strconv.FormatInt(credits, 10), "--reason", "acceptance", "--yes")
}

func (p *tenant) balance(t *testing.T) int64 {
	t.Helper()
	return svc[struct{ Balance int64 }](t, "", "credit", "balance", p.id).Balance
}

// entry is a line of the ledger.
type entry struct {
	State, Operation string
	Credits          int64
	RequestID        string `json:"request_id"`
	Uncertain        bool
}

// ledger is the project's, by request ID; days end while tests run.
func (p *tenant) ledger(t *testing.T) map[string]entry {
	t.Helper()
	entries := map[string]entry{}
	for _, e := range svc[[]entry](t, "", "credit", "ledger", p.id, "--days", "2") {
		if _, twice := entries[e.RequestID]; twice {
			t.Errorf("project %s: request %s has two ledger entries", p.id, e.RequestID)
		}
		if e.State == "captured" {
			e.Credits = -e.Credits // of the balance
		}
		entries[e.RequestID] = e
	}
	return entries
}

// demoProject is the demo project of a name, for requests that change nothing in it.
func demoProject(name string) *tenant {
	c := func(env project.Environment) credential {
		known := demo.CredentialOf(name, env)
		return remember(credential{known.ClientID, known.ClientSecret})
	}
	return &tenant{demo.ID(name), c(project.Development), c(project.Production)}
}

var plain struct {
	sync.Mutex
	tenant *tenant
}

// plainProject has no integrations. Tests share it for requests that change nothing.
func plainProject(t *testing.T) *tenant {
	t.Helper()
	plain.Lock()
	defer plain.Unlock()
	if plain.tenant == nil {
		plain.tenant = plan{prod: true}.make(t)
	}
	return plain.tenant
}

var numbers atomic.Int64

// number is one that no other test sends to.
func number() string { return numberBlock(1)[0] }

// numberBlock is n of them.
func numberBlock(n int) []string {
	last := numbers.Add(int64(n))
	block := make([]string, n)
	for i := range block {
		block[i] = fmt.Sprintf("07%08d", 10_000_000+last-int64(n)+int64(i))
	}
	return block
}

// sent is what vendors received for a number: the sends alone.
func sent(to string) []sandbox.Call {
	var calls []sandbox.Call
	for _, c := range fixture.stack.Sandbox.Calls() {
		if c.Operation != "send" {
			continue
		}
		for _, n := range c.To {
			if strings.HasSuffix(n, to[1:]) {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

var ruling sync.Mutex

// addRules adds the sandbox's results for some numbers to those of other tests.
func addRules(t *testing.T, rules ...sandbox.Rule) {
	t.Helper()
	ruling.Lock()
	defer ruling.Unlock()
	must.Succeed(t, fixture.stack.Sandbox.SetRules(append(fixture.stack.Sandbox.Rules(), rules...)...))
}

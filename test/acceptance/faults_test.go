package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
)

// meets is what a request meets at a vendor.
type meets struct {
	name     string
	outcome  sandbox.Outcome
	endpoint func(t *testing.T, vendor string) string // nil: the sandbox
}

// verdict is what a Managed send that meets it comes to.
type verdict struct {
	status    int
	code      string
	charged   bool
	uncertain bool
	sends     int // at the vendor
}

var (
	taken      = verdict{200, "", true, false, 1}
	refused    = verdict{502, "http_error", false, false, 1}
	unusable   = verdict{502, "http_error", true, true, 1}
	noResponse = verdict{503, "http_error", true, true, 1}
	neverLeft  = verdict{503, "http_error", false, false, 0}
)

// faults is the table of what can happen to a send, for every vendor (docs/decisions.md#vendor-outcomes).
var faults = []struct {
	meets
	verdict
}{
	{meets{"accepted", sandbox.Accepted, nil}, taken},
	{meets{"rejected", sandbox.Rejected, nil}, refused},
	{meets{"credentials refused", sandbox.CredentialsRefused, nil}, refused},
	{meets{"unparseable", sandbox.Unparseable, nil}, unusable},
	{meets{"HTTP 500", sandbox.ServerError, nil}, unusable},
	{meets{"hang", sandbox.Hang, nil}, noResponse},
	{meets{"refused connection", "", func(t *testing.T, _ string) string { return closedEndpoint(t) }}, neverLeft},
	{meets{"TLS failure", "", func(_ *testing.T, vendor string) string {
		return strings.Replace(fixture.stack.SandboxURL, "http:", "https:", 1) + "/" + vendor
	}}, neverLeft},
	{meets{"slow", sandbox.Slow, nil}, taken},
	{meets{"error with status 200", sandbox.ErrorIn200, nil}, refused},
	{meets{"truncated body", sandbox.Truncated, nil}, unusable},
	{meets{"closed after the request was read", sandbox.Closed, nil}, noResponse},
}

// exceptions are the vendors whose result of a row differs. AWS's client takes the status for the outcome, and a
// success without a message ID is no usable response. Hutch's failures with status 200 are not known, so that a response
// without the ID of the message leaves a doubt.
var exceptions = map[string]map[string]verdict{"aws": {"error with status 200": unusable}, "hutch": {"error with status 200": unusable}}

// TestFaults runs the table for every vendor: status, code, credits moved, the ledger's outcome, and how many sends the
// vendor saw. Each request is one of its own; those of a vendor go out together.
func TestFaults(t *testing.T) {
	local(t)
	t.Parallel()
	for _, vendor := range vendors {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			const credits = 1_000_000
			good := plan{credits: credits, integrations: []integration{{vendor: vendor, mode: project.Managed}}}.make(t)
			// A send must not use an open connection: whether the connection still works is unknown.
			if a := (request{path: send, body: single(number(), "m"), as: good.dev}).do(t); a == nil || !a.is(200, "") {
				t.Fatal("the vendor does not take a message")
			}
			tenants, to := make([]*tenant, len(faults)), numberBlock(len(faults))
			var rules []sandbox.Rule
			for i, c := range faults {
				tenants[i] = good
				if c.endpoint != nil {
					tenants[i] = plan{credits: credits, integrations: []integration{{vendor: vendor, mode: project.Managed, endpoint: c.endpoint(t, vendor)}}}.make(t)
				}
				if c.outcome != "" {
					rules = append(rules, sandbox.Rule{Vendor: vendor, Operation: "send", To: to[i], Outcome: c.outcome})
				}
			}
			addRules(t, rules...)
			responses := atOnce(len(faults), len(faults), func(i int) *response {
				return request{path: send, body: single(to[i], "m"), as: tenants[i].dev}.do(t)
			})
			left := int64(credits) - perUnit()
			ledger := good.ledger(t)
			uncertain := 0
			for i, c := range faults {
				if beats, ok := exceptions[vendor][c.name]; ok {
					c.verdict = beats
				}
				if c.uncertain {
					uncertain++
				}
				a := responses[i]
				if a == nil {
					continue
				}
				e := ledger[a.RequestID]
				if tenants[i] != good {
					e = tenants[i].ledger(t)[a.RequestID]
					if got := tenants[i].balance(t); got != credits {
						t.Errorf("%s: balance %d, want %d", c.name, got, credits)
					}
				} else if c.charged {
					left -= perUnit()
				}
				want := entry{State: "released", Credits: perUnit()}
				if c.charged {
					want = entry{State: "captured", Credits: perUnit(), Uncertain: c.uncertain}
				}
				got := verdict{a.status, a.Error.Code, e.State == "captured", e.Uncertain, len(sent(to[i]))}
				if got != c.verdict || e.State != want.State || e.Credits != want.Credits {
					t.Errorf("%s: %+v, ledger %+v, %s; want %+v", c.name, got, e, a.body, c.verdict)
				}
			}
			if got := good.balance(t); got != left {
				t.Errorf("balance %d, want %d", got, left)
			}
			if listed := svc[[]entry](t, "", "credit", "ledger", good.id, "--uncertain"); len(listed) != uncertain {
				t.Errorf("%d uncertain charges listed: %+v", len(listed), listed)
			}
		})
	}
}

// docs/decisions.md#fail-over: the next integration is tried after a certain failure only, never after a response, nor
// after an uncertain outcome. The response, the ledger and the log name the vendor that took the message.
func TestFailover(t *testing.T) {
	local(t)
	t.Parallel()
	const credits = 1_000_000
	for _, c := range []struct {
		meets
		verdict
		vendor string // that response and ledger name
	}{
		{meets{"accepted", sandbox.Accepted, nil}, taken, "twilio"},
		{meets{"refused connection", "", faults[6].endpoint}, taken, "quicksend"},
		{meets{"TLS failure", "", faults[7].endpoint}, taken, "quicksend"},
		{meets{"no such host", "", func(*testing.T, string) string { return "http://nothing.invalid" }}, taken, "quicksend"},
		{meets{"rejected", sandbox.Rejected, nil}, refused, ""},
		{meets{"credentials refused", sandbox.CredentialsRefused, nil}, refused, ""},
		{meets{"unparseable", sandbox.Unparseable, nil}, unusable, "twilio"},
		{meets{"HTTP 500", sandbox.ServerError, nil}, unusable, "twilio"},
		{meets{"closed after the request was read", sandbox.Closed, nil}, noResponse, "twilio"},
		{meets{"hang", sandbox.Hang, nil}, noResponse, "twilio"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := integration{vendor: "twilio", mode: project.Managed, priority: 1}
			if c.endpoint != nil {
				first.endpoint = c.endpoint(t, "twilio")
			}
			p := plan{credits: credits, integrations: []integration{{vendor: "quicksend", mode: project.Managed, priority: 2}, first}}.make(t)
			to := number()
			if c.outcome != "" {
				addRules(t, sandbox.Rule{Vendor: "twilio", To: to, Outcome: c.outcome})
			}
			a := request{path: send, body: single(to, "m"), as: p.dev}.do(t)
			if a == nil {
				return
			}
			e := p.ledger(t)[a.RequestID]
			if got := (verdict{a.status, a.Error.Code, e.State == "captured", e.Uncertain, len(sent(to))}); got != c.verdict {
				t.Errorf("%+v %s, ledger %+v; want %+v", got, a.body, e, c.verdict)
			}
			if c.charged && e.Vendor != c.vendor || a.status == 200 && a.provider(t).Vendor != c.vendor {
				t.Errorf("%s, ledger %+v; want the vendor %s", a.body, e, c.vendor)
			}
			if lines := logLines(t, fixture.stack.LogDir, a.RequestID)["sms.log"]; c.vendor != "" && (len(lines) != 1 || !strings.Contains(lines[0], fmt.Sprintf(`"vendor":%q`, c.vendor))) {
				t.Errorf("the log does not name %s: %s", c.vendor, lines)
			}
		})
	}
	// The order is by priority, and an integration that is incomplete is passed over.
	p := plan{credits: credits, integrations: []integration{
		{vendor: "quicksend", mode: project.Managed, priority: 3},
		{vendor: "textlk", mode: project.Managed, priority: 2},
		{vendor: "dialog", mode: project.Managed, priority: 1, bare: true},
	}}.make(t)
	if a := (request{path: send, body: single(number(), "m"), as: p.dev}).do(t); a != nil && (!a.is(200, "") || a.provider(t).Vendor != "textlk") {
		t.Errorf("%d %s, want textlk", a.status, a.body)
	}
}

// docs/decisions.md#circuits: a vendor that keeps failing to connect is skipped for a while, for this integration
// alone; all open is 503, released. No response of a vendor opens the circuit.
func TestCircuits(t *testing.T) {
	n := oneProcessStack(t)
	const open = "circuit open"
	for i := range 5 {
		a := n.send("unreachable", single(number(), "m"), nil).do(t)
		if a == nil {
			continue
		}
		e := n.entry(t, "unreachable", a.RequestID)
		line := n.lineOf(t, a.RequestID)
		if !a.is(503, "http_error") || e == nil || e.State != "released" || strings.Contains(line.Error, open) != (i >= 3) {
			t.Errorf("request %d: %d %s, ledger %+v, %s; want 503, released, open after three", i, a.status, a.body, e, line.Error)
		}
	}
	// The same address, another project's integration.
	for i := range 5 {
		if a := n.send("failover", single(number(), "m"), nil).do(t); a != nil && (!a.is(200, "") || a.provider(t).Vendor != "twilio") {
			t.Errorf("failover, request %d: %d %s", i, a.status, a.body)
		}
	}
	for i := range 5 {
		if a := n.send("managed", single("0770000005", "m"), nil).do(t); a != nil && !a.is(502, "http_error") {
			t.Errorf("HTTP 500, request %d: %d %s", i, a.status, a.body)
		}
	}
	if a := n.send("managed", single(number(), "m"), nil).do(t); a != nil && (!a.is(200, "") || a.provider(t).Vendor != "quicksend") {
		t.Errorf("after failures with responses: %d %s", a.status, a.body)
	}
}

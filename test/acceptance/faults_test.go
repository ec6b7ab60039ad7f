package acceptance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/sms/vendors"
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

// faults is the table of what can happen to a send, for every vendor (docs/decisions/sms.md#vendor-outcomes).
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
// success without a message ID is no usable response. Hutch's failures with status 200 are not known, so that a
// response without the ID of the message leaves a doubt.
var exceptions = map[string]map[string]verdict{
	"aws":   {"error with status 200": unusable},
	"hutch": {"error with status 200": unusable},
}

// TestFaults runs the table for every vendor: status, code, credits moved, the ledger's outcome, and how many sends the
// vendor saw. Each request is one of its own; those of a vendor go out together.
func TestFaults(t *testing.T) {
	local(t)
	t.Parallel()
	for _, row := range vendors.NewTable(aws.Config{}) {
		vendor := row.Name
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
				want := entry{State: "released"}
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

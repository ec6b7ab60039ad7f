package acceptance

import (
	"slices"
	"strings"
	"testing"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
)

// docs/decisions.md#error-reasons: the reason of every error, and vendor and vendor code where a vendor failed.
func TestErrorReasons(t *testing.T) {
	local(t)
	t.Parallel()
	byok := func(vendor string, settings integration) *tenant {
		settings.vendor, settings.mode = vendor, project.BYOK
		return plan{integrations: []integration{settings}}.make(t)
	}
	twilio, dialog := byok("twilio", integration{}), byok("dialog", integration{})
	unreachable := byok("textlk", integration{endpoint: closedEndpoint(t)})
	place := byok("ip-api", integration{kind: project.Location, endpoint: closedEndpoint(t)})
	to := numberBlock(5)
	for i, outcome := range []sandbox.Outcome{sandbox.Rejected, sandbox.CredentialsRefused, sandbox.Unparseable, sandbox.Closed, sandbox.Rejected} {
		addRules(t, sandbox.Rule{To: to[i], Outcome: outcome})
	}
	p := plainProject(t)
	pictures := plan{}.make(t).drawing(t, project.BYOK).printing(t, project.BYOK)
	key := keyed(twilio, "reasons", single(to[3], "m"))
	other := key
	other.body += " "
	for _, c := range []struct {
		name   string
		r      request
		status int
		want   details
	}{
		{"no route", request{path: "/nothing"}, 404, details{Reason: "route_not_found"}},
		{"no such method", request{method: "GET", path: send}, 405, details{Reason: "method_not_allowed"}},
		{"large body", request{path: send, body: strings.Repeat(" ", 4<<20+1), as: p.dev}, 413, details{Reason: "body_too_large"}},
		{"long message", request{path: send, body: single(number(), strings.Repeat("m", 460)), as: twilio.dev}, 422, details{Reason: "message_too_long"}},
		{"rejected", request{path: send, body: single(to[0], "m"), as: twilio.dev}, 502, details{Reason: "vendor_rejected", Vendor: "twilio", VendorCode: "21610"}},
		{"credentials", request{path: send, body: single(to[1], "m"), as: twilio.dev}, 502, details{Reason: "vendor_credentials_refused", Vendor: "twilio", VendorCode: "20003"}},
		{"unusable", request{path: send, body: single(to[2], "m"), as: twilio.dev}, 502, details{Reason: "vendor_answer_unusable", Vendor: "twilio"}},
		{"uncertain", key, 503, details{Reason: "outcome_uncertain", Vendor: "twilio"}},
		{"uncertain, again", key, 503, details{Reason: "outcome_uncertain", Vendor: "twilio"}},
		{"another body", other, 422, details{Reason: "idempotency_key_reused"}},
		{"rejected with a code as body", request{path: send, body: single(to[4], "m"), as: dialog.dev}, 502, details{Reason: "vendor_rejected", Vendor: "dialog", VendorCode: "2009"}},
		{"unreachable", request{path: send, body: single(number(), "m"), as: unreachable.dev}, 503, details{Reason: "vendor_unreachable", Vendor: "textlk"}},
		{"balance of an unreachable vendor", request{path: balance, body: "{}", as: unreachable.dev}, 503, details{Reason: "vendor_unreachable", Vendor: "textlk"}},
		{"location", request{path: location, body: ip("20.0.0.9"), as: place.dev}, 500, details{Reason: "vendor_unreachable"}},
		{"barcode", request{path: barcodes, body: `{"data":"A","type":"EAN13"}`, as: pictures.dev}, 400, details{Reason: "render_rejected"}},
		{"QR code that does not fit", request{path: qrcodes, body: `{"size":64,"data":"` + strings.Repeat("a", 900) + `"}`, as: pictures.dev}, 400, details{Reason: "render_rejected"}},
		{"PDF image", request{path: pdfs, body: `{"html":"<img src=https://nothing.invalid/x.png>"}`, as: pictures.dev}, 400, details{Reason: "render_rejected"}},
		{"PDF limit", request{path: pdfs, body: `{"html":"` + strings.Repeat("<b>", 300) + `"}`, as: pictures.dev}, 400, details{Reason: "limit_exceeded"}},
	} {
		a := c.r.do(t)
		if a == nil {
			continue
		}
		if c.r.path == location { // a failure of the vendor in the metrics (docs/decisions.md#lookup-chain)
			lines := logLines(t, fixture.stack.LogDir, a.RequestID)["location.log"]
			if len(lines) != 1 || !strings.Contains(lines[0], `"outcome":"vendor_failed"`) || !strings.Contains(lines[0], `"vendor":"ip-api"`) {
				t.Errorf("%s: %s", c.name, lines)
			}
		}
		if a.status != c.status || !slices.Equal(a.Error.Details.list(), c.want.list()) {
			t.Errorf("%s: %d %s, want %d %v", c.name, a.status, a.body, c.status, c.want.list())
		}
	}
}

func (d details) list() []string { return []string{d.Reason, d.Vendor, d.VendorCode} }

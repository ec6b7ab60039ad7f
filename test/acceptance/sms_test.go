package acceptance

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// perUnit is the price of an SMS unit on the local stack.
func perUnit() int64 { return fixture.stack.Prices.Of(credit.SMS) }

// openapi.yaml#SmsSendRequest, docs/decisions.md#error-details: a body that does not satisfy the fields of its
// send_method is 422 validation_failed, with all failing fields at once.
func TestSendFields(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	repeat := func(n int) string {
		return `["0771234567"` + strings.Repeat(`,"0771234567"`, n-1) + `]`
	}
	for _, c := range []struct {
		body   string
		fields string // those that fail, sorted; empty: none
	}{
		{`{}`, "send_method"},
		{`{"send_method":null,"to":null,"message":null}`, "send_method"},
		{`{"send_method":"both"}`, "send_method"},
		{`{"send_method":"SINGLE"}`, "send_method"},
		{`{"send_method":1}`, "send_method"},
		{`{"Send_Method":"single"}`, "Send_Method send_method"},
		{`{"send_method":"single"}`, "message to"},
		{`{"send_method":"single","to":null,"message":null}`, "message to"},
		{`{"send_method":"single","to":"","message":""}`, "message to"},
		{`{"send_method":"single","to":771234567,"message":true}`, "message to"},
		{`{"send_method":"single","to":["0771234567"],"message":{"text":"m"}}`, "message to"},
		{`{"send_method":"single","to":"0771234567","message":"m"}`, ""},
		{`{"send_method":"single","to":"+94771234567","message":"m"}`, ""},
		{`{"send_method":"single","to":"0771234567","message":"m","recipients":7,"msg_list":"x","check_cost":"no"}`, ""},
		{`{"send_method":"single","to":"771234567","message":"m"}`, "to"},
		{`{"send_method":"single","to":"94771234567","message":"m"}`, "to"},
		{`{"send_method":"single","to":"0094771234567","message":"m"}`, "to"},
		{`{"send_method":"single","to":"07712345678","message":"m"}`, "to"},
		{`{"send_method":"single","to":"077123456","message":"m"}`, "to"},
		{`{"send_method":"single","to":"0112345678","message":"m"}`, "to"},
		{`{"send_method":"single","to":"+94112345678","message":"m"}`, "to"},
		{`{"send_method":"single","to":" 0771234567","message":"m"}`, "to"},
		{`{"send_method":"single","to":"0771234567\n","message":"m"}`, "to"},
		{`{"send_method":"single","to":"077 123 4567","message":"m"}`, "to"},
		{`{"send_method":"single","to":"07७७1234567","message":"m"}`, "to"},
		{`{"send_method":"single","to":"` + strings.Repeat("0", 21) + `","message":"m"}`, "to"},
		{`{"send_method":"single","to":"0771234567","message":"` + strings.Repeat("x", 4097) + `"}`, "message"},
		{`{"send_method":"single","to":"0771234567","message":"` + strings.Repeat("x", 4096) + `"}`, ""},
		{`{"send_method":"single","to":"0771234567","message":"` + strings.Repeat("😀", 4096) + `"}`, ""},
		{`{"send_method":"bulk_same"}`, "message recipients"},
		{`{"send_method":"bulk_same","recipients":[],"message":"m"}`, "recipients"},
		{`{"send_method":"bulk_same","recipients":"0771234567","message":"m"}`, "recipients"},
		{`{"send_method":"bulk_same","recipients":{"0":"0771234567"},"message":"m"}`, "recipients"},
		{`{"send_method":"bulk_same","recipients":["0771234567",null,7,"x",["0771234567"],{}],"message":"m"}`,
			"recipients.1 recipients.2 recipients.3 recipients.4 recipients.5"},
		{`{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","check_cost":"true"}`, "check_cost"},
		{`{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","check_cost":1}`, "check_cost"},
		{`{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","check_cost":null}`, ""},
		{`{"send_method":"bulk_same","recipients":` + repeat(10_000) + `,"message":"m"}`, ""},
		{`{"send_method":"bulk_same","recipients":` + repeat(10_001) + `,"message":"m"}`, "recipients"},
		{`{"send_method":"bulk_different"}`, "msg_list"},
		{`{"send_method":"bulk_different","msg_list":[]}`, "msg_list"},
		{`{"send_method":"bulk_different","msg_list":{}}`, "msg_list"},
		{`{"send_method":"bulk_different","msg_list":["0771234567",{"to":"0771234567","msg":"m"},null]}`, "msg_list.0 msg_list.2"},
		{`{"send_method":"bulk_different","msg_list":[{}, {"to":"0771234567","message":"m"}, {"to":"x","msg":""}]}`,
			"msg_list.0.msg msg_list.0.to msg_list.1.msg msg_list.2.msg msg_list.2.to"},
		{`{"send_method":"bulk_different","msg_list":[` + strings.Repeat(`{"to":"0771234567","msg":"m"},`, 19) + `{"to":"0771234567","msg":"m"}]}`, ""},
		{`{"send_method":"bulk_different","msg_list":[` + strings.Repeat(`{"to":"0771234567","msg":"m"},`, 20) + `{"to":"0771234567","msg":"m"}]}`, "msg_list"},
	} {
		a := request{path: send, body: c.body, as: p.dev}.do(t)
		if a == nil {
			continue
		}
		var fields []string
		for field, messages := range a.Error.Details.fields {
			fields = append(fields, field)
			if len(messages) == 0 {
				t.Errorf("%.100s: nothing is said of %s", c.body, field)
			}
		}
		slices.Sort(fields)
		code := "validation_failed"
		if c.fields == "" {
			code = "provider_selection_failed"
		}
		if !a.is(422, code) || strings.Join(fields, " ") != c.fields {
			t.Errorf("%.100s: %d %.300s, want %s on %q", c.body, a.status, a.body, code, c.fields)
		}
	}
}

// docs/decisions.md#error-details: a list reports its first 20 bad items. One bad number among 10,000 is named by its
// place.
func TestManyRecipients(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	to := make([]string, 10_000)
	for i := range to {
		to[i] = "0771234567"
	}
	to[7654] = "0671234567"
	if a := (request{path: send, body: bulkSame(to, "m"), as: p.dev}).do(t); a != nil {
		if !a.is(422, "validation_failed") || len(a.Error.Details.fields) != 1 || len(a.Error.Details.fields["recipients.7654"]) == 0 {
			t.Errorf("%d %.300s, want validation_failed on recipients.7654", a.status, a.body)
		}
	}
	for i := range to {
		to[i] = "no"
	}
	if a := (request{path: send, body: bulkSame(to, "m"), as: p.dev}).do(t); a != nil {
		if !a.is(422, "validation_failed") || len(a.Error.Details.fields) != 20 || len(a.Error.Details.fields["recipients.19"]) == 0 {
			t.Errorf("%d %.300s, want validation_failed on recipients.0 to .19", a.status, a.body)
		}
	}
}

// docs/decisions.md#units, docs/decisions.md#prices: units, and what a Managed send costs. The boundaries of every
// alphabet are the unit counter's own test.
func TestUnitsAndCredits(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{credits: 1_000_000, integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	left := int64(1_000_000)
	for _, c := range []struct {
		message string
		units   int // 0: too long
	}{
		{"x", 1},
		{strings.Repeat("x", 153), 1},
		{strings.Repeat("x", 154), 2},
		{strings.Repeat("x", 459), 3},
		{strings.Repeat("x", 460), 0},
		{strings.Repeat("€", 76) + "x", 1},
		{strings.Repeat("€", 77), 2},
		{strings.Repeat("අ", 67), 1},
		{strings.Repeat("අ", 68), 2},
		{strings.Repeat("අ", 201), 3},
		{strings.Repeat("අ", 202), 0},
		{strings.Repeat("😀", 33), 1},
		{strings.Repeat("😀", 34), 2},
	} {
		a := request{path: send, body: single(number(), c.message), as: p.dev}.do(t)
		if a == nil {
			continue
		}
		if c.units == 0 {
			if !a.is(422, "http_error") {
				t.Errorf("%.10s: %d %s, want 422 http_error", c.message, a.status, a.body)
			}
			continue
		}
		price := int64(c.units) * perUnit()
		left -= price
		if !a.is(200, "") || a.Data.MessageCount != c.units || a.Data.CreditsCharged != price || a.Data.SendMethod != "single" {
			t.Errorf("%.10s: %d %s, want %d units for %d credits", c.message, a.status, a.body, c.units, price)
		}
		if e := p.ledger(t)[a.RequestID]; e.State != "captured" || e.Credits != price || e.Operation != "sms" || e.Vendor != "twilio" || e.Environment != "development" {
			t.Errorf("%.10s: ledger %+v", c.message, e)
		}
	}
	if got := p.balance(t); got != left {
		t.Errorf("balance %d, want %d", got, left)
	}
}

// openapi.yaml#sendSms, docs/decisions.md#sms-refusals: what each project of the table meets, and that nothing moves
// where nothing was sent.
func TestRefusals(t *testing.T) {
	local(t)
	t.Parallel()
	to := number()
	for _, c := range []struct {
		project, path, body string
		status              int
		code                string
	}{
		{"bare", send, single(to, "m"), 422, "provider_selection_failed"},
		{"bare", balance, "{}", 422, "provider_selection_failed"},
		{"incomplete", send, single(to, "m"), 422, "http_error"},
		{"incomplete", balance, "{}", 422, "http_error"},
		{"broke", send, single(to, "m"), 402, "insufficient_funds"},
		{"paused", send, single(to, "m"), 503, "project_paused"},
		{"managed", send, bulkSame([]string{to}, "m"), 403, "forbidden"},
		{"managed", send, `{"send_method":"bulk_different","msg_list":[{"to":"` + to + `","msg":"m"}]}`, 403, "forbidden"},
		{"managed", send, object(map[string]any{"send_method": "bulk_same", "recipients": []string{to}, "message": "m", "check_cost": true}), 403, "forbidden"},
		{"managed", send, single(to, strings.Repeat("x", 460)), 422, "http_error"},
		{"byok", send, bulkSame([]string{to}, strings.Repeat("x", 460)), 422, "http_error"},
		{"byok", send, `{"send_method":"bulk_different","msg_list":[{"to":"` + to + `","msg":"m"},{"to":"` + to + `","msg":"` + strings.Repeat("x", 460) + `"}]}`, 422, "http_error"},
		{"trial", send, single(to, "m"), 403, "forbidden"},
		{"unreachable", send, single(to, "m"), 503, "http_error"},
	} {
		p := demoProject(c.project)
		before := p.balance(t)
		a := request{path: c.path, body: c.body, as: p.dev}.do(t)
		if a == nil {
			continue
		}
		if !a.is(c.status, c.code) {
			t.Errorf("%s %s %.80s: %d %s, want %d %s", c.project, c.path, c.body, a.status, a.body, c.status, c.code)
		}
		if after := p.balance(t); c.project != "managed" && after != before {
			t.Errorf("%s: balance %d, before %d", c.project, after, before)
		}
		if e, moved := p.ledger(t)[a.RequestID]; moved && e.State != "released" {
			t.Errorf("%s: ledger %+v", c.project, e)
		}
	}
	if calls := sent(to); len(calls) != 0 {
		t.Errorf("a refused request was sent: %v", calls)
	}
}

// docs/decisions.md#trial: destinations are compared in one form, and in bulk one is enough.
func TestTrial(t *testing.T) {
	local(t)
	t.Parallel()
	allowed, other := number(), number()
	p := plan{trial: []string{allowed}, integrations: []integration{{vendor: "twilio", mode: project.BYOK}}}.make(t)
	international := "+94" + allowed[1:]
	for _, c := range []struct {
		body   string
		status int
	}{
		{single(allowed, "m"), 200},
		{single(international, "m"), 200},
		{single(other, "m"), 403},
		{bulkSame([]string{allowed, international}, "m"), 200},
		{bulkSame([]string{allowed, other}, "m"), 403},
		{object(map[string]any{"send_method": "bulk_same", "recipients": []string{other}, "message": "m", "check_cost": true}), 403},
		{`{"send_method":"bulk_different","msg_list":[{"to":"` + allowed + `","msg":"m"},{"to":"` + other + `","msg":"m"}]}`, 403},
	} {
		a := request{path: send, body: c.body, as: p.dev}.do(t)
		if a != nil && a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.body, a.status, a.body, c.status)
		}
	}
	if calls := sent(other); len(calls) != 0 {
		t.Errorf("sent to a destination that is not allowed: %v", calls)
	}
}

// docs/decisions.md#sms-balance: the wallet of a Managed project, without a call to the provider; the provider's own
// else.
func TestBalance(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{credits: 1_234_567, integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	if a := (request{path: balance, body: "{}", as: p.dev}).do(t); a != nil {
		if !a.is(200, "") || a.Data.Source != "service_wallet" || a.Data.BalanceFormatted != "1,234,567 credits" || a.Data.ProviderResponse != nil {
			t.Errorf("Managed: %d %s", a.status, a.body)
		}
	}
	broke := demoProject("broke")
	if a := (request{path: balance, body: "", as: broke.prod, header: map[string]string{"X-ENV": "prod"}}).do(t); a != nil {
		if !a.is(200, "") || a.Data.BalanceFormatted != "0 credits" {
			t.Errorf("broke: %d %s", a.status, a.body)
		}
	}
	for _, c := range []struct {
		vendor, balance string
		status          int
	}{
		{"quicksend", "1250.50", 200},
		{"notifylk", "3500", 200},
		{"textlk", "950", 200},
		{"ultimatesms", "950", 200},
		{"smslenz", "1450.00", 200},
		{"hutch", "", 422}, // it has no balance call
		{"dialog", "4500.00", 200},
		{"twilio", "12.05 USD", 200},
		{"dialogv2", "", 422}, // it has no balance call
		{"aws", "", 422},
	} {
		p := plan{integrations: []integration{{vendor: c.vendor, mode: project.BYOK}}}.make(t)
		a := request{path: balance, body: "{}", as: p.dev}.do(t)
		switch {
		case a == nil:
		case c.status != 200:
			if !a.is(c.status, "http_error") {
				t.Errorf("%s: %d %s, want %d http_error", c.vendor, a.status, a.body, c.status)
			}
		default:
			var response struct{ Balance string }
			err := json.Unmarshal(a.Data.ProviderResponse, &response)
			if !a.is(200, "") || a.Data.Source != "sms_provider_direct" || err != nil || response.Balance == "" || !strings.Contains(a.Data.BalanceFormatted, c.balance) {
				t.Errorf("%s: %d %s, want %s", c.vendor, a.status, a.body, c.balance)
			}
		}
	}
}

// docs/decisions.md#sms-balance: a vendor that refuses the key is 422 http_error, no response 503, an unusable response
// 500. The request goes to the first integration, without fail-over.
func TestBalanceOfAVendorThatFails(t *testing.T) {
	local(t)
	t.Parallel()
	for _, c := range []struct {
		vendor   string
		outcome  sandbox.Outcome
		endpoint string
		status   int
		code     string
	}{
		{vendor: "notifylk", outcome: sandbox.CredentialsRefused, status: 422, code: "http_error"},
		{vendor: "textlk", outcome: sandbox.Unparseable, status: 500, code: "internal_error"},
		{vendor: "dialog", outcome: sandbox.ServerError, status: 500, code: "internal_error"},
		{vendor: "quicksend", outcome: sandbox.Closed, status: 503, code: "http_error"},
		{vendor: "twilio", outcome: sandbox.Hang, status: 503, code: "http_error"},
		{vendor: "aws", endpoint: closedEndpoint(t), status: 422, code: "http_error"},
		{vendor: "twilio", endpoint: closedEndpoint(t), status: 503, code: "http_error"},
	} {
		s := newSandbox(t)
		if err := s.SetRules(sandbox.Rule{Operation: "balance", Outcome: c.outcome}); err != nil {
			t.Fatal(err)
		}
		if c.endpoint == "" {
			c.endpoint = s.URL + "/" + c.vendor
		}
		p := plan{integrations: []integration{
			{vendor: c.vendor, mode: project.BYOK, endpoint: c.endpoint, priority: 1},
			{vendor: "dialogv2", mode: project.BYOK, priority: 2}, // its response would differ
		}}.make(t)
		t.Run(c.vendor+" "+string(c.outcome), func(t *testing.T) {
			t.Parallel()
			if a := (request{path: balance, body: "{}", as: p.dev}).do(t); a != nil && !a.is(c.status, c.code) {
				t.Errorf("%d %s, want %d %s", a.status, a.body, c.status, c.code)
			}
		})
	}
}

// newSandbox plays vendors for one test alone.
func newSandbox(t *testing.T) *sandbox.Server {
	t.Helper()
	s, err := sandbox.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// closedEndpoint is where the vendors of the demo project unreachable are: connections are refused.
func closedEndpoint(t *testing.T) string {
	t.Helper()
	for _, i := range svc[[]struct{ Settings map[string]string }](t, "", "integration", "list", "unreachable") {
		if at := i.Settings["endpoint"]; at != "" {
			return at
		}
	}
	t.Fatal("the demo project unreachable has no endpoints")
	return ""
}

// TestSendForReal sends one message as a client would: on a deployed stack, with ACCEPT_SENDS=1, through the vendor
// ACCEPT_VENDOR, Managed, to the number ACCEPT_TO.
func TestSendForReal(t *testing.T) {
	vendor, to := "twilio", number()
	if fixture.stack == nil {
		if os.Getenv("ACCEPT_SENDS") != "1" {
			leave(t, " (ACCEPT_SENDS=1)")
		}
		vendor, to = os.Getenv("ACCEPT_VENDOR"), os.Getenv("ACCEPT_TO")
	}
	t.Parallel()
	const credits = 10_000_000
	p := plan{credits: credits, integrations: []integration{{vendor: vendor, mode: project.Managed}}}.make(t)
	a := request{path: send, body: single(to, "SVC API acceptance test"), as: p.dev}.do(t)
	if a == nil {
		return
	}
	if provider := a.provider(t); !a.is(200, "") || provider.Vendor != vendor || provider.Status == "" || a.Data.CreditsCharged <= 0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := p.balance(t); got != credits-a.Data.CreditsCharged {
		t.Errorf("balance %d after %d were charged of %d", got, a.Data.CreditsCharged, credits)
	}
	if e := p.ledger(t)[a.RequestID]; e.State != "captured" || e.Credits != a.Data.CreditsCharged {
		t.Errorf("ledger %+v", e)
	}
}

// docs/decisions.md#vendor-outcomes: what the sandbox's numbers do, to the credit.
func TestMagicNumbers(t *testing.T) {
	local(t)
	t.Parallel()
	const credits = 1_000_000
	for _, vendor := range []string{"quicksend", "twilio"} {
		p := plan{credits: credits, integrations: []integration{{vendor: vendor, mode: project.Managed}}}.make(t)
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			cases := []struct {
				to               string
				status           int
				code             string
				state            string
				charged, unclear bool
			}{
				{"0770000001", 502, "http_error", "released", false, false},
				{"0770000002", 502, "http_error", "released", false, false},
				{"0770000003", 502, "http_error", "captured", true, true},
				{"0770000004", 503, "http_error", "captured", true, true},
				{"0770000005", 502, "http_error", "captured", true, true},
				{"0770000006", 200, "", "captured", true, false},
				{number(), 200, "", "captured", true, false},
			}
			left := int64(credits)
			responses := atOnce(len(cases), len(cases), func(i int) *response {
				return request{path: send, body: single(cases[i].to, "m"), as: p.dev}.do(t)
			})
			ledger := p.ledger(t)
			for i, c := range cases {
				a := responses[i]
				if a == nil {
					continue
				}
				e := ledger[a.RequestID]
				if !a.is(c.status, c.code) || e.State != c.state || e.Uncertain != c.unclear || e.Credits != perUnit() {
					t.Errorf("%s: %d %s, ledger %+v; want %d %s, %s, uncertain %v", c.to, a.status, a.body, e, c.status, c.code, c.state, c.unclear)
				}
				if c.charged {
					left -= perUnit()
				}
			}
			if got := p.balance(t); got != left {
				t.Errorf("balance %d, want %d", got, left)
			}
		})
	}
}

// docs/decisions.md#uncertain-sms: a refused connection is certain, nothing is charged.
func TestUnreachable(t *testing.T) {
	local(t)
	t.Parallel()
	p := demoProject("unreachable")
	before := p.balance(t)
	a := request{path: send, body: single(number(), "m"), as: p.dev}.do(t)
	if a == nil {
		return
	}
	if e := p.ledger(t)[a.RequestID]; !a.is(503, "http_error") || e.State != "released" || e.Uncertain {
		t.Errorf("%d %s, ledger %+v; want 503 http_error, released", a.status, a.body, e)
	}
	if after := p.balance(t); after != before {
		t.Errorf("balance %d, before %d", after, before)
	}
}

// docs/decisions.md#wallet: 300 requests, 64 at a time, on a wallet for exactly 100: 100 succeed, the rest are 402, the
// balance is 0 and the ledger has 100 entries.
func TestRace(t *testing.T) {
	local(t)
	p := plan{credits: 100 * perUnit(), integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	to := numberBlock(300)
	succeeded, messages := 0, 0
	for _, a := range atOnce(300, 64, func(i int) *response {
		return request{path: send, body: single(to[i], "m"), as: p.dev}.do(t)
	}) {
		switch {
		case a == nil:
		case a.is(200, ""):
			succeeded++
		case !a.is(402, "insufficient_funds"):
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	for _, n := range to {
		messages += len(sent(n))
	}
	if succeeded != 100 || messages != 100 {
		t.Errorf("%d requests succeeded, %d messages were sent, want 100", succeeded, messages)
	}
	if got := p.balance(t); got != 0 {
		t.Errorf("balance %d, want 0", got)
	}
	captured := 0
	for _, e := range p.ledger(t) {
		if e.State == "captured" && e.Credits == perUnit() && !e.Uncertain {
			captured++
		} else if e.State != "grant" {
			t.Errorf("ledger %+v", e)
		}
	}
	if captured != 100 {
		t.Errorf("%d captured entries, want 100", captured)
	}
}

// A request's charge does not depend on a client that waits: one that goes away is charged for what was sent.
func TestClientGoesAway(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{credits: 1_000_000, integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	to := number()
	abandon(t, request{path: send, body: single(to, "m"), as: p.dev})
	deadline := time.Now().Add(20 * time.Second)
	for {
		for _, e := range p.ledger(t) {
			if e.State == "captured" {
				if got := p.balance(t); got != 1_000_000-perUnit() || len(sent(to)) != 1 {
					t.Errorf("balance %d, sent %d times", got, len(sent(to)))
				}
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the message of a client that went away is not charged")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

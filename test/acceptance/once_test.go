package acceptance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
)

// keyed is a send with an Idempotency-Key.
func keyed(p *tenant, key, body string) request {
	return request{path: send, body: body, as: p.dev, header: map[string]string{"Idempotency-Key": key}}
}

// replayed reports whether a response repeats another: same status and data, a request ID of its own, marked.
func (a *response) replayed(first *response) bool {
	return a.status == first.status && a.without() == first.without() && a.RequestID != first.RequestID && a.header.Get("Idempotency-Replayed") == "true"
}

// docs/decisions.md#idempotency-outcomes, docs/decisions.md#idempotency-repeats: what is kept, that a repeat sends
// nothing and pays nothing, and that another body is refused. Managed and BYOK.
func TestOnceIsKept(t *testing.T) {
	local(t)
	t.Parallel()
	const credits = 1_000_000
	for _, mode := range []project.Mode{project.Managed, project.BYOK} {
		for _, c := range []struct {
			outcome sandbox.Outcome
			status  int
			charged bool
		}{
			{sandbox.Accepted, 200, true},
			{sandbox.Rejected, 502, false},
			{sandbox.CredentialsRefused, 502, false},
			{sandbox.Unparseable, 502, true},
			{sandbox.Hang, 503, true},
			{sandbox.Closed, 503, true},
		} {
			t.Run(string(mode)+" "+string(c.outcome), func(t *testing.T) {
				t.Parallel()
				p := plan{credits: credits, integrations: []integration{{vendor: "twilio", mode: mode}}}.make(t)
				to := number()
				addRules(t, sandbox.Rule{To: to, Outcome: c.outcome})
				r := keyed(p, "kept", single(to, "m"))
				first := r.do(t)
				if first == nil {
					return
				}
				if first.status != c.status || first.header.Get("Idempotency-Replayed") != "" {
					t.Fatalf("first: %d %v %s, want %d", first.status, first.header, first.body, c.status)
				}
				left := p.balance(t)
				if charged := left != credits; charged != (c.charged && mode == project.Managed) {
					t.Errorf("balance %d after the first", left)
				}
				for range 2 {
					if a := r.do(t); a != nil && !a.replayed(first) {
						t.Errorf("repeat: %d %v %s, want %d %s again", a.status, a.header, a.body, first.status, first.body)
					}
				}
				// Whatever has changed since.
				svc[any](t, "", "integration", "disable", p.id, "sms", "twilio")
				forget()
				if a := r.do(t); a != nil && !a.replayed(first) {
					t.Errorf("repeat without an integration: %d %s", a.status, a.body)
				}
				other := r
				other.body += " "
				if a := other.do(t); a != nil && !a.is(422, "http_error") {
					t.Errorf("another body: %d %s, want 422 http_error", a.status, a.body)
				}
				if n := len(sent(to)); n != 1 {
					t.Errorf("sent %d times", n)
				}
				if got := p.balance(t); got != left {
					t.Errorf("balance %d, want %d", got, left)
				}
				// Refusals that come before the key.
				for _, refused := range []struct {
					r      request
					status int
				}{
					{request{path: send, body: r.body, as: credential{p.dev.ID, "x"}, header: r.header}, 401},
					{request{path: send, body: "{}", as: p.dev, header: r.header}, 422},
					{request{path: send, body: r.body, as: p.dev, header: with(r.header, "X-SVC-Client", "playground")}, 428},
				} {
					if a := refused.r.do(t); a != nil && (a.status != refused.status || a.header.Get("Idempotency-Replayed") != "") {
						t.Errorf("%d %s, want %d", a.status, a.body, refused.status)
					}
				}
			})
		}
	}
}

// docs/decisions.md#idempotency-outcomes: refusals before a byte may have reached a provider, and failures to connect,
// free the key.
func TestOnceIsFreed(t *testing.T) {
	local(t)
	t.Parallel()
	for name, c := range map[string]struct {
		plan   plan
		body   string // TO is the number
		status int
		remedy func(p *tenant)
	}{
		"no credits": {plan{integrations: []integration{{vendor: "twilio", mode: project.Managed}}}, `{"send_method":"single","to":"TO","message":"m"}`, 402,
			func(p *tenant) { p.grant(t, 1_000_000) }},
		"connection refused, Managed": {plan{credits: 1_000_000, integrations: []integration{{vendor: "twilio", mode: project.Managed, endpoint: closedEndpoint(t)}}},
			`{"send_method":"single","to":"TO","message":"m"}`, 503, func(p *tenant) { p.connect(t, integration{vendor: "twilio", mode: project.Managed}) }},
		"connection refused, BYOK": {plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK, endpoint: closedEndpoint(t)}}},
			`{"send_method":"single","to":"TO","message":"m"}`, 503, func(p *tenant) { p.connect(t, integration{vendor: "twilio", mode: project.BYOK}) }},
		"no integration": {plan{}, `{"send_method":"single","to":"TO","message":"m"}`, 422,
			func(p *tenant) { p.connect(t, integration{vendor: "twilio", mode: project.BYOK}) }},
		"too long": {plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK}}}, `{"send_method":"single","to":"TO","message":"` + strings.Repeat("x", 460) + `"}`, 422, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, to := c.plan.make(t), number()
			r := keyed(p, "freed", strings.ReplaceAll(c.body, "TO", to))
			if a := r.do(t); a == nil || a.status != c.status {
				t.Fatalf("first: %+v, want %d", a, c.status)
			}
			if c.remedy != nil {
				c.remedy(p)
			} else {
				r.body = single(to, "m") // the key is as good as new for another body
			}
			forget()
			first := r.do(t)
			if first == nil || !first.is(200, "") || first.header.Get("Idempotency-Replayed") != "" {
				t.Fatalf("after the remedy: %+v", first)
			}
			if a := r.do(t); a != nil && !a.replayed(first) {
				t.Errorf("repeat: %d %s", a.status, a.body)
			}
			if n := len(sent(to)); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// docs/decisions.md#idempotency-repeats: while the first request runs the others get 409, and of many at once one
// sends. Keys are per project and environment.
func TestOnceAtATime(t *testing.T) {
	local(t)
	t.Parallel()
	const credits = 1_000_000
	p := plan{credits: credits, prod: true, integrations: []integration{
		{vendor: "twilio", mode: project.Managed}, {vendor: "twilio", mode: project.Managed, env: project.Production},
	}}.make(t)
	to := number()
	addRules(t, sandbox.Rule{To: to, DelayMS: 1500})
	statuses := map[int]int{}
	for _, a := range atOnce(20, 20, func(int) *response { return keyed(p, "once", single(to, "m")).do(t) }) {
		if a != nil {
			statuses[a.status]++
		}
	}
	if statuses[200] == 0 || statuses[200]+statuses[409] != 20 || len(sent(to)) != 1 {
		t.Errorf("%v, sent %d times; want one send, 200 for it and its repeats, 409 meanwhile", statuses, len(sent(to)))
	}
	if got := p.balance(t); got != credits-perUnit() {
		t.Errorf("balance %d, want %d", got, credits-perUnit())
	}
	r := keyed(p, "once", single(to, "m"))
	r.as, r.header = p.prod, with(r.header, "X-ENV", "production")
	if a := r.do(t); a != nil && (!a.is(200, "") || a.header.Get("Idempotency-Replayed") != "") {
		t.Errorf("in production: %d %s, want a send of its own", a.status, a.body)
	}
	other := plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK}}}.make(t)
	if a := keyed(other, "once", single(to, "m")).do(t); a != nil && (!a.is(200, "") || a.header.Get("Idempotency-Replayed") != "") {
		t.Errorf("in another project: %d %s, want a send of its own", a.status, a.body)
	}
	if n := len(sent(to)); n != 3 {
		t.Errorf("sent %d times, want 3", n)
	}
}

// docs/decisions.md#idempotency-key: 1 to 128 visible ASCII characters, else 422 validation_failed on Idempotency-Key.
func TestOnceKeys(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	for key, valid := range map[string]bool{
		"": false, "a": true, "!~": true, strings.Repeat("k", 128): true, strings.Repeat("k", 129): false, "a b": false, "a\tb": false,
		"é": false, `"quoted"`: true, "../../x#y": true,
	} {
		want := "validation_failed"
		if valid {
			want = "provider_selection_failed"
		}
		for _, body := range []string{single("0771234567", "m"), `{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","check_cost":true}`} {
			a := keyed(p, key, body).send(t)
			if a == nil || !a.is(422, want) || (len(a.Error.Details.fields["Idempotency-Key"]) == 0) != valid {
				t.Errorf("%q: %+v, want %s", key, a, want)
			}
		}
	}
	if a := keyed(p, "a b", `{"send_method":"single"}`).do(t); a != nil && len(a.Error.Details.fields) != 3 {
		t.Errorf("%s, want all failing fields at once", a.body)
	}
	// Balances and cost checks keep nothing.
	if a := (request{path: balance, body: "{}", as: p.dev, header: map[string]string{"Idempotency-Key": "a b"}}).do(t); a != nil && !a.is(422, "provider_selection_failed") {
		t.Errorf("balance: %d %s", a.status, a.body)
	}
}

// The complete response of a bulk to 10,000 is stored.
func TestOnceBulk(t *testing.T) {
	local(t)
	t.Parallel()
	s := newSandbox(t)
	p := plan{integrations: []integration{{vendor: "textlk", mode: project.BYOK, endpoint: s.URL + "/textlk"}}}.make(t)
	to := numberBlock(10_000)
	r := keyed(p, "bulk", bulkSame(to, "m"))
	first := r.do(t)
	if first == nil || !first.is(200, "") || first.Data.MessageCount != len(to) {
		t.Fatalf("%.500s", first.body)
	}
	again := r.do(t)
	if again == nil || !again.replayed(first) {
		t.Errorf("the repeat differs: %d, %d bytes, the first %d bytes", again.status, len(again.body), len(first.body))
	}
	got, calls := received(s)
	if slices.Sort(to); calls != 100 || len(got) != len(to) {
		t.Errorf("%d messages in %d calls, want %d in 100", len(got), calls, len(to))
	}
}

// docs/decisions.md#idempotency-key: kept for 24 hours; the expiry is part of the condition, not left to the table.
func TestOnceExpires(t *testing.T) {
	n := oneProcessStack(t)
	for _, project := range []string{"managed", "byok"} {
		to := number()
		r := n.send(project, single(to, "m"), map[string]string{"Idempotency-Key": "expires"})
		first := r.do(t)
		if first == nil || !first.is(200, "") {
			t.Fatalf("%+v", first)
		}
		// Not before the table deletes it, but when it says so.
		n.age(t, project, "expires", "expires", time.Now().Add(time.Minute).Unix())
		if a := r.do(t); a != nil && !a.replayed(first) {
			t.Errorf("%s, before its end: %d %s", project, a.status, a.body)
		}
		n.age(t, project, "expires", "expires", time.Now().Add(-time.Second).Unix())
		if a := r.do(t); a != nil && (!a.is(200, "") || a.header.Get("Idempotency-Replayed") != "" || a.RequestID == first.RequestID) {
			t.Errorf("%s, after its end: %d %s", project, a.status, a.body)
		}
		if got := n.sent(to); got != 2 {
			t.Errorf("%s: sent %d times, want 2", project, got)
		}
	}
}

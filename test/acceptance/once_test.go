package acceptance

import (
	"slices"
	"testing"

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

// docs/decisions/extensions.md#idempotency-repeats: while the first request runs the others get 409, and of many at
// once one sends. Keys are per project and environment.
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

// docs/decisions/extensions.md#idempotency-outcomes, docs/decisions/extensions.md#idempotency-repeats: what may have
// reached a vendor is kept, a repeat sends nothing and pays nothing, whatever has changed since, and another body is
// refused. shared/api has the tests of every outcome.
func TestOnceIsKept(t *testing.T) {
	local(t)
	t.Parallel()
	const credits = 1_000_000
	for outcome, status := range map[sandbox.Outcome]int{sandbox.Accepted: 200, sandbox.Rejected: 502, sandbox.Closed: 503} {
		p := plan{credits: credits, integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
		to := number()
		addRules(t, sandbox.Rule{To: to, Outcome: outcome})
		r := keyed(p, "kept", single(to, "m"))
		first := r.do(t)
		if first == nil || first.status != status || first.header.Get("Idempotency-Replayed") != "" {
			t.Fatalf("first: %+v, want %d", first, status)
		}
		left := p.balance(t)
		if charged := credits - left; charged != map[bool]int64{true: perUnit()}[status != 502] {
			t.Errorf("%s: %d charged", outcome, charged)
		}
		svc[any](t, "", "integration", "disable", p.id, "sms", "twilio")
		forget()
		if a := r.do(t); a != nil && !a.replayed(first) {
			t.Errorf("repeat: %d %v %s, want %d %s again", a.status, a.header, a.body, first.status, first.body)
		}
		r.body += " "
		if a := r.do(t); a != nil && !a.is(422, "http_error") {
			t.Errorf("another body: %d %s, want 422 http_error", a.status, a.body)
		}
		if n := len(sent(to)); n != 1 || p.balance(t) != left {
			t.Errorf("%s: sent %d times, balance %d, want %d", outcome, n, p.balance(t), left)
		}
	}
}

// docs/decisions/extensions.md#idempotency-outcomes: what cannot have reached a vendor frees the key.
func TestOnceIsFreed(t *testing.T) {
	local(t)
	t.Parallel()
	p, to := plan{integrations: []integration{
		{vendor: "dialog", mode: project.Managed, bare: true}, // passed over (docs/decisions/money.md#modes)
		{vendor: "twilio", mode: project.Managed, priority: 1, endpoint: closedEndpoint(t)},
	}}.make(t), number()
	r := keyed(p, "freed", single(to, "first"))
	if a := r.do(t); a != nil && a.status != 402 {
		t.Errorf("without credits: %d %s", a.status, a.body)
	}
	p.grant(t, 1_000_000)
	if a := r.do(t); a != nil && a.status != 503 {
		t.Errorf("connection refused: %d %s", a.status, a.body)
	}
	p.connect(t, integration{vendor: "twilio", mode: project.Managed, priority: 1})
	forget()
	r.body = single(to, "second")
	first := r.do(t)
	if first == nil || !first.is(200, "") || first.header.Get("Idempotency-Replayed") != "" || len(sent(to)) != 1 {
		t.Errorf("%+v, sent %d times", first, len(sent(to)))
	}
}

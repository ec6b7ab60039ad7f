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
	return a.status == first.status && a.without() == first.without() && a.RequestID != first.RequestID &&
		a.header.Get("Idempotency-Replayed") == "true"
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
	if a := keyed(other, "once", single(to, "m")).do(t); a != nil &&
		(!a.is(200, "") || a.header.Get("Idempotency-Replayed") != "") {
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

package acceptance

import (
	"slices"
	"testing"

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

// The complete response of a bulk to 10,000 is stored.
func TestOnceBulk(t *testing.T) {
	local(t)
	t.Parallel()
	s := newSandbox(t)
	p := plan{integrations: []integration{{vendor: "textlk", mode: project.BYOK, endpoint: s.URL + "/textlk"}}}.make(t)
	to := numberBlock(10_000)
	r := keyed(p, "bulk", bulkSame(to, "m"))
	first := r.do(t)
	if !first.is(200, "") || first.Data.MessageCount != len(to) {
		t.Fatalf("%.500s", first.body)
	}
	again := r.do(t)
	if !again.replayed(first) {
		t.Errorf("the repeat differs: %d, %d bytes, the first %d bytes", again.status, len(again.body), len(first.body))
	}
	got, calls := received(s)
	if slices.Sort(to); calls != 100 || len(got) != len(to) {
		t.Errorf("%d messages in %d calls, want %d in 100", len(got), calls, len(to))
	}
}

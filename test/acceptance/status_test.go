package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/test/must"
)

// docs/decisions/extensions.md#references, docs/decisions/extensions.md#sms-status: the reference of a send leads
// to the message, free of charge. No vendor is asked about a reference of another project or environment.
func TestStatus(t *testing.T) {
	local(t)
	t.Parallel()
	const credits = 1_000_000
	s := newSandbox(t)
	twilio := integration{vendor: "twilio", mode: project.Managed, endpoint: s.URL + "/twilio"}
	production := twilio
	production.env = project.Production
	p := plan{credits: credits, prod: true, integrations: []integration{twilio, production}}
	own, other := p.make(t), p.make(t)
	to := numberBlock(2)
	must.Succeed(t, s.SetRules(sandbox.Rule{To: to[1], Outcome: sandbox.Closed}))
	first, lost := request{path: send, body: single(to[0], "m"), as: own.dev}.do(t), keyed(own, "lost", single(to[1], "m"))
	uncertain, again := lost.do(t), lost.do(t)
	if !first.is(200, "") || uncertain.status != 503 || !again.replayed(uncertain) {
		t.Fatalf("%+v, then %+v and %+v", first, uncertain, again)
	}
	references := []string{first.provider(t).Reference, uncertain.Error.Details.Reference}
	left := own.balance(t)
	s.Forget()
	ask := func(reference string, as credential, env string) *response {
		return request{method: "GET", path: status + reference, as: as, header: map[string]string{"X-ENV": env}}.do(t)
	}
	for i, reference := range references {
		forged := strings.Map(func(r rune) rune { return map[bool]rune{true: 'B', false: 'A'}[r == 'A'] }, reference)
		for _, a := range []*response{
			ask(reference, other.dev, "dev"), ask(reference, own.prod, "production"), ask(forged, own.dev,
				"dev"), ask(reference+"A", own.dev, "dev"),
		} {
			if !a.is(404, "http_error") || a.Error.Details.Reason != "reference_not_found" {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
		if calls := s.Calls(); len(calls) != i {
			t.Errorf("a vendor was asked about a foreign reference: %+v", calls)
		}
		a := ask(reference, own.dev, "dev")
		var got struct{ Data map[string]any }
		err := json.Unmarshal(a.body, &got)
		checked, _ := time.Parse(time.RFC3339, fmt.Sprint(got.Data["checked_at"]))
		delete(got.Data, "checked_at")
		want := map[string]any{"reference": reference, "status": "delivered", "vendor": "twilio",
			"vendor_status": "delivered"}
		if err != nil || !a.is(200, "") || !maps.Equal(got.Data, want) || time.Since(checked).Abs() > time.Minute {
			t.Errorf("%d %s, %v", a.status, a.body, err)
		}
	}
	s.Close()
	a := ask(references[0], own.dev, "dev")
	if !a.is(503, "http_error") || a.Error.Details.Reason != "vendor_unreachable" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := own.balance(t); got != left {
		t.Errorf("balance %d after the questions, %d before", got, left)
	}
}

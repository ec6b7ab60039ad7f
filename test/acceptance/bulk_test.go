package acceptance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/test/must"
)

func bulkDifferent(to, messages []string) string {
	list := make([]map[string]string, len(to))
	for i := range to {
		list[i] = map[string]string{"to": to[i], "msg": messages[i]}
	}
	return object(map[string]any{"send_method": "bulk_different", "msg_list": list})
}

// canonical is a number as every vendor's form of it ends.
func canonical(to string) string { return to[len(to)-9:] }

// received are the numbers that a sandbox got sends for, and in how many calls.
func received(s *sandbox.Server) (to []string, calls int) {
	for _, c := range s.Calls() {
		if c.Operation == "send" {
			calls++
			for _, n := range c.To {
				to = append(to, canonical(n))
			}
		}
	}
	slices.Sort(to)
	return to, calls
}

// docs/decisions/sms.md#bulk: a long bulk through a vendor without a bulk call ends before the deadline, with every
// recipient accounted for and none sent to twice.
func TestLongBulk(t *testing.T) {
	local(t)
	t.Parallel()
	s := newSandbox(t)
	const delay = 100 * time.Millisecond // more are sent than would fit in turn
	must.Succeed(t, s.SetRules(sandbox.Rule{DelayMS: int(delay.Milliseconds())}))
	p := plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK, endpoint: s.URL + "/twilio"}}}.make(t)
	to := numberBlock(10_000)
	began := time.Now()
	a := request{path: send, body: bulkSame(to, "m"), as: p.dev}.do(t)
	took := time.Since(began)
	provider := a.provider(t)
	// Status 200 shows that the send ended in time: past 29 s, or the function's own 28 s, the status is 500.
	if !a.is(200, "") || len(provider.Results) != len(to) {
		t.Fatalf("%d %.300s, %d results after %v", a.status, a.body, len(provider.Results), took)
	}
	counts := map[string]int{}
	for i, r := range provider.Results {
		counts[r.Status]++
		if r.To != to[i] {
			t.Errorf("result %d is of %s, want %s", i, r.To, to[i])
		}
	}
	got, _ := received(s)
	if unique := len(slices.Compact(slices.Clone(got))); len(got) != counts["accepted"] || unique != len(got) {
		t.Errorf("the vendor got %d messages, %d of them different; the response has %v", len(got), unique, counts)
	}
	if counts["accepted"]+counts["not_attempted"] != len(to) || a.Data.MessageCount != counts["accepted"] ||
		counts["accepted"] <= int(took/delay) {
		t.Errorf("%v, message_count %d", counts, a.Data.MessageCount)
	}
	if (counts["not_attempted"] > 0) != (provider.Status == "partial") {
		t.Errorf("status %s with %v", provider.Status, counts)
	}
	t.Logf("%v after %v", counts, took.Round(100*time.Millisecond))
	checkMemory(t)
}

// docs/decisions/sms.md#refused-fields, docs/decisions/sms.md#sender-id, docs/decisions/sms.md#smart-encoding: a
// refused request reaches no vendor and counts in no limit; a listed sender and a replaced text reach the vendor.
func TestOtherGateways(t *testing.T) {
	local(t)
	t.Parallel()
	s := newSandbox(t)
	p := plan{integrations: []integration{{vendor: "quicksend", mode: project.BYOK,
		endpoint: s.URL + "/quicksend"}}}.make(t)
	svc[any](t, "", "integration", "set", p.id, "sms", "quicksend", "--setting", "sender_ids=Acme,AcmeInfo")
	svc[any](t, "", "project", "limits", p.id, "--per-recipient", "1/24h", "--daily-units", "1")
	to := numberBlock(1)[0]
	post := func(more string) request {
		return request{path: send, as: p.dev,
			body: `{"send_method":"single","to":"` + to + `","message":"It’s “here”"` + more + `}`}
	}
	for more, field := range map[string]string{
		`,"schedule_time":"2026-12-25 08:00"`: "schedule_time", `,"callbackUrl":"https://x.example"`: "callbackUrl",
		`,"Flash":false`: "Flash", `,"from":"Acme"`: "from", `,"sourceAddress":"Acme"`: "sourceAddress", `,"ttl":1`: "ttl",
		`,"options":{"schedule":{"at":1}}`: "options.schedule", `,"dry-run":true`: "dry-run",
		`,"sender_id":"Other"`: "sender_id",
	} {
		r := post(more)
		r.failsOn(t, field)
	}
	r := post(`,"sender_id":"AcmeInfo","smart_encoding":true,"ref":1`)
	a := r.do(t)
	calls := s.Calls()
	if a.status != 200 || len(calls) != 1 || !strings.Contains(calls[0].Body, `"senderID":"AcmeInfo"`) ||
		!strings.Contains(calls[0].Body, `It's \"here\"`) {
		t.Errorf("%d %s, calls %+v", a.status, a.body, calls)
	}
	if got, want := a.header.Get("X-SVC-Warnings"), `smart-encoding;n=3;units=1;chars="U+2019 U+201C U+201D", `+
		`unknown-fields;n=1;names="ref"`; got != want {
		t.Errorf("the warnings are %s, want %s", got, want)
	}
	if a := r.do(t); !a.is(429, "rate_limit_exceeded") {
		t.Errorf("the limit of one message is not reached: %d %s", a.status, a.body)
	}
}

// openapi.yaml#SmsProviderResponse, docs/decisions/sms.md#cost-check: QuickSend's own estimate, where the operator's
// setting demands it. The event sms-send-check-cost and functions/sms TestCheckCost have the computed one.
func TestCheckCost(t *testing.T) {
	local(t)
	t.Parallel()
	s := newSandbox(t)
	p := plan{integrations: []integration{{vendor: "quicksend", mode: project.BYOK,
		endpoint: s.URL + "/quicksend"}}}.make(t)
	svc[any](t, "", "integration", "set", p.id, "sms", "quicksend", "--setting", "native_check_cost=true")
	a := request{path: send, as: p.dev, body: object(map[string]any{
		"send_method": "bulk_same", "recipients": numberBlock(3), "message": strings.Repeat("අ", 68), "check_cost": true,
	})}.do(t)
	a.has(t, "cost check", `"credits_charged":0`, `"campaign_total_numbers":"3"`, `"campaign_total_cost":"3.84"`)
	if got := s.Calls(); a.Data.MessageCount != 6 || len(got) != 1 || got[0].Operation != "check_cost" {
		t.Errorf("%d units, calls %+v", a.Data.MessageCount, got)
	}
}

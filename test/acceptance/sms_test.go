package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/testvalue"
	"svcapi/shared/wallet"
	"svcapi/test/must"
)

// perUnit is the price of an SMS unit on the local stack.
func perUnit() int64 { return fixture.stack.Prices[wallet.SMS] }

// newSandbox plays vendors for one test alone.
func newSandbox(t *testing.T) *sandbox.Server {
	t.Helper()
	s := must.Get(sandbox.Start()).Or(t)
	t.Cleanup(func() { s.Close() })
	return s
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
	if provider := a.provider(t); !a.is(200, "") || provider.Vendor != vendor || provider.Status == "" ||
		a.Data.CreditsCharged <= 0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := p.balance(t); got != credits-a.Data.CreditsCharged {
		t.Errorf("balance %d after %d were charged of %d", got, a.Data.CreditsCharged, credits)
	}
	if e := p.ledger(t)[a.RequestID]; e.State != "captured" || e.Credits != a.Data.CreditsCharged {
		t.Errorf("ledger %+v", e)
	}
}

// docs/decisions/money.md#wallet: 300 requests, 64 at a time, on a wallet for exactly 100: 100 succeed, the rest are
// 402, the balance is 0 and the ledger has 100 entries.
func TestRace(t *testing.T) {
	local(t)
	p := plan{credits: 100 * perUnit(), integrations: []integration{{vendor: "twilio", mode: project.Managed}}}.make(t)
	to := numberBlock(300)
	succeeded, messages := 0, 0
	for _, a := range atOnce(300, 64, func(i int) *response {
		return request{path: send, body: single(to[i], "m"), as: p.dev}.do(t)
	}) {
		switch {
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

// keyed is a send with an Idempotency-Key.
func keyed(p *tenant, key, body string) request {
	return request{path: send, body: body, as: p.dev, header: map[string]string{"Idempotency-Key": key}}
}

// replayed reports whether a response repeats another: same status and data, a request ID of its own, marked.
func (a *response) replayed(first *response) bool {
	return a.status == first.status && a.without() == first.without() && a.RequestID != first.RequestID &&
		a.header.Get("Idempotency-Replayed") == "true"
}

// docs/decisions/extensions.md#references, docs/decisions/extensions.md#sms-status: the reference of a send leads
// to the message, free of charge. functions/sms/reference TestReferences has foreign and forged ones, which are 404.
func TestStatus(t *testing.T) {
	localParallel(t)
	const credits = 1_000_000
	s := newSandbox(t)
	own := plan{credits: credits, integrations: []integration{{vendor: "twilio", mode: project.Managed,
		endpoint: s.URL + "/twilio"}}}.make(t)
	to := numberBlock(2)
	must.Succeed(t, s.SetRules(sandbox.Rule{To: to[1], Outcome: sandbox.Closed}))
	first, lost := request{path: send, body: single(to[0], "m"), as: own.dev}.do(t), keyed(own, "lost", single(to[1], "m"))
	uncertain, again := lost.do(t), lost.do(t)
	if !first.is(200, "") || uncertain.status != 503 || !again.replayed(uncertain) {
		t.Fatalf("%+v, then %+v and %+v", first, uncertain, again)
	}
	references := []string{first.provider(t).Reference, uncertain.Error.Details.Reference}
	left := own.balance(t)
	ask := func(reference string) *response {
		return request{method: "GET", path: status + reference, as: own.dev}.do(t)
	}
	for _, reference := range references {
		a := ask(reference)
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
	a := ask(references[0])
	if !a.is(503, "http_error") || a.Error.Details.Reason != "vendor_unreachable" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := own.balance(t); got != left {
		t.Errorf("balance %d after the questions, %d before", got, left)
	}
}

// docs/decisions/extensions.md#test-vendor: the vendor "test" responds to each value with its status, charges nothing
// and takes the place of an active vendor, which nobody calls.
func TestTestVendor(t *testing.T) {
	localParallel(t)
	const credits = 1_000_000
	s := newSandbox(t)
	for _, mode := range []project.Mode{project.Managed, project.BYOK} {
		var all []integration
		for kind, beside := range map[project.Kind]string{project.SMS: "twilio", project.Security: "ipinfo",
			project.Location: "ipinfo"} {
			all = append(all, integration{kind: kind, vendor: beside, mode: mode, endpoint: s.URL + "/" + beside},
				integration{kind: kind, vendor: project.TestVendor, mode: mode, priority: 9})
		}
		p := plan{credits: credits, integrations: all}.make(t)
		to := number()
		for _, v := range append(testvalue.All(), testvalue.Value{Number: to, Status: 200},
			testvalue.Value{Address: "112.134.0.1", Status: 200, Located: 200}) {
			for path, status := range map[string]int{send: v.Status, vpn: v.Status, location: v.Located} {
				body := single(v.Number, "Hello")
				if path != send {
					body = ip(v.Address)
				}
				if (path == send) != (v.Number != "") {
					continue
				}
				a := request{path: path, body: body, as: p.dev}.do(t)
				named := a.status != 200 || path == location || strings.Contains(string(a.body), `:"test"`)
				if a.status != status || !named || a.Data.CreditsCharged != 0 {
					t.Errorf("%s %+v: %d %s, want %d", path, v, a.status, a.body, status)
				}
			}
		}
		shield := request{path: burner, body: email("a@mailinator.com"), as: p.dev}.do(t)
		if shield.status != 200 || shield.Data.CreditsCharged != 0 {
			t.Errorf("%s: %+v", burner, shield)
		}
		a := request{path: send, body: bulkSame([]string{to, "0770000001"}, "Hello"), as: p.dev}.do(t)
		if permitted := mode == project.BYOK; a.is(200, "") != permitted ||
			permitted && !strings.Contains(string(a.body), `"counts":{"accepted":1,"rejected":1,`) {
			t.Errorf("%s, bulk: %d %s", mode, a.status, a.body)
		}
		accepted := request{path: send, body: single(to, "Hello"), as: p.dev}.do(t)
		state := request{method: "GET", path: status + accepted.provider(t).Reference, as: p.dev}.do(t)
		state.has(t, "status", `"status":"delivered","vendor":"test"`)
		if entries := p.ledger(t); len(entries) != 1 || p.balance(t) != credits { // the grant
			t.Errorf("%s: balance %d, ledger %+v", mode, p.balance(t), entries)
		}
	}
	if calls := s.Calls(); len(calls) > 0 {
		t.Errorf("the vendor beside the test values was called: %+v", calls)
	}
}

func bulkDifferent(to, messages []string) string {
	list := make([]map[string]string, len(to))
	for i := range to {
		list[i] = map[string]string{"to": to[i], "msg": messages[i]}
	}
	return object(map[string]any{"send_method": "bulk_different", "msg_list": list})
}

// received are the numbers that a sandbox got sends for, as every vendor's form of them ends.
func received(s *sandbox.Server) (to []string) {
	for _, c := range s.Calls() {
		if c.Operation == "send" {
			for _, n := range c.To {
				to = append(to, n[len(n)-9:])
			}
		}
	}
	slices.Sort(to)
	return to
}

// docs/decisions/extensions.md#idempotency-size: the complete response of a bulk to 10,000 is kept for repeats.
func TestOnceBulk(t *testing.T) {
	localParallel(t)
	s := newSandbox(t)
	p := plan{integrations: []integration{{vendor: "textlk", mode: project.BYOK, endpoint: s.URL + "/textlk"}}}.make(t)
	r := keyed(p, "bulk", bulkSame(numberBlock(10_000), "m"))
	first, again := r.do(t), r.do(t)
	if got := received(s); !first.is(200, "") || !again.replayed(first) || len(got) != 10_000 {
		t.Errorf("the repeat of %d with %d bytes is %d with %d bytes, %d messages", first.status, len(first.body),
			again.status, len(again.body), len(got))
	}
}

// docs/decisions/sms.md#bulk: a long bulk through a vendor without a bulk call ends before the deadline, with every
// recipient accounted for and none sent to twice. A repetition of its key gets all results, without references
// (docs/decisions/extensions.md#idempotency-size).
func TestLongBulk(t *testing.T) {
	localParallel(t)
	s := newSandbox(t)
	const delay = 100 * time.Millisecond // more are sent than would fit in turn
	must.Succeed(t, s.SetRules(sandbox.Rule{DelayMS: int(delay.Milliseconds())}))
	p := plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK, endpoint: s.URL + "/twilio"}}}.make(t)
	to := numberBlock(10_000)
	began := time.Now()
	r := keyed(p, "bulk", bulkSame(to, "m"))
	a := r.do(t)
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
	again, references := r.do(t), regexp.MustCompile(`,"reference":"[^"]*"`)
	if again.header.Get("Idempotency-Replayed") != "true" ||
		references.ReplaceAllString(again.without(), "") != references.ReplaceAllString(a.without(), "") {
		t.Errorf("the repeat differs: %d, %.300s, the first is %.300s", again.status, again.body, a.body)
	}
	got := received(s)
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
	largest := peak(t, fixture.stack.Processes("SmsFunction"))
	t.Logf("the largest process of the function has held %d MB", largest>>20)
	if largest >= 128<<20 || largest == 0 && runtime.GOOS == "linux" {
		t.Errorf("the largest process of the function has held %d bytes, want less than 128 MB", largest)
	}
}

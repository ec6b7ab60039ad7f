package acceptance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"svcapi/local/sandbox"
	"svcapi/shared/project"
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

// openapi.yaml#sendSms, docs/decisions/sms.md#bulk: bulk_same and bulk_different with every vendor, natively or one by
// one. message_count is the units over all recipients, duplicates are sent as given, and the results have every
// recipient's outcome.
func TestBulk(t *testing.T) {
	local(t)
	t.Parallel()
	for _, c := range []struct {
		vendor     string
		same, list int // calls for 120 recipients, and for a list of 4
	}{
		{"quicksend", 2, 1},
		{"notifylk", 120, 4},
		{"textlk", 2, 4},
		{"ultimatesms", 2, 4},
		{"smslenz", 2, 4},
		{"hutch", 2, 4},
		{"dialog", 2, 4},
		{"dialogv2", 1, 4},
		{"twilio", 120, 4},
		{"aws", 120, 4},
	} {
		t.Run(c.vendor, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			p := plan{integrations: []integration{{vendor: c.vendor, mode: project.BYOK, endpoint: s.URL + "/" + c.vendor}}}.make(t)
			to := numberBlock(118)
			to = append(to, to[0], "+94"+to[0][1:]) // a duplicate, and the same in the other form
			removed := map[string]int{"dialogv2": 2}[c.vendor]
			if c.vendor == "aws" { // 20 a second, the list included
				to, c.same = to[:15], 15
			}
			list := []string{to[0], to[1], to[0], to[2]}
			for _, b := range []struct {
				name, body string
				to         []string
				units      []int
				calls      int
			}{
				{"bulk_same", bulkSame(to, strings.Repeat("x", 154)), to, slices.Repeat([]int{2}, len(to)), c.same},
				{"bulk_different", bulkDifferent(list, []string{"one", strings.Repeat("x", 400), "අ", "two"}), list, []int{1, 3, 1, 1}, c.list},
			} {
				s.Forget()
				a := request{path: send, body: b.body, as: p.dev}.do(t)
				if a == nil {
					continue
				}
				total, wantTo := 0, []string{}
				for i, n := range b.to {
					total += b.units[i]
					wantTo = append(wantTo, canonical(n))
				}
				slices.Sort(wantTo)
				provider, want := a.provider(t), "accepted"
				if b.name == "bulk_same" && removed > 0 {
					want, total = "partial", total-removed*b.units[0]
				}
				if !a.is(200, "") || a.Data.SendMethod != b.name || a.Data.MessageCount != total || a.Data.CreditsCharged != 0 ||
					provider.Status != want || want == "partial" && provider.Counts["removed"] != removed || provider.Vendor != c.vendor || len(provider.Results) != len(b.to) {
					t.Errorf("%s: %d %.500s", b.name, a.status, a.body)
					continue
				}
				for i, r := range provider.Results {
					if r.To != b.to[i] || r.Status != "accepted" || r.Vendor != c.vendor || r.Units != b.units[i] {
						t.Errorf("%s: result %d is %+v", b.name, i, r)
					}
				}
				if got, calls := received(s); !slices.Equal(got, wantTo) || calls != b.calls {
					t.Errorf("%s: %d calls to %d numbers, want %d to %d as given", b.name, calls, len(got), b.calls, len(wantTo))
				}
			}
		})
	}
}

// A long bulk through a vendor without a bulk call is cut before the deadline, with every recipient accounted for and
// none sent to twice.
func TestLongBulk(t *testing.T) {
	local(t)
	t.Parallel()
	s := newSandbox(t)
	if err := s.SetRules(sandbox.Rule{DelayMS: 100}); err != nil {
		t.Fatal(err)
	}
	p := plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK, endpoint: s.URL + "/twilio"}}}.make(t)
	to := numberBlock(10_000)
	began := time.Now()
	a := request{path: send, body: bulkSame(to, "m"), as: p.dev}.do(t)
	took := time.Since(began)
	if a == nil {
		return
	}
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
	if counts["accepted"]+counts["not_attempted"] != len(to) || a.Data.MessageCount != counts["accepted"] || counts["accepted"] < 1000 {
		t.Errorf("%v, message_count %d", counts, a.Data.MessageCount)
	}
	if (counts["not_attempted"] > 0) != (provider.Status == "partial") {
		t.Errorf("status %s with %v", provider.Status, counts)
	}
	t.Logf("%v after %v", counts, took.Round(100*time.Millisecond))
	checkMemory(t)
}

// openapi.yaml#SmsProviderResponse, docs/decisions/sms.md#cost-check: QuickSend's own estimate, where the operator's
// setting demands it. The event sms-send-check-cost and functions/sms TestCheckCost have the computed one.
func TestCheckCost(t *testing.T) {
	local(t)
	t.Parallel()
	s := newSandbox(t)
	p := plan{integrations: []integration{{vendor: "quicksend", mode: project.BYOK, endpoint: s.URL + "/quicksend"}}}.make(t)
	svc[any](t, "", "integration", "set", p.id, "sms", "quicksend", "--setting", "native_check_cost=true")
	a := request{path: send, as: p.dev, body: object(map[string]any{
		"send_method": "bulk_same", "recipients": numberBlock(3), "message": strings.Repeat("අ", 68), "check_cost": true,
	})}.do(t)
	if a == nil {
		return
	}
	a.has(t, "cost check", `"credits_charged":0`, `"campaign_total_numbers":"3"`, `"campaign_total_cost":"3.84"`)
	if got := s.Calls(); a.Data.MessageCount != 6 || len(got) != 1 || got[0].Operation != "check_cost" {
		t.Errorf("%d units, calls %+v", a.Data.MessageCount, got)
	}
}

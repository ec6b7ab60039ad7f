package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
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

// openapi.yaml#sendSms, docs/decisions.md#bulk: bulk_same and bulk_different with every vendor, natively or one by one.
// message_count is the units over all recipients, duplicates are sent as given, and the results have every recipient's
// outcome.
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
		{"dialogv2", 2, 4},
		{"twilio", 120, 4},
		{"aws", 120, 4},
	} {
		t.Run(c.vendor, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			p := plan{integrations: []integration{{vendor: c.vendor, mode: project.BYOK, endpoint: s.URL + "/" + c.vendor}}}.make(t)
			to := numberBlock(118)
			to = append(to, to[0], "+94"+to[0][1:]) // a duplicate, and the same in the other form
			if c.vendor == "aws" {                  // 20 a second
				to, c.same = to[:20], 20
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
				provider := a.provider(t)
				if !a.is(200, "") || a.Data.SendMethod != b.name || a.Data.MessageCount != total || a.Data.CreditsCharged != 0 ||
					provider.Status != "accepted" || provider.Vendor != c.vendor || len(provider.Results) != len(b.to) {
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

// docs/decisions.md#partial-failure: if something was accepted, 200 with every recipient's outcome and the accepted
// units; if nothing was, the error of the first uncertain recipient, else of the first.
func TestBulkPartialFailure(t *testing.T) {
	local(t)
	t.Parallel()
	const rejected, keyRefused, unparseable, hangs, fails = "0770000001", "0770000002", "0770000003", "0770000004", "0770000005"
	good := numberBlock(3)
	for _, c := range []struct {
		vendor   string
		to       []string
		status   int
		code     string
		says     string // of an error
		statuses string
	}{
		{"twilio", []string{good[0], rejected, fails, hangs, good[1]}, 200, "", "", "accepted rejected uncertain uncertain accepted"},
		{"notifylk", []string{rejected, good[0]}, 200, "", "", "rejected accepted"},
		{"twilio", []string{rejected, fails, hangs}, 502, "http_error", "may have been sent", ""},
		{"twilio", []string{rejected, hangs, fails}, 503, "http_error", "may have been sent", ""},
		{"twilio", []string{rejected, rejected}, 502, "http_error", "rejected", ""},
		{"notifylk", []string{rejected, unparseable}, 502, "http_error", "may have been sent", ""},
		// In a native call all recipients share its outcome.
		{"textlk", []string{good[0], rejected}, 502, "http_error", "rejected", ""},
		{"dialogv2", []string{good[0], fails, good[1]}, 502, "http_error", "may have been sent", ""},
		{"quicksend", []string{good[0], hangs}, 503, "http_error", "may have been sent", ""},
		{"textlk", []string{keyRefused, good[0]}, 502, "http_error", "credentials", ""},
	} {
		t.Run(c.vendor+" "+c.statuses+c.says, func(t *testing.T) {
			t.Parallel()
			p := plan{integrations: []integration{{vendor: c.vendor, mode: project.BYOK}}}.make(t)
			for _, body := range []string{bulkSame(c.to, "m"), bulkDifferent(c.to, []string{"a", "b", "c", "d", "e"}[:len(c.to)])} {
				if strings.Contains(body, "bulk_different") && c.vendor != "twilio" && c.vendor != "notifylk" {
					continue // the calls' recipients differ
				}
				a := request{path: send, body: body, as: p.dev}.do(t)
				if a == nil {
					continue
				}
				if c.status != 200 {
					if !a.is(c.status, c.code) || !strings.Contains(a.Error.Message, c.says) {
						t.Errorf("%d %s, want %d %s", a.status, a.body, c.status, c.says)
					}
					continue
				}
				var statuses []string
				provider := a.provider(t)
				for _, r := range provider.Results {
					statuses = append(statuses, r.Status)
				}
				counts := map[string]int{"accepted": 0, "rejected": 0, "uncertain": 0, "not_attempted": 0}
				for _, s := range statuses {
					counts[s]++
				}
				if !maps.Equal(provider.Counts, counts) {
					t.Errorf("counts %v, want %v", provider.Counts, counts)
				}
				if got := strings.Join(statuses, " "); !a.is(200, "") || got != c.statuses || provider.Status != "partial" || a.Data.MessageCount != strings.Count(" "+got, " accepted") {
					t.Errorf("%d %s, want %s", a.status, a.body, c.statuses)
				}
			}
		})
	}
}

// docs/decisions.md#fail-over, in bulk: what certainly did not leave through the first vendor goes through the second,
// whether they send one by one or in batches.
func TestBulkFailover(t *testing.T) {
	local(t)
	t.Parallel()
	for _, c := range []struct {
		first, second string
		calls         int
	}{{"twilio", "notifylk", 150}, {"textlk", "dialog", 2}, {"notifylk", "quicksend", 2}, {"dialogv2", "twilio", 150}} {
		t.Run(c.first+" "+c.second, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			p := plan{integrations: []integration{
				{vendor: c.first, mode: project.BYOK, endpoint: closedEndpoint(t), priority: 1},
				{vendor: c.second, mode: project.BYOK, endpoint: s.URL + "/" + c.second, priority: 2},
			}}.make(t)
			to := numberBlock(150)
			a := request{path: send, body: bulkSame(to, "m"), as: p.dev}.do(t)
			if a == nil {
				return
			}
			provider := a.provider(t)
			if !a.is(200, "") || provider.Status != "accepted" || provider.Vendor != c.second || a.Data.MessageCount != len(to) {
				t.Errorf("%d %.300s", a.status, a.body)
			}
			got, calls := received(s)
			if unique := slices.Compact(slices.Clone(got)); calls != c.calls || len(got) != len(to) || len(unique) != len(to) {
				t.Errorf("%d messages to %d numbers in %d calls, want %d in %d", len(got), len(unique), calls, len(to), c.calls)
			}
		})
	}
}

// A refused key ends a loop: the vendor gets no request for every recipient.
func TestBulkKeyRefused(t *testing.T) {
	local(t)
	t.Parallel()
	s := newSandbox(t)
	if err := s.SetRules(sandbox.Rule{Outcome: sandbox.CredentialsRefused}); err != nil {
		t.Fatal(err)
	}
	p := plan{integrations: []integration{{vendor: "notifylk", mode: project.BYOK, endpoint: s.URL + "/notifylk"}}}.make(t)
	a := request{path: send, body: bulkSame(numberBlock(1000), "m"), as: p.dev}.do(t)
	if _, calls := received(s); a != nil && (!a.is(502, "http_error") || calls > 100) {
		t.Errorf("%d %s after %d calls", a.status, a.body, calls)
	}
}

// openapi.yaml#SmsProviderResponse, docs/decisions.md#cost-check: string fields, nothing sent, nothing charged, with any
// vendor.
func TestCheckCost(t *testing.T) {
	local(t)
	t.Parallel()
	for _, vendor := range vendors {
		s := newSandbox(t)
		p := plan{integrations: []integration{{vendor: vendor, mode: project.BYOK, endpoint: s.URL + "/" + vendor}}}.make(t)
		check := func(recipients int, message string) *response {
			return request{path: send, as: p.dev, body: object(map[string]any{
				"send_method": "bulk_same", "recipients": numberBlock(recipients), "message": message, "check_cost": true,
			})}.do(t)
		}
		for _, c := range []struct {
			recipients      int
			message         string
			unicode, size   string
			perMessage, all string
			units           int
		}{
			{2, "We open at nine.", "0", "1", "0.64", "1.28", 2},
			{3, strings.Repeat("අ", 68), "1", "2", "1.28", "3.84", 6},
			{10_000, strings.Repeat("x", 459), "0", "3", "1.92", "19200.00", 30_000},
		} {
			a := check(c.recipients, c.message)
			if a == nil {
				continue
			}
			var got struct {
				Status   string
				Campaign struct {
					Method   string              `json:"campaign_method"`
					Sender   string              `json:"sender_id"`
					Cost     string              `json:"campaign_total_cost"`
					Numbers  string              `json:"campaign_total_numbers"`
					Messages []map[string]string `json:"sms_msg_data"`
				} `json:"campaign_data"`
			}
			if err := json.Unmarshal(a.Data.ProviderResponse, &got); err != nil {
				t.Errorf("%s: %s: %v", vendor, a.body, err)
				continue
			}
			want := map[string]string{"msg": c.message, "unicode": c.unicode, "msg_size": c.size, "per_sms_cost": "0.64", "msg_cost": c.perMessage}
			if !a.is(200, "") || a.Data.SendMethod != "bulk_same" || a.Data.CreditsCharged != 0 || a.Data.MessageCount != c.units || got.Status == "" ||
				got.Campaign.Sender != "SVCTest" || got.Campaign.Cost != c.all || got.Campaign.Numbers != fmt.Sprint(c.recipients) ||
				len(got.Campaign.Messages) != 1 || !maps.Equal(got.Campaign.Messages[0], want) {
				t.Errorf("%s: %d %.400s, want %+v", vendor, a.status, a.body, c)
			}
		}
		if calls := s.Calls(); len(calls) != 0 {
			t.Errorf("%s: a cost check calls the vendor: %+v", vendor, calls)
		}
	}

	// QuickSend's own estimate is requested where the operator's setting demands it.
	s := newSandbox(t)
	p := plan{integrations: []integration{{vendor: "quicksend", mode: project.BYOK, endpoint: s.URL + "/quicksend"}}}.make(t)
	svc[any](t, "", "integration", "set", p.id, "sms", "quicksend", "--setting", "native_check_cost=true")
	a := request{path: send, as: p.dev, body: object(map[string]any{
		"send_method": "bulk_same", "recipients": numberBlock(2), "message": "m", "check_cost": true,
	})}.do(t)
	calls := s.Calls()
	if a != nil && (!a.is(200, "") || len(calls) != 1 || calls[0].Operation != "check_cost" || !strings.Contains(string(a.body), `"campaign_total_cost":"1.28"`)) {
		t.Errorf("native: %d %s, calls %+v", a.status, a.body, calls)
	}

	// Without a unit price there is nothing to compute with.
	p = plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK}}}.make(t)
	svc[any](t, "", "integration", "set", p.id, "sms", "twilio", "--setting", "unit_price=")
	a = request{path: send, as: p.dev, body: object(map[string]any{
		"send_method": "bulk_same", "recipients": numberBlock(2), "message": "m", "check_cost": true,
	})}.do(t)
	if a != nil && !a.is(422, "http_error") {
		t.Errorf("without a unit price: %d %s", a.status, a.body)
	}
}

// check_cost has no effect on the other methods: the messages are sent.
func TestCheckCostElsewhere(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{integrations: []integration{{vendor: "twilio", mode: project.BYOK}}}.make(t)
	one, two := number(), number()
	for to, body := range map[string]string{
		one: `{"send_method":"single","to":"` + one + `","message":"m","check_cost":true}`,
		two: `{"send_method":"bulk_different","msg_list":[{"to":"` + two + `","msg":"m"}],"check_cost":true}`,
	} {
		if a := (request{path: send, body: body, as: p.dev}).do(t); a != nil && (!a.is(200, "") || len(sent(to)) != 1) {
			t.Errorf("%s: %d %s, sent %d times", body, a.status, a.body, len(sent(to)))
		}
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

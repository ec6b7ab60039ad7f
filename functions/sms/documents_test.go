package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"go.yaml.in/yaml/v3"

	"svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
	"svcapi/test/must"
)

// TestDocumentedCodes checks what follows from each documented response of each vendor
// (docs/decisions/sms.md#vendor-outcomes). The sandbox documents exactly the responses of the table.
func TestDocumentedCodes(t *testing.T) {
	var table map[string]map[string]string
	var documented map[string]struct{ Responses map[string]any }
	for file, into := range map[string]any{"testdata/codes.yaml": &table, "../../local/sandbox/sms.yaml": &documented} {
		if content, err := os.ReadFile(file); err != nil || yaml.Unmarshal(content, into) != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if len(table)+1 != len(vendors.NewTable(aws.Config{})) || // beside the vendor "test"
		len(documented) != len(table) {
		t.Fatalf("%d vendors in the table, %d in the sandbox", len(table), len(documented))
	}
	for vendor, rows := range table {
		if got, want := slices.Sorted(maps.Keys(documented[vendor].Responses)),
			slices.Sorted(maps.Keys(rows)); !slices.Equal(got, want) {
			t.Errorf("%s: the sandbox documents %q, the table %q", vendor, got, want)
		}
		for code, row := range rows {
			want := strings.Join(strings.Fields(row), " ")
			if want == "of another call" {
				continue
			}
			t.Run(vendor+" "+code, func(t *testing.T) {
				s, err := sandbox.Start()
				must.Succeed(t, err)
				defer s.Close()
				must.Succeed(t, s.SetRules(sandbox.Rule{Vendor: vendor, Operation: "send", Outcome: sandbox.Outcome(code)}))
				alone := sendThrough(t, s, vendor)
				class, charge, goesOn, response := "none", "charged", "ends", "200"
				if e, ok := errors.AsType[*request.Error](failure(alone)); ok {
					class, response = string(upstream.ClassOf(alone[0].err)),
						strings.TrimSpace(fmt.Sprintf("%d %s %s", e.Status, e.Reason, e.VendorCode))
					if !e.Uncertain { // the pipeline charges for a result and for an uncertain error alone
						charge = "free"
					}
				}
				next := map[bool]string{true: "textlk", false: "ultimatesms"}[vendor == "ultimatesms"]
				if chained := sendThrough(t, s, vendor, next); chained[0].vendor == next && chained[0].status() == accepted {
					goesOn = "next"
				}
				if got := fmt.Sprintf("%s %s %s %s %s", class, alone[0].status(), charge, goesOn, response); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			})
		}
	}
}

// sendThrough sends one message along a chain of the sandbox's vendors, in so little time that no pause fits.
func sendThrough(t *testing.T, s *sandbox.Server, chain ...string) []recipient {
	t.Helper()
	g, accounts := sandboxChain(s, chain...)
	ctx, cancel := context.WithTimeout(t.Context(), 2900*time.Millisecond)
	defer cancel()
	r := bulk(single, 1)
	g.deliver(ctx, accounts, r)
	return r.recipients
}

// sandboxChain returns a group and accounts of the sandbox's vendors.
func sandboxChain(s *sandbox.Server, chain ...string) (*group, []upstream.Account) {
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: new("http://127.0.0.1:1"), RetryMaxAttempts: 1}
	g := &group{
		client: upstream.New(upstream.Config{TimeoutSeconds: 5,
			Local: true}), breakers: upstream.NewBreakers(), timeout: callTimeout,
		vendors: sync.OnceValue(func() vendors.Table { return vendors.NewTable(cfg) }),
		secrets: upstream.NewSecretCache(upstream.NewSecretsClient(cfg), "dev", upstream.SecretConfig{}, nil),
	}
	var accounts []upstream.Account
	for _, name := range chain {
		accounts = append(accounts, upstream.Account{
			Integration: project.Integration{ID: name, Kind: project.SMS, Vendor: name}, Endpoint: s.URL + "/" + name,
			Settings: map[string]string{"sender_id": "Demo"}, Secrets: sandbox.Account(name),
		})
	}
	return g, accounts
}

// ceilingTime is the time for the sends of a request on which the documented ceilings rest: requestTime less a second
// for what comes before the sends.
const ceilingTime = requestTime - time.Second

// ceiling returns the number of recipients that a vendor takes within a request where each call takes a time. The
// delivery itself computes the number, with the vendor's pace, concurrency and batches, and a clock that does not wait.
func ceiling(t *testing.T, v vendors.Vendor, response time.Duration) (accepted int64) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(&fakeVendor{pace: v.Pace, atOnce: v.Concurrency, batch: v.Batch, does: slow(response)})
		ctx, cancel := context.WithTimeout(t.Context(), ceilingTime)
		defer cancel()
		accepted = int64(countByStatus(b.send(ctx, t, bulkSame, 10_000))["accepted"])
	})
	return accepted
}

// docs/decisions/sms.md#bulk: docs/sms.md and openapi.yaml name the number of recipients that fit into a request with
// each vendor, and docs/sms.md what the vendor supports.
func TestCeilings(t *testing.T) {
	page, err := os.ReadFile("../../docs/sms.md")
	must.Succeed(t, err)
	contract, err := os.ReadFile("../../openapi.yaml")
	must.Succeed(t, err)
	yes := map[bool]string{true: "yes", false: "no"}
	var ceilings, short []string
	for _, v := range vendors.NewTable(aws.Config{}) {
		adapter := v.New(upstream.New(upstream.Config{}), upstream.Account{})
		same := v.Batch > 1
		_, different := adapter.(vendors.DifferentSender)
		_, balance := adapter.(vendors.Balancer)
		_, cost := adapter.(vendors.CostChecker)
		_, status := adapter.(vendors.StatusChecker)
		row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s | ", v.Name, yes[same], yes[different], yes[balance],
			yes[cost], yes[status])
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/sms.md lacks the row %s…", row)
		}
		if v.Name == project.TestVendor { // without a ceiling
			continue
		}
		pace, batch := "–", "1"
		if v.Pace > 0 {
			pace = fmt.Sprint(v.Pace)
		}
		calls := v.Concurrency
		if same {
			batch, calls = fmt.Sprint(v.Batch), min(calls, batchesAtOnce)
		}
		one, two := ceiling(t, v, time.Second), ceiling(t, v, 2*time.Second)
		ceilings = append(ceilings, fmt.Sprintf("| %s | %s | %d | %s | %s | %s |\n", v.Name, batch, calls, pace,
			wallet.Grouped(one), wallet.Grouped(two)))
		short = append(short, fmt.Sprintf("`%s` %s", v.Name, wallet.Grouped(one)))
	}
	if want := strings.Join(ceilings, ""); !strings.Contains(string(page), want) {
		t.Errorf("docs/sms.md lacks the rows\n%s", want)
	}
	if want := strings.Join(short, ", "); !strings.Contains(strings.Join(strings.Fields(string(contract)), " "), want) {
		t.Errorf("openapi.yaml lacks: %s", want)
	}
}

// docs/decisions/extensions.md#sms-status: the meaning of each documented word, also after a lost response.
func TestDocumentedStatuses(t *testing.T) {
	for _, c := range []struct {
		vendor, words string // responses of local/sandbox/sms.yaml; empty: the sandbox's usual response
		lost          int    // sends to the number without a response; 0: one accepted send
		want          string // the state with its reason, or the class of the failure
	}{
		{"dialogv2", "pending,running", 0, "accepted"},
		{"dialogv2", ",completed", 1, "sent"},
		{"dialogv2", "paused", 0, "unknown vendor_status_unknown"},
		{"dialogv2", "103", 1, "not_found"},
		{"dialogv2", "117", 0, "too_fast"},
		{"dialogv2", "999", 0, "unusable_response"},
		{"dialogv2", "115", 0, "credentials_refused"},
		{"twilio", "message accepted,scheduled,queued,sending", 0, "accepted"},
		{"twilio", "sent", 0, "sent"},
		{"twilio", ",delivered,read", 0, "delivered"},
		{"twilio", "failed,undelivered,canceled", 0, "failed"},
		{"twilio", "receiving", 0, "unknown vendor_status_unknown"},
		{"twilio", "20404", 0, "not_found"},
		{"twilio", "20429", 1, "too_fast"},
		{"twilio", "20003", 0, "credentials_refused"},
		{"twilio", "", 1, "delivered"},
		{"twilio", "", 2, "unknown search_inconclusive"},
		{"twilio", "list more", 1, "unknown search_inconclusive"},
		{"textlk", "Accepted", 0, "accepted"},
		{"textlk", "Enroute", 0, "sent"},
		{"textlk", ",Delivered", 0, "delivered"},
		{"ultimatesms", "Failed,Undelivered,Rejected,Expired", 0, "failed"},
		{"ultimatesms", "Unknown", 0, "unknown vendor_status_unknown"},
		{"ultimatesms", "not found", 0, "not_found"},
		{"textlk", "unauthenticated", 0, "credentials_refused"},
		{"textlk", "server_error", 0, "unusable_response"},
		{"textlk", "", 1, "unknown vendor_id_unknown"},
		{"quicksend", "", 1, "unknown vendor_has_no_status"},
		{"aws", "", 0, "unknown vendor_has_no_status"},
	} {
		for word := range strings.SplitSeq(c.words, ",") {
			t.Run(c.vendor+" "+word, func(t *testing.T) {
				if got := statusAfter(t, c.vendor, word, c.lost); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		}
	}
}

// A vendor's own word reaches a client without the account's secrets, and of at most 64 bytes.
func TestWordsForClients(t *testing.T) {
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		word := r.Header.Get("Authorization") + " " + strings.Repeat("a", 48) + "ආයුබෝවන්" // no rune is cut in two
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"uid":"1","status":%q}}`, word)
	}))
	defer vendor.Close()
	g, accounts := sandboxChain(&sandbox.Server{URL: vendor.URL}, "ultimatesms")
	r := bulk(single, 1)
	g.deliver(t.Context(), accounts, r)
	_, send, _ := r.references.Open(r.recipients[0].reference)
	got, err := g.vendors().CheckStatus(t.Context(), g.client, g.secrets, accounts[0], send)
	want := "Bearer *** " + strings.Repeat("a", 48) + "ආ"
	if receipt := r.recipients[0].receipt; err != nil || got.Word != want || receipt.Status != want {
		t.Errorf("%+v, %+v, %v; want %q", got, receipt, err, want)
	}
}

// statusAfter sends a message, and returns the state that the vendor then reports with its reason, or the class of the
// failure.
func statusAfter(t *testing.T, vendor, word string, lost int) string {
	t.Helper()
	s, err := sandbox.Start()
	must.Succeed(t, err)
	defer s.Close()
	rules := []sandbox.Rule{{Operation: "status", Outcome: sandbox.Outcome(word)},
		{Operation: "send", Outcome: sandbox.Closed}}
	must.Succeed(t, s.SetRules(rules[:1+min(lost, 1)]...))
	g, accounts := sandboxChain(s, vendor)
	r := bulk(single, 1)
	r.key = r.references.Scope + "request"
	for range max(lost, 1) {
		g.deliver(t.Context(), accounts, r)
	}
	name, send, ok := r.references.Open(r.recipients[0].reference)
	if !ok || name != vendor || send.Key != r.key+"/0" || (send.ID == "") != (lost > 0) && vendor != "dialogv2" {
		t.Fatalf("reference of %s %+v after %+v", name, send, r.recipients[0].outcome)
	}
	s.Forget()
	got, err := g.vendors().CheckStatus(t.Context(), g.client, g.secrets, accounts[0], send)
	var failed *upstream.Error
	switch asked := len(s.Calls()) > 0; {
	case errors.As(err, &failed):
		return string(failed.Class)
	case err != nil || asked == (got.Reason == vendors.ReasonNoStatus || got.Reason == vendors.ReasonIDUnknown):
		t.Errorf("%+v %v, vendor asked: %t", got, err, asked)
	}
	if absent := got.State == vendors.StateNotFound; absent || vendor == "twilio" && lost > 0 && got.Reason == "" {
		send := send
		send.IsBy = func(upstream.Account) bool { return false }
		if got, err := g.vendors().CheckStatus(t.Context(), g.client, g.secrets, accounts[0], send); err != nil ||
			got.Reason != vendors.ReasonOtherAccount || got.Word != "" && !absent {
			t.Errorf("another account: %+v, %v", got, err)
		}
		s.Forget()
		send.IsOf = send.IsBy
		if got, err := g.vendors().CheckStatus(t.Context(), g.client, g.secrets, accounts[0], send); err != nil ||
			got.Reason != vendors.ReasonOtherAccount || len(s.Calls()) > 0 {
			t.Errorf("another owner: %+v, %v, %d calls", got, err, len(s.Calls()))
		}
	}
	if vendor == "twilio" && word == "" && lost > 0 {
		for name, other := range map[string]vendors.PastSend{
			"five minutes before": {Ended: send.Ended.Add(-5 * time.Minute), IsOf: send.IsOf, IsTo: send.IsTo},
			"another number":      {Ended: send.Ended, IsOf: send.IsOf, IsTo: func(string, string) bool { return false }},
			"another text": {Ended: send.Ended, IsOf: send.IsOf,
				IsTo: func(number, body string) bool { return send.IsTo(number, body+".") }},
		} {
			if got, err := g.vendors().CheckStatus(t.Context(), g.client, g.secrets, accounts[0], other); err != nil ||
				got.Reason != vendors.ReasonInconclusive {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	return strings.TrimSpace(string(got.State) + " " + got.Reason)
}

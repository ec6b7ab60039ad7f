package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/shared/upstream"
	"svcapi/test/must"
)

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
	got, err := g.vendors.CheckStatus(t.Context(), g.client, g.secrets, accounts[0], send)
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
	got, err := g.vendors.CheckStatus(t.Context(), g.client, g.secrets, accounts[0], send)
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
		if got, err := g.vendors.CheckStatus(t.Context(), g.client, g.secrets, accounts[0], send); err != nil ||
			got.Reason != vendors.ReasonOtherAccount || got.Word != "" && !absent {
			t.Errorf("another account: %+v, %v", got, err)
		}
		s.Forget()
		send.IsOf = send.IsBy
		if got, err := g.vendors.CheckStatus(t.Context(), g.client, g.secrets, accounts[0], send); err != nil ||
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
			if got, err := g.vendors.CheckStatus(t.Context(), g.client, g.secrets, accounts[0], other); err != nil ||
				got.Reason != vendors.ReasonInconclusive {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	return strings.TrimSpace(string(got.State) + " " + got.Reason)
}

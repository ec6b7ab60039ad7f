package main

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/shared/api"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// docs/decisions.md#references: a reference opens in its project and environment alone, unchanged, and reveals nothing.
func TestReferences(t *testing.T) {
	of := func(id string, env project.Environment) references {
		r, err := newReferences(&project.Project{ID: id}, env)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	own := of("acme", project.Production)
	uuid := "7b6f3b0e-6d1c-4f0a-9a53-2c1f0d7b8a11"
	ref := reference{vendor: "ultimatesms", send: uuid + "/9999", ended: time.Unix(1<<33, 0), id: strings.Repeat("i", maxID)}
	for _, want := range []reference{ref, {"twilio", uuid + "/9999", time.Unix(1, 0), own.hash("+94771234567"), ""}} {
		text := own.seal(want)
		if got, ok := own.open(text); !ok || got != want || len(text) > 200 {
			t.Errorf("%+v %t, %d characters", got, ok, len(text))
		}
		sealed, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || strings.Contains(string(sealed), uuid) || own.seal(want) == text {
			t.Errorf("%q: %v", sealed, err)
		}
		for i := range sealed {
			forged := append([]byte{}, sealed...)
			forged[i] ^= 1
			if got, ok := own.open(base64.RawURLEncoding.EncodeToString(forged)); ok {
				t.Errorf("byte %d of a forged reference: %+v", i, got)
			}
		}
		for _, other := range []references{of("acme", project.Development), of("acme2", project.Production)} {
			if got, ok := other.open(text); ok {
				t.Errorf("%s opens a reference of %s: %+v", other.scope, own.scope, got)
			}
		}
	}
	for _, malformed := range []string{"", "A", "....", strings.Repeat("A", 200), own.seal(ref)[:50], "+" + own.seal(ref), own.seal(ref) + "\n", own.seal(ref) + "A", own.seal(ref) + "="} {
		if got, ok := own.open(malformed); ok {
			t.Errorf("%q: %+v", malformed, got)
		}
	}
	ref.id += "i"
	if got, ok := own.open(own.seal(ref)); !ok || got.id != "" {
		t.Errorf("with a longer ID %+v %t", got, ok)
	}
}

// docs/decisions.md#sms-status: what each documented word of a vendor means, after an accepted send and after a lost response.
func TestDocumentedStatuses(t *testing.T) {
	for _, c := range []struct {
		vendor, words string // responses of local/sandbox/sms.yaml; empty: that of its own accord
		lost          bool   // the response to the send
		want          string // the state with its reason, or the class of the failure
	}{
		{"dialogv2", "campaign pending,campaign running", false, "accepted"},
		{"dialogv2", ",campaign completed", true, "sent"},
		{"dialogv2", "campaign paused", false, "unknown vendor_status_unknown"},
		{"dialogv2", "103", true, "not_found"},
		{"dialogv2", "117", false, "too_fast"},
		{"dialogv2", "999", false, "unusable_response"},
		{"dialogv2", "115", false, "credentials_refused"},
		{"twilio", "message accepted,message scheduled,message queued,message sending", false, "accepted"},
		{"twilio", "message sent", false, "sent"},
		{"twilio", ",message delivered,message read", false, "delivered"},
		{"twilio", "message failed,message undelivered,message canceled", false, "failed"},
		{"twilio", "message receiving", false, "unknown vendor_status_unknown"},
		{"twilio", "20404", false, "not_found"},
		{"twilio", "20429", true, "too_fast"},
		{"twilio", "20003", false, "credentials_refused"},
		{"twilio", "", true, "delivered"},
		{"twilio", "list more", true, "unknown search_inconclusive"},
		{"textlk", "message Accepted", false, "accepted"},
		{"textlk", "message Enroute", false, "sent"},
		{"textlk", ",message Delivered", false, "delivered"},
		{"ultimatesms", "message Failed,message Undelivered,message Rejected,message Expired", false, "failed"},
		{"ultimatesms", "message Unknown", false, "unknown vendor_status_unknown"},
		{"ultimatesms", "not found", false, "not_found"},
		{"textlk", "unauthenticated", false, "credentials_refused"},
		{"textlk", "server_error", false, "unusable_response"},
		{"textlk", "", true, "unknown vendor_id_unknown"},
		{"quicksend", "", true, "unknown vendor_has_no_status"},
		{"aws", "", false, "unknown vendor_has_no_status"},
	} {
		for word := range strings.SplitSeq(c.words, ",") {
			t.Run(c.vendor+" "+word, func(t *testing.T) {
				s, err := sandbox.Start()
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				rules := []sandbox.Rule{{Operation: "status", Outcome: sandbox.Outcome(word)}}
				if c.lost {
					rules = append(rules, sandbox.Rule{Operation: "send", Outcome: sandbox.Closed})
				}
				if err := s.SetRules(rules...); err != nil {
					t.Fatal(err)
				}
				if got := statusAfter(t, s, c.vendor, 1); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		}
	}
}

// docs/decisions.md#sms-status: a search finds no other message, and claims nothing where several can be the one.
func TestStatusSearch(t *testing.T) {
	for sends, want := range map[int]string{1: "delivered", 2: "unknown search_inconclusive"} {
		s, err := sandbox.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.SetRules(sandbox.Rule{Operation: "send", Outcome: sandbox.Unparseable}); err != nil {
			t.Fatal(err)
		}
		if got := statusAfter(t, s, "twilio", sends); got != want {
			t.Errorf("after %d sends to one number %s, want %s", sends, got, want)
		}
		g, accounts := sandboxChain(s, "twilio")
		for name, past := range map[string]vendors.PastSend{
			"another number": {Ended: time.Now(), IsTo: func(number string) bool { return number == "+94712345678" }},
			"another time":   {Ended: time.Now().Add(-20 * time.Minute), IsTo: func(string) bool { return true }},
		} {
			if got, err := g.checkStatus(t.Context(), accounts, past); err != nil || got.State != vendors.StateNotFound {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
}

// statusAfter sends a message a number of times, and returns the last one's state with its reason, or the class of the failure.
func statusAfter(t *testing.T, s *sandbox.Server, vendor string, sends int) string {
	t.Helper()
	g, accounts := sandboxChain(s, vendor)
	r := bulk(single, 1)
	for range sends {
		r.key = r.scope + "request"
		g.deliver(t.Context(), accounts, r, func(context.Context, []*api.Message) {})
	}
	ref, ok := r.open(r.recipients[0].reference)
	if !ok || ref.vendor != vendor || ref.send != "request/0" {
		t.Fatalf("reference %+v of %+v", ref, r.recipients[0].outcome)
	}
	s.Forget()
	got, err := g.checkStatus(t.Context(), accounts, r.past(ref))
	var failed *upstream.Error
	switch asked := len(s.Calls()) > 0; {
	case errors.As(err, &failed):
		return string(failed.Class)
	case err != nil || asked == (got.Reason == reasonNoStatus || got.Reason == vendors.ReasonIDUnknown):
		t.Errorf("%+v %v, vendor asked: %t", got, err, asked)
	}
	return strings.TrimSpace(string(got.State) + " " + got.Reason)
}

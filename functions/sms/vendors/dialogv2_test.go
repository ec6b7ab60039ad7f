package vendors

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"svcapi/shared/cache"
	"svcapi/shared/upstream"
	"svcapi/test/clocktest"
)

func TestDialogV2(t *testing.T) {
	testResponses(t, "dialogv2", []recorded{
		{"accepted", "V", 200, `{"status":"success","comment":"Campaign Created","data":{"campaignId":4711,"campaignCost":0.5,"walletBalance":10.0,"userId":1},"errCode":""}`, "", Receipt{Status: "success", ID: "4711"}},
		{"accepted, with removed recipients", "T", 200, `{"status":"success","data":{"campaignId":7,"duplicatesRemoved":"0","invalidNumbers":0,"mask_blocked_numbers":0}}`, "", Receipt{Status: "success", ID: "7"}},
		{"every recipient removed", "made", 200, `{"status":"success","data":{"campaignId":7,"invalidNumbers":1}}`, upstream.Rejected, Receipt{}},
		{"a duplicate removed", "made", 200, `{"status":"success","data":{"campaignId":7,"duplicatesRemoved":1}}`, upstream.Unusable, Receipt{}},
		{"an unknown code", "made", 200, `{"status":"failed","comment":"new","errCode":120}`, upstream.Unusable, Receipt{}},
		{"accepted, without details", "made", 200, `{"status":"success","data":""}`, "", Receipt{Status: "success"}},
		{"token refused, again and again", "T", 200, `{"status":"failed","comment":"Token","errCode":105}`, upstream.CredentialsRefused, Receipt{}},
		{"its token in an HTML page", "made", 500, `<p>Bearer t0ken, s3cret\u002dkey</p>`, upstream.Unusable, Receipt{}},
		{"its token without a status", "made", 200, `{"token":"t0ken","comment":"\u0074\u0030ken"}`, upstream.Unusable, Receipt{}},
		{"its token in a refusal", "made", 200, `{"status":"failed","comment":"Bearer t0ken","errCode":105}`, upstream.CredentialsRefused, Receipt{}},
		{"without an error code", "made", 200, `{"status":"failed","comment":"no"}`, upstream.Unusable, Receipt{}},
	})
}

// dialogServer emulates logins and sends, and counts them.
type dialogServer struct {
	logins, sends atomic.Int32
	login         func(w http.ResponseWriter)
	refuse        int32 // sends whose token is refused
	last          dialogSend
}

func (s *dialogServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(r.URL.Path, "/login") {
		s.logins.Add(1)
		if s.login != nil {
			s.login(w)
			return
		}
		_, _ = io.WriteString(w, `{"status":"success","token":"t0ken","expiration":43200,"errCode":""}`)
		return
	}
	if s.sends.Add(1) <= s.refuse {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"status":"failed","errCode":100}`)
		return
	}
	_ = json.Unmarshal(body, &s.last)
	_, _ = io.WriteString(w, `{"status":"success","data":{"campaignId":1,"duplicatesRemoved":1,"invalidNumbers":"2","mask_blocked_numbers":3}}`)
}

// The token is cached between calls, and a refused token is renewed once. A refused call sends nothing, so the second call
// sends nothing twice.
func TestDialogV2Token(t *testing.T) {
	server := &dialogServer{refuse: 1}
	adapter := connect(t, "dialogv2", server.ServeHTTP).(SameSender)
	ids := map[uint64]bool{}
	for _, key := range []string{"p/production/r1/0", "p/production/r1/0", "p/production/r1/1000"} {
		receipt, err := adapter.SendSame(context.Background(), slices.Repeat([]string{"+94771234567", "+94712345678"}, 4), Message{Text: "Hi", Key: key})
		if want := (Removed{Duplicates: 1, Invalid: 2, Blocked: 3}); err != nil || receipt.Removed != want {
			t.Fatalf("%+v, %v", receipt, err)
		}
		ids[server.last.TransactionID] = true
	}
	_, err := adapter.SendSame(t.Context(), slices.Repeat([]string{"+94771234567"}, 6), Message{Text: "Hi", Key: "k"})
	if upstream.ClassOf(err) != upstream.Unusable { // one message may have left: the counts may overlap
		t.Errorf("6 recipients, 6 removed: %v", err)
	}
	if len(ids) != 2 {
		t.Errorf("transaction IDs %v: a repetition has the same, and another call another one", ids)
	}
	if server.logins.Load() != 2 || server.sends.Load() != 5 {
		t.Errorf("%d logins, %d sends; want 2 and 5", server.logins.Load(), server.sends.Load())
	}
	last := server.last
	if len(last.Recipients) != 6 || last.Recipients[1].Mobile != "771234567" || last.Source != "MyBrand" || last.TransactionID < 1 || last.TransactionID > 999_999_999_999_999_999 {
		t.Errorf("sent %+v", last)
	}
}

// Code 103 proves an absence only in the vendor's own response to the check of the transaction.
func TestDialogV2Absence(t *testing.T) {
	const absent = `{"status":"failed","comment":"none","errCode":103}`
	for _, c := range []struct {
		login, check string
		status       int // of the response to the check
		absent       bool
	}{
		{"", absent, 200, true},
		{"", absent, 404, true},
		{"", absent, 500, false},
		{"", `{"errCode":103}`, 404, false},
		{"", `{"status":"success","data":{},"errCode":103}`, 200, false},
		{absent, absent, 200, false},
	} {
		adapter := connect(t, "dialogv2", func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/login") {
				_, _ = io.WriteString(w, cmp.Or(c.login, logins[r.URL.Path]))
				return
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.check)
		})
		got, err := adapter.(StatusChecker).CheckStatus(t.Context(), PastSend{Key: "k"})
		if (err == nil) != c.absent || (got == Status{State: StateNotFound, Word: "103"}) != c.absent {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

// A token is cached until shortly before its end by the wall time, also over a freeze.
func TestDialogV2Freeze(t *testing.T) {
	frozen := clocktest.New()
	s, logins := session{tokens: newTokens()}, 0
	s.tokens.results.Clock = cache.ClockOf(frozen.Now)
	logIn := func(context.Context, login) (string, time.Duration, error) { logins++; return "token", time.Hour, nil }
	for _, step := range []struct {
		frozen time.Duration
		logins int
	}{{0, 1}, {54 * time.Minute, 1}, {2 * time.Minute, 2}} {
		frozen.Move(step.frozen)
		if _, token, err := s.token(t.Context(), logIn); token != "token" || err != nil || logins != step.logins {
			t.Errorf("%v: %q, %v, %d logins", step, token, err, logins)
		}
	}
}

// A refused login waits for minutes, a changed password does not (docs/decisions/sms.md#refused-logins).
func TestDialogV2RefusedLogin(t *testing.T) {
	s, logins := session{tokens: newTokens()}, atomic.Int32{}
	frozen := clocktest.New()
	s.tokens.results.Clock = cache.ClockOf(frozen.Now)
	logIn := func(context.Context, login) (string, time.Duration, error) {
		logins.Add(1)
		return "", 0, &upstream.Error{Class: upstream.CredentialsRefused, Vendor: "dialogv2", Code: "116"}
	}
	for _, step := range []struct {
		frozen   time.Duration
		password string
		logins   int32
	}{{0, "a", 1}, {4 * time.Minute, "a", 1}, {0, "b", 2}, {2 * time.Minute, "a", 3}} {
		frozen.Move(step.frozen)
		s.account.Secrets = map[string]string{"password": step.password}
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				if _, _, err := s.token(t.Context(), logIn); upstream.ClassOf(err) != upstream.CredentialsRefused || upstream.CodeOf(err) != "116" {
					t.Errorf("%v", err)
				}
			})
		}
		if calls.Wait(); logins.Load() != step.logins {
			t.Errorf("%+v: %d logins", step, logins.Load())
		}
	}
}

// After a failed login of any kind no message has left, so no outcome is uncertain.
func TestDialogV2Login(t *testing.T) {
	cases := []struct {
		name  string
		login func(w http.ResponseWriter)
		class upstream.Class
	}{
		{"refused", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"status":"failed","comment":"Invalid","token":null,"remainingCount":2,"errCode":101}`)
		}, upstream.CredentialsRefused},
		{"refused without a code", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"status":"failed"}`) }, upstream.CredentialsRefused},
		{"refused by status", func(w http.ResponseWriter) { w.WriteHeader(401) }, upstream.CredentialsRefused},
		{"server error", func(w http.ResponseWriter) { w.WriteHeader(500) }, upstream.AccountRefused},
		{"server error with a token", func(w http.ResponseWriter) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, `{"status":"success","token":"t0ken","expiration":43200}`)
		}, upstream.AccountRefused},
		{"without a token", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"status":"success"}`) }, upstream.AccountRefused},
		{"cut off", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, upstream.NotSent},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := &dialogServer{login: c.login}
			_, err := connect(t, "dialogv2", server.ServeHTTP).Send(context.Background(), message)
			if upstream.ClassOf(err) != c.class || server.sends.Load() != 0 {
				t.Errorf("got %v after %d sends, want %s", err, server.sends.Load(), c.class)
			}
			if strings.Contains(err.Error(), "t0ken") {
				t.Errorf("the error contains the token: %v", err)
			}
		})
	}
}

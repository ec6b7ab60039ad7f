package vendors

import (
	"context"
	"io"
	"net/http"
	"strings"
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
		{"accepted", "V", 200, `{"status":"success","comment":"Campaign Created","data":{"campaignId":4711,"campaignCost":0.5,"walletBalance":10.0,"userId":1},"errCode":""}`, "", Receipt{"success", "4711"}},
		{"accepted, without details", "made", 200, `{"status":"success","data":""}`, "", Receipt{"success", ""}},
		{"mask not approved", "T", 200, `{"status":"failed","comment":"Mask","errCode":108}`, upstream.Rejected, Receipt{}},
		{"blackout", "T", 200, `{"status":"failed","comment":"Blackout","errCode":"118"}`, upstream.Rejected, Receipt{}},
		{"invalid parameters", "V 3.2", 200, `{"status":"failed","comment":"Invalid parameters","errCode":101}`, upstream.Rejected, Receipt{}},
		{"user unknown", "V 3.2", 200, `{"status":"failed","comment":"User","errCode":102}`, upstream.CredentialsRefused, Receipt{}},
		{"internal error", "V 3.2", 200, `{"status":"failed","comment":"Internal error","errCode":999}`, upstream.Unusable, Receipt{}},
		{"transaction ID used", "V 3.2", 200, `{"status":"failed","comment":"Duplicate","errCode":104}`, upstream.Unusable, Receipt{}},
		{"token refused, again and again", "T", 200, `{"status":"failed","comment":"Token","errCode":105}`, upstream.CredentialsRefused, Receipt{}},
		{"its token in an HTML page", "made", 500, `<p>Bearer t0ken, s3cret\u002dkey</p>`, upstream.Unusable, Receipt{}},
		{"its token without a status", "made", 200, `{"token":"t0ken","comment":"\u0074\u0030ken"}`, upstream.Unusable, Receipt{}},
		{"its token in a refusal", "made", 200, `{"status":"failed","comment":"Bearer t0ken","errCode":105}`, upstream.CredentialsRefused, Receipt{}},
		{"without an error code", "made", 200, `{"status":"failed","comment":"no"}`, upstream.Rejected, Receipt{}},
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
	_, _ = io.WriteString(w, `{"status":"success","data":{"campaignId":1}}`)
}

// The token is cached between calls, and a refused token is renewed once. A refused call sends nothing, so the second call
// sends nothing twice.
func TestDialogV2Token(t *testing.T) {
	server := &dialogServer{refuse: 1}
	adapter := connect(t, "dialogv2", server.ServeHTTP).(SameSender)
	for range 3 {
		if _, err := adapter.SendSame(context.Background(), []string{"+94771234567", "+94712345678"}, "Hi", false); err != nil {
			t.Fatal(err)
		}
	}
	if server.logins.Load() != 2 || server.sends.Load() != 4 {
		t.Errorf("%d logins, %d sends; want 2 and 4", server.logins.Load(), server.sends.Load())
	}
	last := server.last
	if len(last.Recipients) != 2 || last.Recipients[1].Mobile != "712345678" || last.Source != "MyBrand" || last.TransactionID < 1 || last.TransactionID > 999_999_999_999_999_999 {
		t.Errorf("sent %+v", last)
	}
}

// A token is cached until shortly before its end by the wall time, also over a freeze.
func TestDialogV2Freeze(t *testing.T) {
	frozen := clocktest.New()
	s, logins := session{tokens: cache.NewExpiring[string, string](maxTokens)}, 0
	s.tokens.Clock = cache.ClockOf(frozen.Now)
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
		{"refused by status", func(w http.ResponseWriter) { w.WriteHeader(401) }, upstream.CredentialsRefused},
		{"server error", func(w http.ResponseWriter) { w.WriteHeader(500) }, upstream.Rejected},
		{"server error with a token", func(w http.ResponseWriter) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, `{"status":"success","token":"t0ken","expiration":43200}`)
		}, upstream.Rejected},
		{"without a token", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"status":"success"}`) }, upstream.Rejected},
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

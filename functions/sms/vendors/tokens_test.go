package vendors

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/shared/cache"
	"svcapi/shared/upstream"
	"svcapi/test/clocktest"
)

// A token is cached between calls, and a refused token is renewed once. After a failed login of any kind no message has
// left, so no outcome is uncertain.
func TestLogins(t *testing.T) {
	const dialog = `{"status":"success","token":"t0ken","expiration":43200}`
	for _, c := range []struct {
		vendor, name  string
		status        int // of the login; 0: the connection ends
		login         string
		refuse        int32 // sends whose token is refused
		class         upstream.Class
		logins, sends int32 // of two messages
	}{
		{"hutch", "cached", 200, `{"accessToken":"t0ken","refreshToken":"r"}`, 0, "", 1, 2},
		{"hutch", "with a life", 200, `{"accessToken":"t0ken","expiresIn":86400}`, 0, "", 1, 2},
		{"hutch", "a life that is over", 200, `{"accessToken":"t0ken","expiresIn":1}`, 0, "", 2, 2},
		{"hutch", "refused once", 200, `{"accessToken":"t0ken"}`, 1, "", 2, 3},
		{"hutch", "refused by status, remembered", 401, `{"message":"no"}`, 0, upstream.CredentialsRefused, 1, 0},
		{"hutch", "refused as a bad request", 400, `{"message":"no"}`, 0, upstream.CredentialsRefused, 1, 0},
		{"hutch", "without a token", 200, `{}`, 0, upstream.AccountRefused, 2, 0},
		{"hutch", "server error with a token", 500, `{"accessToken":"t0ken"}`, 0, upstream.AccountRefused, 2, 0},
		{"hutch", "too fast", 429, `{"message":"no"}`, 0, upstream.TooFast, 2, 0},
		{"hutch", "cut off", 0, "", 0, upstream.NotSent, 2, 0},
		{"dialogv2", "refused once", 200, dialog, 1, "", 2, 3},
		{"dialogv2", "refused", 200, `{"status":"failed","comment":"Invalid","token":null,"remainingCount":2,"errCode":101}`,
			0, upstream.CredentialsRefused, 1, 0},
		{"dialogv2", "refused without a code", 200, `{"status":"failed"}`, 0, upstream.CredentialsRefused, 1, 0},
		{"dialogv2", "server error with a token", 500, dialog, 0, upstream.AccountRefused, 2, 0},
		{"dialogv2", "without a token", 200, `{"status":"success"}`, 0, upstream.AccountRefused, 2, 0},
	} {
		t.Run(c.vendor+" "+c.name, func(t *testing.T) {
			var logins, sends atomic.Int32
			adapter := connect(t, c.vendor, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/login") {
					if logins.Add(1); c.status == 0 {
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.login)
					return
				}
				if sends.Add(1) <= c.refuse {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = io.WriteString(w, `{"status":"success","serverRef":1}`)
			})
			for range 2 {
				_, err := adapter.Send(t.Context(), message)
				if (err == nil) != (c.class == "") ||
					err != nil && (upstream.ClassOf(err) != c.class || strings.Contains(err.Error(), "t0ken")) {
					t.Errorf("%v, want %s", err, c.class)
				}
			}
			if logins.Load() != c.logins || sends.Load() != c.sends {
				t.Errorf("%d logins, %d sends; want %d, %d", logins.Load(), sends.Load(), c.logins, c.sends)
			}
		})
	}
}

// A token is cached until shortly before its end by the wall time, also over a freeze.
func TestTokenFreeze(t *testing.T) {
	frozen := clocktest.New()
	s, logins := session{tokens: newTokens()}, 0
	s.tokens.results.Clock = cache.ClockOf(frozen.Now)
	logIn := func(context.Context, any) (string, time.Duration, error) { logins++; return "token", time.Hour, nil }
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
func TestRefusedLogin(t *testing.T) {
	s, logins := session{tokens: newTokens()}, atomic.Int32{}
	frozen := clocktest.New()
	s.tokens.results.Clock = cache.ClockOf(frozen.Now)
	logIn := func(context.Context, any) (string, time.Duration, error) {
		logins.Add(1)
		return "", 0, &upstream.Error{Class: upstream.CredentialsRefused, Vendor: "dialogv2", Code: "116"}
	}
	for _, step := range []struct {
		frozen   time.Duration
		password string
		logins   int32
	}{{0, "a", 1}, {4 * time.Minute, "a", 1}, {0, "b", 2}, {2 * time.Minute, "a", 3}} {
		frozen.Move(step.frozen)
		s.Secrets = map[string]string{"password": step.password}
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				if _, _, err := s.token(t.Context(), logIn); upstream.ClassOf(err) != upstream.CredentialsRefused ||
					upstream.CodeOf(err) != "116" {
					t.Errorf("%v", err)
				}
			})
		}
		if calls.Wait(); logins.Load() != step.logins {
			t.Errorf("%+v: %d logins", step, logins.Load())
		}
	}
}

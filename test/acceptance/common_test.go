package acceptance

import "testing"

const (
	send    = "/sms/send"
	balance = "/sms/balance"
	status  = "/sms/status/"
)

// docs/decisions/requests.md#credentials: wrong credentials are 401 unauthorized, and the response does not show which
// of them was wrong. shared/project TestAuthenticate has further forms, and the names of the environments.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	p, first := plainProject(t), ""
	for name, c := range map[string]struct {
		as  credential
		env string
	}{
		"wrong secret":              {credential{p.dev.ID, p.prod.Secret}, ""},
		"unknown client":            {credential{"svc_nobody_aaaaaaaa", p.dev.Secret}, ""},
		"development in production": {p.dev, "production"},
		"production in development": {p.prod, ""},
	} {
		a := request{path: balance, body: "{}", as: c.as, header: map[string]string{"X-ENV": c.env}}.do(t)
		text := a.without()
		for _, h := range []string{"Content-Type", "Cache-Control", "Allow", "Retry-After", "WWW-Authenticate"} {
			text += "\n" + h + ": " + a.header.Get(h)
		}
		if first == "" {
			first = text
		}
		if !a.is(401, "unauthorized") || text != first {
			t.Errorf("%s: %d %s, want the same 401 as for all others: %s", name, a.status, text, first)
		}
	}
}

// docs/decisions/requests.md#routes: an unknown route is 404 in the envelope, with and without credentials. Paths stay
// as they were sent, and a query is no part of a path. shared/request TestRoutes has further paths.
func TestRoutes(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	for _, path := range []string{
		"", "/", "/sms", "/sms/send/", "//sms/send", "/SMS/send", "/sms%2Fsend", "/sms/%73end", "/sms/send%00", "/sms/./send",
		"/../../etc/passwd",
		currencies + "/latest/", currencies + "/pair//USD", currencies + "/pair/USD/LKR/1/2", currencies + "/codes/USD",
	} {
		for _, as := range []credential{p.dev, {}} {
			a := request{path: path, body: "{}", as: as}.do(t)
			if !a.is(404, "http_error") || a.header.Get("Cache-Control") != "no-store" ||
				a.header.Get("Strict-Transport-Security") == "" {
				t.Errorf("%s: %d %v %s, want 404 http_error", path, a.status, a.header, a.body)
			}
		}
	}
	for _, method := range []string{"HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		a := request{method: method, path: send, as: p.dev}.do(t)
		if a.status != 405 || a.header.Get("Allow") != "POST" || a.header.Get("X-SVC-Request-ID") == "" {
			t.Errorf("%s: %d %v %s, want 405 with Allow: POST", method, a.status, a.header, a.body)
		}
	}
	if a := (request{path: balance + "?x=%2F&x=y", body: "{}", as: p.dev}).send(t); a.status != 422 {
		t.Errorf("with a query: %d %s", a.status, a.body)
	}
}

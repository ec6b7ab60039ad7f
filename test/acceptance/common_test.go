package acceptance

import (
	"testing"

	"svcapi/shared/project"
)

const (
	send    = "/sms/send"
	balance = "/sms/balance"
	status  = "/sms/status/"
)

// docs/decisions/requests.md#rate-limit: 429 rate_limit_exceeded, with Retry-After. shared/ratelimit TestProcesses
// shows that never more than the limit pass, and TestWindows that projects and environments count separately.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	// A request that is refused for its body counts, one with wrong credentials does not.
	p := plan{limit: 2}.make(t)
	for i, c := range []struct {
		as               credential
		body             string
		want             int
		limit, remaining string // docs/decisions/requests.md#rate-limit
	}{
		{credential{p.dev.ID, "x"}, "{}", 401, "", ""}, {credential{p.dev.ID, "x"}, "{}", 401, "", ""},
		{p.dev, "[]", 422, "2", "1"}, {p.dev, "{}", 422, "2", "0"}, {p.dev, "{}", 429, "2", "0"},
	} {
		a := request{path: balance, body: c.body, as: c.as}.do(t)
		if a.status != c.want || a.header.Get("X-RateLimit-Limit") != c.limit ||
			a.header.Get("X-RateLimit-Remaining") != c.remaining {
			t.Errorf("request %d: %d %s, %v, want %+v", i, a.status, a.body, a.header, c)
		}
		if reset := a.header.Get("X-RateLimit-Reset"); (reset == "") != (c.limit == "") ||
			c.want == 429 && reset != a.header.Get("Retry-After") {
			t.Errorf("request %d: %v", i, a.header)
		}
	}
}

// docs/decisions/requests.md#credentials: wrong credentials are 401 unauthorized, and the response does not show which
// of them was wrong. shared/project TestAuthenticate has further forms.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	p := plan{prod: true}.make(t)
	revoked := issue(t, p.id, project.Development)
	svc[any](t, "", "credential", "revoke", revoked.ID, "--yes")
	forget()
	ask := func(as credential, env string) *response {
		return request{path: balance, body: "{}", as: as, header: map[string]string{"X-ENV": env}}.do(t)
	}
	first := ""
	for name, c := range map[string]struct {
		as  credential
		env string
	}{
		"wrong secret":              {credential{p.dev.ID, p.prod.Secret}, ""},
		"unknown client":            {credential{"svc_nobody_aaaaaaaa", p.dev.Secret}, ""},
		"revoked":                   {revoked, ""},
		"development in production": {p.dev, "production"},
		"production in development": {p.prod, ""},
	} {
		a := ask(c.as, c.env)
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
	// openapi.yaml#Environment, docs/decisions/requests.md#environments: in any case, and development is the default.
	for env, as := range map[string]credential{"": p.dev, "DEV": p.dev, "Development": p.dev, "prod": p.prod,
		"PRODUCTION": p.prod} {
		if a := ask(as, env); a.status != 422 {
			t.Errorf("%q: %d %s", env, a.status, a.body)
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

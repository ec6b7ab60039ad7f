package acceptance

import (
	"strings"
	"testing"

	"svcapi/shared/project"
)

const (
	send    = "/sms/send"
	balance = "/sms/balance"
)

var large = strings.Repeat(" ", 4<<20) + " "

// docs/decisions.md#credentials: missing, invalid or inactive credentials, and those of another environment, are 401
// unauthorized. The response does not show which of them it was.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	p := plan{prod: true}.make(t)
	revoked := issue(t, p.id, project.Development)
	svc[any](t, "", "credential", "revoke", revoked.ID, "--yes")
	forget()
	first := ""
	for name, r := range map[string]request{
		"nothing":                     {},
		"no secret":                   {as: credential{ID: p.dev.ID}},
		"no key":                      {as: credential{Secret: p.dev.Secret}},
		"wrong secret":                {as: credential{p.dev.ID, p.dev.Secret + "x"}},
		"secret of another one":       {as: credential{p.dev.ID, p.prod.Secret}},
		"unknown client":              {as: credential{"svc_nobody_aaaaaaaa", p.dev.Secret}},
		"unknown client of a project": {as: credential{"svc_" + p.id + "_aaaaaaaa", p.dev.Secret}},
		"no client ID at all":         {as: credential{"*", p.dev.Secret}},
		"long client ID":              {as: credential{strings.Repeat("a", 4000), p.dev.Secret}},
		"client ID in other letters":  {as: credential{strings.ToUpper(p.dev.ID), p.dev.Secret}},
		"revoked":                     {as: revoked},
		"development in production":   {as: p.dev, header: map[string]string{"X-ENV": "production"}},
		"production in development":   {as: p.prod},
		"unknown environment":         {as: p.dev, header: map[string]string{"X-ENV": "staging"}},
		"environment of spaces":       {as: p.dev, header: map[string]string{"X-ENV": "dev elopment"}},
	} {
		for _, path := range []string{send, balance} {
			r.path, r.body = path, "{}"
			a := r.do(t)
			if a == nil {
				continue
			}
			text := a.without()
			for _, h := range []string{"Content-Type", "Cache-Control", "Allow", "Retry-After", "WWW-Authenticate"} {
				text += "\n" + h + ": " + a.header.Get(h)
			}
			if first == "" {
				first = text
			}
			if !a.is(401, "unauthorized") || text != first {
				t.Errorf("%s, %s: %d %s, want the same 401 as for all others: %s", name, path, a.status, text, first)
			}
		}
	}
}

// openapi.yaml#Environment, docs/decisions.md#environments: development is the default. Production is selectable too,
// in any case; empty counts as absent.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	for name, c := range map[string]struct {
		as    credential
		value string
		want  int
	}{
		"empty":                  {p.dev, "", 422},
		"dev":                    {p.dev, "dev", 422},
		"DEV":                    {p.dev, "DEV", 422},
		"development":            {p.dev, "development", 422},
		"Development":            {p.dev, "Development", 422},
		"prod":                   {p.prod, "prod", 422},
		"Prod":                   {p.prod, "Prod", 422},
		"production":             {p.prod, "production", 422},
		"PRODUCTION":             {p.prod, "PRODUCTION", 422},
		"test":                   {p.dev, "test", 401},
		"dev for production":     {p.prod, "dev", 401},
		"production for dev":     {p.dev, "prod", 401},
		"empty for production's": {p.prod, "", 401},
		"developmen":             {p.dev, "developmen", 401},
	} {
		a := request{path: balance, body: "{}", as: c.as, header: map[string]string{"X-ENV": c.value}}.do(t)
		if a != nil && a.status != c.want {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, c.want)
		}
	}
}

// docs/decisions.md#credentials: two secrets can be live during a rotation, and a new one works at once.
func TestRotation(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t)
	works := func(secret string) bool {
		a := request{path: balance, as: credential{p.dev.ID, secret}}.do(t)
		return a != nil && a.status != 401
	}
	if !works(p.dev.Secret) {
		t.Fatal("the first secret does not work")
	}
	forget()
	second := remember(svc[credential](t, "", "credential", "rotate", p.dev.ID)).Secret
	if !works(second) || !works(p.dev.Secret) {
		t.Error("not both secrets work during a rotation")
	}
	svc[any](t, "", "credential", "rotate", p.dev.ID, "--finish")
	forget()
	if works(p.dev.Secret) || !works(second) {
		t.Error("after the rotation the old secret works, or the new one does not")
	}
}

// docs/decisions.md#routes: unknown route 404, wrong method 405 with Allow, OPTIONS and HEAD 405, trailing slash 404,
// all in the envelope and without regard to credentials. Paths stay as they were sent.
func TestRoutes(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	for _, path := range []string{
		"", "/", "/sms", "/sms/", "/sms/send/", "/sms/balance/", "//sms/send", "/sms//send", "/SMS/send", "/sms/Send", "/sms/sen", "/sms/send/x",
		"/sms%2Fsend", "/sms/send%2F", "/sms%2fbalance", "/sms/send%3Fa=b", "/sms/send%00", "/sms/%73end", "/sms/./send", "/sms/../sms/send",
		"/sms/send;x=y", "/%F0%9F%92%A9", "/sms/se%20nd", "/../../etc/passwd", "/utility/nothing", "/v2",
	} {
		for _, as := range []credential{p.dev, {}} {
			r := request{path: path, body: "{}", as: as}
			if a := r.do(t); a != nil && !a.is(404, "http_error") {
				t.Errorf("%s: %d %s, want 404 http_error", path, a.status, a.body)
			} else if a != nil && (a.header.Get("Cache-Control") != "no-store" || a.header.Get("Strict-Transport-Security") == "") {
				t.Errorf("%s: %v, want no-store and strict transport", path, a.header)
			}
		}
	}
	for _, path := range []string{send, balance} {
		for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			a := request{method: method, path: path, as: p.dev}.do(t)
			if a == nil {
				continue
			}
			if a.status != 405 || a.header.Get("Allow") != "POST" || a.header.Get("X-SVC-Request-ID") == "" ||
				method != "HEAD" && !a.is(405, "http_error") {
				t.Errorf("%s %s: %d %v %s, want 405 with Allow: POST", method, path, a.status, a.header, a.body)
			}
		}
		// A query is no part of the path.
		if a := (request{path: path + "?x=%2F&x=y", body: "{}", as: p.dev}).send(t); a != nil && a.status != 422 {
			t.Errorf("%s with a query: %d %s", path, a.status, a.body)
		}
	}
	for _, path := range []string{"/sms/%zz", "/%", "/sms/send%"} {
		if a := (request{path: path, as: p.dev}).send(t); a != nil && (a.status < 400 || a.status > 499) {
			t.Errorf("malformed %s: %d %s, want some 4xx", path, a.status, a.body)
		}
	}
}

// docs/decisions.md#routes: a body over 4 MiB is 413 http_error; one of 4 MiB is not.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	for _, c := range []struct {
		bytes, status int
		code          string
	}{
		{4 << 20, 422, "provider_selection_failed"},
		{4<<20 + 1, 413, "http_error"},
		{7 << 20, 413, "http_error"},
	} {
		body := "{}" + strings.Repeat(" ", c.bytes-2)
		if a := (request{path: balance, body: body, as: p.dev}).do(t); a != nil && !a.is(c.status, c.code) {
			t.Errorf("%d bytes: %d %s, want %d %s", c.bytes, a.status, a.body, c.status, c.code)
		}
	}
}

// docs/decisions.md#json-bodies: a body that is no object, is malformed, has duplicate names or invalid UTF-8 is
// validation_failed under body, whatever the operation.
func TestBodies(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	const good = `"send_method":"single","to":"0771234567","message":"m"`
	for _, body := range []string{
		`{`, `}`, `[]`, `[{}]`, `"text"`, `1`, `true`, `null`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{'a':1}`, `{a:1}`, `{} {}`, `{}x`, "\ufeff{}",
		`{` + good, `{` + good + `,"to":"0771234567"}`, `{` + good + `,"x":{"a":1,"a":1}}`, `{` + good + `,"to":"0771234567"}`,
		`{` + good + `,"x":"` + "\xff" + `"}`, `{` + good + `,"x":"\ud800"}`, `{` + good + `,"` + "\xc3\x28" + `":1}`, `{` + good + `,"x":01}`,
		`{` + good + `,"x":"` + "\n" + `"}`, `{` + good + `,"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		`{` + good + `,"x":` + strings.Repeat("[", 100_000), `{"x":NaN}`, `{"x":"` + "\x00" + `"}`, "\x00", "%7B%7D", "a=b",
	} {
		for _, path := range []string{send, balance} {
			a := request{path: path, body: body, as: p.dev}.do(t)
			if a != nil && (!a.is(422, "validation_failed") || len(a.Error.Details.fields) != 1 || len(a.Error.Details.fields["body"]) == 0) {
				t.Errorf("%s %.60q: %d %s, want 422 validation_failed on body", path, body, a.status, a.body)
			}
		}
	}
	// What is well-formed passes, however odd, and unknown fields are ignored.
	for _, body := range []string{
		"", " \r\n\t", "{}", ` { } `, `{"x":1e999,"y":-0.0,"":null,"z":{"a":[{},[]]}}`, `{"x":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`,
		`{"x":"\ud83d\ude00\u0000"}`, `{"to":1,"To":2}`,
	} {
		if a := (request{path: balance, body: body, as: p.dev}).do(t); a != nil && !a.is(422, "provider_selection_failed") {
			t.Errorf("%.60q: %d %s, want it to be read", body, a.status, a.body)
		}
	}
	// "Accept and Content-Type never refuse a request."
	for _, h := range []map[string]string{
		{"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Type": ""}, {"Content-Type": "nonsense"},
		{"Accept": "image/png"}, {"Accept": "text/html;q=0"}, {"Content-Type": "application/json; charset=utf-16"},
	} {
		if a := (request{path: balance, body: "{}", as: p.dev, header: h}).do(t); a != nil && !a.is(422, "provider_selection_failed") {
			t.Errorf("%v: %d %s", h, a.status, a.body)
		}
	}
}

// openapi.yaml#Paused: a paused project makes every operation fail with 503 project_paused.
func TestPaused(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t)
	svc[any](t, "", "project", "pause", p.id)
	for _, path := range []string{send, balance} {
		if a := (request{path: path, body: "{}", as: p.dev}).do(t); a != nil && !a.is(503, "project_paused") {
			t.Errorf("%s: %d %s, want 503 project_paused", path, a.status, a.body)
		}
	}
	svc[any](t, "", "project", "resume", p.id)
	forget()
	if a := (request{path: balance, body: "{}", as: p.dev}).do(t); a != nil && !a.is(422, "provider_selection_failed") {
		t.Errorf("resumed: %d %s", a.status, a.body)
	}
}

// docs/decisions.md#rate-limit: 429 rate_limit_exceeded, never more than the limit in a window, per project and
// environment, with Retry-After.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	p := plan{limit: 5, prod: true}.make(t)
	passed := func(as credential, env string) (n int) {
		for _, a := range atOnce(20, 20, func(int) *response {
			return request{path: balance, body: "{}", as: as, header: map[string]string{"X-ENV": env}}.do(t)
		}) {
			switch {
			case a == nil:
			case a.is(422, "provider_selection_failed"):
				n++
			case !a.is(429, "rate_limit_exceeded"):
				t.Errorf("%d %s, want 429", a.status, a.body)
			}
		}
		return n
	}
	if n := passed(p.dev, "dev"); n != 5 {
		t.Errorf("%d of 20 concurrent requests pass a limit of 5", n)
	}
	if n := passed(p.dev, "dev"); n != 0 {
		t.Errorf("%d more pass in the same window", n)
	}
	if n := passed(p.prod, "prod"); n != 5 {
		t.Errorf("%d of 20 pass in the other environment", n)
	}
	// A request that is refused for its body counts, one with wrong credentials does not.
	p = plan{limit: 2}.make(t)
	for i, c := range []struct {
		as               credential
		body             string
		want             int
		limit, remaining string // docs/decisions.md#rate-limit
	}{
		{credential{p.dev.ID, "x"}, "{}", 401, "", ""}, {credential{p.dev.ID, "x"}, "{}", 401, "", ""},
		{p.dev, "[]", 422, "2", "1"}, {p.dev, "{}", 422, "2", "0"}, {p.dev, "{}", 429, "2", "0"},
	} {
		a := request{path: balance, body: c.body, as: c.as}.do(t)
		if a != nil && (a.status != c.want || a.header.Get("X-RateLimit-Limit") != c.limit || a.header.Get("X-RateLimit-Remaining") != c.remaining) {
			t.Errorf("request %d: %d %s, %v, want %+v", i, a.status, a.body, a.header, c)
		}
		if reset := a.header.Get("X-RateLimit-Reset"); (reset == "") != (c.limit == "") || c.want == 429 && reset != a.header.Get("Retry-After") {
			t.Errorf("request %d: %v", i, a.header)
		}
	}
}

// docs/decisions.md#playground: a send from the documentation playground needs X-Confirm-Send.
// docs/decisions.md#header-booleans: 1 or true in any case, all else is false.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	const confirmed, unconfirmed, absent = "provider_selection_failed", "send_confirmation_required", "\x00"
	playground := map[string]string{"X-SVC-Client": "playground"}
	scheme, rest, _ := strings.Cut(fixture.baseURL, "://")
	host, _, _ := strings.Cut(rest, "/")
	origin := scheme + "://" + host // of the page that the stack serves
	for _, c := range []struct {
		header map[string]string
		value  string
		body   string
		want   string
	}{
		{playground, absent, single("0771234567", "m"), unconfirmed},
		{playground, "", single("0771234567", "m"), unconfirmed},
		{playground, "false", single("0771234567", "m"), unconfirmed},
		{playground, "0", single("0771234567", "m"), unconfirmed},
		{playground, "yes", single("0771234567", "m"), unconfirmed},
		{playground, "t", single("0771234567", "m"), unconfirmed},
		{playground, "11", single("0771234567", "m"), unconfirmed},
		{playground, "1", single("0771234567", "m"), confirmed},
		{playground, "true", single("0771234567", "m"), confirmed},
		{playground, "TRUE", single("0771234567", "m"), confirmed},
		{playground, "True", single("0771234567", "m"), confirmed},
		{nil, absent, single("0771234567", "m"), confirmed},
		{map[string]string{"X-SVC-Client": "backend"}, absent, single("0771234567", "m"), confirmed},
		{map[string]string{"Origin": "https://elsewhere.example.com"}, absent, single("0771234567", "m"), confirmed},
		{map[string]string{"Origin": origin}, absent, single("0771234567", "m"), unconfirmed},
		{map[string]string{"Origin": origin}, "true", single("0771234567", "m"), confirmed},
		{map[string]string{"Origin": origin + ".example.com"}, absent, single("0771234567", "m"), confirmed},
		{map[string]string{"Origin": "null"}, absent, single("0771234567", "m"), confirmed},
		{playground, absent, bulkSame([]string{"0771234567"}, "m"), unconfirmed},
		// A cost check needs no confirmation; with the other methods the field changes nothing.
		{playground, absent, `{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","check_cost":true}`, confirmed},
		{playground, absent, `{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","check_cost":false}`, unconfirmed},
		{playground, absent, `{"send_method":"single","to":"0771234567","message":"m","check_cost":true}`, unconfirmed},
		{playground, absent, `{"send_method":"bulk_different","msg_list":[{"to":"0771234567","msg":"m"}],"check_cost":true}`, unconfirmed},
	} {
		header := c.header
		if c.value != absent {
			header = with(header, "X-Confirm-Send", c.value)
		}
		a := request{path: send, body: c.body, as: p.dev, header: header}.do(t)
		if a != nil && a.Error.Code != c.want {
			t.Errorf("%v %s: %d %s, want %s", header, c.body, a.status, a.body, c.want)
		}
	}
}

// docs/decisions.md#playground: a request whose Origin is the playground's counts as marked.
func TestConfirmationByOrigin(t *testing.T) {
	local(t)
	t.Parallel()
	p := plainProject(t)
	header := map[string]string{"Origin": playgroundOrigin}
	if a := (request{path: send, body: single("0771234567", "m"), as: p.dev, header: header}).do(t); a != nil && !a.is(428, "send_confirmation_required") {
		t.Errorf("%d %s, want 428", a.status, a.body)
	}
	if a := (request{path: send, body: single("0771234567", "m"), as: p.dev, header: with(header, "X-Confirm-Send", "true")}).do(t); a != nil && a.status != 422 {
		t.Errorf("confirmed: %d %s, want 422", a.status, a.body)
	}
}

// docs/decisions.md#order-of-checks: of two reasons to refuse a request the response names the earlier one. Each row is
// a request that fails two neighbours in that order.
func TestOrder(t *testing.T) {
	local(t)
	t.Parallel()
	managed := integration{vendor: "quicksend", mode: project.Managed}
	poor := plan{integrations: []integration{managed}}.make(t)
	incomplete := plan{integrations: []integration{{vendor: "quicksend", mode: project.Managed, bare: true}}}.make(t)
	trial := plan{trial: []string{"0771234567"}, integrations: []integration{managed}}.make(t)
	bare := plan{}.make(t)
	exhausted := plan{limit: 1}.make(t)
	if a := (request{path: balance, as: exhausted.dev}).do(t); a == nil || a.status != 422 {
		t.Fatal("the limit of one request is not there")
	}
	both := plan{limit: 1}.make(t)
	if a := (request{path: balance, as: both.dev}).do(t); a == nil || a.status != 422 {
		t.Fatal("the limit of one request is not there")
	}
	svc[any](t, "", "project", "pause", both.id)
	used := plan{integrations: []integration{{vendor: "quicksend", mode: project.BYOK}}}.make(t)
	used.dev = remember(used.dev)
	key := map[string]string{"Idempotency-Key": "order"}
	if a := (request{path: send, body: single(number(), "m"), as: used.dev, header: key}).do(t); a == nil || a.status != 200 {
		t.Fatal("the key is not used")
	}
	svc[any](t, "", "integration", "disable", used.id, "sms", "quicksend")
	forget()

	wrong := credential{poor.dev.ID, "wrong"}
	other, good := number(), single("0771234567", "m")
	long := strings.Repeat("x", 460)
	playground := map[string]string{"X-SVC-Client": "playground"}
	for _, c := range []struct {
		name   string
		r      request
		status int
		code   string
	}{
		{"route before size", request{path: "/sms/nothing", body: large}, 404, "http_error"},
		{"method before size", request{method: "PUT", path: send, body: large}, 405, "http_error"},
		{"size before credentials", request{path: send, body: large}, 413, "http_error"},
		{"credentials before pause", request{path: balance, as: credential{both.dev.ID, "wrong"}}, 401, "unauthorized"},
		{"pause before limit", request{path: balance, as: both.dev}, 503, "project_paused"},
		{"limit before body", request{path: send, body: "[]", as: exhausted.dev}, 429, "rate_limit_exceeded"},
		{"credentials before body", request{path: send, body: "[]", as: wrong}, 401, "unauthorized"},
		{"body before confirmation", request{path: send, body: "{}", as: bare.dev, header: playground}, 422, "validation_failed"},
		{"confirmation before key", request{path: send, body: good, as: bare.dev, header: with(playground, "Idempotency-Key", "a b")}, 428, "send_confirmation_required"},
		{"confirmation before a key's other body", request{path: send, body: good, as: used.dev, header: with(playground, "Idempotency-Key", "order")}, 428, "send_confirmation_required"},
		{"key before integration", request{path: send, body: good, as: used.dev, header: key}, 422, "http_error"},
		{"invalid key before integration", request{path: send, body: good, as: bare.dev, header: map[string]string{"Idempotency-Key": "a b"}}, 422, "validation_failed"},
		{"confirmation before integration", request{path: send, body: good, as: bare.dev, header: playground}, 428, "send_confirmation_required"},
		{"integration before bulk", request{path: send, body: bulkSame([]string{other}, "m"), as: bare.dev}, 422, "provider_selection_failed"},
		{"incomplete integration before bulk", request{path: send, body: bulkSame([]string{other}, "m"), as: incomplete.dev}, 422, "http_error"},
		{"integration before length", request{path: send, body: single(other, long), as: bare.dev}, 422, "provider_selection_failed"},
		{"bulk before length", request{path: send, body: bulkSame([]string{other}, long), as: poor.dev}, 403, "forbidden"},
		{"trial before length", request{path: send, body: single(other, long), as: trial.dev}, 403, "forbidden"},
		{"trial before credits", request{path: send, body: single(other, "m"), as: trial.dev}, 403, "forbidden"},
		{"bulk before credits", request{path: send, body: bulkSame([]string{other}, "m"), as: poor.dev}, 403, "forbidden"},
		{"length before credits", request{path: send, body: single(other, long), as: poor.dev}, 422, "http_error"},
		{"credits before work", request{path: send, body: single(other, "m"), as: poor.dev}, 402, "insufficient_funds"},
	} {
		if a := c.r.do(t); a != nil && !a.is(c.status, c.code) {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.status, a.body, c.status, c.code)
		}
	}
	if calls := sent(other); len(calls) != 0 {
		t.Errorf("a refused request was sent: %v", calls)
	}
}

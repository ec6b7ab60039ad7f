package acceptance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"svcapi/local/demo"
	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/test/must"
)

// operation is a request of an operation that a Managed project with credits may send.
type operation struct {
	method, path, body string
	paid               bool
}

// operations returns a request of every operation of openapi.yaml. The documents of PDFs load an image.
func operations(t *testing.T, to, image string) []operation {
	t.Helper()
	document := object(map[string]any{"html": "<img src='" + image + "'>"})
	all := []operation{
		{"POST", send, single(to, "m"), true}, {"POST", balance, "{}", false}, {"GET", status + "A", "", false}, {"POST",
			burner, email("a@example.com"), true},
		{"POST", vpn, ip("112.134.0.1"), true}, {"POST", location, ip("112.134.0.1"), true}, {"POST", barcodes,
			`{"data":"12345"}`, true},
		{"POST", qrcodes, `{"data":"12345"}`, true}, {"POST", pdfs, document, true}, {"POST", streamed, document, true},
		{"GET", currencies + "/latest/USD", "", false}, {"GET", currencies + "/history/USD", "", false},
		{"GET", currencies + "/pair/USD/LKR", "", false},
		{"GET", currencies + "/pair/USD/LKR/1", "", false}, {"GET", currencies + "/codes", "", false},
	}
	for path, item := range fixture.spec.Paths.Map() {
		for method := range item.Operations() {
			if !slices.ContainsFunc(all, func(o operation) bool { return o.method == method && fixture.item(o.path) == item }) {
				t.Errorf("no request of %s %s", method, path)
			}
		}
	}
	return all
}

// TestErrorsOfEveryOperation checks the responses of the pipeline for every operation. Each row has a second reason to
// refuse the request, which comes later (docs/decisions/requests.md#order-of-checks; shared/request TestOrderOfChecks
// has the whole order, and the headers of a limit) (docs/decisions/pdf.md#pdf-charged-last). Wrong credentials count
// for no limit (docs/decisions/requests.md#rate-limit).
func TestErrorsOfEveryOperation(t *testing.T) {
	t.Parallel()
	bare := plainProject(t)
	poor := plan{prod: true, integrations: everything(project.Managed)}.make(t).drawing(t,
		project.Managed).printing(t, project.Managed)
	paused, exhausted := plan{}.make(t), plan{limit: 1}.make(t)
	svc[any](t, "", "project", "pause", paused.id)
	wrong := request{path: balance, as: credential{exhausted.dev.ID, "wrong"}}.do(t)
	if a := (request{path: balance, as: exhausted.dev}).do(t); wrong.status != 401 || a.status != 422 {
		t.Fatal("the limit of one request is not there")
	}
	to, image := number(), "https://images.example/refused.png"
	if fixture.images != nil {
		image = fixture.images.URL + "/refused.png"
	}
	for _, o := range operations(t, to, image) {
		get := o.method == "GET"
		other := map[bool]string{true: "POST", false: "GET"}[get]
		for _, c := range []struct {
			name   string
			left   bool // the operation has no such error
			r      request
			status int
			code   string
		}{
			{"method before size", false, request{method: other, body: large}, 405, "http_error"},
			{"size before credentials", get, request{body: large}, 413, "http_error"},
			{"credentials before pause", false,
				request{body: o.body, as: credential{paused.dev.ID, "wrong"}}, 401, "unauthorized"},
			{"environment before body", false, request{body: "[]", as: poor.prod}, 401, "unauthorized"},
			{"pause before body", false, request{body: "[]", as: paused.dev}, 503, "project_paused"},
			{"limit before body", false, request{body: "[]", as: exhausted.dev}, 429, "rate_limit_exceeded"},
			{"body before integration", get, request{body: "[]", as: bare.dev}, 422, "validation_failed"},
			{"integration before credits", false, request{body: o.body, as: bare.dev}, 422, "provider_selection_failed"},
			{"credits before work", !o.paid, request{body: o.body, as: poor.dev}, 402, "insufficient_funds"},
		} {
			if c.left {
				continue
			}
			c.r.path, c.r.method = o.path, cmp.Or(c.r.method, o.method)
			if get && c.r.method == "GET" {
				c.r.body = ""
			}
			a := c.r.do(t)
			if !a.is(c.status, c.code) || c.status == 405 && a.header.Get("Allow") != o.method {
				t.Errorf("%s %s, %s: %d %v %s, want %d %s", o.method, o.path, c.name, a.status, a.header, a.body, c.status, c.code)
			}
		}
	}
	if fixture.stack == nil {
		return
	}
	asked.Lock()
	defer asked.Unlock()
	if len(sent(to)) != 0 || slices.Contains(asked.paths, "/refused.png") {
		t.Error("a refused request was sent, or rendered")
	}
}

var large = strings.Repeat(" ", 4<<20) + " "

// TestErrors checks the errors of single operations that are no event's: status, code, error.details and message
// (docs/decisions/requests.md#error-reasons, openapi.yaml's responses). local TestEvents has those of events/.
func TestErrors(t *testing.T) {
	localParallel(t)
	byok := func(vendor string, settings integration) *tenant {
		settings.vendor, settings.mode = vendor, project.BYOK
		return plan{integrations: []integration{settings}}.make(t)
	}
	refusing := newSandbox(t)
	must.Succeed(t, refusing.SetRules(sandbox.Rule{Outcome: sandbox.CredentialsRefused}))
	twilio, dialog, hutch := byok("twilio", integration{}), byok("dialog", integration{}), byok("hutch", integration{})
	unreachable := byok("textlk", integration{endpoint: demo.ClosedURL})
	keyless := byok("notifylk", integration{endpoint: refusing.URL + "/notifylk"})
	place := byok("ip-api", integration{kind: project.Location, endpoint: demo.ClosedURL})
	to := numberBlock(5)
	for i, outcome := range []sandbox.Outcome{sandbox.Rejected, sandbox.CredentialsRefused, sandbox.Unparseable,
		sandbox.Closed, sandbox.Rejected} {
		addRules(t, sandbox.Rule{To: to[i], Outcome: outcome})
	}
	p := plainProject(t)
	built := plan{}.make(t).drawing(t, project.BYOK).printing(t, project.BYOK).exchange(t, project.Managed)
	wrongKey := plan{}.make(t).exchange(t, project.BYOK)
	svc[any](t, `{"app_id":"wrong"}`, "integration", "set", wrongKey.id, "currency", "openexchangerates", "--secrets", "-")
	disabled := plan{}.make(t).exchange(t, project.Managed)
	svc[any](t, "", "integration", "disable", disabled.id, "currency", "openexchangerates")
	incomplete := demoProject("incomplete")
	key := keyed(twilio, "errors", single(to[3], "m"))
	other := key
	other.body += " "
	playground := map[string]string{"X-SVC-Client": "playground"}
	origin := map[string]string{"Origin": playgroundOrigin}
	at := func(path, body string, as *tenant) request { return request{path: path, body: body, as: as.dev} }
	get := func(path string, as *tenant) request {
		return request{method: "GET", path: currencies + path, as: as.dev}
	}
	for _, c := range []struct {
		name    string
		r       request
		want    string // status, code, and of error.details reason, vendor and vendor code
		message string // a part of it
	}{
		{"no route", request{path: "/nothing"}, "404 http_error route_not_found", ""},
		{"nearly a route", request{method: "GET", path: "/utilities/currency/latest/USD"},
			"404 http_error route_not_found", "Currency operations are under /api/v1/utility/currency"},
		{"large body", request{path: send, body: large}, "413 http_error body_too_large", ""},
		{"18 MB", request{path: pdfs, body: strings.Repeat(" ", 18<<20)}, "413 http_error body_too_large", ""},
		{"not confirmed", request{path: send, body: single(number(), "m"), as: p.dev, header: origin},
			"428 send_confirmation_required", ""},
		{"check_cost of a single send",
			request{path: send, body: `{"send_method":"single","to":"0771234567","message":"m","check_cost":true}`,
				as: p.dev, header: playground},
			"428 send_confirmation_required", ""},
		{"confirmed", request{path: send, body: single(number(), "m"), as: p.dev,
			header: map[string]string{"Origin": playgroundOrigin, "X-Confirm-Send": "TRUE"}},
			"422 provider_selection_failed", ""},
		{"balance, incomplete", at(balance, "", incomplete), "422 http_error integration_incomplete", ""},
		{"rejected", at(send, single(to[0], "m"), twilio), "502 http_error vendor_rejected twilio 21610", ""},
		{"credentials", at(send, single(to[1], "m"), twilio),
			"502 http_error vendor_credentials_refused twilio 20003", ""},
		{"unusable", at(send, single(to[2], "m"), twilio), "502 http_error vendor_response_unusable twilio", ""},
		{"uncertain", key, "503 http_error outcome_uncertain twilio", ""},
		{"uncertain, again", key, "503 http_error outcome_uncertain twilio", ""},
		{"another body", other, "422 http_error idempotency_key_reused", ""},
		{"rejected with a code as body", at(send, single(to[4], "m"), dialog),
			"502 http_error vendor_rejected dialog 2009", ""},
		{"unreachable", at(send, single(number(), "m"), unreachable), "503 http_error vendor_unreachable textlk", ""},
		{"balance of an unreachable vendor", at(balance, "{}", unreachable),
			"503 http_error vendor_unreachable textlk", ""},
		{"no balance", at(balance, "", hutch), "422 http_error balance_unavailable", ""},
		{"balance, credentials", at(balance, "", keyless), "422 http_error vendor_credentials_refused notifylk", ""},
		{"location", at(location, ip("20.0.0.9"), place), "500 internal_error vendor_unreachable", ""},
		{"QR code that does not fit", at(qrcodes,
			`{"data":"`+strings.Repeat("x", 2953)+`","size":184,"error_correction":"L"}`, built),
			"400 http_error render_rejected", "QR code: 177 modules and margins of 4 do not fit 184 pixels; size must be at " +
				"least 185."},
		{"PDF image", at(pdfs, `{"html":"<img src=https://nothing.invalid/x.png>"}`, built),
			"400 http_error render_rejected", ""},
		{"PDF stream, limit", at(streamed, `{"html":"`+strings.Repeat("<b>", 300)+`"}`, built),
			"400 http_error limit_exceeded", ""},
		{"PDF header, limit", at(pdfs, `{"html":"x","header_html":"`+strings.Repeat("<b>", 300)+`"}`, built),
			"400 http_error limit_exceeded", ""},
		{"malformed base", get("/pair/LKR-SELL/USD", built),
			"400 invalid_currency_code", `"LKR-SELL" is invalid: a base is three letters.`},
		{"unknown base", get("/latest/XYZ", built),
			"400 invalid_currency_code", `The currency code "XYZ" is unknown or inactive.`},
		{"unknown target", get("/pair/USD/XYZ/5", built),
			"400 invalid_currency_code", `The currency code "XYZ" is unknown or inactive.`},
		{"code before amount", get("/pair/US1/LKR/0", p), "400 invalid_currency_code", ""},
		{"amount before integration", get("/pair/USD/LKR/0", p), "422 validation_failed", ""},
		{"inactive source of rates", get("/codes", disabled), "422 provider_selection_failed", ""},
		{"refused key of rates", get("/latest/USD", wrongKey), "422 provider_selection_failed", ""},
	} {
		a := c.r.do(t)
		if c.name == "location" { // a failure of the vendor in the metrics (docs/decisions/look-ups.md#lookup-chain)
			lines := logLines(t, fixture.stack.LogDir, a.RequestID)["location.log"]
			if len(lines) != 1 || !strings.Contains(lines[0], `"outcome":"vendor_failed"`) ||
				!strings.Contains(lines[0], `"vendor":"ip-api"`) {
				t.Errorf("%s: %s", c.name, lines)
			}
		}
		d := a.Error.Details
		got := strings.Join(strings.Fields(fmt.Sprint(a.status, " ", a.Error.Code, " ", d.Reason, " ", d.Vendor,
			" ", d.VendorCode)), " ")
		if got != c.want || a.Success || !strings.Contains(a.Error.Message, c.message) {
			t.Errorf("%s: %d %s, want %s: %s", c.name, a.status, a.body, c.want, c.message)
		}
	}
}

// TestMistakes: the response to a client's mistake says what to do: the message, error.details or a header names it,
// also for the standard clients of Python and JavaScript (docs/decisions/requests.md#warnings,
// docs/decisions/requests.md#credentials, docs/decisions/requests.md#misspelt-fields).
func TestMistakes(t *testing.T) {
	localParallel(t)
	managed, broke, bare, incomplete := demoProject("managed"), demoProject("broke"), demoProject("bare"),
		demoProject("incomplete")
	header := func(name, value string) map[string]string { return map[string]string{name: value} }
	at := func(path, body string, as *tenant) request { return request{path: path, body: body, as: as.dev} }
	var mistakes []map[string]any // the requests, and what the client of Go got
	for name, c := range map[string]struct {
		r    request
		want string // status, and a part of the response's body or headers
	}{
		"no key": {request{path: barcodes, as: credential{"", managed.dev.Secret}},
			"401 The header X-API-KEY is missing."},
		"no secret": {request{path: barcodes, as: credential{managed.dev.ID, ""}},
			"401 The header X-API-SECRET is missing."},
		"bearer": {request{path: barcodes, header: header("Authorization", "Bearer x")},
			"401 The header Authorization is not used: send X-API-KEY and X-API-SECRET."},
		"environment": {request{path: barcodes, as: managed.dev, header: header("X-ENV", "staging")},
			"401 The header X-ENV must be development, dev, production or prod."},
		"a list in to": {at(send, `{"send_method":"single","to":["0771234567"],"message":"m"}`, managed),
			`422 {"to":["must be one number; for several numbers, use the method bulk_same with recipients"]}`},
		"numbers in to": {at(send, single("0771234567 and 0777654321", "m"), managed),
			`422 {"to":["must be one number; for several numbers, use the method bulk_same with recipients"]}`},
		"messages": {at(send, `{"send_method":"bulk_different","messages":[{}]}`, managed),
			`422 "messages":["unknown field; did you mean \"msg_list\"?"]`},
		"recipient": {at(send, `{"send_method":"single","recipient":"0771234567","message":"m"}`, managed),
			`422 "recipient":["unknown field; did you mean \"to\"?"]`},
		"text of a QR code": {at(qrcodes, `{"text":"x"}`, managed), `422 "text":["unknown field; did you mean \"data\"?"]`},
		"page of a PDF": {at(pdfs, `{"url":"https://example.com/"}`, managed),
			`422 "url":["unknown field; did you mean \"html\"?"]`},
		"nested message": {at(send, `{"send_method":"bulk_different","msg_list":[{"to":"0771234567","message":"m"}]}`,
			managed), `422 "msg_list.0.message":["unknown field; did you mean \"msg\"?"]`},
		"no integration": {at(barcodes, `{"data":"x"}`, bare),
			"422 The project has no active barcode integration in development."},
		"no provider": {at(location, `{"ip":"20.0.0.9","provider":"nobody"}`, managed),
			"422 The project has no active location integration with the provider nobody in development."},
		"incomplete": {at(vpn, ip("20.0.0.9"), incomplete),
			"422 integration in development cannot be used: ipgeolocation"},
		"slash": {at(send+"/", "{}", managed), "404 no path ends with a slash"},
		"no document": {request{method: "GET", path: "/../../openapi.yaml"},
			"404 the document is /docs/openapi.yaml"},
		"no credits": {at(barcodes, `{"data":"x"}`, broke), `402 "details":{"balance":0,"price":100}`},
		"a feature in a send": {at(send, `{"send_method":"single","to":"`+number()+`","message":"m","ref":"S"}`, managed),
			`200 unknown-fields;n=1;names="ref"`},
	} {
		a := c.r.send(t)
		var refused struct{ Error any }
		if a.status >= 400 {
			_ = json.Unmarshal(a.body, &refused) // send has
		}
		header := map[string]string{}
		for name := range a.sent.Header {
			header[name] = a.sent.Header.Get(name)
		}
		mistakes = append(mistakes, map[string]any{
			"name": name, "method": a.sent.Method, "url": fixture.baseURL + c.r.path, "header": header, "body": c.r.body,
			"status": a.status, "error": refused.Error, "warnings": a.header.Get("X-SVC-Warnings"),
		})
		status, part, _ := strings.Cut(c.want, " ")
		if text := fmt.Sprint(string(a.body), a.header["X-Svc-Warnings"]); fmt.Sprint(a.status) != status ||
			!strings.Contains(text, part) {
			t.Errorf("%s: %d %s, want %s", name, a.status, text, c.want)
		}
	}
	input := must.Get(json.Marshal(mistakes)).Or(t)
	for program, script := range map[string]string{"python3": "testdata/mistakes.py", "node": "testdata/mistakes.mjs"} {
		cmd := exec.CommandContext(t.Context(), program, script)
		cmd.Stdin = bytes.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
	limited := demoProject("limited")
	for n := range 11 { // over the end of a window, five of each are served
		a := at(barcodes, `{"data":"x"}`, limited).send(t)
		if a.status == 429 {
			if !strings.Contains(string(a.body), `"details":{"limit":5,"window_seconds":60}`) {
				t.Errorf("%s", a.body)
			}
			return
		}
		if n == 10 {
			t.Errorf("no request of %d is refused", n+1)
		}
	}
}

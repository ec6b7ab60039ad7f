package request

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
	"svcapi/test/clocktest"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a service with one project that has 1,000 credits.
type fixture struct {
	*Service
	operator       *books.Store
	projects       *admin.Store
	client, secret string
	log            bytes.Buffer
}

func build(t *testing.T) *fixture {
	t.Helper()
	clocktest.AwayFromWindowEnd(t)
	db, tables := enginetest.Client(t)
	h := &fixture{}
	cfg := Config{
		Stage: "test", ProjectsTable: tables.Projects, TransientTable: tables.Transient, WalletsTable: tables.Wallets,
		LedgerTable:         tables.Ledger,
		ProjectCacheSeconds: 10, Prices: wallet.Prices{wallet.SMS: 10}, PlaygroundOrigin: "https://docs.example",
		LogPayloads: payloadsOn,
	}
	h.Service = New(cfg, db, telemetry.New(&h.log, telemetry.Config{Level: "INFO"}))
	h.operator = books.NewStore(db, tables.Tables)
	ctx := t.Context()
	h.projects = admin.NewStore(db, tables.Projects)
	_, err := h.projects.CreateProject(ctx,
		project.Project{ID: "acme", Name: "Acme", Limit: project.RateLimit{Requests: 1000, Window: 24 * time.Hour}})
	if err == nil {
		err = h.projects.PutIntegration(ctx, "acme",
			project.Integration{Kind: project.SMS, Environment: project.Development, Vendor: "v",
				Mode: project.Managed, Active: true})
	}
	if err == nil {
		h.client, h.secret, err = h.projects.IssueCredential(ctx, "acme", project.Development)
	}
	if err == nil {
		err = errors.Join(h.operator.CreateWallet(ctx, "acme"),
			h.operator.Grant(ctx, wallettest.Movement("acme", time.Now(), "grant", 1000)))
	}
	must.Succeed(t, err)
	return h
}

// chosenID is the gateway's request ID, which a client can choose by the header x-amzn-RequestId. No test may see the
// ID again (docs/decisions/requests.md#request-id).
const chosenID = "7b6f3b0e-6d1c-4f0a-9a53-2c1f0d7b8a50"

// call sends a request through the Lambda adapter.
func (h *fixture) call(t *testing.T, route Route, path, body string,
	header map[string]string) (int, map[string]any, http.Header) {
	t.Helper()
	if header == nil {
		header = map[string]string{}
	}
	header["X-API-KEY"], header["X-API-SECRET"] = h.client, h.secret
	id := uuid.NewString()
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: id})
	response, err := Lambda(h.Handler(route))(ctx, events.APIGatewayProxyRequest{
		HTTPMethod: "POST", Path: path, Headers: header, Body: body,
		RequestContext: events.APIGatewayProxyRequestContext{RequestID: chosenID, ExtendedRequestID: "extended=",
			RequestTimeEpoch: time.Now().UnixMilli()},
	})
	must.Succeed(t, err)
	var envelope map[string]any
	if err := json.Unmarshal([]byte(response.Body), &envelope); err != nil {
		t.Fatalf("%v in %q", err, response.Body)
	}
	headers := http.Header(response.MultiValueHeaders)
	if envelope["request_id"] != id || response.MultiValueHeaders["X-SVC-Request-ID"][0] != id {
		t.Errorf("request ID %v, %v; want %s", envelope["request_id"], headers, id)
	}
	return response.StatusCode, envelope, headers
}

// operation returns an operation of 10 credits whose work is run.
func operation(irrevocable bool, run func(context.Context) (*Result, error)) Route {
	return pricedOperation(10, Job{Irrevocable: irrevocable, Run: run})
}

// TestOutcomes checks the envelope and the charge for every outcome of the work.
func TestOutcomes(t *testing.T) {
	h := build(t)
	vendor := func(status int, uncertain bool) func(context.Context) (*Result, error) {
		return func(context.Context) (*Result, error) {
			return nil, &Error{Status: status, Code: CodeHTTPError, Message: "m", Vendor: "v",
				Reached: true, Uncertain: uncertain}
		}
	}
	good := func(context.Context) (*Result, error) {
		return &Result{Data: map[string]string{"a": "\xff"}, Vendor: "v"}, nil
	}
	for _, c := range []struct {
		name        string
		irrevocable bool
		run         func(context.Context) (*Result, error)
		body        string
		status      int
		charged     int64
		uncertain   int
	}{
		{"success", false, good, `{"text":"a"}`, 200, 10, 0},
		{"irrevocable success", true, good, `{"text":"a"}`, 200, 10, 0},
		{"a success that is free", false, func(context.Context) (*Result, error) { return &Result{NotCharged: true}, nil },
			`{"text":"a"}`, 200, 0, 0},
		{"certain failure", true, vendor(502, false), `{"text":"a"}`, 502, 0, 0},
		{"uncertain outcome", true, vendor(503, true), `{"text":"a"}`, 503, 10, 1},
		{"an error of no class", false, func(context.Context) (*Result, error) { return nil, errors.New("secret cause") },
			`{"text":"a"}`, 500, 0, 0},
		{"an error of no class that may have sent", true,
			func(context.Context) (*Result, error) { return nil, errors.New("secret cause") }, `{"text":"a"}`, 500, 10, 1},
		{"a panic", false, func(context.Context) (*Result, error) { panic("at work") }, `{"text":"a"}`, 500, 0, 0},
		{"a panic that may have sent", true, func(context.Context) (*Result, error) { panic("at work") },
			`{"text":"a"}`, 500, 10, 1},
		{"a panic before anything was reserved", true, good, `{"text":"panic"}`, 500, 0, 0},
		{"data that JSON cannot hold", false, func(context.Context) (*Result, error) { return &Result{Data: func() {}}, nil },
			`{"text":"a"}`, 500, 10, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := h.balance(t)
			uncertain, _ := h.operator.Uncertain(t.Context(), "acme")
			h.log.Reset()
			status, envelope, _ := h.call(t, operation(c.irrevocable, c.run), "/test", c.body, nil)
			// docs/decisions/operating.md#canary
			if strings.Contains(h.log.String(), `"InternalErrors"`) != (c.status == 500) {
				t.Errorf("the alarm of a deployment counts the service's own failures, and no others: %s", h.log.String())
			}
			if status != c.status || envelope["success"] != (status == 200) {
				t.Errorf("got %d %v", status, envelope)
			}
			if charged := before - h.balance(t); charged != c.charged {
				t.Errorf("charged %d, want %d", charged, c.charged)
			}
			now, err := h.operator.Uncertain(t.Context(), "acme")
			if err != nil || len(now)-len(uncertain) != c.uncertain {
				t.Errorf("%d uncertain, %v", len(now)-len(uncertain), err)
			}
			if strings.Contains(envelopeMessage(envelope), "cause") || strings.Contains(envelopeMessage(envelope), "panic") {
				t.Errorf("the response contains the cause: %v", envelope)
			}
		})
	}
}

// TestOneMicrosecond checks that two requests of one microsecond, whose client has chosen one request ID, have a
// reservation and a charge each (docs/decisions/requests.md#request-id).
func TestOneMicrosecond(t *testing.T) {
	h, now := build(t), time.Now()
	h.Stores.Now = func() time.Time { return now }
	call := func(during func()) {
		status, envelope, _ := h.call(t, operation(false, func(context.Context) (*Result, error) {
			during()
			return &Result{}, nil
		}), "/test", `{"text":"a"}`, nil)
		if status != http.StatusOK {
			t.Errorf("%d %v", status, envelope)
		}
	}
	before := h.balance(t)
	call(func() { call(func() {}) })
	entries, err := h.operator.Entries(t.Context(), "acme", now, now)
	if charged := before - h.balance(t); charged != 20 || err != nil || len(entries) != 3 { // with the grant
		t.Errorf("%d credits charged by %+v, %v", charged, entries, err)
	}
}

// TestSettledAlive checks that work whose reservation was settled meanwhile is charged under another key, and is
// refused where the credits are gone (docs/decisions/money.md#leases).
func TestSettledAlive(t *testing.T) {
	for _, test := range []struct{ left, charged int64 }{{10, 10}, {9, 0}} {
		h := build(t)
		settled := func(ctx context.Context) (*Result, error) {
			wallettest.SettleAll(t, h.operator)
			m := wallettest.Movement("acme", time.Now(), "all", test.left-1000)
			return &Result{}, h.operator.Adjust(ctx, m)
		}
		status, envelope, _ := h.call(t, operation(false, settled), "/test", `{"text":"a"}`, nil)
		if want := map[int64]int{10: 200, 0: 402}[test.charged]; status != want || h.balance(t) != test.left-test.charged {
			t.Errorf("%d %v, balance %d; want %d", status, envelope, h.balance(t), want)
		}
	}
}

func envelopeMessage(envelope map[string]any) string {
	e, _ := envelope["error"].(map[string]any)
	s, _ := e["message"].(string)
	return s
}

func (h *fixture) balance(t *testing.T) int64 {
	t.Helper()
	n, err := h.Stores.Wallet.Balance(t.Context(), "acme")
	must.Succeed(t, err)
	return n
}

// TestPlayground checks that a send from the playground needs a confirmation (docs/decisions/requests.md#playground).
func TestPlayground(t *testing.T) {
	h := build(t)
	sends := operation(true, func(context.Context) (*Result, error) { return &Result{}, nil })
	for _, c := range []struct {
		header map[string]string
		want   int
	}{
		{nil, 200},
		{map[string]string{"X-SVC-Client": "playground"}, 428},
		{map[string]string{"Origin": "https://docs.example"}, 428},
		{map[string]string{"Origin": "https://other.example"}, 200},
		{map[string]string{"X-SVC-Client": "playground", "X-Confirm-Send": "yes"}, 428},
		{map[string]string{"X-SVC-Client": "playground", "X-Confirm-Send": "TRUE"}, 200},
		{map[string]string{"X-SVC-Client": "playground", "X-Confirm-Send": "1"}, 200},
	} {
		if status, _, _ := h.call(t, sends, "/test", `{"text":"a"}`, c.header); status != c.want {
			t.Errorf("%v: %d, want %d", c.header, status, c.want)
		}
	}
	// The log line names the playground also where the body is refused.
	h.log.Reset()
	status, _, _ := h.call(t, sends, "/test", `{"text":1}`, map[string]string{"X-SVC-Client": "playground"})
	if status != 422 || !strings.Contains(h.log.String(), `"client":"playground"`) {
		t.Errorf("malformed: %d, log %s", status, h.log.String())
	}
}

// TestPrivacy: docs/decisions/requests.md#privacy-mode, docs/decisions/requests.md#header-booleans.
func TestPrivacy(t *testing.T) {
	h := build(t)
	cases := []struct {
		name   string
		body   string
		header map[string]string
		shown  bool
	}{
		{"without it", `{"text":"needle"}`, nil, true},
		{"by header", `{"text":"needle"}`, map[string]string{"X-Privacy-Mode": "true"}, false},
		{"by header, 1", `{"text":"needle"}`, map[string]string{"X-Privacy-Mode": "1"}, false},
		{"by header, no", `{"text":"needle"}`, map[string]string{"X-Privacy-Mode": "0"}, true},
		{"by field", `{"text":"needle","privacy_mode":true}`, nil, false},
		{"by field, no", `{"text":"needle","privacy_mode":false}`, nil, true},
		{"by field of a wrong type", `{"text":"needle","privacy_mode":"yes"}`, nil, false},
		{"where a field is wrong", `{"needle":1}`, nil, false},
		{"where the body is malformed", `{"needle`, nil, false},
	}
	run := func(context.Context) (*Result, error) {
		return nil, (&Error{Status: 400, Code: CodeHTTPError, Message: "m"}).WithCause(errors.New("pin"))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.log.Reset()
			h.call(t, operation(false, run), "/test", c.body, c.header)
			line := h.log.String()
			if strings.Contains(line, "needle") != c.shown || strings.Contains(line, "pin") != c.shown {
				t.Errorf("logged %s", line)
			}
			if strings.Contains(line, h.secret) {
				t.Error("the secret is logged")
			}
		})
	}
}

// TestRoutes: every response has the request ID, and no path reaches an operation by accident.
// docs/decisions/requests.md#error-details, docs/decisions/requests.md#request-id, docs/decisions/requests.md#routes.
func TestRoutes(t *testing.T) {
	h := build(t)
	route := &Operation[string]{
		Name: "param", Method: "POST", Path: "/v1/{code}/x", Kind: project.SMS,
		Decode: func(in *Input) (string, error) { return in.Parameter("code"), nil },
		Prepare: func(_ context.Context, _ *Call, code string) (*Job, error) {
			return &Job{Run: func(context.Context) (*Result, error) { return &Result{Data: code}, nil }}, nil
		},
	}
	for _, c := range []struct {
		path string
		want int
		data any
	}{
		{"/v1/abc/x", 200, "abc"},
		{"/v1/a%2Fb/x", 200, "a/b"},
		{"/v1/a%3Fb/x", 200, "a?b"},
		{"/v1/%C3%A9/x", 200, "é"},
		{"/v1/a/b/x", 404, nil},
		{"/v1//x", 404, nil},
		{"//v1/abc/x", 404, nil},
		{"/v1/abc/x/", 404, nil},
		{"/v1/abc/%78", 404, nil},
		{"/V1/abc/x", 404, nil},
		{"/v1/%zz/x", 404, nil},
		{"/v1/%/x", 404, nil},
		{"/v1/../v1/abc/x", 404, nil},
		{"", 404, nil},
	} {
		status, envelope, _ := h.call(t, route, c.path, `{}`, nil)
		if status != c.want || envelope["data"] != c.data {
			t.Errorf("%q: %d %v, want %d %v", c.path, status, envelope, c.want, c.data)
		}
	}
}

// TestContradictoryCredentials checks that a header with two different values matches no credentials
// (docs/decisions/requests.md#credentials).
func TestContradictoryCredentials(t *testing.T) {
	h := build(t)
	handler := Lambda(h.Handler(operation(false, func(context.Context) (*Result, error) { return &Result{}, nil })))
	for _, c := range []struct {
		name, header string
		values       []string
		want         int
	}{
		{"once each", "X-ENV", nil, 200},
		{"the same twice", "X-API-KEY", []string{h.client, h.client}, 200},
		{"two client IDs", "X-API-KEY", []string{h.client, "svc_other_aaaaaaaa"}, 401},
		{"two client IDs, the right one last", "X-API-KEY", []string{"svc_other_aaaaaaaa", h.client}, 401},
		{"two secrets", "X-API-SECRET", []string{h.secret, "svcs_other"}, 401},
		{"one empty secret", "X-API-SECRET", []string{h.secret, ""}, 401},
		{"two environments", "X-ENV", []string{"development", "production"}, 401},
		{"an environment twice", "X-ENV", []string{"dev", "dev"}, 200},
		{"others between", "X-API-SECRET", []string{h.secret, "svcs_other", h.secret}, 401},
	} {
		headers := map[string][]string{"X-API-KEY": {h.client}, "X-API-SECRET": {h.secret}}
		if c.values != nil {
			headers[c.header] = c.values
		}
		response, err := handler(t.Context(), events.APIGatewayProxyRequest{
			HTTPMethod: "POST", Path: "/test", MultiValueHeaders: headers, Body: `{"text":"a"}`,
		})
		if err != nil || response.StatusCode != c.want {
			t.Errorf("%s: %d %s, %v; want %d", c.name, response.StatusCode, response.Body, err, c.want)
		}
	}
}

// TestWarnings: a response names ignored fields and query parameters, also that of a refused request, beside the
// operation's own warning (docs/decisions/requests.md#warnings). The body of a GET is ignored
// (docs/decisions/requests.md#json-bodies).
func TestWarnings(t *testing.T) {
	h := build(t)
	type query = map[string][]string
	for _, c := range []struct {
		method, body string
		query        query
		want         string
	}{
		{"POST", `{"text":"a"}`, nil, "low-contrast"},
		{"POST", `{"text":"a","x":null}`, nil, "low-contrast"},
		{"POST", `{"text":"a","sender_id":1,"schedule_at":"now"}`, nil,
			`low-contrast, unknown-fields;n=2;names="schedule_at sender_id"`},
		{"POST", `{"b":1,"a":1,"c":1,"d":1,"f":1,"e":1}`, nil, `unknown-fields;n=6;names="a b c d e"`},
		{"POST", `{"text":"a","é":1,"\"":1,"a b":1}`, nil, `low-contrast, unknown-fields;n=3`},
		{"POST", `{"text":"a","elsewhere":true}`, nil, `low-contrast, unknown-fields;n=1;names="elsewhere"`},
		{"POST", `{"text":"a","x":1}`, query{"known": {"1"}, "schedule_time": {"1"}},
			`low-contrast, unknown-fields;n=2;names="x schedule_time"`},
		{"GET", "", nil, "low-contrast"},
		{"GET", "{", query{"known": {"1"}}, "low-contrast"},
		{"GET", "", query{"known": {"1"}, "Known": {"1", "2"}, "a b": {"1"}},
			`low-contrast, unknown-fields;n=2;names="Known"`},
	} {
		route := &Operation[string]{
			Name: "test", Method: c.method, Path: "/test", Kind: project.SMS,
			Decode: func(in *Input) (string, error) {
				in.Knows("elsewhere")
				in.Query("known")
				return in.Text("text", Text{Required: c.method == "POST"}), nil
			},
			Prepare: func(context.Context, *Call, string) (*Job, error) {
				return &Job{Run: func(context.Context) (*Result, error) {
					return &Result{Header: http.Header{"X-SVC-Warnings": {"low-contrast"}}}, nil
				}}, nil
			},
		}
		response, err := Lambda(h.Handler(route))(t.Context(), events.APIGatewayProxyRequest{
			HTTPMethod: c.method, Path: "/test", Body: c.body, MultiValueQueryStringParameters: c.query,
			Headers: map[string]string{"X-API-KEY": h.client, "X-API-SECRET": h.secret},
		})
		if got := strings.Join(response.MultiValueHeaders["X-SVC-Warnings"], "|"); err != nil || got != c.want {
			t.Errorf("%+v: %d %s %s, %v", c, response.StatusCode, got, response.Body, err)
		}
	}
}

// TestDeadline checks that the work ends at the gateway's limit less the time for capture and response, and that the
// time of a replayed event is ignored (docs/decisions/requests.md#time-budget).
func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		age  time.Duration
		want time.Duration // left for the request
	}{
		{0, 29 * time.Second},
		{10 * time.Second, 19 * time.Second},
		{2 * time.Minute, 29 * time.Second},
		{-2 * time.Minute, 29 * time.Second},
	} {
		ctx, cancel := withDeadline(context.Background(), time.Now().Add(-c.age).UnixMilli())
		deadline, ok := ctx.Deadline()
		if left := time.Until(deadline); !ok || (left-c.want).Abs() > time.Second {
			t.Errorf("age %v: %v left", c.age, left)
		}
		cancel()
	}
}

// TestLogLine checks that a request prints one line with its metrics, none of them with a project as its dimension
// (docs/decisions/operating.md#log-lines).
func TestLogLine(t *testing.T) {
	h := build(t)
	h.log.Reset()
	h.call(t, operation(false, func(context.Context) (*Result, error) {
		return &Result{Vendor: "v", Attributes: []slog.Attr{slog.Int("units", 2)}, Cause: errors.New("a part failed")}, nil
	}), "/test", `{"text":"a"}`, nil)
	if n := strings.Count(h.log.String(), "\n"); n != 1 {
		t.Fatalf("%d lines", n)
	}
	var line struct {
		Operation, Outcome, Vendor, Project, Level, Message, Error string
		Credits                                                    float64 `json:"Credits"`
		Units                                                      int
		AWS                                                        struct {
			CloudWatchMetrics []struct {
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
		SourceIP *string `json:"source_ip"`
	}
	must.Succeed(t, json.Unmarshal(h.log.Bytes(), &line, json.MatchCaseInsensitiveNames(true)))
	if line.Operation != "test" || line.Outcome != "success" || line.Vendor != "v" || line.Project != "acme" ||
		line.Credits != 10 || line.Units != 2 || line.Error != "a part failed" {
		t.Errorf("%+v", line)
	}
	if !strings.Contains(h.log.String(), `"extended_request_id":"extended="`) ||
		strings.Contains(h.log.String(), chosenID) {
		t.Errorf("the line lacks the gateway's extended ID, or has the one that a client can choose: %s", h.log.String())
	}
	if line.SourceIP == nil {
		t.Error("the line does not say where the request came from")
	}
	var metrics []string
	for _, directive := range line.AWS.CloudWatchMetrics {
		for _, m := range directive.Metrics {
			metrics = append(metrics, fmt.Sprint(m.Name, directive.Dimensions))
		}
	}
	if want := []string{"Requests[[outcome]]", "Duration[[operation]]",
		"Credits[[] [operation]]"}; !slices.Equal(metrics, want) {
		t.Errorf("metrics %v, want %v", metrics, want)
	}
}

// TestOutcomeTooLarge checks that a request whose outcome is too large to be stored succeeds and is charged once, and
// that a repeat gets the reduced data where they fit, else 409 (docs/decisions/extensions.md#idempotency-size).
func TestOutcomeTooLarge(t *testing.T) {
	h := build(t)
	large := make([]byte, 500_000)
	_, _ = rand.Read(large) // random bytes do not compress
	for _, c := range []struct {
		key     string
		reduced func() any
		want    int // status of a repeat
	}{
		{"reduced", func() any { return "small" }, 200},
		{"alone", nil, 409},
		{"too-little", func() any { return large[1:] }, 409},
	} {
		sends := 0
		route := operation(true, func(context.Context) (*Result, error) {
			sends++
			return &Result{Data: large, Reduced: c.reduced, Vendor: "v"}, nil
		})
		before := h.balance(t)
		for i, want := range []int{200, c.want, c.want} {
			status, envelope, header := h.call(t, route, "/test", `{"text":"a"}`, map[string]string{keyHeader: c.key})
			if status != want || (header.Get(replayedHeader) == "true") != (i > 0) ||
				want == 200 && (envelope["data"] == "small") != (i > 0) {
				t.Errorf("%s: got %d %v, want %d", c.key, status, header, want)
			}
			if failure, _ := envelope["error"].(map[string]any); want == 409 &&
				(failure["code"] != CodeHTTPError || failure["message"] != errNotKept.Message) {
				t.Errorf("%s: got %v", c.key, failure)
			}
		}
		if charged := before - h.balance(t); charged != 10 || sends != 1 {
			t.Errorf("%s: charged %d, sent %d times", c.key, charged, sends)
		}
		if strings.Contains(h.log.String(), "OutcomesNotKept") != (c.want == 409) {
			t.Errorf("%s: the metric of outcomes that are not kept", c.key)
		}
	}
}

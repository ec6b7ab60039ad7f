package request

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"svcapi/shared/admit"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
)

// pricedOperation returns an operation whose job costs that many credits.
func pricedOperation(credits int64, job Job) Route {
	return &Operation[string]{
		Name: "test", Method: "POST", Path: "/test", Kind: project.SMS, Price: wallet.SMS,
		Decode: func(in *Input) (string, error) {
			in.Knows("elsewhere")
			return in.Text("text", Text{Required: true}), nil
		},
		Sends: func(string) bool { return job.Irrevocable },
		Prepare: func(_ context.Context, call *Call, text string) (*Job, error) {
			switch text {
			case "refused":
				return nil, &Error{Status: 403, Code: CodeForbidden, Message: "m"}
			case "panic":
				panic("in Prepare")
			}
			job := job
			job.Credits = admit.NewCredits(call.holds, wallet.SMS, 1, credits)
			return &job, nil
		},
	}
}

// logger returns the fixture's log.
func (h *fixture) logger() *telemetry.Logger {
	return telemetry.New(&h.log, telemetry.Config{Level: "INFO"})
}

func done(context.Context) (*Result, error) { return &Result{}, nil }

// TestOrderOfChecks checks the order of the checks up to the work, and that only completed work is charged
// (docs/decisions/requests.md#order-of-checks).
func TestOrderOfChecks(t *testing.T) {
	h := build(t) // 1,000 credits
	large := `{"text":"` + strings.Repeat("a", maxBody-11) + `"}`
	worked := false
	work := Job{Run: func(context.Context) (*Result, error) { worked = true; return &Result{}, nil }}
	fails := work
	fails.Prefetch = func(context.Context) error { return errors.New("no read") }
	panics := work
	panics.Prefetch = func(context.Context) error { panic("no read") }
	reads := work
	reads.Prefetch = func(context.Context) error { return nil }
	sends := work
	sends.Irrevocable = true
	nowhere := pricedOperation(1, work)
	nowhere.(*Operation[string]).Kind = project.PDF
	remaining := 1000
	for _, c := range []struct {
		name    string
		route   Route
		body    string
		status  int
		charged int64
	}{
		{"free", pricedOperation(0, work), `{"text":"a"}`, 200, 0},
		{"free, and cannot be taken back", pricedOperation(0, sends), `{"text":"a"}`, 200, 0},
		{"one credit", pricedOperation(1, work), `{"text":"a"}`, 200, 1},
		{"a read beside", pricedOperation(1, reads), `{"text":"a"}`, 200, 1},
		{"a read that fails", pricedOperation(1, fails), `{"text":"a"}`, 500, 0},
		{"a read that panics", pricedOperation(1, panics), `{"text":"a"}`, 500, 0},
		{"a free read that fails", pricedOperation(0, fails), `{"text":"a"}`, 500, 0},
		{"refused", pricedOperation(1, work), `{"text":"refused"}`, 403, 0},
		{"no integration of its kind", nowhere, `{"text":"a"}`, 422, 0},
		{"refused before it fails", pricedOperation(1, fails), `{"text":"refused"}`, 403, 0},
		{"refused before its credits are missed", pricedOperation(999_999, work), `{"text":"refused"}`, 403, 0},
		{"one credit too many", pricedOperation(999, work), `{"text":"a"}`, 402, 0}, // 2 are spent
		{"too few credits before a read that fails", pricedOperation(999, fails), `{"text":"a"}`, 402, 0},
		{"not decoded before its credits are missed", pricedOperation(999, work), `{"text":1}`, 422, 0},
		{"malformed", pricedOperation(1, work), `{"text"`, 422, 0},
		{"the largest body", pricedOperation(1, work), large, 422, 0}, // read, and its text is too long
		{"a body over the limit", pricedOperation(1, work), large + " ", 413, 0},
		{"the last credits", pricedOperation(998, work), `{"text":"a"}`, 200, 998},
		{"nothing left", pricedOperation(1, work), `{"text":"a"}`, 402, 0},
		{"free with nothing left", pricedOperation(0, work), `{"text":"a"}`, 200, 0},
	} {
		if c.name == "the largest body" { // a text of any length
			c.route.(*Operation[string]).Decode = func(in *Input) (string, error) {
				in.Problem("text", "was read")
				return "", nil
			}
		}
		worked = false
		before := h.balance(t)
		h.log.Reset()
		status, envelope, header := h.call(t, c.route, "/test", c.body, nil)
		if want := remaining - 1; status == 413 { // before the credentials are checked
			wantLimit(t, c.name, header, "", "")
		} else {
			wantLimit(t, c.name, header, "1000", strconv.Itoa(want))
			remaining = want
		}
		if charged := before - h.balance(t); status != c.status || charged != c.charged || worked != (status == 200) {
			t.Errorf("%s: %d %v, %d charged, worked %t; want %d, %d", c.name, status, envelope["error"], charged,
				worked, c.status, c.charged)
		}
		if logged := fmt.Sprintf(`"Credits":%d`, c.charged); !strings.Contains(h.log.String(), logged) && c.charged > 0 {
			t.Errorf("%s: %s is not in %s", c.name, logged, h.log.String())
		}
		if strings.Contains(h.log.String(), "nsettled") { // the note and the metric
			t.Errorf("%s: all is settled, and the log says %s", c.name, h.log.String())
		}
	}

	// The response after the last request has Retry-After, which is the window's reset, and no other refusal comes first.
	limit := h.limitToOneMore(t)
	for i, want := range []int{200, 429, 429} {
		status, _, header := h.call(t, pricedOperation(0, work), "/test", `{"text":"a"}`, nil)
		if status != want || (header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("request %d: %d, %v; want %d", i, status, header, want)
		}
		wantLimit(t, fmt.Sprint("request ", i), header, limit, "0")
		if retry := header.Get("Retry-After"); retry != "" && retry != sent(header, "X-RateLimit-Reset") {
			t.Errorf("request %d: %v", i, header)
		}
	}
	if status, _, _ := h.call(t, pricedOperation(0, work), "/test", `{"text"`, nil); status != 429 {
		t.Errorf("malformed over the limit: %d", status)
	}
	// Another instance has not seen the window, so it counts the request, and the limit still comes before the refusal.
	h.Service = New(h.cfg, h.db, h.logger())
	if status, _, _ := h.call(t, pricedOperation(1, work), "/test", `{"text":"refused"}`, nil); status != 429 {
		t.Errorf("refused over the limit: %d", status)
	}
	// The pause of a project comes before its limit.
	if _, err := h.projects.Update(t.Context(), "acme", func(p *project.Project) { p.Paused = true }); err != nil {
		t.Fatal(err)
	}
	h.Service = New(h.cfg, h.db, h.logger())
	if status, envelope, _ := h.call(t, pricedOperation(0, work), "/test", `{"text":"a"}`, nil); status != 503 {
		t.Errorf("paused: %d %v", status, envelope)
	}
	// Credentials come before the pause, and the method before the credentials.
	h.secret = "svcs_wrong"
	if status, _, _ := h.call(t, pricedOperation(0, work), "/test", `{"text":"a"}`, nil); status != 401 {
		t.Errorf("a wrong secret: %d", status)
	}
	get := &Operation[string]{Name: "test", Method: "GET", Path: "/test"}
	if status, _, header := h.call(t, get, "/test", "", nil); status != 405 || header.Get("Allow") != "GET" {
		t.Errorf("another method: %d, %v", status, header)
	}
}

// TestTablesGone checks that an unreachable table is a failure of the service, and that no work is done and charged
// (docs/decisions/money.md#mark).
func TestTablesGone(t *testing.T) {
	for _, gone := range []string{"projects", "transient", "wallets", "ledger"} {
		h := build(t)
		cfg := h.cfg
		*map[string]*string{
			"projects": &cfg.ProjectsTable, "transient": &cfg.TransientTable, "wallets": &cfg.WalletsTable,
			"ledger": &cfg.LedgerTable,
		}[gone] = "none"
		h.Service = New(cfg, h.db, h.logger())
		h.log.Reset()
		work := Job{Irrevocable: true,
			Run: func(context.Context) (*Result, error) { t.Errorf("%s: work was done", gone); return &Result{}, nil }}
		status, envelope, _ := h.call(t, pricedOperation(1, work), "/test", `{"text":"a"}`, nil)
		if status != 500 || strings.Contains(h.log.String(), `"Credits":1`) {
			t.Errorf("%s: %d %v, log %s", gone, status, envelope, h.log.String())
		}
	}
}

// TestCallCredits checks that Manual and free operations and the vendor "test" cost no credits, and that a project's
// own price comes before the listed one (docs/decisions/money.md#prices).
func TestCallCredits(t *testing.T) {
	prices := wallet.Prices{wallet.SMS: 10}
	for _, c := range []struct {
		mode   project.Mode
		vendor string
		price  string
		units  int
		want   int64
	}{
		{project.Managed, "v", wallet.SMS, 1, 10}, {project.Managed, "v", wallet.SMS, 3, 30},
		{project.Managed, "v", wallet.SMS, 0, 0}, {project.BYOK, "v", wallet.SMS, 3, 0}, {project.Managed, "v", "", 3, 0},
		{project.BYOK, "v", "", 3, 0}, {project.Managed, "v", wallet.PDF, 3, 0},
		{project.Managed, project.TestVendor, wallet.SMS, 3, 0}, {project.Managed, "v", wallet.Barcode, 1, 4},
		{project.BYOK, "v", wallet.Barcode, 1, 0},
	} {
		call := Call{Mode: c.mode, price: c.price, prices: prices,
			Project:      &project.Project{Prices: map[string]int64{wallet.Barcode: 4}},
			Integrations: []project.Integration{{Vendor: c.vendor}}}
		if got := call.Credits(c.units).Amount(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestTimeOfWork checks that the work ends five seconds before the request (docs/decisions/requests.md#time-budget).
func TestTimeOfWork(t *testing.T) {
	deadline := time.Now().Add(20 * time.Second)
	limited, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	for ctx, want := range map[context.Context]time.Time{limited: deadline.Add(-5 * time.Second),
		context.Background(): {}} {
		_, err := work(ctx, &Job{Run: func(ctx context.Context) (*Result, error) {
			if ends, _ := ctx.Deadline(); !ends.Equal(want) {
				t.Errorf("the work ends at %s, want %s", ends, want)
			}
			return &Result{}, nil
		}})
		must.Succeed(t, err)
	}
}

// TestFromPlayground checks that the playground's requests are marked, or come from the configured origin or the API's
// own (docs/decisions/requests.md#playground).
func TestFromPlayground(t *testing.T) {
	for _, c := range []struct {
		configured, client, origin, host string
		want                             bool
	}{
		{"", "", "", "api.example", false},
		{"", "", "", "", false},
		{"", "playground", "", "api.example", true},
		{"", "sdk", "", "api.example", false},
		{"", "", "https://api.example", "api.example", true},
		{"", "", "https://other.example", "api.example", false},
		{"", "", "api.example", "api.example", false},
		{"https://docs.example", "", "https://docs.example", "api.example", true},
		{"https://docs.example", "", "http://docs.example", "api.example", false},
		{"https://docs.example", "", "https://api.example", "api.example", true},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host = c.host
		r.Header.Set("X-SVC-Client", c.client)
		r.Header.Set("Origin", c.origin)
		if got := (&Service{cfg: Config{PlaygroundOrigin: c.configured}}).fromPlayground(r); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestUnsettledIsNoted checks that the log line names a reservation that could not be settled.
func TestUnsettledIsNoted(t *testing.T) {
	for _, succeeds := range []bool{true, false} {
		h := build(t)
		_, tables := enginetest.Client(t)
		run := func(context.Context) (*Result, error) {
			h.cfg.LedgerTable, h.cfg.WalletsTable = tables.Ledger+"-gone", tables.Wallets+"-gone"
			h.Stores.Wallet = wallet.NewStore(h.db, wallet.Tables{Wallets: h.cfg.WalletsTable, Ledger: h.cfg.LedgerTable})
			if succeeds {
				return &Result{}, nil
			}
			return nil, &Error{Status: 502, Code: CodeHTTPError, Message: "m"}
		}
		want := map[bool]int{true: 200, false: 502}[succeeds]
		if status, _, _ := h.call(t, pricedOperation(5, Job{Run: run}), "/test", `{"text":"a"}`, nil); status != want {
			t.Errorf("status %d", status)
		}
		if !strings.Contains(h.log.String(), "UnsettledReservations") {
			t.Errorf("log %s", h.log.String())
		}
	}
}

// TestKeysOfFailures checks which failures free an Idempotency-Key: those before the mark. A panic at work that may
// have sent a message keeps the key, so that a repeat sends nothing
// (docs/decisions/extensions.md#idempotency-outcomes).
func TestKeysOfFailures(t *testing.T) {
	h := build(t)
	runs, fails := 0, false
	route := operation(true, func(context.Context) (*Result, error) {
		if runs++; fails {
			panic("at work")
		}
		return &Result{}, nil
	})
	send := func(key string) int {
		t.Helper()
		status, _, _ := h.call(t, route, "/test", `{"text":"a"}`, map[string]string{"Idempotency-Key": key})
		return status
	}
	expect := func(name, key string, status, wantRuns int) {
		t.Helper()
		if got := send(key); got != status || runs != wantRuns {
			t.Errorf("%s: %d, %d runs; want %d, %d runs", name, got, runs, status, wantRuns)
		}
	}
	good := h.cfg
	_, tables := enginetest.Client(t)
	h.cfg.LedgerTable = tables.Ledger + "-gone"
	h.restart()
	expect("a mark that fails", "mark", 500, 0)
	h.cfg = good
	h.restart()
	expect("its repeat", "mark", 200, 1)

	fails = true
	expect("a panic", "panic", 500, 2)
	h.log.Reset()
	expect("its repeat", "panic", 500, 2)
	if strings.Contains(h.log.String(), "InternalErrors") { // which would roll the fix back
		t.Errorf("the repeat counts again: %s", h.log.String())
	}
	fails = false

	// The function's process ends with its request. docs/decisions/extensions.md#idempotency-dead-claims
	for key, c := range map[string]struct {
		until  time.Duration
		status int
	}{"running": {time.Minute, 409}, "died": {-2 * time.Minute, 503}} {
		_, _, err := h.keys.claim(t.Context(), "acme", "development", key, []byte(`{"text":"a"}`), time.Now().Add(c.until))
		must.Succeed(t, err)
		expect("the repeat of a request that is "+key, key, c.status, 2)
	}

	h.limitToOneMore(t)
	expect("the last of the window", "last", 200, 3)
	h.restart() // an instance that does not know yet that the limit is reached
	expect("one more", "limited", 429, 3)
	limit := project.RateLimit{Requests: 100_000, Window: 24 * time.Hour}
	if _, err := h.projects.Update(t.Context(), "acme",
		func(p *project.Project) { p.Limit = limit }); err != nil {
		t.Fatal(err)
	}
	h.restart()
	expect("its repeat", "limited", 200, 4)
}

// TestKeptOutcomes checks that a key keeps the outcome of work which may have reached a vendor: a repeat runs nothing
// and pays nothing, whatever has changed since. Another failure frees the key, also for another body
// (docs/decisions/extensions.md#idempotency-outcomes, docs/decisions/extensions.md#idempotency-repeats).
func TestKeptOutcomes(t *testing.T) {
	h := build(t)
	for name, c := range map[string]struct {
		failed *Error
		status int
		kept   bool
	}{
		"accepted":    {nil, 200, true},
		"rejected":    {&Error{Status: 502, Code: CodeHTTPError, Reached: true}, 502, true},
		"uncertain":   {&Error{Status: 503, Code: CodeHTTPError, Reached: true, Uncertain: true}, 503, true},
		"unconnected": {&Error{Status: 503, Code: CodeHTTPError}, 503, false},
	} {
		runs := 0
		route := operation(true, func(context.Context) (*Result, error) {
			if runs++; c.failed != nil {
				return nil, c.failed
			}
			return &Result{}, nil
		})
		expect := func(step, body string, active bool, status, wantRuns int, replayed bool) {
			t.Helper()
			err := h.projects.EditIntegrations(t.Context(), "acme", func(r *project.Record) ([]project.Integration, error) {
				i := *admin.Integration(r, project.Development, project.SMS, "v")
				i.Active = active
				return []project.Integration{i}, nil
			})
			must.Succeed(t, err)
			h.restart()
			got, _, header := h.call(t, route, "/test", body, map[string]string{"Idempotency-Key": name})
			if got != status || runs != wantRuns || (header.Get(replayedHeader) == "true") != replayed {
				t.Errorf("%s, %s: %d, %d runs, %v; want %d, %d runs", name, step, got, runs, header, status, wantRuns)
			}
		}
		expect("first", `{"text":"a"}`, true, c.status, 1, false)
		paid := h.balance(t)
		if !c.kept {
			expect("another body", `{"text":"b"}`, true, c.status, 2, false)
			continue
		}
		expect("repeat without an integration", `{"text":"a"}`, false, c.status, 1, true)
		expect("another body", `{"text":"b"}`, true, 422, 1, false)
		if got := h.balance(t); got != paid {
			t.Errorf("%s: balance %d, want %d", name, got, paid)
		}
	}
}

// wantLimit checks the headers of the rate limit; no limit means no headers.
func wantLimit(t *testing.T, name string, header http.Header, limit, remaining string) {
	t.Helper()
	reset, _ := strconv.Atoi(sent(header, "X-RateLimit-Reset"))
	if got := sent(header, "X-RateLimit-Limit"); got != limit || (reset >= 1) != (limit != "") {
		t.Errorf("%s: limit %q, reset %d; want %q", name, got, reset, limit)
	}
	if got := sent(header, "X-RateLimit-Remaining"); got != remaining {
		t.Errorf("%s: %q requests remain, want %q", name, got, remaining)
	}
}

// sent returns the value of a header whose name has that letter case.
func sent(header http.Header, name string) string { return strings.Join(header[name], ",") }

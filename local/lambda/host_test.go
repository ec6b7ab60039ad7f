package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/test/insights"
	"svcapi/test/must"
	"svcapi/test/probetest"
)

func TestMain(m *testing.M) { probetest.Main(m) }

// start gives a host with the function Probe, and its log.
func start(t testing.TB, concurrency int, change func(*template.Function)) (*lambda.Host, func() string) {
	t.Helper()
	logs := t.TempDir()
	function := template.Function{
		LogicalID: "Probe", Name: "local-Probe", Folder: "probe", Handler: "bootstrap", Timeout: 15 * time.Minute,
		MemoryMB: 512, LogGroup: "/aws/lambda/probe", LogFormat: "JSON", LogLevel: "INFO",
		Environment: map[string]string{"STAGE": "test", "AWS_ENDPOINT_URL_DYNAMODB": ""},
	}
	if change != nil {
		change(&function)
	}
	host := must.Get(lambda.HostOf(lambda.Options{
		LogDir: logs, Jail: probetest.Jail, Concurrency: concurrency,
		Environment: map[string]string{"SVC_LOCAL": "1", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1"},
	}, function, probetest.Bootstrap)).Or(t)
	t.Cleanup(host.Close)
	return host, func() string {
		return string(must.Get(os.ReadFile(filepath.Join(logs, "probe.log"))).Or(t))
	}
}

func invoke(t testing.TB, host *lambda.Host, event string) lambda.Result {
	t.Helper()
	return must.Get(host.Invoke(context.Background(), "Probe", []byte(event))).Or(t)
}

// process is the id of the only process of the function.
func process(t *testing.T, host *lambda.Host) int {
	t.Helper()
	for range 1000 { // the host may hear of the process after its first response
		if ids := host.Processes("Probe"); len(ids) == 1 {
			return ids[0]
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("processes %v, want one", host.Processes("Probe"))
	return 0
}

func decode[T any](t testing.TB, result lambda.Result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(result.Payload, &v); err != nil || result.FunctionError != "" {
		t.Fatalf("%s %s: %v", result.FunctionError, result.Payload, err)
	}
	return v
}

// TestEnvironment checks that a function gets what Lambda sets, what its template declares, the listed set, no more.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "x")
	host, _ := start(t, 1, nil)
	got := decode[map[string]string](t, invoke(t, host, `{"do":"env"}`))
	for name, want := range map[string]string{
		"AWS_ACCESS_KEY_ID": "LOCALPROBE", "AWS_LAMBDA_FUNCTION_NAME": "local-Probe",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST", "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/probe",
		"AWS_LAMBDA_LOG_FORMAT": "JSON",
		"AWS_LAMBDA_LOG_LEVEL":  "INFO", "AWS_REGION": "eu-west-1", "TZ": ":UTC", "_HANDLER": "bootstrap", "STAGE": "test",
		"SVC_LOCAL": "1", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1",
		"LAMBDA_TASK_ROOT": probetest.Jail.TaskRoot(probetest.Bootstrap),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
		delete(got, name)
	}
	rest := []string{"AWS_DEFAULT_REGION", "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_STREAM_NAME",
		"AWS_LAMBDA_RUNTIME_API",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "LAMBDA_RUNTIME_DIR", "LANG", "LD_LIBRARY_PATH", "PATH",
		"_X_AMZN_TRACE_ID"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, rest) {
		t.Errorf("other variables: %v, want %v", names, rest)
	}
	if _, err := lambda.NewHost(lambda.Options{LogDir: t.TempDir(), Jail: probetest.Jail,
		Environment: map[string]string{"STAGE": "x"}}); err == nil {
		t.Error("the listed set took a variable that is not listed")
	}
}

// TestContext checks what the Runtime API says of an event.
func TestContext(t *testing.T) {
	host, _ := start(t, 1, nil)
	result := invoke(t, host, `{"do":"context"}`)
	got := decode[struct {
		RequestID string `json:"request_id"`
		ARN       string `json:"arn"`
		Left      int    `json:"left_ms"`
		Trace     string `json:"trace"`
	}](t, result)
	if got.RequestID != result.RequestID || got.ARN != "arn:aws:lambda:eu-west-1:123456789012:function:local-Probe" ||
		got.Left < 600_000 || got.Left > 900_000 || !strings.HasPrefix(got.Trace, "Root=1-") {
		t.Errorf("%+v for request %s", got, result.RequestID)
	}
	if result.Init <= 0 {
		t.Error("a cold start without init time")
	}
	if again := invoke(t, host, `{"do":"context"}`); again.Init != 0 {
		t.Errorf("a warm start with init time %s", again.Init)
	}
}

type state struct {
	ID    string // of the process: others get others
	Ticks int
}

// TestFreeze checks that a process is used again, and that it does not run between events.
func TestFreeze(t *testing.T) {
	host, _ := start(t, 3, nil)
	before := decode[state](t, invoke(t, host, `{"do":"state"}`))
	time.Sleep(300 * time.Millisecond)
	after := decode[state](t, invoke(t, host, `{"do":"state"}`))
	if before.ID != after.ID {
		t.Errorf("process %s, then %s", before.ID, after.ID)
	}
	if ticks := after.Ticks - before.Ticks; ticks > 60 {
		t.Errorf("%d ticks of a millisecond while frozen for 300 ms", ticks)
	}
}

// held returns an event that waits until the test releases it, a channel with one value for each event that has begun,
// and the function that releases all.
func held(t *testing.T) (event string, begun <-chan struct{}, release func()) {
	t.Helper()
	arrived, released := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-released
	}))
	t.Cleanup(server.Close)
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	return fmt.Sprintf(`{"do":"wait","url":%q}`, server.URL), arrived, release
}

// TestConcurrency checks that a process runs one event at a time, that others start on demand up to the limit, and that
// an event waits for a free one no longer than its context. The function has seven places for events: one that has
// waited in vain keeps none.
func TestConcurrency(t *testing.T) {
	host, _ := start(t, 2, func(f *template.Function) { f.Reserved = 7 })
	event, begun, release := held(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	for range 6 {
		group.Go(func() {
			got := decode[state](t, invoke(t, host, event))
			mu.Lock()
			defer mu.Unlock()
			ids[got.ID]++
		})
	}
	<-begun
	<-begun
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := host.Invoke(ctx, "Probe", []byte(`{}`)); !errors.Is(err, lambda.ErrNoneFree) || len(begun) > 0 {
			t.Errorf("a seventh event: %v, and %d beyond the limit have begun", err, len(begun))
		}
		cancel()
	}
	release()
	group.Wait()
	if len(ids) != 2 {
		t.Errorf("six events: %v", ids)
	}
}

// TestAccount checks that functions share the account's concurrency, that one more event is refused at once, and that a
// reservation is a function's own.
func TestAccount(t *testing.T) {
	host := must.Get(lambda.NewHost(lambda.Options{LogDir: t.TempDir(), Jail: probetest.Jail, Account: 3})).Or(t)
	t.Cleanup(host.Close)
	add := func(id string, limit time.Duration, reserved int) {
		f := template.Function{LogicalID: id, Folder: id, Handler: "bootstrap", Timeout: limit, Reserved: reserved}
		must.Succeed(t, host.Add(f, probetest.Bootstrap))
	}
	for id, reserved := range map[string]int{"A": 0, "B": 0, "Reserves": 1} {
		add(id, 15*time.Minute, reserved)
	}
	add("Short", time.Second, 0)
	// However an event ends, its place is free again.
	for _, ending := range []struct{ id, event string }{
		{"A", `{"do":"state"}`}, {"A", `{"do":"error"}`}, {"Reserves", `{"do":"error"}`}, {"A", `{"do":"exit","n":3}`},
		{"Reserves", `{"do":"exit","n":3}`}, {"Short", `{"do":"sleep","n":3600000}`},
	} {
		if _, err := host.Invoke(t.Context(), ending.id, []byte(ending.event)); err != nil {
			t.Errorf("%s: %v", ending, err)
		}
		event, begun, release := held(t)
		var running sync.WaitGroup
		for _, id := range []string{"A", "B", "Reserves"} {
			running.Go(func() {
				if _, err := host.Invoke(t.Context(), id, []byte(event)); err != nil {
					t.Errorf("%s after %s: %v", id, ending, err)
				}
			})
		}
		for range 3 {
			<-begun
		}
		for _, id := range []string{"A", "B", "Reserves"} {
			if _, err := host.Invoke(t.Context(), id, []byte(`{}`)); !errors.Is(err, lambda.ErrThrottled) {
				t.Errorf("one more for %s: %v", id, err)
			}
		}
		release()
		running.Wait()
	}
}

// TestFailures checks how an event ends when its function fails, dies or takes too long, and that the next one works.
func TestFailures(t *testing.T) {
	runbook := must.Get(os.ReadFile("../../docs/runbook.md")).Or(t)
	queries := insights.Queries(string(runbook))
	query := queries[slices.IndexFunc(queries, func(q string) bool { return strings.Contains(q, `level = "ERROR"`) })]
	host, log := start(t, 1, nil)
	short, shortLog := start(t, 1, func(f *template.Function) { f.Timeout = 500 * time.Millisecond })
	cases := []struct{ name, event, kind, message, reported string }{
		{"error", `{"do":"error"}`, "errorString", "it went wrong", "error Runtime.Unknown"},
		{"panic", `{"do":"panic"}`, "string", "it broke", "error Runtime.Unknown"},
		{"exit", `{"do":"exit","n":3}`, "Runtime.ExitError", "exit status 3", "error Runtime.ExitError"},
		{"timeout", `{"do":"sleep","n":60000}`, "Sandbox.Timedout", "Task timed out after 0.50 seconds", "timeout "},
		{"too large", `{"do":"big","n":6300000}`, "Function.ResponseSizeTooLarge", "6291556 bytes",
			"error Function.ResponseSizeTooLarge"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			host, log := host, log
			if c.name == "timeout" {
				host, log = short, shortLog
			}
			result := invoke(t, host, c.event)
			var got struct{ ErrorType, ErrorMessage string }
			must.Succeed(t, json.Unmarshal(result.Payload, &got))
			if result.FunctionError != "Unhandled" || got.ErrorType != c.kind || !strings.Contains(got.ErrorMessage, c.message) {
				t.Errorf("%s: %s", result.FunctionError, result.Payload)
			}
			after := invoke(t, host, `{"do":"state"}`)
			decode[state](t, after)
			if got := platform(log(), after.RequestID); got != nil {
				t.Errorf("the platform says of a run that succeeds: %q", got)
			}
			// What Lambda writes at SystemLogLevel WARN: both events of a run that failed.
			if got, want := platform(log(), result.RequestID),
				[]string{"platform.runtimeDone " + c.reported, "platform.report " + c.reported}; !slices.Equal(got, want) {
				t.Errorf("the platform's lines are %q, want %q", got, want)
			}
			rows, err := insights.Run(query, strings.Split(log(), "\n"))
			if err != nil || !slices.ContainsFunc(rows,
				func(row insights.Row) bool { return row["record.requestId"] == result.RequestID }) {
				t.Errorf("%s does not find the run: %v", query, err)
			}
		})
	}
	if invoke(t, host, `{"do":"log"}`); !strings.Contains(log(), "the function's line\n") {
		t.Errorf("the log lacks the function's output:\n%s", log())
	}
	if strings.Contains(log(), "Task timed out") {
		t.Errorf("the log has the text of time-outs that Lambda no longer writes:\n%s", log())
	}
}

// platform returns the platform's events about a run: type, status and type of the error.
func platform(log, requestID string) (found []string) {
	rows, _ := insights.Run(`filter record.requestId = "`+requestID+`"`, strings.Split(log, "\n"))
	for _, row := range rows {
		kind, _ := row["record.errorType"].(string)
		found = append(found, fmt.Sprint(row["type"], " ", row["record.status"], " ", kind))
	}
	return found
}

// TestLevels checks that a function's lines are left out by their level exactly where Lambda leaves them out, and that
// those of the platform stay.
func TestLevels(t *testing.T) {
	lines := map[string]string{ // by level
		"TRACE": `{"level":"TRACE"}`, "DEBUG": `{"level":"debug","message":"lower case"}`,
		"INFO": `{"message":"m","level":"INFO"}`,
		"WARN": `{"level":"Warn"}`, "ERROR": `{"level":"ERROR"}`, "FATAL": `{"level":"FATAL","_aws":{}}`,
	}
	asInfo := []string{"plain text", `{"message":"no level"}`, `{"level":"LOUD"}`, `{"level":7}`, `["ERROR"]`,
		`{"nested":{"level":"ERROR"}}`}
	for configured, name := range levels {
		t.Run(name, func(t *testing.T) {
			host, log := start(t, 1, func(f *template.Function) { f.LogLevel = name })
			expect := func(line string, level int) {
				t.Helper()
				event, _ := json.Marshal(map[string]string{"do": "log", "line": line})
				invoke(t, host, string(event))
				if got := strings.Contains(log(), line+"\n"); got != (level >= configured) {
					t.Errorf("%s is in the log: %v", line, got)
				}
			}
			for level, name := range levels {
				expect(lines[name], level)
			}
			for _, line := range asInfo {
				expect(line, slices.Index(levels, "INFO"))
			}
			if id := invoke(t, host, `{"do":"exit","n":3}`).RequestID; len(platform(log(), id)) != 2 {
				t.Errorf("the platform's line is gone:\n%s", log())
			}
		})
	}
	host, log := start(t, 1, func(f *template.Function) { f.LogFormat, f.LogLevel = "Text", "ERROR" })
	if invoke(t, host, `{"do":"log"}`); !strings.Contains(log(), "the function's line\n") {
		t.Errorf("a log of text is not left out by levels:\n%s", log())
	}
}

// levels are Lambda's, the one of the most detail first.
var levels = []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

// TestEnqueue checks that an asynchronous event is run, is dropped after its retries, and ends with the host.
func TestEnqueue(t *testing.T) {
	host, _ := start(t, 1, func(f *template.Function) { f.Asynchronous = template.Asynchronous{MaxAge: time.Minute} })
	type outcome struct {
		result lambda.Result
		err    error
	}
	outcomes := make(chan outcome)
	report := func(result lambda.Result, err error) { outcomes <- outcome{result, err} }
	enqueue := func(event string) {
		t.Helper()
		must.Succeed(t, host.Enqueue("Probe", []byte(event), report))
	}
	enqueue(`{"do":"state"}`)
	if got := <-outcomes; got.err != nil || decode[state](t, got.result).ID == "" {
		t.Errorf("%+v", got)
	}
	enqueue(`{"do":"error"}`)
	if got := <-outcomes; got.err != nil || got.result.FunctionError != "Unhandled" {
		t.Errorf("the run: %+v", got)
	}
	if got := <-outcomes; !errors.Is(got.err, lambda.ErrDropped) {
		t.Errorf("after the run: %+v", got)
	}
	if err := host.Enqueue("Nothing", nil, report); err == nil {
		t.Error("there is no such function")
	}
	isolated, _ := start(t, 1, func(f *template.Function) { f.Isolation = "PER_TENANT" })
	if err := isolated.Enqueue("Probe", nil, func(lambda.Result, error) {}); err == nil ||
		!strings.Contains(err.Error(), "no valid tenant ID") {
		t.Errorf("no tenant ID: %v", err)
	}
	enqueue(`{"do":"sleep","n":60000}`)
	host.Close() // waits for no report
	if err := host.Enqueue("Probe", nil, report); !errors.Is(err, lambda.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestDeadWhileFrozen checks that a process that ends between events is replaced.
func TestDeadWhileFrozen(t *testing.T) {
	host, _ := start(t, 1, nil)
	first := decode[state](t, invoke(t, host, `{"do":"state"}`))
	time.Sleep(20 * time.Millisecond)
	pid := process(t, host)
	must.Succeed(t, syscall.Kill(pid, syscall.SIGKILL))
	for syscall.Kill(pid, 0) == nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // the host hears of it a moment after the kernel
	if second := decode[state](t, invoke(t, host, `{"do":"state"}`)); second.ID == first.ID {
		t.Error("the dead process responded")
	}
}

// TestInit checks that an init that fails ends the event that waits for it.
func TestInit(t *testing.T) {
	host, log := start(t, 1, func(f *template.Function) { f.Environment["PROBE_INIT"] = "exit" })
	result := invoke(t, host, `{}`)
	if result.FunctionError == "" || !strings.Contains(string(result.Payload), "exit status 4") {
		t.Errorf("%s: %s", result.FunctionError, result.Payload)
	}
	if !strings.Contains(log(), "init failed\n") ||
		!strings.Contains(log(), `"errorType":"Runtime.ExitError","initializationType":"on-demand"`) {
		t.Errorf("the log lacks the function's output, or the platform's report:\n%s", log())
	}
}

// TestClose checks that the host's end ends its processes and the events that run.
func TestClose(t *testing.T) {
	host, _ := start(t, 2, nil)
	decode[state](t, invoke(t, host, `{"do":"state"}`))
	pid := process(t, host)
	running := make(chan error, 1)
	go func() {
		_, err := host.Invoke(context.Background(), "Probe", []byte(`{"do":"sleep","n":60000}`))
		running <- err
	}()
	time.Sleep(50 * time.Millisecond)
	host.Close()
	if err := <-running; !errors.Is(err, lambda.ErrClosed) {
		t.Errorf("the running event: %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d lives on: %v", pid, err)
	}
	if _, err := host.Invoke(context.Background(), "Probe", nil); !errors.Is(err, lambda.ErrClosed) {
		t.Errorf("an event after the end: %v", err)
	}
}

// BenchmarkCold is a host, a process's start, one event and the end. JAIL=off is what to compare it with.
func BenchmarkCold(b *testing.B) {
	for b.Loop() {
		host, _ := start(b, 1, nil)
		decode[state](b, invoke(b, host, `{"do":"state"}`))
		host.Close()
	}
}

// BenchmarkWarm is an event with a thaw before it and a freeze after it.
func BenchmarkWarm(b *testing.B) {
	host, _ := start(b, 1, nil)
	decode[state](b, invoke(b, host, `{"do":"state"}`))
	for b.Loop() {
		decode[state](b, invoke(b, host, `{"do":"state"}`))
	}
}

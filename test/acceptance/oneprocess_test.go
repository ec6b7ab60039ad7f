package acceptance

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
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svcapi/local/engine"
	"svcapi/local/stack"
	"svcapi/shared/project"
	"svcapi/test/must"
)

// oneProcess is a second stack with one process per function, to test the caches of a process and its death. It uses
// the first stack's engine. Its tests run one after the other.
type oneProcess struct {
	stack    *stack.Stack
	recorder recorder
	operator *system // whose command is the second stack's
	alone    sync.Mutex
}

const oneProcessStage = "single"

func startOneProcess(ctx context.Context, first *system) (*oneProcess, error) {
	n := &oneProcess{operator: &system{svc: first.svc, dir: filepath.Join(first.dir, "single"), flags: first.flags}}
	err := os.MkdirAll(filepath.Join(n.operator.dir, ".local"), 0o700)
	if err != nil {
		return nil, err
	}
	defer os.Setenv(engine.EndpointVariable, os.Getenv(engine.EndpointVariable))
	if err := os.Setenv(engine.EndpointVariable, first.stack.DynamoDBURL); err != nil {
		return nil, err
	}
	n.stack, err = stack.Start(ctx, stack.Options{
		LogDir: filepath.Join(n.operator.dir, "logs"), Concurrency: 1, Through: first.witness.through(&n.recorder),
		// The cached record of one request is still valid when the next request is recorded.
		// The first stack has the other mode of the renderer.
		Parameters: map[string]string{
			"Stage": oneProcessStage, "ProjectCacheSeconds": "60", "LogPayloads": "off", "PdfIsolation": "project",
		},
	})
	if err != nil {
		return nil, err
	}
	where, err := json.Marshal(map[string]string{
		"stage": oneProcessStage, "dynamodb_url": n.stack.DynamoDBURL, "secrets_url": n.stack.SecretsURL,
		"sandbox_url": n.stack.SandboxURL,
	})
	return n, errors.Join(err, os.WriteFile(filepath.Join(n.operator.dir, ".local", "demo.json"), where, 0o600))
}

// oneProcessStack returns the second stack, to one test at a time.
func oneProcessStack(t *testing.T) *oneProcess {
	t.Helper()
	localParallel(t)
	fixture.oneProcess.alone.Lock()
	t.Cleanup(fixture.oneProcess.alone.Unlock)
	return fixture.oneProcess
}

// recorder is between the functions and the engine.
type recorder struct {
	mu    sync.Mutex
	calls []call
	hold  time.Duration
}

// call is one request to DynamoDB.
type call struct {
	operation  string
	start, end time.Time
}

// recorded is the signature of a function whose calls are recorded.
var recorded = regexp.MustCompile(`Credential=LOCAL(SMS|BARCODE)/[^,]*/dynamodb/`)

// around records what serve passes on, before the function has any of the response.
func (rec *recorder) around(signature, operation string, out http.ResponseWriter, serve func(http.ResponseWriter)) {
	if rec == nil || !recorded.MatchString(signature) {
		serve(out)
		return
	}
	c := call{operation: operation, start: time.Now()}
	rec.mu.Lock()
	hold := rec.hold
	rec.mu.Unlock()
	time.Sleep(hold)
	whole := httptest.NewRecorder()
	serve(whole)
	c.end = time.Now()
	rec.mu.Lock()
	rec.calls = append(rec.calls, c)
	rec.mu.Unlock()
	maps.Copy(out.Header(), whole.Header())
	out.WriteHeader(whole.Code)
	_, _ = out.Write(whole.Body.Bytes())
}

// delay sets how long each call to DynamoDB is held, and forgets the recorded calls.
func (rec *recorder) delay(hold time.Duration) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.calls, rec.hold = nil, hold
}

// record returns the calls of the functions to DynamoDB: those that end before do returns with the response, and those
// that end afterwards. Each call is held for a moment, so that calls which go out together are seen together.
func (n *oneProcess) record(t *testing.T, do func()) (before, after []call) {
	t.Helper()
	n.awaitIdle(t)
	n.recorder.delay(80 * time.Millisecond)
	defer n.recorder.delay(0)
	do()
	response := time.Now()
	n.awaitIdle(t)
	n.recorder.mu.Lock()
	defer n.recorder.mu.Unlock()
	for _, c := range n.recorder.calls {
		if c.end.Before(response) {
			before = append(before, c)
		} else {
			after = append(after, c)
		}
	}
	return before, after
}

// awaitIdle waits until the recorded functions have ended their work.
func (n *oneProcess) awaitIdle(t *testing.T) {
	t.Helper()
	for _, function := range []string{"SmsFunction", "BarcodeFunction"} {
		must.Succeed(t, n.stack.AwaitIdle(t.Context(), function))
	}
}

// phases is the longest chain of calls of which each began after the one before had ended.
func phases(calls []call) int {
	slices.SortFunc(calls, func(a, b call) int { return a.start.Compare(b.start) })
	longest, chains := 0, make([]int, len(calls))
	for i, c := range calls {
		chains[i] = 1
		for j, before := range calls[:i] {
			if !before.end.After(c.start) {
				chains[i] = max(chains[i], chains[j]+1)
			}
		}
		longest = max(longest, chains[i])
	}
	return longest
}

var writes = []string{"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}

// TestPhasesAndWrites counts the phases and writes of warm requests before and after the response: each limit adds a
// write and no phase, and a refusal from memory costs one write (docs/decisions/requests.md#phases).
func TestPhasesAndWrites(t *testing.T) {
	n := oneProcessStack(t)
	const costCheck = `{"send_method":"bulk_same","recipients":["0771234567"],"message":"m","check_cost":true}`
	limited := map[string]*tenant{"limited-byok": n.limited(t, project.BYOK),
		"limited-managed": n.limited(t, project.Managed)}
	for _, c := range []struct {
		name           string
		project        string
		path, body     string
		key            string
		status         int
		phases, writes int // before the response
		after          int // writes after the response, in one phase
		reads          string
	}{
		{"free: count", "byok", send, single(number(), "m"), "", 200, 1, 1, 0, ""},
		{"balance of the vendor: count", "byok", balance, "{}", "", 200, 1, 1, 0, ""},
		{"Managed balance: count beside read", "managed", balance, "{}", "", 200, 1, 1, 0, "GetItem"},
		{"paid: count beside reserve, capture; remove", "managed", barcodes, `{"data":"1"}`, "", 200, 2, 3, 1, ""},
		{"refused for its body: count", "managed", send, "{}", "", 422, 1, 1, 0, ""},
		{"without credits: count beside reserve", "broke", send, single(number(), "m"), "", 402, 1, 2, 0, ""},
		{"failed: count beside reserve, mark, forbid capture, return credits", "managed", send,
			single("0770000001", "m"), "", 502, 4, 5, 0, ""},
		{"paid SMS: count beside reserve, mark, capture; remove", "managed", send,
			single(number(), "m"), "", 200, 3, 4, 1, ""},
		{"paid, from a lease: count, capture", "managed", barcodes, `{"data":"1"}`, "", 200, 2, 2, 0, ""},
		{"paid SMS, from a lease: count, mark, capture", "managed", send, single(number(), "m"), "", 200, 3, 3, 0, ""},
		{"failed, from a lease: count, mark, forbid capture", "managed", send,
			single("0770000001", "m"), "", 502, 3, 3, 0, ""},
		{"Managed balance, while leases are open: count beside read, and a query for each", "managed", balance, "{}", "", 200,
			2, 1, 0, "GetItem Query Query"},
		{"free with a key: claim beside count; outcome", "byok", send, single(number(), "m"), "free", 200, 2, 3, 0, ""},
		{"paid with a key, from a lease: claim beside count, mark, outcome beside capture", "managed", send,
			single(number(), "m"), "paid", 200, 3, 5, 0, ""},
		{"cold: the project's query before", "race", balance, "{}", "", 200, 2, 1, 0, "GetItem Query"},
		{"limits, free SMS: recipient and units, too", "limited-byok", send, single(number(), "m"), "", 200, 1, 3, 0, ""},
		{"limits, paid: credits of the day, too", "limited-managed", barcodes, `{"data":"1"}`, "", 200, 2, 4, 1, ""},
		{"limits, paid SMS: recipient and credits, too", "limited-managed", send,
			single(number(), "m"), "", 200, 3, 6, 1, ""},
		{"limits, cost check: count", "limited-byok", send, costCheck, "", 200, 1, 1, 0, ""},
		{"limits, refused from memory: count", "limited-byok", send, single(number(), "m"), "", 429, 1, 1, 0, ""},
	} {
		p := limited[c.project]
		if p == nil {
			p = demoProject(c.project)
		}
		do := func(key string) *response {
			r := request{path: c.path, body: c.body, as: p.dev, header: map[string]string{}, base: n.stack.BaseURL}
			if key != "" {
				r.header["Idempotency-Key"] = key
			}
			if c.path == barcodes { // a picture
				return r.send(t)
			}
			return r.do(t)
		}
		warm := 1 // the project's record, the vendor's secret and the connections are there
		switch {
		case strings.HasPrefix(c.name, "cold"), strings.HasPrefix(c.name, "paid SMS: "): // the row before has warmed it
			warm = 0
		case strings.HasPrefix(c.name, "paid, from a lease"): // the fourth request in 20 s takes two slots, the sixth four
			warm = 4
		case strings.HasPrefix(c.name, "paid SMS, from a lease"):
			warm = 3
		case c.status == 429:
			warm = 5 // the limit is 4, so that the instance has seen a refusal
		}
		for range warm {
			do("")
		}
		var a *response
		before, after := n.record(t, func() {
			key := c.key
			if key != "" {
				key += fmt.Sprint(time.Now().UnixNano())
			}
			a = do(key)
		})
		wrote, read := 0, []string{}
		for _, call := range before {
			if slices.Contains(writes, call.operation) {
				wrote++
			} else {
				read = append(read, call.operation)
			}
		}
		slices.Sort(read)
		if got := phases(before); a.status != c.status || got > c.phases || wrote != c.writes ||
			strings.Join(read, " ") != c.reads {
			t.Errorf("%s: %d, %d phases, %d writes, reads %v: %v; want %d, %d phases, %d writes, reads %q", c.name, a.status,
				got, wrote, read, before, c.status, c.phases, c.writes, c.reads)
		}
		if len(after) != c.after || phases(after) > 1 || c.after == 1 && after[0].operation != "UpdateItem" {
			t.Errorf("%s: after the response %v, want %d writes", c.name, after, c.after)
		}
	}
}

// limited returns a project of the second stack with all limits, which no test reaches but by recipient.
func (n *oneProcess) limited(t *testing.T, mode project.Mode) *tenant {
	t.Helper()
	id := "limited-" + string(mode)
	run := func(input string, args ...string) []byte {
		return must.Get(n.operator.command(t.Context(), input, args...)).Or(t)
	}
	run("", "project", "create", id, "--id", id, "--requests", "1000000", "--window", "24h", "--per-recipient", "4/12h,9/24h",
		"--daily-credits", "1000000000", "--daily-units", "1000000000")
	secrets, connect := integration{vendor: "quicksend", mode: mode}.command(id, n.stack.SandboxURL)
	run(secrets, connect...)
	run("", "integration", "set", id, "barcode", "builtin", "--env", "development", "--mode", string(mode))
	run("", "credit", "grant", id, "1000000", "--reason", "test", "--yes")
	var issued credential
	must.Succeed(t, json.Unmarshal(run("", "credential", "issue", id, "--env", "development"), &issued))
	return &tenant{id: id, dev: remember(issued)}
}

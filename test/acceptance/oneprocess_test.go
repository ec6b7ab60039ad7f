package acceptance

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/local/demo"
	"svcapi/local/engine"
	"svcapi/local/sandbox"
	"svcapi/local/stack"
	"svcapi/shared/credit"
	"svcapi/test/proxytest"
)

// oneProcess is a second stack with one process per function, to test the caches of a process and its death. A recorder
// passes its requests for DynamoDB to the first stack's engine. Its tests run one after the other.
type oneProcess struct {
	stack    *stack.Stack
	recorder *recorder
	ledger   *credit.Store
	db       *dynamodb.Client
	alone    sync.Mutex
}

const oneProcessStage = "single"

func startOneProcess(ctx context.Context, first *stack.Stack, logs string, w *witness) (*oneProcess, error) {
	n := &oneProcess{db: engine.Client(first.DynamoDBURL)}
	var err error
	if n.recorder, err = startRecorder(first.DynamoDBURL); err != nil {
		return nil, err
	}
	before, set := os.LookupEnv(engine.EndpointVariable)
	if err := os.Setenv(engine.EndpointVariable, n.recorder.server.URL); err != nil {
		return nil, err
	}
	n.stack, err = stack.Start(ctx, stack.Options{
		LogDir: logs, Concurrency: 1, Through: w.through,
		// The cached record of one request is still valid when the next request is recorded.
		// The first stack has the other mode of the renderer.
		Parameters: map[string]string{
			"Stage": oneProcessStage, "ProjectCacheSeconds": "60", "LogPayloads": "off", "PdfIsolation": "project",
		},
	})
	if set {
		os.Setenv(engine.EndpointVariable, before)
	} else {
		os.Unsetenv(engine.EndpointVariable)
	}
	n.ledger = credit.NewStore(n.db, credit.NamedTables(n.table))
	return n, err
}

func (n *oneProcess) table(name string) string { return "svc-" + oneProcessStage + "-" + name }

// oneProcessStack returns the second stack, to one test at a time.
func oneProcessStack(t *testing.T) *oneProcess {
	t.Helper()
	local(t)
	t.Parallel()
	fixture.oneProcess.alone.Lock()
	t.Cleanup(fixture.oneProcess.alone.Unlock)
	return fixture.oneProcess
}

// send returns a request to the second stack.
func (n *oneProcess) send(project, body string, header map[string]string) request {
	return request{path: send, body: body, as: demoProject(project).dev, header: header, base: n.stack.BaseURL}
}

// ask sends a request to the second stack. The response may be a picture.
func (n *oneProcess) ask(t *testing.T, project, path, body string, header map[string]string) *response {
	t.Helper()
	r := n.send(project, body, header)
	if r.path = path; path == barcodes {
		return r.send(t)
	}
	return r.do(t)
}

// recorder is between the functions and the engine.
type recorder struct {
	server *httptest.Server

	mu    sync.Mutex
	calls []call
	hold  time.Duration
}

// call is one request to DynamoDB.
type call struct {
	operation  string
	start, end time.Time
}

func startRecorder(target string) (*recorder, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	rec := &recorder{}
	proxy := proxytest.Buffer(&httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ErrorLog: log.New(io.Discard, "", 0), // of killed functions
	})
	recorded := regexp.MustCompile("Credential=LOCAL(SMS|BARCODE)/")
	rec.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !recorded.MatchString(r.Header.Get("Authorization")) { // the settler, and the stack that creates the demo projects
			proxy.ServeHTTP(w, r)
			return
		}
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		c := call{operation: operation, start: time.Now()}
		rec.mu.Lock()
		hold := rec.hold
		rec.mu.Unlock()
		time.Sleep(hold)
		proxy.ServeHTTP(w, r)
		c.end = time.Now()
		rec.mu.Lock()
		rec.calls = append(rec.calls, c)
		rec.mu.Unlock()
	}))
	return rec, nil
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
		if err := n.stack.AwaitIdle(t.Context(), function); err != nil {
			t.Fatal(err)
		}
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

// TestPhasesAndWrites counts the phases and writes of warm requests before and after the response
// (docs/decisions.md#phases).
func TestPhasesAndWrites(t *testing.T) {
	n := oneProcessStack(t)
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
		{"paid SMS: count beside reserve, mark, capture; remove", "managed", send, single(number(), "m"), "", 200, 3, 4, 1, ""},
		{"refused for its body: count", "managed", send, "{}", "", 422, 1, 1, 0, ""},
		{"without credits: count beside reserve", "broke", send, single(number(), "m"), "", 402, 1, 2, 0, ""},
		{"failed: count beside reserve, mark, forbid capture, return credits", "managed", send, single("0770000001", "m"), "", 502, 4, 5, 0, ""},
		{"free with a key: claim beside count; outcome", "byok", send, single(number(), "m"), "free", 200, 2, 3, 0, ""},
		{"paid with a key: claim beside count, reserve, mark, outcome beside capture; remove", "managed", send, single(number(), "m"), "paid", 200, 4, 6, 1, ""},
		{"cold: the project's query before", "race", balance, "{}", "", 200, 2, 1, 0, "GetItem Query"},
	} {
		do := func(key string) *response {
			header := map[string]string{}
			if key != "" {
				header["Idempotency-Key"] = key
			}
			return n.ask(t, c.project, c.path, c.body, header)
		}
		if !strings.HasPrefix(c.name, "cold") { // the project's record, the vendor's secret and the connections are there
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
		if a == nil {
			continue
		}
		wrote, read := 0, []string{}
		for _, call := range before {
			if slices.Contains(writes, call.operation) {
				wrote++
			} else {
				read = append(read, call.operation)
			}
		}
		slices.Sort(read)
		if got := phases(before); a.status != c.status || got > c.phases || wrote != c.writes || strings.Join(read, " ") != c.reads {
			t.Errorf("%s: %d, %d phases, %d writes, reads %v: %v; want %d, %d phases, %d writes, reads %q", c.name, a.status, got, wrote, read, before, c.status, c.phases, c.writes, c.reads)
		}
		if len(after) != c.after || phases(after) > 1 || c.after == 1 && after[0].operation != "UpdateItem" {
			t.Errorf("%s: after the response %v, want %d writes", c.name, after, c.after)
		}
	}
}

// kill ends the function's process, by its id, once a vendor has got what is sent to a number.
func (n *oneProcess) kill(t *testing.T, to string) {
	t.Helper()
	n.await(t, to)
	ids := n.stack.Processes("SmsFunction")
	if len(ids) != 1 {
		t.Fatalf("processes %v, want one", ids)
	}
	if err := syscall.Kill(ids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// await waits until a vendor has got what is sent to a number.
func (n *oneProcess) await(t *testing.T, to string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); n.sent(to) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("nothing was sent")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sent counts the sends to a number.
func (n *oneProcess) sent(to string) (count int) {
	for _, c := range n.stack.Sandbox.Calls() {
		if c.Operation == "send" && slices.ContainsFunc(c.To, func(s string) bool { return strings.HasSuffix(s, to[1:]) }) {
			count++
		}
	}
	return count
}

// rules sets what numbers meet on the second stack.
func (n *oneProcess) rules(t *testing.T, rules ...sandbox.Rule) {
	t.Helper()
	if err := n.stack.Sandbox.SetRules(rules...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.stack.Sandbox.SetRules() })
}

// settle runs the settling function once the reservations of dead requests are old enough.
func (n *oneProcess) settle(t *testing.T) {
	t.Helper()
	time.Sleep(11 * time.Second) // SETTLE_AFTER_SECONDS of a local stack, and a bit
	result, err := n.stack.Invoke(t.Context(), "SettleFunction", []byte("{}"))
	if err != nil || result.FunctionError != "" {
		t.Fatalf("settle: %v %s", err, result.Payload)
	}
}

// entry is a request's ledger entry on the second stack.
func (n *oneProcess) entry(t *testing.T, project, requestID string) *credit.Entry {
	t.Helper()
	var found *credit.Entry
	entries, err := n.ledger.Entries(t.Context(), demo.ID(project), time.Now().Add(-time.Hour), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.RequestID == requestID {
			found = &e
		}
	}
	return found
}

func (n *oneProcess) balance(t *testing.T, project string) int64 {
	t.Helper()
	b, err := n.ledger.Balance(t.Context(), demo.ID(project))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// age makes a claim look as old as it will be.
func (n *oneProcess) age(t *testing.T, project, key, attribute string, to int64) {
	t.Helper()
	_, err := n.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 new(n.table("transient")),
		Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "idem#" + demo.ID(project) + "#development#" + key}},
		UpdateExpression:          new("SET #a = :v"),
		ConditionExpression:       new("attribute_exists(#a)"),
		ExpressionAttributeNames:  map[string]string{"#a": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: fmt.Sprint(to)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// docs/decisions.md#internal-errors: a function that dies is 500 internal_error, in the envelope.
// docs/decisions.md#what-is-charged: an SMS whose request died after its mark is charged and listed as uncertain.
// docs/decisions.md#idempotency-dead-claims: a repeat of its Idempotency-Key sends nothing and is 503.
func TestFunctionDies(t *testing.T) {
	n := oneProcessStack(t)
	managed, byok := number(), number()
	n.rules(t, sandbox.Rule{To: managed, Outcome: sandbox.Hang}, sandbox.Rule{To: byok, Outcome: sandbox.Hang})
	before := n.balance(t, "managed")
	price := n.stack.Prices.Of(credit.SMS)
	died := map[string]*response{}
	for project, to := range map[string]string{"managed": managed, "byok": byok} {
		r := n.send(project, single(to, "m"), map[string]string{"Idempotency-Key": "dies"})
		responses := make(chan *response)
		go func() { responses <- r.do(t) }()
		n.kill(t, to)
		a := <-responses
		if a == nil {
			t.Fatal("no response")
		}
		if !a.is(500, "internal_error") || strings.Contains(string(a.body), "signal") || strings.Contains(string(a.body), "bootstrap") {
			t.Errorf("%s: %d %s, want 500 internal_error without a detail", project, a.status, a.body)
		}
		died[project] = a
		if a := r.do(t); a != nil && !a.is(409, "http_error") {
			t.Errorf("%s, repeated at once: %d %s, want 409 http_error", project, a.status, a.body)
		}
		n.age(t, project, "dies", "dead", time.Now().Add(-time.Second).UnixMilli())
		for range 2 {
			if a := r.do(t); a != nil && !a.is(503, "http_error") {
				t.Errorf("%s, repeated when the claim is dead: %d %s, want 503 http_error", project, a.status, a.body)
			}
		}
		r.body = single(to, "other")
		if a := r.do(t); a != nil && !a.is(422, "http_error") {
			t.Errorf("%s, with another body: %d %s, want 422 http_error", project, a.status, a.body)
		}
		if got := n.sent(to); got != 1 {
			t.Errorf("%s: sent %d times", project, got)
		}
	}
	if e := n.entry(t, "managed", died["managed"].RequestID); e == nil || e.State != credit.Sending {
		t.Errorf("before it is settled: ledger %+v, want sending", e)
	}
	n.settle(t)
	if e := n.entry(t, "managed", died["managed"].RequestID); e == nil || e.State != credit.Captured || !e.Uncertain || e.Credits != price {
		t.Errorf("settled: ledger %+v, want captured, uncertain, %d credits", e, price)
	}
	if e := n.entry(t, "byok", died["byok"].RequestID); e != nil {
		t.Errorf("byok: ledger %+v", e)
	}
	if got := n.balance(t, "managed"); got != before-price {
		t.Errorf("balance %d, want %d", got, before-price)
	}
	// The next request gets a new process.
	if a := n.send("managed", single(number(), "m"), nil).do(t); a != nil && !a.is(200, "") {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

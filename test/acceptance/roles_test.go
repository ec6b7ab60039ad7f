package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/local/engine"
	"svcapi/local/lambda"
	"svcapi/local/sandbox"
	"svcapi/local/template"
	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
)

// witness is a proxy between the functions and AWS's services that records the calls of each function. Each function
// signs with an access key of its own, as it has a role of its own.
type witness struct {
	mu      sync.Mutex
	seen    map[deed]int
	servers []*httptest.Server
}

// deed is a kind of call.
type deed struct {
	key      string // the access key that signed it
	action   string // as IAM names it
	resource string // a table's name, or a secret's
	leading  string // the partition key's kind: the text before the first #, and # or #*; empty where none is named
}

func (w *witness) close() {
	for _, server := range w.servers {
		server.Close()
	}
}

var signer = regexp.MustCompile(`Credential=([A-Z0-9]+)/[0-9]+/[a-z0-9-]+/(dynamodb|secretsmanager|lambda)/`)

// through returns ways to services that are witnessed. The recorder is nil where none records.
func (w *witness) through(record *recorder) func(_, target string) (string, error) {
	return func(_, target string) (string, error) {
		to, err := url.Parse(target)
		if err != nil {
			return "", err
		}
		proxy := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
			Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
			ErrorLog:  log.New(io.Discard, "", 0), // of functions that were killed
		}
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			body, err := io.ReadAll(in.Body)
			if err != nil {
				return // the function is gone
			}
			in.Body = io.NopCloser(bytes.NewReader(body))
			_, operation, _ := strings.Cut(in.Header.Get("X-Amz-Target"), ".")
			signature := in.Header.Get("Authorization")
			if match := signer.FindStringSubmatch(signature); match != nil {
				if function, ok := strings.CutSuffix(in.URL.Path, "/response-streaming-invocations"); ok {
					// The action that both ways of invocation need.
					w.note([]deed{{match[1], "lambda:InvokeFunction", path.Base(function), ""}})
				} else {
					w.note(deeds(match[1], match[2]+":"+operation, body))
				}
			}
			record.around(signature, operation, out, func(out http.ResponseWriter) { proxy.ServeHTTP(out, in) })
		}))
		w.servers = append(w.servers, server)
		return server.URL, nil
	}
}

func (w *witness) note(all []deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range all {
		w.seen[d]++
	}
}

// text is a DynamoDB string.
type text struct{ S string }

// deeds reads a call: one for each table and partition key that it touches.
func deeds(key, action string, body []byte) []deed {
	var call struct {
		TableName, SecretID, IndexName string
		Key, Item                      map[string]json.RawMessage
		ExpressionAttributeValues      map[string]json.RawMessage
		RequestItems                   map[string]struct{ Keys []map[string]json.RawMessage }
		TransactItems                  []map[string]struct { // one key each: Update, and what else there is
			TableName string
			Key, Item map[string]json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &call) // what cannot be read names nothing, which no role permits
	var all []deed
	add := func(action, table string, partition json.RawMessage) {
		var value text
		_ = json.Unmarshal(partition, &value)
		kind, rest, parted := strings.Cut(value.S, "#")
		switch {
		case parted && rest == "":
			kind += "#"
		case parted:
			kind += "#*"
		}
		all = append(all, deed{key, action, table, kind})
	}
	switch {
	case call.SecretID != "":
		all = append(all, deed{key, action, call.SecretID, ""})
	case len(call.RequestItems) > 0:
		for table, request := range call.RequestItems {
			for _, k := range request.Keys {
				add(action, table, k["pk"])
			}
		}
	case len(call.TransactItems) > 0: // there is no permission for the transaction, but for each of its writes
		for _, write := range call.TransactItems {
			for kind, w := range write {
				add("dynamodb:"+kind+"Item", w.TableName, append(w.Key["pk"], w.Item["pk"]...))
			}
		}
	case call.Key != nil:
		add(action, call.TableName, call.Key["pk"])
	case call.Item != nil:
		add(action, call.TableName, call.Item["pk"])
	case call.IndexName != "":
		add(action, call.TableName+"/index/"+call.IndexName, nil)
	default:
		add(action, call.TableName, call.ExpressionAttributeValues[":pk"])
	}
	return all
}

// permits reports whether a statement of a role allows a call.
func permits(p template.Permission, d deed) bool {
	service, _, _ := strings.Cut(d.action, ":")
	resource := "arn:aws:" + service + ":" + template.Region + ":" + template.AccountID + ":" + map[string]string{
		"dynamodb": "table/" + d.resource, "secretsmanager": "secret:" + d.resource + "-abcdef",
		"lambda": "function:" + d.resource,
	}[service]
	like := func(pattern, value string) bool {
		quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
		return regexp.MustCompile("^" + quoted + "$").MatchString(value)
	}
	bounded := p.LeadingKey == "" || like(p.LeadingKey, d.leading)
	return p.Action == d.action && like(p.Resource, resource) && bounded
}

// judge compares what functions did with their roles: every call is allowed, and nothing is allowed that none makes.
func judge(functions []template.Function, seen map[deed]int) (findings []string) {
	for _, f := range functions {
		used := map[string]bool{}
		for d := range seen {
			if d.key != lambda.AccessKeyID(f) {
				continue
			}
			allowed := false
			for _, p := range f.Permissions {
				if permits(p, d) {
					allowed, used[p.Sid] = true, true
				}
			}
			if !allowed {
				findings = append(findings, fmt.Sprintf("%s calls %s on %s %s, which its role does not allow", f.LogicalID,
					d.action, d.resource, d.leading))
			}
		}
		for _, p := range f.Permissions {
			if !used[p.Sid] && !strings.HasPrefix(p.Action, "logs:") { // Lambda itself writes the logs
				findings = append(findings, fmt.Sprintf("%s may %s on %s (%s), and never does", f.LogicalID, p.Action,
					path.Base(p.Resource), p.Sid))
			}
		}
	}
	slices.Sort(findings)
	return findings
}

// audit runs after all tests: it compares the functions' calls with their roles, and the wallets with the ledger.
func (s *system) audit(ctx context.Context) error {
	// Both stacks' functions have the same roles but for the stage, which is in names alone.
	s.witness.mu.Lock()
	seen := map[deed]int{}
	for d, times := range s.witness.seen {
		d.resource = strings.Replace(strings.Replace(d.resource, "svc-"+oneProcessStage+"-", "svc-local-", 1),
			"svc/"+oneProcessStage+"/", "svc/local/", 1)
		seen[d] += times
	}
	s.witness.mu.Unlock()
	var errs []error
	for _, finding := range judge(s.stack.Template.Functions, seen) {
		errs = append(errs, errors.New(finding))
	}
	if output, err := s.command(ctx, "", "ledger", "verify"); err != nil {
		errs = append(errs, fmt.Errorf("%w\n%s", err, output))
	}
	return errors.Join(errs...)
}

// docs/decisions/money.md#settle: what a dead request reserved is given back by the scheduled function, as it is
// deployed. docs/decisions/currency.md#rates-in-use: a source of rates that fails is noted, and what was held stays.
func TestScheduledFunctions(t *testing.T) {
	localParallel(t)
	p := plan{credits: 100}.make(t)
	store := fixture.stack.Credit
	dead := &wallet.Reservation{
		Project: p.id, Began: time.Now().Add(-time.Minute), Credits: 30, Price: wallet.Barcode,
		Environment: "development", RequestID: p.id,
	}
	must.Succeed(t, store.Reserve(t.Context(), dead))
	if got := p.balance(t); got != 70 {
		t.Errorf("reserved: balance %d, want 70", got)
	}
	// A count of a request that had no time to subtract it.
	limiter, day := ratelimit.New(engine.Client(fixture.stack.DynamoDBURL), "svc-local-transient"),
		ratelimit.Daily{Project: p.id, Unit: ratelimit.Units, Most: 9}
	count, _, err := limiter.CountDaily(t.Context(), day, 7, time.Now())
	must.Succeed(t, err)
	must.Succeed(t, limiter.Queue(t.Context(), []ratelimit.Count{count}))
	if n, err := limiter.Counted(t.Context(), day, time.Now()); err != nil || n != 7 {
		t.Errorf("%d counted before the settler, %v", n, err)
	}
	// Both of the bank's pages.
	addRules(t, sandbox.Rule{Vendor: "cbsl", Operation: "rates", Outcome: sandbox.ServerError, Times: 2})
	for _, function := range []string{"SettleFunction", "RatesyncFunction", "RatesyncFunction",
		"SecurityListsyncFunction"} {
		result, err := fixture.stack.Invoke(t.Context(), function, []byte("{}"))
		if err != nil || result.FunctionError != "" {
			t.Errorf("%s: %v %s", function, err, result.Payload)
		}
	}
	// docs/decisions/look-ups.md#fresh-lists: the difference is stored, and the security function follows.
	type outcome struct {
		Failure        string
		Added, Removed int
		Sources        map[string]int
	}
	if got := svc[outcome](t, "", "burner", "status"); got.Failure != "" || got.Added != 1 || got.Removed != 0 ||
		len(got.Sources) != 6 {
		t.Errorf("%+v", got)
	}
	listed := false
	for end := time.Now().Add(time.Hour); !listed && time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		a := (request{path: burner, body: email("a@new.disposable.example"), as: demoProject("byok").dev}).do(t)
		listed = strings.Contains(string(a.body), `"source":"global"`)
	}
	if !listed {
		t.Error("the security function does not use the difference")
	}
	if got := p.balance(t); got != 100 {
		t.Errorf("settled: balance %d, want 100", got)
	}
	if n, err := limiter.Counted(t.Context(), day, time.Now()); err != nil || n != 0 {
		t.Errorf("%d counted after the settler, %v", n, err)
	}
}

// docs/decisions/extensions.md#resolver: a message that the vendor knows is confirmed, and another one refunded.
func TestResolver(t *testing.T) {
	localParallel(t)
	s := newSandbox(t)
	p := plan{credits: 10 * perUnit(),
		integrations: []integration{{vendor: "dialogv2", mode: project.Managed, endpoint: s.URL + "/dialogv2"}}}.make(t)
	to, store, db := numberBlock(2), fixture.stack.Credit, engine.Client(fixture.stack.DynamoDBURL)
	must.Succeed(t, s.SetRules(sandbox.Rule{To: to[0], Outcome: sandbox.Closed},
		sandbox.Rule{To: to[1], Outcome: "999"}))
	for _, number := range to {
		if a := (request{path: send, body: single(number, "m"), as: p.dev}).do(t); a.Error.Details.Reference == "" {
			t.Fatalf("%+v", a)
		}
	}
	uncertain, err := store.Uncertain(t.Context(), p.id)
	if err != nil || len(uncertain) != 2 {
		t.Fatalf("%+v, %v", uncertain, err)
	}
	for _, e := range uncertain {
		must.Get(db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: new("svc-local-ledger"), UpdateExpression: new("SET ts = :t"),
			Key:                       enginetest.LedgerKey(p.id, e.Key),
			ExpressionAttributeValues: dynamo.Item{":t": dynamo.Text(e.At.Add(-10 * time.Minute).Format(time.RFC3339Nano))},
		})).Or(t)
	}
	if result, err := fixture.stack.Invoke(t.Context(), "SmsResolveFunction", []byte("{}")); err != nil ||
		result.FunctionError != "" {
		t.Fatalf("%v %s", err, result.Payload)
	}
	resolved, err := store.Resolved(t.Context(), p.id)
	if err != nil || len(resolved) != 2 || resolved[0].Resolution.Verdict != books.VerdictConfirmed ||
		resolved[1].Resolution.Verdict != books.VerdictRefunded {
		t.Errorf("%+v, %v", resolved, err)
	}
	if got := p.balance(t); got != 9*perUnit() {
		t.Errorf("balance %d of %d", got, 10*perUnit())
	}
}

// The comparison notices a call without a right, and the rights without a call (docs/decisions/operating.md#roles).
func TestRolesAgainstReality(t *testing.T) {
	localParallel(t)
	for _, d := range []deed{
		{"sms", "dynamodb:DeleteItem", "svc-local-wallets", "p"},
		{"sms", "dynamodb:Query", "svc-prod-projects", ""},
		{"sms", "secretsmanager:GetSecretValue", "svc/local/security/managed/development", ""},
		{"sms", "dynamodb:PutItem", "svc-local-movements", "p"},
		{"sms", "dynamodb:PutItem", "svc-local-resolutions", "p"},
		{"settle", "dynamodb:PutItem", "svc-local-movements", "p"},
		{"settle", "dynamodb:PutItem", "svc-local-resolutions", "p"},
		{"settle", "secretsmanager:GetSecretValue", "svc/local/sms/managed/development", ""},
		{"smsresolve", "dynamodb:PutItem", "svc-local-movements", "p"},
		{"smsresolve", "dynamodb:Scan", "svc-local-ledger", ""},
		{"smsresolve", "secretsmanager:GetSecretValue", "svc/local/sms/p/development", ""},
		{"pdf", "lambda:InvokeFunction", "svc-local-pdf-render-shared", ""},
		{"pdfrender", "dynamodb:Query", "svc-local-projects", ""},
		{"currency", "dynamodb:PutItem", "svc-local-rates", "stored"},
	} {
		d.key = lambda.AccessKeyID(template.Function{Folder: d.key})
		findings := strings.Join(judge(fixture.stack.Template.Functions, map[deed]int{d: 1}), "\n")
		if strings.Count(findings, "which its role does not allow") != 1 || !strings.Contains(findings, "and never does") {
			t.Errorf("%+v: %s", d, findings)
		}
	}
}

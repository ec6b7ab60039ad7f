package dynamo_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"svcapi/shared/dynamo"
	"svcapi/shared/upstream"
	"svcapi/test/clocktest"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// proxied gives a client made from the environment alone, behind a proxy that decides by attempt
// number, counted from 1.
func proxied(t *testing.T, decide func(attempt int64,
	r *faultproxy.Request) faultproxy.Fault) (*dynamodb.Client, string) {
	t.Helper()
	_, tables := enginetest.Client(t)
	var count atomic.Int64
	proxy, err := faultproxy.Start(enginetest.URL(t), func(r *faultproxy.Request) faultproxy.Fault {
		return decide(count.Add(1), r)
	})
	must.Succeed(t, err)
	t.Cleanup(proxy.Close)
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_ENDPOINT_URL_DYNAMODB": proxy.URL("test"), "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	return dynamo.NewClient(dynamo.FromEnvironment()), tables.Wallets
}

func get(ctx context.Context, client *dynamodb.Client, table string) (*dynamodb.GetItemOutput, error) {
	return client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "p"}},
	})
}

// TestAttempts: whatever is lost, there are three attempts.
func TestAttempts(t *testing.T) {
	for _, lost := range []faultproxy.Fault{faultproxy.DropRequest, faultproxy.DropResponse, faultproxy.CutResponse} {
		for _, losses := range []int64{0, 1, 2, 3} {
			t.Run(fmt.Sprintf("%s %d times", lost, losses), func(t *testing.T) {
				client, table := proxied(t, func(attempt int64, _ *faultproxy.Request) faultproxy.Fault {
					if attempt <= losses {
						return lost
					}
					return faultproxy.Deliver
				})
				if _, err := get(t.Context(), client, table); (err != nil) != (losses == dynamo.Attempts) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// TestTimeout: an attempt without a response ends after about a second, and so do three after three.
func TestTimeout(t *testing.T) {
	done := make(chan struct{})
	client, table := proxied(t, func(int64, *faultproxy.Request) faultproxy.Fault {
		<-done
		return faultproxy.DropRequest
	})
	defer close(done)
	began, three := time.Now(), clocktest.Beside(dynamo.AttemptTimeout, dynamo.AttemptTimeout, dynamo.AttemptTimeout)
	_, err := get(t.Context(), client, table)
	if took, least := time.Since(began), three(); err == nil || took < 3*dynamo.AttemptTimeout || took > least*4/3 {
		t.Errorf("took %s, three pauses of the same length took %s: %v", took, least, err)
	}
}

// TestWarm: Warm opens connections, and its calls get responses (docs/decisions/operating.md#warm-connections).
func TestWarm(t *testing.T) {
	var queries atomic.Int64
	client, table := proxied(t, func(_ int64, r *faultproxy.Request) faultproxy.Fault {
		if r.Operation == "Query" {
			queries.Add(1)
		}
		return faultproxy.Deliver
	})
	dynamo.Warm(t.Context(), client, table)
	if queries.Load() != 2 {
		t.Errorf("%d queries", queries.Load())
	}
}

// TestEndpoints: a variable of one service counts before the variable of all, and a template's empty parameter is no
// endpoint. The functions' configuration has the endpoints that the SDK reads from the same environment.
func TestEndpoints(t *testing.T) {
	for _, test := range []struct {
		all, dynamodb, secrets    string // variables
		wantDynamoDB, wantSecrets string
	}{
		{"", "", "", "", ""},
		{"http://all", "", "", "http://all", "http://all"},
		{"", "http://db", "", "http://db", ""},
		{"http://all", "http://db", "", "http://db", "http://all"},
		{"http://all", "http://db", "http://secrets", "http://db", "http://secrets"},
	} {
		for name, value := range map[string]string{
			"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": test.all, "AWS_ENDPOINT_URL_DYNAMODB": test.dynamodb,
			"AWS_ENDPOINT_URL_SECRETS_MANAGER": test.secrets, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
			"AWS_SESSION_TOKEN": "token",
		} {
			t.Setenv(name, value)
		}
		loaded, err := config.LoadDefaultConfig(t.Context())
		must.Succeed(t, err)
		for name, cfg := range map[string]aws.Config{"the SDK's": loaded, "ours": dynamo.FromEnvironment()} {
			who, err := cfg.Credentials.Retrieve(t.Context())
			if err != nil || who.AccessKeyID != "id" || who.SecretAccessKey != "secret" || who.SessionToken != "token" ||
				cfg.Region != "eu-west-1" {
				t.Errorf("%s: %+v in %s, %v", name, who, cfg.Region, err)
			}
			if url := aws.ToString(dynamo.NewClient(cfg).Options().BaseEndpoint); url != test.wantDynamoDB {
				t.Errorf("%+v, %s: DynamoDB at %q", test, name, url)
			}
			if url := aws.ToString(upstream.NewSecretsClient(cfg).Options().BaseEndpoint); url != test.wantSecrets {
				t.Errorf("%+v, %s: Secrets Manager at %q", test, name, url)
			}
		}
	}
}

// TestRetryable: a write that a transaction turned away is tried again, a refused condition is not.
func TestRetryable(t *testing.T) {
	canceled := func(codes ...string) error {
		err := &types.TransactionCanceledException{}
		for _, code := range codes {
			err.CancellationReasons = append(err.CancellationReasons, types.CancellationReason{Code: new(code)})
		}
		return err
	}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"conflict with a transaction", &types.TransactionConflictException{}, true},
		{"transaction that met a conflict", canceled("None", "TransactionConflict"), true},
		{"transaction that lacked capacity", canceled("None", "ProvisionedThroughputExceeded"), true},
		{"transaction that was throttled", canceled("ThrottlingError", "None"), true},
		{"transaction that was refused", canceled("ConditionalCheckFailed", "None"), false},
		{"both", canceled("ConditionalCheckFailed", "TransactionConflict"), false},
		{"condition", &types.ConditionalCheckFailedException{}, false},
		{"throttled", &types.ProvisionedThroughputExceededException{}, true},
		{"invalid response", &smithy.DeserializationError{Err: errors.New("no JSON")}, true},
		{"truncated response", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		{"no such table", &types.ResourceNotFoundException{}, false},
		{"cancelled", &aws.RequestCanceledError{Err: context.Canceled}, false},
	} {
		if got := dynamo.Retryer(0).IsErrorRetryable(test.err); got != test.want {
			t.Errorf("%s: retryable %t", test.name, got)
		}
	}
}

// failing is a DynamoDB that fails the first attempts in turn: t throttles, c conflicts, 5 fails at the server's side,
// x gives no response, ~ breaks the response off, ! is an error for good.
type failing struct {
	list  string
	calls int
}

func (f *failing) put(_ context.Context, _ *dynamodb.PutItemInput,
	options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	o := dynamodb.Options{Retryer: dynamo.Retryer(time.Microsecond)}
	for _, option := range options {
		option(&o)
	}
	if o.Retryer.MaxAttempts() != 1 {
		return nil, errors.New("the SDK would retry")
	}
	if f.calls++; f.calls > len(f.list) {
		return &dynamodb.PutItemOutput{}, nil
	}
	response := func(status int, err error) error {
		return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
			Err: err}
	}
	reason := func(text string) []types.ThrottlingReason { return []types.ThrottlingReason{{Reason: &text}} }
	return nil, map[byte]error{
		't': response(http.StatusBadRequest, &types.ProvisionedThroughputExceededException{}),
		'h': response(http.StatusBadRequest,
			&types.ProvisionedThroughputExceededException{ThrottlingReasons: reason("TableWriteKeyRangeThroughputExceeded")}),
		'H': response(http.StatusBadRequest,
			&types.ThrottlingException{ThrottlingReasons: reason("IndexWriteKeyRangeThroughputExceeded")}),
		'R': response(http.StatusBadRequest,
			&types.RequestLimitExceeded{ThrottlingReasons: reason("TableWriteKeyRangeThroughputExceeded")}),
		'a': response(http.StatusBadRequest,
			&types.ThrottlingException{ThrottlingReasons: reason("TableWriteAccountLimitExceeded")}),
		'c': response(http.StatusBadRequest, &types.TransactionConflictException{}),
		'5': response(http.StatusInternalServerError, &types.InternalServerError{}),
		'x': &smithyhttp.RequestSendError{Err: io.ErrUnexpectedEOF},
		'~': response(http.StatusOK, &smithy.DeserializationError{Err: errors.New("no JSON")}),
		'!': response(http.StatusBadRequest, &types.ConditionalCheckFailedException{}),
	}[f.list[f.calls-1]]
}

// TestWrite: a write is repeated while DynamoDB turns the write away or fails, and three times without a response. A
// write that its request may abandon is turned away by a hot key three times.
func TestWrite(t *testing.T) {
	for _, test := range []struct {
		faults           string
		ambiguous, calls int
		fails            bool
		hotCalls         int // of WriteUnlessHot, which then fails; 0: the same as of Write
	}{
		{"", 0, 1, false, 0},
		{strings.Repeat("tc", 50), 0, 101, false, 0},
		{strings.Repeat("5", 50), 50, 51, false, 0},
		{"t5x~t", 3, 6, false, 0},
		{"txt5~x", 4, 6, true, 0}, // the third without a response
		{"xxx", 3, 3, true, 0},
		{"~~~", 3, 3, true, 0},
		{"t!", 0, 2, true, 0},
		{"x!", 1, 2, true, 0},
		{"ththHtR", 0, 8, false, 5},
		{"x5hh~h", 3, 7, false, 6},
		{strings.Repeat("a", 30), 0, 31, false, 0},
	} {
		f := &failing{list: test.faults}
		_, ambiguous, err := dynamo.Write(t.Context(), f.put, &dynamodb.PutItemInput{})
		if ambiguous != test.ambiguous || f.calls != test.calls || (err != nil) != test.fails {
			t.Errorf("%q: %d ambiguous after %d calls, %v; want %d after %d", test.faults, ambiguous, f.calls, err,
				test.ambiguous, test.calls)
		}
		f, calls := &failing{list: test.faults}, cmp.Or(test.hotCalls, test.calls)
		_, ambiguous, err = dynamo.WriteUnlessHot(t.Context(), f.put, &dynamodb.PutItemInput{})
		if ambiguous != test.ambiguous || f.calls != calls || (err != nil) != (test.fails || test.hotCalls > 0) {
			t.Errorf("%q, unless hot: %d ambiguous after %d calls, %v; want %d after %d", test.faults, ambiguous, f.calls,
				err, test.ambiguous, calls)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var throttled *types.ProvisionedThroughputExceededException
	if _, ambiguous, err := dynamo.Write(ctx, (&failing{list: strings.Repeat("t", 1_000_000)}).put, nil); ambiguous != 0 ||
		!errors.As(err, &throttled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without end: %d ambiguous, %v", ambiguous, err)
	}
}

// TestRetryer: no number of failures uses the retries up, and no pause exceeds the configured one.
func TestRetryer(t *testing.T) {
	retryer := dynamo.Retryer(dynamo.Backoff)
	for range 1000 {
		if _, err := retryer.GetRetryToken(t.Context(), &types.InternalServerError{}); err != nil {
			t.Fatal(err)
		}
		for attempt, part := range map[int]time.Duration{0: 4, 1: 4, 2: 2, 3: 1, 4: 1, 90: 1} {
			longest := dynamo.Backoff / part
			if pause, err := retryer.RetryDelay(attempt, nil); err != nil || pause < longest/2 || pause > longest {
				t.Fatalf("pause %s after attempt %d, %v", pause, attempt, err)
			}
		}
	}
}

// TestSignedRequest checks the address of a service (AWS General Reference, endpoints; AWS_ENDPOINT_URL_<SERVICE>), the
// headers, the scope of the signature, and that the call belongs to the trace of its event.
func TestSignedRequest(t *testing.T) {
	for _, c := range []struct{ region, base, own, want string }{
		{"eu-west-1", "", "", "https://lambda.eu-west-1.amazonaws.com/2021-11-15/x%3Alive"},
		{"cn-north-1", "", "", "https://lambda.cn-north-1.amazonaws.com.cn/2021-11-15/x%3Alive"},
		{"eu-west-1", "http://127.0.0.1:1/", "", "http://127.0.0.1:1/2021-11-15/x%3Alive"},
		{"eu-west-1", "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:2/2021-11-15/x%3Alive"},
	} {
		t.Setenv("AWS_ENDPOINT_URL_LAMBDA", c.own)
		t.Setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793")
		cfg := aws.Config{Region: c.region, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "session")}
		if c.base != "" {
			cfg.BaseEndpoint = &c.base
		}
		r, err := dynamo.SignedRequest(t.Context(), cfg, "lambda", http.MethodPost, "/2021-11-15/x%3Alive",
			http.Header{"X-Amz-Tenant-Id": {"acme"}}, []byte("body"))
		must.Succeed(t, err)
		signature := r.Header.Get("Authorization")
		if r.URL.String() != c.want || r.ContentLength != 4 || r.Header.Get("X-Amz-Security-Token") != "session" ||
			r.Header.Get("X-Amzn-Trace-Id") != "Root=1-5759e988-bd862e3fe1be46a994272793" ||
			!strings.Contains(signature, "/"+c.region+"/lambda/aws4_request") || !strings.Contains(signature, "x-amz-tenant-id") {
			t.Errorf("%+v: %s %v", c, r.URL, r.Header)
		}
	}
}

package vendors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// recorded is a response of a vendor with the result of the adapter. The source is V for the vendor's documentation, T for
// third-party code, or made for this test.
type recorded struct {
	name   string
	source string
	status int
	body   string
	class  upstream.Class // empty: accepted
	want   Receipt
}

// filled has a value for every secret and setting of every vendor.
var filled = map[string]string{
	"email": "me@example.com", "api_key": "s3cret-key", "sender_id": "MyBrand", "account_sid": "AC1", "auth_token": "s3cret-key",
	"user_id": "7", "api_token": "s3cret-key", "esmsqk": "s3cret-key", "username": "me", "password": "s3cret-key",
	"access_key_id": "AKIA1", "secret_access_key": "s3cret-key", "region": "eu-west-1",
}

// connect returns an adapter whose vendor the handler emulates.
func connect(t *testing.T, name string, handler http.HandlerFunc) Adapter {
	t.Helper()
	return connectAt(t, name, "", handler)
}

// connectAt returns an adapter whose endpoint has a path.
func connectAt(t *testing.T, name, path string, handler http.HandlerFunc) Adapter {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	vendor := NewTable(aws.Config{Region: "eu-west-1"}).Find(name)
	if vendor == nil {
		t.Fatalf("no vendor %s", name)
	}
	return vendor.New(upstream.New(upstream.Config{TimeoutSeconds: 2, Local: true}), upstream.Account{
		Integration: project.Integration{Vendor: name, Mode: project.BYOK, Settings: filled},
		Endpoint:    strings.TrimRight(server.URL+path, "/"), Settings: filled, Secrets: filled,
	})
}

// logins are the responses of the vendors that log in first, by the path of the login.
var logins = map[string]string{
	"/api/v2/user/login": `{"status":"success","token":"t0ken","expiration":43200}`,
	"/api/login":         `{"accessToken":"t0ken","refreshToken":"t0ken-2"}`,
}

// constantResponse returns a handler with a constant response, which stores the request that it receives.
func constantResponse(status int, body string, request *http.Request, text *string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if login := logins[r.URL.Path]; login != "" {
			_, _ = io.WriteString(w, login)
			return
		}
		*request, *text = *r, string(b)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// sent calls Send once and returns what the vendor received.
func sent(t *testing.T, vendor, response string, m Message) (request http.Request, text string) {
	t.Helper()
	if _, err := connect(t, vendor, constantResponse(200, response, &request, &text)).Send(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	return request, text
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

var sinhala = Message{To: "+94771234567", Text: "ආයුබෝවන්", Unicode: true}

var message = Message{To: "+94771234567", Text: "Hello & good day"}

// testResponses calls Send for each recorded response.
func testResponses(t *testing.T, vendor string, responses []recorded) {
	t.Helper()
	for _, a := range responses {
		t.Run(a.name, func(t *testing.T) {
			var request http.Request
			var text string
			receipt, err := connect(t, vendor, constantResponse(a.status, a.body, &request, &text)).Send(context.Background(), message)
			checkOutcome(t, a, receipt, err)
		})
	}
}

func checkOutcome(t *testing.T, a recorded, receipt Receipt, err error) {
	t.Helper()
	if a.class == "" {
		if err != nil || receipt != a.want {
			t.Errorf("got %+v, %v; want %+v", receipt, err, a.want)
		}
		return
	}
	var e *upstream.Error
	if !errors.As(err, &e) || e.Class != a.class {
		t.Fatalf("got %+v, %v; want %s", receipt, err, a.class)
	}
	if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("the error contains a secret: %v", err)
	}
}

// commonResponses are responses with one meaning for all vendors: a malformed response and an HTTP 5xx are uncertain
// (docs/decisions/sms.md#vendor-outcomes).
var commonResponses = []recorded{
	{"server error", "made", 500, `{"status":"error"}`, upstream.Unusable, Receipt{}},
	{"bad gateway", "made", 502, `<html>Bad Gateway</html>`, upstream.Unusable, Receipt{}},
	{"a redirect", "made", 302, ``, upstream.Unusable, Receipt{}},
	{"an empty response", "made", 200, ``, upstream.Unusable, Receipt{}},
	{"an HTML page", "made", 200, `<html>error</html>`, upstream.Unusable, Receipt{}},
	{"JSON cut off", "made", 200, `{"status":"succ`, upstream.Unusable, Receipt{}},
	{"an empty object", "made", 200, `{}`, upstream.Unusable, Receipt{}},
	{"an array", "made", 200, `[]`, upstream.Unusable, Receipt{}},
	{"unauthorized", "made", 401, `no`, upstream.CredentialsRefused, Receipt{}},
	{"forbidden", "made", 403, `no s3cret-key`, upstream.CredentialsRefused, Receipt{}},
	{"bad request", "made", 400, `no`, upstream.Rejected, Receipt{}},
	{"a page of a proxy", "made", 405, `<html>Not Allowed</html>`, upstream.Rejected, Receipt{}},
	{"payment required", "made", 402, `no`, upstream.AccountRefused, Receipt{}},
	{"too many requests", "made", 429, `slow down`, upstream.TooFast, Receipt{}},
}

func TestCommonResponses(t *testing.T) {
	for _, vendor := range NewTable(aws.Config{}) {
		t.Run(vendor.Name, func(t *testing.T) { testResponses(t, vendor.Name, commonResponses) })
	}
}

// TestRefusalsByWords checks that a refusal of one recipient is the message's, and that a refusal which words alone show to be
// the account's is marked (docs/decisions/sms.md#vendor-outcomes). No vendor documents these texts.
func TestRefusalsByWords(t *testing.T) {
	bodies := map[string]string{"smslenz": `{"success":false,"message":%q}`}
	for _, vendor := range []string{"notifylk", "textlk", "ultimatesms", "smslenz", "quicksend", "hutch"} {
		for words, class := range map[string]upstream.Class{
			"Sending to this recipient is not allowed": upstream.Rejected,
			"Number not allowed":                       upstream.Rejected,
			"Unauthorized destination number":          upstream.Rejected,
			"The sender is blocked by the subscriber":  upstream.Rejected,
			"Opted out of messages of this sender":     upstream.Rejected,
			"Unauthorized":                             upstream.CredentialsRefused,
			"Invalid API key. Please contact support":  upstream.CredentialsRefused,
			"You are not allowed to send messages":     upstream.CredentialsRefused,
			"Account not allowed":                      upstream.CredentialsRefused,
			"Sender ID is not authorised":              upstream.AccountRefused,
			"Unauthorized sender":                      upstream.AccountRefused,
			"Invalid sender_id":                        upstream.AccountRefused,
			"Mask is not approved":                     upstream.AccountRefused,
		} {
			for _, status := range []int{200, 400} {
				if vendor == "hutch" && status == 200 {
					continue // the HTTP status alone shows a refusal
				}
				var request http.Request
				var body string
				response := fmt.Sprintf(cmp.Or(bodies[vendor], `{"status":"error","message":%q}`), words)
				_, err := connect(t, vendor, constantResponse(status, response, &request, &body)).Send(t.Context(), message)
				var e *upstream.Error
				if !errors.As(err, &e) || e.Class != class || e.ByWords != (class != upstream.Rejected) {
					t.Errorf("%s: %d %s: %+v, want %s", vendor, status, words, err, class)
				}
			}
		}
		var request http.Request
		var body string
		_, err := connect(t, vendor, constantResponse(401, "no", &request, &body)).Send(t.Context(), message)
		if e, ok := errors.AsType[*upstream.Error](err); !ok || e.ByWords {
			t.Errorf("%s: HTTP 401: %+v", vendor, err)
		}
	}
}

// balanceCase is a recorded response to a balance call.
type balanceCase struct {
	name, source string
	status       int
	body, want   string
	class        upstream.Class
}

func testBalances(t *testing.T, vendor string, cases []balanceCase) {
	t.Helper()
	for _, c := range cases {
		t.Run("balance "+c.name, func(t *testing.T) {
			var request http.Request
			var text string
			balancer, ok := connect(t, vendor, constantResponse(c.status, c.body, &request, &text)).(Balancer)
			if !ok {
				t.Fatal("no balance call")
			}
			got, err := balancer.Balance(context.Background())
			if got != c.want || (c.class == "") != (err == nil) || err != nil && upstream.ClassOf(err) != c.class {
				t.Errorf("got %q, %v; want %q, %s", got, err, c.want, c.class)
			}
		})
	}
}

// Exactly the vendors with a bulk call have a maximum of recipients, and every vendor one of calls at once.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, v := range NewTable(aws.Config{}) {
		_, bulk := connect(t, v.Name, nil).(SameSender)
		if bulk != (v.Batch > 0) || v.Concurrency < 1 || v.Title == "" || names[v.Name] {
			t.Errorf("%s: bulk %v, batch %d, concurrency %d, title %q", v.Name, bulk, v.Batch, v.Concurrency, v.Title)
		}
		names[v.Name] = true
	}
}

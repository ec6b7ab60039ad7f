package vendors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// recorded is a response of a vendor with the result of the adapter. The source is V for the vendor's documentation, T
// for third-party code, or made for this test.
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
	"email": "me@example.com", "api_key": "s3cret-key", "sender_id": "MyBrand", "account_sid": "AC1",
	"auth_token": "s3cret-key",
	"user_id":    "7", "api_token": "s3cret-key", "esmsqk": "s3cret-key", "username": "me", "password": "s3cret-key",
	"access_key_id": "AKIA1", "secret_access_key": "s3cret-key", "region": "eu-west-1",
}

// connect returns an adapter whose vendor the handler emulates.
func connect(t testing.TB, name string, handler http.HandlerFunc) Adapter {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return adapterAt(t, name, server.URL, upstream.Config{TimeoutSeconds: 2, Local: true})
}

// adapterAt returns an adapter with an endpoint.
func adapterAt(t testing.TB, name, endpoint string, cfg upstream.Config) Adapter {
	t.Helper()
	vendor := NewTable(aws.Config{Region: "eu-west-1"}).Find(name)
	if vendor == nil {
		t.Fatalf("no vendor %s", name)
	}
	return vendor.New(upstream.New(cfg), upstream.Account{
		Integration: project.Integration{Vendor: name, Mode: project.BYOK,
			Settings: filled}, Endpoint: endpoint, Settings: filled, Secrets: filled,
	})
}

// logins are the responses of the vendors that log in first, by the path of the login.
var logins = map[string]string{
	"/api/v2/user/login": `{"status":"success","token":"t0ken","expiration":43200}`,
	"/api/login":         `{"accessToken":"t0ken","refreshToken":"t0ken-2"}`,
}

// responds returns a handler with a constant response after a login.
func responds(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if login := logins[r.URL.Path]; login != "" {
			_, _ = io.WriteString(w, login)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var sinhala = Message{To: []string{"+94771234567"}, Text: "ආයුබෝවන්", Unicode: true}

var message = Message{To: []string{"+94771234567"}, Text: "Hello & good day"}

// testResponses calls Send for each recorded response.
func testResponses(t *testing.T, vendor string, responses []recorded) {
	t.Helper()
	for _, a := range responses {
		t.Run(a.name, func(t *testing.T) {
			receipt, err := connect(t, vendor, responds(a.status, a.body)).Send(t.Context(), message)
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
	if e, ok := errors.AsType[*upstream.Error](err); !ok || e.Class != a.class {
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

// overNetwork returns the vendors that an adapter calls.
func overNetwork() Table {
	return slices.DeleteFunc(NewTable(aws.Config{Region: "eu-west-1"}), func(v Vendor) bool {
		return v.Name == project.TestVendor
	})
}

func TestCommonResponses(t *testing.T) {
	for _, vendor := range overNetwork() {
		t.Run(vendor.Name, func(t *testing.T) { testResponses(t, vendor.Name, commonResponses) })
	}
}

// TestRefusalsByWords checks that a refusal of one recipient is the message's, and that a refusal which words alone
// show to be the account's is marked (docs/decisions/sms.md#vendor-outcomes). No vendor documents these texts.
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
				response := fmt.Sprintf(cmp.Or(bodies[vendor], `{"status":"error","message":%q}`), words)
				_, err := connect(t, vendor, responds(status, response)).Send(t.Context(), message)
				if e, ok := errors.AsType[*upstream.Error](err); !ok || e.Class != class ||
					e.ByWords != (class != upstream.Rejected) {
					t.Errorf("%s: %d %s: %+v, want %s", vendor, status, words, err, class)
				}
			}
		}
		_, err := connect(t, vendor, responds(401, "no")).Send(t.Context(), message)
		if e, ok := errors.AsType[*upstream.Error](err); !ok || e.ByWords {
			t.Errorf("%s: HTTP 401: %+v", vendor, err)
		}
	}
}

// Every vendor has a title, a name of its own, and a maximum of calls at once.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, v := range NewTable(aws.Config{}) {
		if v.Concurrency < 1 || v.Title == "" || names[v.Name] {
			t.Errorf("%s: concurrency %d, title %q", v.Name, v.Concurrency, v.Title)
		}
		names[v.Name] = true
	}
	if spec := NewTable(aws.Config{}).Spec("ultimatesms"); spec.Endpoint != "" ||
		upstream.Missing(spec.Settings, map[string]string{"sender_id": "x"}) == nil {
		t.Errorf("an integration without the gateway's endpoint is complete: %+v", spec)
	}
}

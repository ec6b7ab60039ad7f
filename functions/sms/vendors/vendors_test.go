package vendors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/test/clocktest"
)

// recorded is a response of a vendor with what the adapter returns: a Receipt or a balance, or the class of the error.
// The source is V for the vendor's documentation, T for third-party code, or made for this test.
type recorded struct {
	name, source string
	status       int
	body         string
	want         any
}

const (
	unusable   = upstream.Unusable
	rejected   = upstream.Rejected
	keyRefused = upstream.CredentialsRefused
	account    = upstream.AccountRefused
	tooFast    = upstream.TooFast
)

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

// result returns the result of a call, or the class of its error.
func result[R comparable](value R, err error) any {
	if e, ok := errors.AsType[*upstream.Error](err); ok && value == *new(R) {
		if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "t0ken") {
			return "an error with a secret: " + err.Error()
		}
		return e.Class
	}
	if err != nil {
		return fmt.Sprintf("%v beside an error: %v", value, err)
	}
	return value
}

// testResponses calls Send for each recorded response.
func testResponses(t *testing.T, vendor string, responses []recorded) {
	t.Helper()
	for _, a := range responses {
		t.Run(a.name, func(t *testing.T) {
			if got := result(connect(t, vendor, responds(a.status, a.body)).Send(t.Context(), message)); got != a.want {
				t.Errorf("got %+v, want %+v", got, a.want)
			}
		})
	}
}

// commonResponses are responses with one meaning for all vendors: a malformed response and an HTTP 5xx are uncertain
// (docs/decisions/sms.md#vendor-outcomes).
var commonResponses = []recorded{
	{"server error", "made", 500, `{"status":"error"}`, unusable},
	{"bad gateway", "made", 502, `<html>Bad Gateway</html>`, unusable},
	{"a redirect", "made", 302, ``, unusable},
	{"an empty response", "made", 200, ``, unusable},
	{"an HTML page", "made", 200, `<html>error</html>`, unusable},
	{"JSON cut off", "made", 200, `{"status":"succ`, unusable},
	{"an empty object", "made", 200, `{}`, unusable},
	{"an array", "made", 200, `[]`, unusable},
	{"unauthorized", "made", 401, `no`, keyRefused},
	{"forbidden", "made", 403, `no s3cret-key`, keyRefused},
	{"bad request", "made", 400, `no`, rejected},
	{"a page of a proxy", "made", 405, `<html>Not Allowed</html>`, rejected},
	{"payment required", "made", 402, `no`, account},
	{"too many requests", "made", 429, `slow down`, tooFast},
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
			"Sending to this recipient is not allowed": rejected,
			"Number not allowed":                       rejected,
			"Unauthorized destination number":          rejected,
			"The sender is blocked by the subscriber":  rejected,
			"Opted out of messages of this sender":     rejected,
			"Unauthorized":                             keyRefused,
			"Invalid API key. Please contact support":  keyRefused,
			"You are not allowed to send messages":     keyRefused,
			"Account not allowed":                      keyRefused,
			"Sender ID is not authorised":              account,
			"Unauthorized sender":                      account,
			"Invalid sender_id":                        account,
			"Mask is not approved":                     account,
		} {
			for _, status := range []int{200, 400} {
				if vendor == "hutch" && status == 200 {
					continue // the HTTP status alone shows a refusal
				}
				response := fmt.Sprintf(cmp.Or(bodies[vendor], `{"status":"error","message":%q}`), words)
				_, err := connect(t, vendor, responds(status, response)).Send(t.Context(), message)
				if e, ok := errors.AsType[*upstream.Error](err); !ok || e.Class != class ||
					e.ByWords != (class != rejected) {
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

// The requests are those of the vendors' documents and clients. A case without a message is a balance call.
func TestRequests(t *testing.T) {
	two := Message{To: []string{"+94771234567", "+94712345678"}, Text: "Hi & bye"}
	const (
		json, form = " application/json", " application/x-www-form-urlencoded"
		success    = `{"status":"success","id":"1","success":true,"data":{"sms_credit_balance":1}}`
		quickSend  = "Basic bWVAZXhhbXBsZS5jb206czNjcmV0LWtleQ==" + json // me@example.com:s3cret-key
	)
	for _, c := range []struct {
		vendor, path string // path of the endpoint
		m            Message
		response     string
		method, url  string
		header       string // Authorization and Content-Type
		body         string
	}{
		{"quicksend", "", message, success, "POST", "/Client/api.php?FUN=SEND_SINGLE", quickSend,
			`{"msg":"Hello & good day","senderID":"MyBrand","to":"0771234567"}`},
		{"quicksend", "/Client/api.php", two, success, "POST", "/Client/api.php?FUN=SEND_BULK_SAME", quickSend,
			`{"msg":"Hi & bye","senderID":"MyBrand","to":["0771234567","0712345678"]}`},
		{"quicksend", "/label", message, success, "POST", "/label?FUN=SEND_SINGLE", quickSend,
			`{"msg":"Hello & good day","senderID":"MyBrand","to":"0771234567"}`},
		{"notifylk", "", message, success, "POST", "/api/v1/send", form,
			"api_key=s3cret-key&message=Hello+%26+good+day&sender_id=MyBrand&to=94771234567&user_id=7"},
		{"notifylk", "", sinhala, success, "POST", "/api/v1/send", form,
			"api_key=s3cret-key&message=%E0%B6%86%E0%B6%BA%E0%B7%94%E0%B6%B6%E0%B7%9D%E0%B7%80%E0%B6%B1%E0%B7%8A&" +
				"sender_id=MyBrand&to=94771234567&type=unicode&user_id=7"},
		{"textlk", "", sinhala, success, "POST", "/api/v3/sms/send", "Bearer s3cret-key" + json,
			`{"message":"ආයුබෝවන්","recipient":"94771234567","sender_id":"MyBrand","type":"unicode"}`},
		{"ultimatesms", "/portal/v3", two, success, "POST", "/portal/v3/sms/send", "Bearer s3cret-key" + json,
			`{"message":"Hi & bye","recipient":"94771234567,94712345678","sender_id":"MyBrand","type":"plain"}`},
		{"smslenz", "", sinhala, success, "POST", "/send-sms", json,
			`{"api_key":"s3cret-key","contact":"+94771234567","message":"ආයුබෝවන්","sender_id":"MyBrand","user_id":"7"}`},
		{"smslenz", "", two, success, "POST", "/send-bulk-sms", json,
			`{"api_key":"s3cret-key","contacts":["+94771234567","+94712345678"],"message":"Hi & bye","sender_id":"MyBrand",` +
				`"user_id":"7"}`},
		{"smslenz", "", Message{}, success, "POST", "/account-status", json, `{"api_key":"s3cret-key","user_id":"7"}`},
		{"dialog", "", two, "1", "GET",
			"/api/v1/message-via-url/create/url-campaign?esmsqk=s3cret-key&list=0771234567%2C0712345678&message=Hi+%26+bye&" +
				"source_address=MyBrand", "", ""},
		{"hutch", "", two, `{"serverRef":1}`, "POST", "/api/sendsms", "Bearer t0ken" + json + " v1",
			`{"campaignName":"SMS","content":"Hi & bye","mask":"MyBrand","numbers":"94771234567,94712345678"}`},
		{"twilio", "", message, `{"sid":"SM1","status":"queued"}`, "POST", "/2010-04-01/Accounts/AC1/Messages.json",
			"Basic QUMxOnMzY3JldC1rZXk=" + form, "Body=Hello+%26+good+day&From=MyBrand&To=%2B94771234567"},
		{"aws", "", message, `{"MessageId":"1"}`, "POST", "/",
			"AWS4-HMAC-SHA256 Credential=AKIA1/eu-west-1/sms-voice/aws4_request application/x-amz-json-1.0 " +
				"PinpointSMSVoiceV2.SendTextMessage", `{"DestinationPhoneNumber":"+94771234567","MessageBody":"Hello & good day",` +
				`"MessageType":"TRANSACTIONAL","OriginationIdentity":"MyBrand"}`},
	} {
		got := make([]string, 4)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			authorization := r.Header.Get("Authorization")
			if scope, _, signed := strings.Cut(authorization, ", SignedHeaders"); signed { // without the day
				key, rest, _ := strings.Cut(scope, "/")
				authorization = key + rest[len("20260102"):]
			}
			header := []string{authorization, r.Header.Get("Content-Type"),
				r.Header.Get("X-Api-Version") + r.Header.Get("X-Amz-Target")}
			got = []string{r.Method, r.URL.String(), strings.TrimRight(strings.Join(header, " "), " "), string(body)}
			responds(200, c.response)(w, r)
		}))
		adapter := adapterAt(t, c.vendor, server.URL+c.path, upstream.Config{TimeoutSeconds: 2, Local: true})
		var err error
		if c.m.To != nil {
			_, err = adapter.Send(t.Context(), c.m)
		} else {
			_, err = adapter.(Balancer).Balance(t.Context())
		}
		server.Close()
		for i, want := range []string{c.method, c.url, c.header, c.body} {
			if err != nil || got[i] != want {
				t.Errorf("%s: %v\n got %q\nwant %q", c.vendor, err, got[i], want)
			}
		}
	}
}

// A token is cached between calls, and a refused token is renewed once. After a failed login of any kind no message has
// left, so no outcome is uncertain.
func TestLogins(t *testing.T) {
	const dialog = `{"status":"success","token":"t0ken","expiration":43200}`
	for _, c := range []struct {
		vendor, name  string
		status        int // of the login; 0: the connection ends
		login         string
		refuse        int32 // sends whose token is refused
		class         upstream.Class
		logins, sends int32 // of two messages
	}{
		{"hutch", "cached", 200, `{"accessToken":"t0ken","refreshToken":"r"}`, 0, "", 1, 2},
		{"hutch", "with a life", 200, `{"accessToken":"t0ken","expiresIn":86400}`, 0, "", 1, 2},
		{"hutch", "a life that is over", 200, `{"accessToken":"t0ken","expiresIn":1}`, 0, "", 2, 2},
		{"hutch", "refused once", 200, `{"accessToken":"t0ken"}`, 1, "", 2, 3},
		{"hutch", "refused by status, remembered", 401, `{"message":"no"}`, 0, keyRefused, 1, 0},
		{"hutch", "refused as a bad request", 400, `{"message":"no"}`, 0, keyRefused, 1, 0},
		{"hutch", "without a token", 200, `{}`, 0, account, 2, 0},
		{"hutch", "server error with a token", 500, `{"accessToken":"t0ken"}`, 0, account, 2, 0},
		{"hutch", "too fast", 429, `{"message":"no"}`, 0, tooFast, 2, 0},
		{"hutch", "cut off", 0, "", 0, upstream.NotSent, 2, 0},
		{"dialogv2", "refused once", 200, dialog, 1, "", 2, 3},
		{"dialogv2", "refused", 200, `{"status":"failed","comment":"Invalid","token":null,"remainingCount":2,"errCode":101}`,
			0, keyRefused, 1, 0},
		{"dialogv2", "refused without a code", 200, `{"status":"failed"}`, 0, keyRefused, 1, 0},
		{"dialogv2", "server error with a token", 500, dialog, 0, account, 2, 0},
		{"dialogv2", "without a token", 200, `{"status":"success"}`, 0, account, 2, 0},
	} {
		t.Run(c.vendor+" "+c.name, func(t *testing.T) {
			var logins, sends atomic.Int32
			adapter := connect(t, c.vendor, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/login") {
					if logins.Add(1); c.status == 0 {
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.login)
					return
				}
				if sends.Add(1) <= c.refuse {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = io.WriteString(w, `{"status":"success","serverRef":1}`)
			})
			for range 2 {
				_, err := adapter.Send(t.Context(), message)
				if (err == nil) != (c.class == "") ||
					err != nil && (upstream.ClassOf(err) != c.class || strings.Contains(err.Error(), "t0ken")) {
					t.Errorf("%v, want %s", err, c.class)
				}
			}
			if logins.Load() != c.logins || sends.Load() != c.sends {
				t.Errorf("%d logins, %d sends; want %d, %d", logins.Load(), sends.Load(), c.logins, c.sends)
			}
		})
	}
}

// A token is cached until shortly before its end by the wall time, also over a freeze.
func TestTokenFreeze(t *testing.T) {
	frozen := clocktest.New()
	s, logins := session{tokens: newTokens()}, 0
	s.tokens.results.Clock = cache.ClockOf(frozen.Now)
	logIn := func(context.Context, any) (string, time.Duration, error) { logins++; return "token", time.Hour, nil }
	for _, step := range []struct {
		frozen time.Duration
		logins int
	}{{0, 1}, {54 * time.Minute, 1}, {2 * time.Minute, 2}} {
		frozen.Move(step.frozen)
		if _, token, err := s.token(t.Context(), logIn); token != "token" || err != nil || logins != step.logins {
			t.Errorf("%v: %q, %v, %d logins", step, token, err, logins)
		}
	}
}

// A refused login waits for minutes, a changed password does not (docs/decisions/sms.md#refused-logins).
func TestRefusedLogin(t *testing.T) {
	s, logins := session{tokens: newTokens()}, atomic.Int32{}
	frozen := clocktest.New()
	s.tokens.results.Clock = cache.ClockOf(frozen.Now)
	logIn := func(context.Context, any) (string, time.Duration, error) {
		logins.Add(1)
		return "", 0, &upstream.Error{Class: keyRefused, Vendor: "dialogv2", Code: "116"}
	}
	for _, step := range []struct {
		frozen   time.Duration
		password string
		logins   int32
	}{{0, "a", 1}, {4 * time.Minute, "a", 1}, {0, "b", 2}, {2 * time.Minute, "a", 3}} {
		frozen.Move(step.frozen)
		s.Secrets = map[string]string{"password": step.password}
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				if _, _, err := s.token(t.Context(), logIn); upstream.ClassOf(err) != keyRefused ||
					upstream.CodeOf(err) != "116" {
					t.Errorf("%v", err)
				}
			})
		}
		if calls.Wait(); logins.Load() != step.logins {
			t.Errorf("%+v: %d logins", step, logins.Load())
		}
	}
}

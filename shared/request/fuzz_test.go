package request

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/telemetry"
	"svcapi/test/itemtest"
	"svcapi/test/must"
)

// A path matches its pattern in one way: the same segments, and parameters that are the decoded segments.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"/api/v1/pair/USD/LKR/1", "/api/v1/pair/USD/LKR/1/", "/api/v1/pair/%55SD/LKR/%31", "/api/v1/pair/a%2Fb/c/d",
		"//api/v1/pair/a/b/c",
		"/api/v1/pair/%2e%2e/%00/;x=1", "/api/v1/pair/%c0%af/%ff/%", "/api/v1/pair/../a/b", "/api/v1/pair///",
		"/API/v1/pair/a/b/c",
	} {
		f.Add(path)
	}
	pattern := strings.Split("/api/v1/pair/{base}/{target}/{amount}", "/")
	f.Fuzz(func(t *testing.T, path string) {
		parameters, ok := pathParameters(pattern, strings.Split(path, "/"))
		if !ok {
			return
		}
		rest, ok := strings.CutPrefix(path, "/api/v1/pair/")
		if !ok || len(parameters) != 3 {
			t.Fatalf("%q matches, with %q", path, parameters)
		}
		for i, name := range []string{"base", "target", "amount"} {
			want, err := url.PathUnescape(strings.Split(rest, "/")[i])
			if err != nil || want == "" || parameters[name] != want {
				t.Errorf("%q: %s is %q, want %q, %v", path, name, parameters[name], want, err)
			}
		}
	})
}

// The response to a request of an unknown client has the envelope, and the one log line holds nothing of the request.
func FuzzEvent(f *testing.F) {
	f.Add("api.example.com", "POST", "/test", "svc_acme_aaaa", "svcs_x", "X-Any", "v", []byte("{}"), false)
	f.Add("api.example.com", "OPTIONS", "/test", "", "", "Content-Length", "-1", []byte("\xff"), true)
	f.Add("api.example.com", "GET", "/%zz", "", "", "x-api-key", "\r\nA: b", []byte(nil), false)
	f.Add("api.example.com", "GET", "/test\r\n", "", "", "", "", []byte(nil), false)
	f.Add("[::1", "", "", "\x00", "", "", "", []byte(nil), true)
	f.Add("api.example.com", "POST", "/test/", "k", "s", "Host", "a b", bytes.Repeat([]byte("["), 100), false)
	f.Add("api.example.com", "POST", "/test", "k", "s", "X-Privacy-Mode", "1", []byte("{"), false)
	var log bytes.Buffer
	s := New(Config{}, nil, telemetry.New(&log, telemetry.Config{}))
	handler := Lambda(s.Handler(operation(false, nil)))
	f.Fuzz(func(t *testing.T, host, method, path, key, secret, name, value string, body []byte, encoded bool) {
		if _, known := project.ParseClientID(key); known || strings.EqualFold(name, "X-API-KEY") {
			return // that one would be looked up
		}
		event := events.APIGatewayProxyRequest{
			HTTPMethod: method, Path: path, MultiValueHeaders: map[string][]string{"X-API-KEY": {key},
				"X-API-SECRET": {secret}, name: {value, value}},
			Body: string(body), RequestContext: events.APIGatewayProxyRequestContext{RequestID: chosenID,
				RequestTimeEpoch: time.Now().UnixMilli(), DomainName: host},
		}
		if encoded {
			event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
		}
		log.Reset()
		id := uuid.NewString()
		ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: id})
		response, err := handler(ctx, event)
		if err != nil {
			if _, impossible := http.NewRequest(method, "/", nil); impossible != nil {
				return // no gateway passes a method that HTTP has not
			}
			t.Fatalf("%q %q: %v", method, path, err)
		}
		var refusal envelope
		if err := json.Unmarshal([]byte(response.Body), &refusal); err != nil || refusal.Error == nil {
			t.Fatalf("%q: %v", response.Body, err)
		}
		known := map[int]string{401: CodeUnauthorized, 404: CodeHTTPError, 405: CodeHTTPError, 413: CodeHTTPError}
		if refusal.Success || refusal.Error.Code != known[response.StatusCode] || refusal.RequestID != id {
			t.Errorf("%q %q: %d %s", method, path, response.StatusCode, response.Body)
		}
		if strings.Count(log.String(), "\n") != 1 || len(secret) > 8 && strings.Contains(log.String(), secret) ||
			bytes.Contains(log.Bytes(), []byte("payload")) && !strings.Contains(method, "payload") {
			t.Errorf("logged %s", log.String())
		}
	})
}

// An Idempotency-Key is 1 to 128 visible ASCII characters, once (docs/decisions/extensions.md#idempotency-key).
func FuzzIdempotencyKey(f *testing.F) {
	f.Add("key", "", false)
	f.Add("a b", "", false)
	f.Add("é\x7f", "x", true)
	f.Add(strings.Repeat("k", 129), "", false)
	form := regexp.MustCompile(`\A[!-~]{1,128}\z`)
	f.Fuzz(func(t *testing.T, key, other string, twice bool) {
		h := http.Header{keyHeader: {key}}
		if twice {
			h.Add(keyHeader, other)
		}
		p := Problems{}
		if got := idempotencyKey(h, p); got != key || (len(p) == 0) != (form.MatchString(key) && !twice) {
			t.Errorf("%q, %q: %q, %v", key, other, got, p)
		}
	})
}

// A stored outcome gives the same response again. Bytes that the product never stored give an error.
func FuzzKeptOutcome(f *testing.F) {
	f.Add("{}", 200, "", "", "v")
	f.Add(`{"status":502,"code":"http_error"}`, 502, "http_error", "The provider \xff said no.", "v")
	f.Add(`{"status":200,"data":{"a":[1.0,"\ud83d\ude00"]}}`, 409, "x", "\x00\u202e", "")
	f.Fuzz(func(t *testing.T, text string, status int, code, message, vendor string) {
		if result, err := replay([]byte(text)); (err == nil) == (result == nil) {
			t.Errorf("%q: %v, %v", text, result, err)
		}
		if status < 400 || status > 599 || code == "" {
			return
		}
		kept, err := encodeOutcome(nil,
			&Error{Status: status, Code: code, Reason: Reason(vendor), VendorCode: vendor, Message: message,
				Vendor: vendor, Cause: io.EOF})
		must.Succeed(t, err)
		_, err = replay(kept)
		valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != status || !sameText(e.Code, code) ||
			!sameText(e.Message, message) || !sameText(e.Vendor, vendor) || !sameText(e.VendorCode, vendor) ||
			!sameText(string(e.Reason), vendor) {
			t.Errorf("%d %q %q %q: %+v of %s", status, valid(code), valid(message), valid(vendor), e, kept)
		}
	})
}

// sameText compares texts of which one has been through JSON, where a replacement character takes the place of broken
// UTF-8.
func sameText(a, b string) bool { return slices.Equal([]rune(a), []rune(b)) }

// An outcome unpacks as it was packed. Bytes that the product never packed give an error, and take no memory.
func FuzzPackedOutcome(f *testing.F) {
	f.Add([]byte(`{"status":200}`), []byte("n"))
	f.Add(bytes.Repeat([]byte{0}, 1000), []byte{0xed, 0xc1, 0x01, 0x01, 0, 0, 0, 0x80})
	f.Add([]byte{}, []byte{0, 0, 4, 1, 5, 200, 1, 2, 3})
	s := &keyStore{now: func() time.Time { return time.Unix(0, 0) }}
	f.Fuzz(func(t *testing.T, outcome, data []byte) {
		got, err := unpack(dynamo.Item{"n": dynamo.Number(1), "d": dynamo.Bytes(pack(outcome))})
		if err != nil || !bytes.Equal(got, outcome) {
			t.Errorf("%q, %v; want %q", got, err, outcome)
		}
		if got, err := unpack(dynamo.Item{"n": dynamo.Number(1), "d": dynamo.Bytes(data)}); len(got) > maxOutcome ||
			err != nil && got != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		strange := itemtest.Item(data, "pk", "o", "h", "dead", "expires", "d", "n")
		if until, none := dynamo.NumberOf(strange["dead"]); strange["n"] == nil && none == nil && until <= 0 {
			return // the outcome of a dead request would be written
		}
		if outcome, err := s.outcome(t.Context(), "idem#a", strange); err != nil && outcome != nil {
			t.Errorf("%q beside %v", outcome, err)
		}
	})
}

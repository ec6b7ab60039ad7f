package request

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

	"svcapi/shared/admit"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/shared/telemetry"
	"svcapi/test/itemtest"
	"svcapi/test/must"
)

// TestOutcomeOfResponse checks the outcome that the metrics of a response have, and which responses are failures of the
// version that runs. Alarms count those separately from failures that a client, a vendor or a pause causes.
func TestOutcomeOfResponse(t *testing.T) {
	for _, c := range []struct {
		failure *Error
		want    string
		own     bool
	}{
		{nil, "success", false},
		{&Error{Status: 401, Code: CodeUnauthorized}, "unauthorized", false},
		{&Error{Status: 402, Code: CodeInsufficientFunds}, "insufficient_funds", false},
		{&Error{Status: 422, Code: CodeValidationFailed}, "refused", false},
		{&Error{Status: 429}, "throttled", false},
		{ErrInternal, "error", true},
		{&Error{Status: 500, Code: CodeInternalError, Vendor: "v"}, "vendor_failed", false},
		{&Error{Status: 502}, "vendor_failed", false},
		{&Error{Status: 502, Vendor: "v", Cause: panicked("in the adapter")}, "vendor_failed", true},
		{&Error{Status: 503}, "unavailable", false},
		{&Error{Status: 503, Uncertain: true}, "uncertain", false},
		{errPaused, "paused", false},
	} {
		resp := response{status: 200, failure: c.failure}
		if c.failure != nil {
			resp.status = c.failure.Status
		}
		if got, own := resp.outcome(), resp.isOwnFailure(); got != c.want || own != c.own {
			t.Errorf("%+v: %s, %t, want %s, %t", c.failure, got, own, c.want, c.own)
		}
	}
}

// TestStrictTransport (docs/decisions/operating.md#edge): successes, media and refusals have the header.
func TestStrictTransport(t *testing.T) {
	for _, resp := range []response{
		success(&Result{Data: 1}, "1"), success(&Result{Media: &Media{Type: "image/png"}}, "1"), failure(ErrInternal),
	} {
		w := httptest.NewRecorder()
		resp.write(w, "1")
		if got := w.Header().Values("Strict-Transport-Security"); len(got) != 1 || got[0] != StrictTransport {
			t.Errorf("%d: %q", resp.status, got)
		}
	}
}

// TestStreamedResponse checks that a response of a resource that streams has the bytes of any other response, in Base64
// too, and no length. Errors are streamed as well.
func TestStreamedResponse(t *testing.T) {
	h := build(t)
	const buffered, large = 4096 / 4 * 3, 48 << 10 // what the buffer of a bufio.Reader holds in Base64, and more
	for _, size := range []int{1, 2, buffered - 1, buffered, buffered + 1, large - 1, large, large + 1, 3 * large} {
		for _, text := range []bool{false, true} {
			route := operation(false, func(context.Context) (*Result, error) {
				return &Result{Media: &Media{Type: "a/b", Disposition: "inline",
					Body: bytes.Repeat([]byte{0xfa}, size), Base64: text}}, nil
			})
			event := events.APIGatewayProxyRequest{
				HTTPMethod: "POST", Path: "/test", Resource: "/test", Body: `{"text":"a"}`,
				MultiValueHeaders: map[string][]string{"X-API-KEY": {h.client}, "X-API-SECRET": {h.secret}},
			}
			ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: chosenID})
			whole, err := Lambda(h.Handler(route))(ctx, event)
			must.Succeed(t, err)
			want := []byte(whole.Body)
			if whole.IsBase64Encoded {
				if want, err = base64.StdEncoding.DecodeString(whole.Body); err != nil {
					t.Fatal(err)
				}
			}
			out, err := lambdaStream(h.Handler(route), []string{"/test"})(ctx, event)
			stream, ok := out.(*events.APIGatewayProxyStreamingResponse)
			if err != nil || !ok {
				t.Fatalf("%T, %v", out, err)
			}
			got, err := io.ReadAll(stream.Body)
			if header := stream.MultiValueHeaders; err != nil || stream.StatusCode != 200 || !bytes.Equal(got, want) ||
				header["Content-Length"] != nil || !slices.Equal(header["Content-Type"], whole.MultiValueHeaders["Content-Type"]) {
				t.Errorf("%d bytes, Base64 %v: %d %v, %d bytes, want %d, %v", size, text, stream.StatusCode, header,
					len(got), len(want), err)
			}
			if text {
				var envelope struct{ Data struct{ Data []byte } }
				err := json.Unmarshal(got, &envelope, json.MatchCaseInsensitiveNames(true))
				if err != nil || len(envelope.Data.Data) != size {
					t.Errorf("%d bytes: %v", len(envelope.Data.Data), err)
				}
			}
			event.Body = "{"
			out, err = lambdaStream(h.Handler(route), []string{"/test"})(t.Context(), event)
			if refused, ok := out.(*events.APIGatewayProxyStreamingResponse); err != nil || !ok || refused.StatusCode != 422 {
				t.Errorf("a refused request: %T, %v", out, err)
			}
		}
	}
}

// docs/decisions/requests.md#payload-logging: a masked body shows the shape of a request, and no text of a person.
func TestMaskPayload(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{
			`{"send_method":"single","to":"0771234567","message":"Your code is 4711 ✓"}`,
			`{"send_method":"single","to":"10 digits, the last 567","message":"19 characters"}`,
		},
		{
			`{"send_method":"bulk_different","msg_list":[{"to":"+94771234567","msg":"a"},{"to":"0710000001","msg":""}],` +
				`"check_cost":true}`,
			`{"send_method":"bulk_different","msg_list":[{"to":"11 digits, the last 567","msg":"1 characters"},{"to":"10 ` +
				`digits, the last 001","msg":"0 characters"}],"check_cost":true}`,
		},
		{`{"recipients":["0771234567","0771234568"]}`,
			`{"recipients":["10 digits, the last 567","10 digits, the last 568"]}`},
		{`{"data":"12345","type":"C128","height":80,"nic":199012345678}`,
			`{"data":"5 characters","type":"C128","height":80,"nic":"12 digits, the last 678"}`},
		{`{"type":"no choice of the contract, but long"}`, `{"type":"35 characters"}`},
		{`{"type":"0771234567","format":"4711","provider":"my code","color":"#1a2b3c","background":"14213d",` +
			`"error_correction":"H"}`,
			`{"type":"10 digits, the last 567","format":"4 characters","provider":"7 characters","color":"#1a2b3c",` +
				`"background":"14213d","error_correction":"H"}`},
		{`{"x":[{"type":"C39+"},"word"],"type":["word"]}`, `{"x":[{"type":"C39+"},"4 characters"],"type":["4 characters"]}`},
		{`{"0771234567":{"type":null}}`, `{"10 digits, the last 567":{"type":null}}`},
		{"", ""},
	} {
		if got := maskPayload([]byte(c.body)); got != c.want {
			t.Errorf("%s\n%s, want\n%s", c.body, got, c.want)
		}
	}
	long := `{"recipients":["` + strings.Repeat(`0771234567","`, 10_000) + `0771234567"]}`
	if got := (Config{}).payload([]byte(long)); len(got) != maxPayload || strings.Contains(got, "1234") {
		t.Errorf("%d bytes: %.60s", len(got), got)
	}
}

// docs/decisions/requests.md#payload-logging: the operator's choice, privacy mode above the choice, and the default.
func TestLogPayloads(t *testing.T) {
	run := func(context.Context) (*Result, error) {
		return nil, (&Error{Status: 400, Code: CodeHTTPError, Message: "https://a.example/x failed",
			Quoted: "https://a.example/x"}).WithCause(
			errors.New("the vendor says 94771234567 is unsubscribed, reference 12345, https://a.example/x"))
	}
	for _, c := range []struct {
		value, privacy string
		has, lacks     []string
	}{
		{payloadsOn, "", []string{"needle", "94771234567", "https://a.example/x failed"}, nil},
		{payloadsMasked, "", []string{"6 characters", "the last 567 is unsubscribed, reference 12345, (19 characters)",
			"(19 characters) failed"}, []string{"needle", "94771", "example"}},
		{"", "", []string{"6 characters"}, []string{"needle", "example"}},
		{payloadsOff, "", []string{"unsubscribed", "(19 characters) failed"},
			[]string{"needle", "6 characters", "94771", "payload", "example"}},
		{payloadsOn, "true", nil, []string{"needle", "unsubscribed"}},
		{payloadsMasked, "true", nil, []string{"characters", "unsubscribed"}},
	} {
		h := build(t)
		h.cfg.LogPayloads = c.value
		h.log.Reset()
		h.call(t, operation(false, run), "/test", `{"text":"needle"}`, map[string]string{"X-Privacy-Mode": c.privacy})
		line := h.log.String()
		for _, text := range c.has {
			if !strings.Contains(line, text) {
				t.Errorf("%q, privacy %q: %q is not in %s", c.value, c.privacy, text, line)
			}
		}
		for _, text := range c.lacks {
			if strings.Contains(line, text) {
				t.Errorf("%q, privacy %q: %q is in %s", c.value, c.privacy, text, line)
			}
		}
	}
	cut := `{"html":"` + strings.Repeat("é", maxPayload) + `"}` // a character of two bytes at the end of the log's part
	if got := (Config{LogPayloads: payloadsOn}).payload([]byte(cut)); got != cut[:maxPayload-1] {
		t.Errorf("%d bytes, the last %q", len(got), got[len(got)-3:])
	}
	for _, body := range []string{`{"html":"x","password":"needle"}`, `{"\u0070assword":"needle"}`} {
		if got := (Config{LogPayloads: payloadsOn}).payload([]byte(body)); strings.Contains(got, "needle") ||
			!strings.Contains(got, "password") {
			t.Errorf("%s: %s", body, got)
		}
	}
	late := `{"x":[` + strings.Repeat(`"",`, 1200) +
		`""],"y":{"pass\u0077ord":"needle"}}` // masked, the name is beyond maxPayload
	if got := (Config{LogPayloads: payloadsOn}).payload([]byte(late)); strings.Contains(got, "needle") {
		t.Errorf("%s: %s", late, got)
	}
	if got := (Config{LogPayloads: payloadsOn}).payload([]byte(`{"html":"\u003cp>needle"}`)); !strings.Contains(got,
		"needle") {
		t.Errorf("an escape in a text: %s", got)
	}
	for value, valid := range map[string]bool{"on": true, "off": true, "masked": true, "": true,
		"ON": false, "true": false} {
		if err := (Config{LogPayloads: value}).Validate(); (err == nil) != valid {
			t.Errorf("LOG_PAYLOADS %q: %v", value, err)
		}
	}
}

// docs/decisions/operating.md#logged-sends: what the line of a send says of its messages, by LogPayloads and privacy.
func TestLoggedSends(t *testing.T) {
	messages := make([]string, loggedSends+2)
	for i := range messages {
		messages[i] = fmt.Sprintf("+947712345%02d", i)
	}
	send := func(m *admit.Messages) error {
		for i, to := range messages {
			m.End(i, admit.Sent{To: to, State: "accepted", Vendor: "v", VendorID: "needle-id", Reference: "needle-reference"},
				false)
		}
		return nil
	}
	for _, c := range []struct {
		value, privacy            string
		hashes, outcomes, numbers int
	}{
		{payloadsMasked, "", loggedSends + 2, loggedSends, 0},
		{payloadsOn, "", loggedSends + 2, loggedSends, loggedSends},
		{payloadsOff, "", 0, loggedSends, 0},
		{payloadsOn, "true", 0, 0, 0},
	} {
		h := build(t)
		h.cfg.LogPayloads = c.value
		h.log.Reset()
		h.call(t, sending(send, messages...), "/test", `{"text":"a"}`, map[string]string{"X-Privacy-Mode": c.privacy})
		record, err := h.projects.Load(t.Context(), "acme")
		must.Succeed(t, err)
		line, hashes, numbers := h.log.String(), 0, 0
		for _, to := range messages {
			hashes += strings.Count(line, `"`+record.LoggedNumber(to)+`"`)
			numbers += strings.Count(line, to)
		}
		outcomes := strings.Count(line,
			`"state":"accepted","vendor":"v","vendor_id":"needle-id","reference":"needle-reference"`)
		if hashes != c.hashes || outcomes != c.outcomes || numbers != c.numbers {
			t.Errorf("%+v: %d hashes, %d outcomes, %d numbers: %s", c, hashes, outcomes, numbers, line)
		}
	}
}

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

// sameText compares texts, of which JSON has given one a replacement character in the place of broken UTF-8.
func sameText(a, b string) bool { return slices.Equal([]rune(a), []rune(b)) }

// An outcome unpacks as it was packed. Bytes that the product never packed give an error, and take no memory.
func FuzzPackedOutcome(f *testing.F) {
	f.Add([]byte(`{"status":200}`), []byte("n"))
	f.Add(bytes.Repeat([]byte{0}, 1000), []byte{0xed, 0xc1, 0x01, 0x01, 0, 0, 0, 0x80})
	f.Add([]byte{}, []byte{0, 0, 4, 1, 5, 200, 1, 2, 3})
	s := &keyStore{now: func() time.Time { return time.Unix(0, 0) }}
	f.Fuzz(func(t *testing.T, outcome, data []byte) {
		got, err := dynamo.Unpack(dynamo.Pack(outcome), maxOutcome)
		if err != nil || !bytes.Equal(got, outcome) {
			t.Errorf("%q, %v; want %q", got, err, outcome)
		}
		if got, err := dynamo.Unpack(data, maxOutcome); len(got) > maxOutcome || err != nil && got != nil {
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

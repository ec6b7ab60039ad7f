package request

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"svcapi/shared/admit"
	"svcapi/shared/project/admin"
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
				if err := json.Unmarshal(got, &envelope); err != nil || len(envelope.Data.Data) != size {
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
		record, err := admin.NewStore(h.db, h.cfg.ProjectsTable).Load(t.Context(), "acme")
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

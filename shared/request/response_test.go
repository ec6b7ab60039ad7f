package request

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

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

package api

import (
	"net/http/httptest"
	"testing"
)

// TestOutcomeOfResponse checks the outcome that the metrics of a response have. Alarms count failures of the service
// separately from failures that a client, a vendor or a pause causes.
func TestOutcomeOfResponse(t *testing.T) {
	for _, c := range []struct {
		failure *Error
		want    string
	}{
		{nil, "success"},
		{&Error{Status: 401, Code: CodeUnauthorized}, "unauthorized"},
		{&Error{Status: 402, Code: CodeInsufficientFunds}, "insufficient_funds"},
		{&Error{Status: 422, Code: CodeValidationFailed}, "refused"},
		{&Error{Status: 429}, "throttled"},
		{ErrInternal, "error"},
		{&Error{Status: 500, Vendor: "v"}, "vendor_failed"},
		{&Error{Status: 502}, "vendor_failed"},
		{&Error{Status: 503}, "unavailable"},
		{&Error{Status: 503, Uncertain: true}, "uncertain"},
		{errPaused, "paused"},
	} {
		resp := response{status: 200, failure: c.failure}
		if c.failure != nil {
			resp.status = c.failure.Status
		}
		if got := resp.outcome(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.failure, got, c.want)
		}
	}
}

// TestStrictTransport (docs/decisions.md#edge): successes, media and refusals have the header.
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

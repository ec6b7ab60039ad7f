package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"svcapi/local/lambda"
	"svcapi/local/template"
)

// statuses are the gateway responses that the local stack returns, with AWS's status where the template sets none. A
// type that the template does not declare has the shape of DEFAULT_4XX or DEFAULT_5XX.
var statuses = map[string]int{
	"DEFAULT_4XX":                  http.StatusBadRequest,
	"DEFAULT_5XX":                  http.StatusInternalServerError,
	"BAD_REQUEST_BODY":             http.StatusBadRequest,
	"INVALID_SIGNATURE":            http.StatusForbidden,
	"MISSING_AUTHENTICATION_TOKEN": http.StatusForbidden,
	"THROTTLED":                    http.StatusTooManyRequests,
	"REQUEST_TOO_LARGE":            http.StatusRequestEntityTooLarge,
	"INTEGRATION_FAILURE":          http.StatusGatewayTimeout,
	"INTEGRATION_TIMEOUT":          http.StatusGatewayTimeout,
	malformed:                      http.StatusBadGateway,
}

// malformed is the response to a function's failure or malformed response. AWS has no type for this response.
const malformed = "malformed"

// A gateway response can use one variable: the request ID.
const bodyID, headerID = "$context.requestId", "context.requestId"

// fixed matches a header with a static value.
var fixed = regexp.MustCompile(`^'.*'$`)

// validateResponses validates the template's gateway responses. A variable that the local stack does not know is an
// error: AWS would replace the variable with an empty text.
func validateResponses(responses map[string]template.GatewayResponse) error {
	for _, kind := range []string{"DEFAULT_4XX", "DEFAULT_5XX"} {
		if _, declared := responses[kind]; !declared {
			return fmt.Errorf("the template declares no gateway response %s", kind)
		}
	}
	for kind, declared := range responses {
		if declared.Body == "" || strings.Contains(strings.ReplaceAll(declared.Body, bodyID, ""), "$context") {
			return fmt.Errorf("gateway response %s: the local stack plays a body of JSON with no variable but %s", kind, bodyID)
		}
		for name, v := range declared.Headers {
			if v != headerID && !fixed.MatchString(v) {
				return fmt.Errorf("gateway response %s: header %s is %q: neither in single quotes nor %s", kind, name, v, headerID)
			}
		}
	}
	return nil
}

// gatewayResponse returns the gateway's own response of a kind. The cause is for the log.
func (h *Handler) gatewayResponse(state *requestState, kind, cause string) *response {
	state.failure = kind + ": " + cause
	form, declared := h.api.Responses[kind]
	if !declared {
		form = h.api.Responses[fmt.Sprintf("DEFAULT_%dXX", statuses[kind]/100)]
	}
	out := &response{status: cmp.Or(form.Status, statuses[kind]), headers: http.Header{}}
	out.headers.Set("Content-Type", "application/json")
	for name, v := range form.Headers {
		if v == headerID {
			v = state.id
		}
		out.headers.Set(name, strings.Trim(v, "'"))
	}
	out.body = []byte(strings.ReplaceAll(form.Body, bodyID, state.id))
	return out
}

// startingResponse returns the 503 of a function that cannot run yet, which only the local stack has.
func startingResponse(state *requestState, starting *lambda.StartingError) *response {
	state.failure = starting.Error()
	out := &response{status: http.StatusServiceUnavailable, headers: http.Header{
		"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "X-Svc-Request-Id": {state.id},
		"Retry-After": {strconv.Itoa(int(starting.After.Seconds()))},
	}}
	out.body, _ = json.Marshal(map[string]any{ // texts always marshal
		"success": false, "request_id": state.id,
		"error": map[string]any{"code": "http_error", "message": starting.Needs,
			"details": map[string]any{"reason": "request_not_served"}},
	})
	return out
}

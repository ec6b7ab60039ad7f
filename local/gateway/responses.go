package gateway

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"svcapi/local/template"
)

// types are the gateway responses that the local stack returns, with AWS's status where the template sets none, and the
// family whose shape a type has where the template declares none for the type.
var types = map[string]struct {
	status  int
	family  string
	message string
}{
	"DEFAULT_4XX":                  {http.StatusBadRequest, "", "Bad Request"},
	"DEFAULT_5XX":                  {http.StatusInternalServerError, "", "Internal server error"},
	"BAD_REQUEST_BODY":             {http.StatusBadRequest, "DEFAULT_4XX", "Invalid request body"},
	"INVALID_SIGNATURE":            {http.StatusForbidden, "DEFAULT_4XX", "Invalid signature"},
	"MISSING_AUTHENTICATION_TOKEN": {http.StatusForbidden, "DEFAULT_4XX", "Missing Authentication Token"},
	"THROTTLED":                    {http.StatusTooManyRequests, "DEFAULT_4XX", "Too Many Requests"},
	"REQUEST_TOO_LARGE":            {http.StatusRequestEntityTooLarge, "DEFAULT_4XX", "Request Too Long"},
	"INTEGRATION_FAILURE":          {http.StatusGatewayTimeout, "DEFAULT_5XX", "Internal server error"},
	"INTEGRATION_TIMEOUT":          {http.StatusGatewayTimeout, "DEFAULT_5XX", "Endpoint request timed out"},
}

// bodyOf returns the template of a gateway response's body: AWS's own where the template declares none.
func bodyOf(declared template.GatewayResponse) string {
	if body, ok := declared.Templates["application/json"]; ok {
		return body
	}
	return `{"message":$context.error.messageString}`
}

var variable = regexp.MustCompile(`\$context\.([A-Za-z.]*[A-Za-z])`)

func (state *requestState) variables(kind string) map[string]string {
	message := types[kind].message
	return map[string]string{
		"apiId": apiID, "accountId": template.AccountID, "stage": state.api.Stage,
		"requestId": state.id, "extendedRequestId": state.extendedID,
		"error.message": message, "error.messageString": `"` + message + `"`, "error.responseType": kind,
	}
}

// validateResponses validates the template's gateway responses. A variable that the local stack does not know is an error:
// AWS would replace the variable with an empty text.
func validateResponses(responses map[string]template.GatewayResponse) error {
	known := (&requestState{}).variables("")
	for kind, declared := range responses {
		used := variable.FindAllStringSubmatch(bodyOf(declared), -1)
		for name, v := range declared.Headers {
			if source, ok := strings.CutPrefix(v, "context."); ok {
				used = append(used, []string{v, source})
			} else if len(v) < 2 || !strings.HasPrefix(v, "'") || !strings.HasSuffix(v, "'") {
				return fmt.Errorf("gateway response %s: header %s is %q: neither in single quotes nor context.<variable>", kind, name, v)
			}
		}
		for _, u := range used {
			if _, ok := known[u[1]]; !ok {
				return fmt.Errorf("gateway response %s: the local stack does not know the variable %s", kind, u[0])
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
		form = h.api.Responses[types[kind].family]
	}
	variables := state.variables(kind)
	out := &response{status: cmp.Or(form.Status, types[kind].status), headers: http.Header{}}
	out.headers.Set("Content-Type", "application/json")
	for name, v := range form.Headers {
		if source, ok := strings.CutPrefix(v, "context."); ok {
			out.headers.Set(name, variables[source])
		} else {
			out.headers.Set(name, strings.Trim(v, "'"))
		}
	}
	out.body = variable.ReplaceAllFunc([]byte(bodyOf(form)), func(found []byte) []byte {
		return []byte(variables[string(bytes.TrimPrefix(found, []byte("$context.")))])
	})
	return out
}

// malformed returns the gateway's 502, in the shape of DEFAULT_5XX, to a function's failure or malformed response.
func (h *Handler) malformed(state *requestState, cause string) *response {
	out := h.gatewayResponse(state, "DEFAULT_5XX", cause)
	if h.api.Responses["DEFAULT_5XX"].Status == 0 {
		out.status = http.StatusBadGateway
	}
	return out
}

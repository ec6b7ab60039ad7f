package gateway

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
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

const messageTemplate = `{"message":$context.error.messageString}`

// shape is the form of a gateway response, as the template declares it.
type shape struct {
	status  int // 0: the type's
	headers map[string]string
	body    string
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

// newResponses reads the template's gateway responses. A variable that the local stack does not know is an error: AWS
// would replace the variable with an empty text.
func newResponses(api template.API) (map[string]shape, error) {
	known := (&requestState{}).variables("")
	responses := map[string]shape{}
	for kind, declared := range api.Responses {
		body, ok := declared.Templates["application/json"]
		if !ok {
			body = messageTemplate
		}
		used := variable.FindAllStringSubmatch(body, -1)
		for name, v := range declared.Headers {
			if static := len(v) >= 2 && strings.HasPrefix(v, "'") && strings.HasSuffix(v, "'"); static {
				continue
			}
			source, ok := strings.CutPrefix(v, "context.")
			if !ok {
				return nil, fmt.Errorf("gateway response %s: header %s is %q: neither in single quotes nor context.<variable>", kind, name, v)
			}
			used = append(used, []string{v, source})
		}
		for _, u := range used {
			if _, ok := known[u[1]]; !ok {
				return nil, fmt.Errorf("gateway response %s: the local stack does not know the variable %s", kind, u[0])
			}
		}
		responses[kind] = shape{declared.Status, maps.Clone(declared.Headers), body}
	}
	return responses, nil
}

// gatewayResponse returns the gateway's own response of a kind. The cause is for the log.
func (h *Handler) gatewayResponse(state *requestState, kind, cause string) *response {
	state.failure = kind + ": " + cause
	form, declared := h.responses[kind]
	if !declared {
		form, declared = h.responses[types[kind].family]
	}
	if !declared {
		form.body = messageTemplate
	}
	variables := state.variables(kind)
	out := &response{status: cmp.Or(form.status, types[kind].status), headers: http.Header{}}
	out.headers.Set("Content-Type", "application/json")
	for name, v := range form.headers {
		if source, ok := strings.CutPrefix(v, "context."); ok {
			out.headers.Set(name, variables[source])
		} else {
			out.headers.Set(name, strings.Trim(v, "'"))
		}
	}
	out.body = variable.ReplaceAllFunc([]byte(form.body), func(found []byte) []byte {
		return []byte(variables[string(bytes.TrimPrefix(found, []byte("$context.")))])
	})
	return out
}

// malformed returns the gateway's response where a function failed or returned no proxy response: 502, in the shape of
// DEFAULT_5XX.
func (h *Handler) malformed(state *requestState, cause string) *response {
	out := h.gatewayResponse(state, "DEFAULT_5XX", cause)
	if h.responses["DEFAULT_5XX"].status == 0 {
		out.status = http.StatusBadGateway
	}
	return out
}

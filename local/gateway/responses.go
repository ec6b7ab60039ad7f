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

// types are the gateway's own answers that the local stack gives, with AWS's status where the template sets none, and
// the family whose shape a type has where the template declares none for it.
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

// response is one of the gateway's own answers, as the template shapes it.
type response struct {
	status  int // 0: the type's
	headers map[string]string
	body    string
}

var variable = regexp.MustCompile(`\$context\.([A-Za-z.]*[A-Za-z])`)

func (x *requestState) variables(kind string) map[string]string {
	message := types[kind].message
	return map[string]string{
		"apiId": apiID, "accountId": template.AccountID, "stage": x.api.Stage,
		"requestId": x.id, "extendedRequestId": x.extendedID,
		"error.message": message, "error.messageString": `"` + message + `"`, "error.responseType": kind,
	}
}

// newResponses reads the template's gateway responses. A variable that the local stack does not know is an error: AWS
// would put nothing in its place.
func newResponses(api template.API) (map[string]response, error) {
	known := (&requestState{}).variables("")
	responses := map[string]response{}
	for kind, shape := range api.Responses {
		body, ok := shape.Templates["application/json"]
		if !ok {
			body = messageTemplate
		}
		used := variable.FindAllStringSubmatch(body, -1)
		for name, v := range shape.Headers {
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
		responses[kind] = response{shape.Status, maps.Clone(shape.Headers), body}
	}
	return responses, nil
}

// own is an answer of the gateway itself. cause is for the log.
func (h *Handler) own(x *requestState, kind, cause string) *answer {
	x.failure = kind + ": " + cause
	shape, declared := h.responses[kind]
	if !declared {
		shape, declared = h.responses[types[kind].family]
	}
	if !declared {
		shape.body = messageTemplate
	}
	variables := x.variables(kind)
	a := &answer{status: cmp.Or(shape.status, types[kind].status), headers: http.Header{}}
	a.headers.Set("Content-Type", "application/json")
	for name, v := range shape.headers {
		if source, ok := strings.CutPrefix(v, "context."); ok {
			a.headers.Set(name, variables[source])
		} else {
			a.headers.Set(name, strings.Trim(v, "'"))
		}
	}
	a.body = variable.ReplaceAllFunc([]byte(shape.body), func(found []byte) []byte {
		return []byte(variables[string(bytes.TrimPrefix(found, []byte("$context.")))])
	})
	return a
}

// malformed is the gateway's answer where a function failed or gave no proxy response: 502, in the shape of the others
// of its class.
func (h *Handler) malformed(x *requestState, cause string) *answer {
	a := h.own(x, "DEFAULT_5XX", cause)
	if h.responses["DEFAULT_5XX"].status == 0 {
		a.status = http.StatusBadGateway
	}
	return a
}

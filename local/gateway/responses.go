package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
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

// response is the HTTP response to the client.
type response struct {
	status  int
	headers http.Header
	body    []byte
	stream  io.Reader // in place of body
	size    int64     // of what was sent
}

// remapped are the headers of a function that reach the client under another name: x-amzn-Remapped-<name>.
var remapped = []string{"Authorization", "Connection", "Content-Length", "Date", "Expect", "Host", "Max-Forwards",
	"Proxy-Authenticate", "Server", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Www-Authenticate"}

// proxyResponse is the output of a Lambda function for proxy integration.
type proxyResponse struct {
	StatusCode        json.RawMessage            `json:"statusCode"`
	Headers           map[string]json.RawMessage `json:"headers"`
	MultiValueHeaders map[string][]string        `json:"multiValueHeaders"`
	Cookies           []string                   `json:"cookies"` // of streams only
	Body              *string                    `json:"body"`
	IsBase64Encoded   bool                       `json:"isBase64Encoded"`
}

// separator ends the prelude of a streamed response.
var separator = make([]byte, 8)

// parse reads a function's result. An error means that the result is malformed.
func parse(result lambda.Result) (*response, error) {
	payload, stream := result.Payload, io.Reader(nil)
	if result.Streamed {
		buffered := bufio.NewReader(result.Stream)
		if payload = prelude(buffered); payload == nil {
			return nil, errors.New("the function's stream has no prelude")
		}
		stream = buffered
	}
	var p *proxyResponse
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil || p == nil {
		return nil, errors.New("the function's result is no proxy response")
	}
	status, err := strconv.Atoi(scalar(p.StatusCode))
	if err != nil || status < 200 || status > 599 {
		return nil, fmt.Errorf("the function's response has status code %s", p.StatusCode)
	}
	out := &response{status: status, headers: http.Header{}}
	for name, v := range p.Headers {
		out.headers.Set(name, scalar(v))
	}
	for name, list := range p.MultiValueHeaders { // these take precedence over single values
		for _, v := range list {
			if !slices.Contains(out.headers.Values(name), v) {
				out.headers.Add(name, v)
			}
		}
	}
	for _, name := range remapped {
		if list := out.headers.Values(name); len(list) > 0 {
			out.headers["X-Amzn-Remapped-"+name] = list
			out.headers.Del(name)
		}
	}
	switch {
	case stream != nil:
		out.stream = stream
	case p.Body == nil:
	case p.IsBase64Encoded: // each media type of the API is binary
		if out.body, err = base64.StdEncoding.DecodeString(*p.Body); err != nil {
			return nil, errors.New("the function's response has a body that is not Base64")
		}
	default:
		out.body = []byte(*p.Body)
	}
	if out.headers.Get("Content-Type") == "" {
		out.headers.Set("Content-Type", "application/json")
	}
	return out, nil
}

// maxPrelude is the most bytes of a prelude that the local stack takes.
const maxPrelude = 1 << 20

// prelude returns the bytes before the separator of a stream, and nil for a stream without a separator.
func prelude(stream *bufio.Reader) []byte {
	var text []byte
	for len(text) < maxPrelude {
		b, err := stream.ReadByte()
		if err != nil {
			return nil
		}
		if text = append(text, b); bytes.HasSuffix(text, separator) {
			return bytes.TrimSuffix(text, separator)
		}
	}
	return nil
}

// scalar is the text of a JSON string, number or boolean.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// write sends the response with the headers that the gateway adds. A stream is sent in chunks as it comes. The error is
// that of a function whose stream has no end.
func (out *response) write(w http.ResponseWriter, state *requestState) error {
	header := w.Header()
	maps.Copy(header, out.headers)
	header.Set("X-Amzn-Requestid", state.id)
	header.Set("X-Amz-Apigw-Id", state.extendedID)
	if len(out.body) > 0 {
		// of any length: net/http sets the header for short bodies only
		header.Set("Content-Length", strconv.Itoa(len(out.body)))
	}
	w.WriteHeader(out.status)
	if out.stream == nil {
		_, _ = w.Write(out.body) // the client may have closed the connection
		out.size = int64(len(out.body))
		return nil
	}
	flusher, chunk := http.NewResponseController(w), make([]byte, 32<<10)
	for {
		n, err := out.stream.Read(chunk)
		if n > 0 {
			out.size += int64(n)
			if _, gone := w.Write(chunk[:n]); gone != nil {
				return nil //nolint:nilerr // the client has closed the connection; the function goes on
			}
			_ = flusher.Flush() // the next Write reports a closed connection
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

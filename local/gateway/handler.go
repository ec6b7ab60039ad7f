// Package gateway simulates Amazon API Gateway's REST API (v1) with Lambda proxy integrations: the gateway converts
// HTTP requests into proxy events and the functions' results into HTTP responses. Routes, time-outs and the gateway's
// own responses are those of the template.
package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"svcapi/local/lambda"
	"svcapi/local/template"
)

const (
	maxBody  = 10 * 1024 * 1024 // API Gateway's
	maxEvent = 6 * 1024 * 1024  // Lambda's, for an event
	// discardTime is how long the rest of a larger body is read before the connection ends.
	discardTime = 10 * time.Second
)

// Handler serves the template's API.
type Handler struct {
	api       template.API
	routes    []route
	host      *lambda.Host
	accessLog *log.Logger
}

// New returns the handler of a template's API. The handler writes one JSON line per request to accessLog, with the
// route and without path and query, which may be payload.
func New(t *template.Template, host *lambda.Host, accessLog io.Writer) (*Handler, error) {
	if err := validateResponses(t.API.Responses); err != nil {
		return nil, err
	}
	h := &Handler{api: t.API, host: host, accessLog: log.New(accessLog, "", 0)}
	settings := maps.Clone(t.API.Throttles)
	for _, function := range t.Functions {
		for _, r := range function.Routes {
			key := r.Method + " " + r.Path
			if _, own := t.API.Throttles[key]; !own {
				key = "* /*"
			}
			bucket := rate.NewLimiter(rate.Inf, 0)
			if throttle := t.API.Throttles[key]; throttle != (template.Throttle{}) {
				bucket = rate.NewLimiter(rate.Limit(throttle.PerSecond), throttle.Burst)
			}
			streams := r.TransferMode == "RESPONSE_STREAM"
			h.routes = append(h.routes, route{r, function.LogicalID, strings.Split(r.Path, "/"), streams, bucket})
			delete(settings, key)
		}
	}
	// API Gateway's documents do not say what the key of a method ANY is: a throttle of its own needs a method of its own.
	if len(settings) > 0 {
		return nil, fmt.Errorf("the MethodSettings throttle methods that no route has, or ANY: %v",
			slices.Sorted(maps.Keys(settings)))
	}
	return h, nil
}

// requestState is the state of one request.
type requestState struct {
	id         string // the request ID, in the response and in the event
	extendedID string
	at         time.Time
	request    *http.Request
	path       string // as sent, with its escapes
	route      *route
	parameters map[string]string // of the path
	body       []byte
	failure    string // for the log, of a request without a function's response
	invocation string // Lambda's ID of the event: $context.integration.requestId
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	state := h.newState(r)
	out := h.respond(state)
	control, tooLarge := http.NewResponseController(w), out.status == http.StatusRequestEntityTooLarge
	if tooLarge {
		_ = control.EnableFullDuplex() // the response begins before the whole body has come
	}
	err := out.write(w, state)
	if err != nil {
		state.failure = "the stream broke off: " + err.Error()
	}
	h.log(state, out)
	if tooLarge {
		// A connection that ends before the rest is read would be reset, and the client would not read the response.
		_ = control.Flush()
		_ = control.SetReadDeadline(time.Now().Add(discardTime))
		_, _ = io.Copy(io.Discard, state.request.Body)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client sees a response without an end
	}
}

// requestID returns $context.requestId, which a client can set by the header x-amzn-RequestId ("can be overridden by
// clients": API Gateway Developer Guide, variables for data models). A header that is no UUID is ignored here.
func requestID(r *http.Request) string {
	if id, err := uuid.Parse(r.Header.Get("X-Amzn-Requestid")); err == nil {
		return id.String()
	}
	return uuid.NewString()
}

// newState returns the state of a request that has just arrived.
func (h *Handler) newState(r *http.Request) *requestState {
	return &requestState{
		id: requestID(r), extendedID: rand.Text()[:15] + "=", at: time.Now(), request: r, path: sentPath(r),
	}
}

// respond sends a request through its function and returns the response to the client.
func (h *Handler) respond(state *requestState) *response {
	if !h.match(state) {
		kind := "MISSING_AUTHENTICATION_TOKEN"
		if state.request.Header.Get("Authorization") != "" { // the gateway takes any such header for a signature
			kind = "INVALID_SIGNATURE"
		}
		return h.gatewayResponse(state, kind, "no such route")
	}
	if state.request.ContentLength > maxBody { // there is no need to wait for it
		return h.gatewayResponse(state, "REQUEST_TOO_LARGE", "body over 10 MB")
	}
	body, err := io.ReadAll(io.LimitReader(state.request.Body, maxBody+1))
	if len(body) > maxBody {
		return h.gatewayResponse(state, "REQUEST_TOO_LARGE", "body over 10 MB")
	}
	if err != nil {
		return h.gatewayResponse(state, "BAD_REQUEST_BODY", "body could not be read")
	}
	state.body = body
	if !state.route.bucket.Allow() {
		return h.gatewayResponse(state, "THROTTLED", "over the stage's rate")
	}
	event, err := json.Marshal(h.newEvent(state))
	if err != nil {
		return h.gatewayResponse(state, "DEFAULT_5XX", err.Error())
	}
	if len(event) > maxEvent {
		return h.gatewayResponse(state, "REQUEST_TOO_LARGE", "event over 6 MB")
	}
	// A client that goes away ends neither the integration nor the function.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(state.request.Context()), state.route.Timeout)
	defer cancel()
	invoke := h.host.Invoke
	if state.route.stream {
		invoke = h.host.InvokeStream
	}
	result, err := invoke(ctx, state.route.function, event)
	state.invocation = result.RequestID
	if starting, ok := errors.AsType[*lambda.StartingError](err); ok {
		return startingResponse(state, starting)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, lambda.ErrNoneFree): // the event may have waited for a process
		return h.gatewayResponse(state, "INTEGRATION_TIMEOUT", "the function did not respond in time")
	case errors.Is(err, lambda.ErrThrottled):
		return h.gatewayResponse(state, "DEFAULT_5XX", err.Error()) // a 500, though it is Lambda's 429
	case err != nil:
		return h.gatewayResponse(state, "INTEGRATION_FAILURE", err.Error())
	case result.FunctionError != "":
		return h.gatewayResponse(state, malformed, "the function failed")
	}
	if result.Streamed != state.route.stream {
		return h.gatewayResponse(state, malformed, "the function streams where the route does not, or the other way round")
	}
	out, err := parse(result)
	if err != nil {
		return h.gatewayResponse(state, malformed, err.Error())
	}
	return out
}

// Event returns a template's event for a request, and the logical ID of the function that receives the event.
func Event(t *template.Template, r *http.Request) (function string, event []byte, err error) {
	h, err := New(t, nil, io.Discard)
	if err != nil {
		return "", nil, err
	}
	state := h.newState(r)
	if !h.match(state) {
		return "", nil, fmt.Errorf("%s is no route of the template", state.path)
	}
	if state.body, err = io.ReadAll(r.Body); err != nil {
		return "", nil, err
	}
	event, err = json.Marshal(h.newEvent(state))
	return state.route.function, event, err
}

// log writes the access log line.
func (h *Handler) log(state *requestState, out *response) {
	resource := ""
	if state.route != nil {
		resource = state.route.Path
	}
	line, _ := json.Marshal(struct { // texts and numbers always marshal
		Time      string `json:"time"`
		RequestID string `json:"request_id"`
		LambdaID  string `json:"lambda_request_id,omitempty"`
		SourceIP  string `json:"source_ip"`
		Method    string `json:"method"`
		Resource  string `json:"resource"`
		Status    int    `json:"status"`
		BytesIn   int    `json:"bytes_in"`
		BytesOut  int64  `json:"bytes_out"`
		Millis    int64  `json:"latency_ms"`
		Failure   string `json:"failure,omitempty"`
	}{
		state.at.UTC().Format("2006-01-02T15:04:05.000Z"), state.id, state.invocation, sourceIP(state.request),
		state.request.Method, resource,
		out.status,
		len(state.body), out.size, time.Since(state.at).Milliseconds(), state.failure,
	})
	h.accessLog.Print(string(line))
}

const apiID = "local"

// event is the input of a Lambda function for proxy integration. Its own fields are those that AWS sends as null or
// false, where package events leaves them out.
type event struct {
	events.APIGatewayProxyRequest
	RequestContext  map[string]any `json:"requestContext"`
	Body            *string        `json:"body"`
	IsBase64Encoded bool           `json:"isBase64Encoded"`
}

// notPassed are the headers that the gateway does not pass on.
var notPassed = []string{"Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade"}

func (h *Handler) newEvent(state *requestState) event {
	r := state.request
	headers := r.Header.Clone()
	for _, name := range notPassed {
		headers.Del(name)
	}
	address := sourceIP(r)
	if forwarded := headers.Values("X-Forwarded-For"); len(forwarded) > 0 {
		address = strings.Join(forwarded, ", ") + ", " + address
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	headers.Set("Host", r.Host)
	headers.Set("X-Amzn-Trace-Id",
		fmt.Sprintf("Root=1-%08x-%s", state.at.Unix(), strings.ReplaceAll(state.id, "-", "")[:24]))
	headers.Set("X-Forwarded-For", address)
	headers.Set("X-Forwarded-Port", port)
	headers.Set("X-Forwarded-Proto", "http")
	query := query(r.URL.RawQuery)
	e := event{
		APIGatewayProxyRequest: events.APIGatewayProxyRequest{
			Resource: state.route.Path, Path: state.path, HTTPMethod: r.Method,
			Headers: last(headers), MultiValueHeaders: headers,
			QueryStringParameters: last(query), MultiValueQueryStringParameters: query,
		},
		RequestContext: map[string]any{
			"accountId":         template.AccountID,
			"apiId":             apiID,
			"domainName":        r.Host,
			"domainPrefix":      apiID,
			"extendedRequestId": state.extendedID,
			"httpMethod":        r.Method,
			"identity":          identity(r),
			"path":              "/" + h.api.Stage + state.path,
			"protocol":          r.Proto,
			"requestId":         state.id,
			"requestTime":       state.at.UTC().Format("02/Jan/2006:15:04:05 +0000"),
			"requestTimeEpoch":  state.at.UnixMilli(),
			"resourceId":        "local",
			"resourcePath":      state.route.Path,
			"stage":             h.api.Stage,
		},
	}
	if len(state.parameters) > 0 {
		e.PathParameters = state.parameters
	}
	if len(state.body) > 0 { // each media type of the API is binary
		body := base64.StdEncoding.EncodeToString(state.body)
		e.Body, e.IsBase64Encoded = &body, true
	}
	return e
}

// identity returns the client's identity, with null for what only an authorizer finds out.
func identity(r *http.Request) map[string]any {
	fields := map[string]any{"sourceIp": sourceIP(r)}
	for _, name := range []string{"accessKey", "accountId", "caller", "cognitoAuthenticationProvider",
		"cognitoAuthenticationType", "cognitoIdentityId", "cognitoIdentityPoolId", "principalOrgId", "user", "userAgent",
		"userArn"} {
		fields[name] = nil
	}
	if agent := r.UserAgent(); agent != "" {
		fields["userAgent"] = agent
	}
	return fields
}

// query decodes a query once. What cannot be decoded stays as it is; nil where there is none.
func query(raw string) map[string][]string {
	values := url.Values{}
	for pair := range strings.SplitSeq(raw, "&") {
		if name, v, _ := strings.Cut(pair, "="); pair != "" {
			values.Add(unescape(name), unescape(v))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return values
}

func unescape(s string) string {
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	return s
}

// last gives the last value of each name, as AWS fills the fields of single values.
func last(values map[string][]string) map[string]string {
	if values == nil {
		return nil
	}
	single := make(map[string]string, len(values))
	for name, list := range values {
		single[name] = list[len(list)-1]
	}
	return single
}

func sourceIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

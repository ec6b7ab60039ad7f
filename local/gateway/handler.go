// Package gateway simulates Amazon API Gateway's REST API (v1) with Lambda proxy integrations: the gateway converts HTTP
// requests into proxy events and the functions' results into HTTP responses. Routes, time-outs and the gateway's own
// responses are those of the template.
package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"svcapi/local/lambda"
	"svcapi/local/template"
)

const (
	maxBody  = 10 * 1024 * 1024 // API Gateway's
	maxEvent = 6 * 1024 * 1024  // Lambda's, for an event
)

// Handler serves the template's API.
type Handler struct {
	api       template.API
	routes    []route
	responses map[string]response
	host      *lambda.Host

	mu        sync.Mutex
	accessLog io.Writer
}

// New returns the handler of a template's API. The handler writes one JSON line per request to accessLog, with the route
// and without path and query, which may be payload.
func New(t *template.Template, host *lambda.Host, accessLog io.Writer) (*Handler, error) {
	responses, err := newResponses(t.API)
	if err != nil {
		return nil, err
	}
	h := &Handler{api: t.API, responses: responses, host: host, accessLog: accessLog}
	for _, function := range t.Functions {
		for _, r := range function.Routes {
			h.routes = append(h.routes, newRoute(function.LogicalID, r, t.API.Throttle))
		}
	}
	return h, nil
}

// requestState is what the gateway knows of one request.
type requestState struct {
	id         string // the request ID, on the answer and in the event
	extendedID string
	at         time.Time
	api        template.API
	request    *http.Request
	path       string // as it was sent, escapes and all
	route      *route
	parameters map[string]string // of the path
	body       []byte
	failure    string // for the log, of a request without a function's response
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := h.begin(r)
	a := h.answer(x, w)
	a.write(w, x)
	h.log(x, a)
}

func (h *Handler) begin(r *http.Request) *requestState {
	return &requestState{
		id: uuid.NewString(), extendedID: rand.Text()[:15] + "=", at: time.Now(), api: h.api, request: r, path: sentPath(r),
	}
}

func (h *Handler) answer(x *requestState, w http.ResponseWriter) *answer {
	if !h.match(x) {
		// The gateway takes any Authorization header for a signature.
		if x.request.Header.Get("Authorization") != "" {
			return h.own(x, "INVALID_SIGNATURE", "no such route")
		}
		return h.own(x, "MISSING_AUTHENTICATION_TOKEN", "no such route")
	}
	if x.request.ContentLength > maxBody { // there is no need to wait for it
		return h.own(x, "REQUEST_TOO_LARGE", "body over 10 MB")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, x.request.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return h.own(x, "REQUEST_TOO_LARGE", "body over 10 MB")
	}
	if err != nil {
		return h.own(x, "BAD_REQUEST_BODY", "body could not be read")
	}
	x.body = body
	if !x.route.bucket.Allow() {
		return h.own(x, "THROTTLED", "over the stage's rate")
	}
	event, err := json.Marshal(newEvent(x))
	if err != nil {
		return h.own(x, "DEFAULT_5XX", err.Error())
	}
	if len(event) > maxEvent {
		return h.own(x, "REQUEST_TOO_LARGE", "event over 6 MB")
	}
	// A client that goes away ends neither the integration nor the function.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.request.Context()), x.route.timeout)
	defer cancel()
	result, err := h.host.Invoke(ctx, x.route.function, event)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return h.own(x, "INTEGRATION_TIMEOUT", "the function did not respond in time")
	case errors.Is(err, lambda.ErrThrottled):
		return h.own(x, "DEFAULT_5XX", err.Error()) // a 500, though it is Lambda's 429
	case err != nil:
		return h.own(x, "INTEGRATION_FAILURE", err.Error())
	case result.FunctionError != "":
		return h.malformed(x, "the function failed")
	}
	if result.Streamed != x.route.stream {
		return h.malformed(x, "the function streams where the route does not, or the other way round")
	}
	a, err := parse(result, x)
	if err != nil {
		return h.malformed(x, err.Error())
	}
	return a
}

// Event returns a template's event for a request, and the logical ID of the function that receives the event.
func Event(t *template.Template, r *http.Request) (function string, event []byte, err error) {
	h, err := New(t, nil, io.Discard)
	if err != nil {
		return "", nil, err
	}
	x := h.begin(r)
	if !h.match(x) {
		return "", nil, fmt.Errorf("%s is no route of the template", x.path)
	}
	if x.body, err = io.ReadAll(r.Body); err != nil {
		return "", nil, err
	}
	event, err = json.Marshal(newEvent(x))
	return x.route.function, event, err
}

// log writes the access log line.
func (h *Handler) log(x *requestState, a *answer) {
	resource := ""
	if x.route != nil {
		resource = x.route.path
	}
	line, err := json.Marshal(struct {
		Time      string `json:"time"`
		RequestID string `json:"request_id"`
		SourceIP  string `json:"source_ip"`
		Method    string `json:"method"`
		Resource  string `json:"resource"`
		Status    int    `json:"status"`
		BytesIn   int    `json:"bytes_in"`
		BytesOut  int    `json:"bytes_out"`
		Millis    int64  `json:"latency_ms"`
		Failure   string `json:"failure,omitempty"`
	}{
		x.at.UTC().Format("2006-01-02T15:04:05.000Z"), x.id, sourceIP(x.request), x.request.Method, resource, a.status,
		len(x.body), len(a.body), time.Since(x.at).Milliseconds(), x.failure,
	})
	if err != nil {
		return // texts and numbers always marshal
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.accessLog.Write(append(line, '\n')) // a failing log can report nothing
}

package api

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/telemetry"
)

const jsonType = "application/json"

// answer is what goes back over HTTP.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	failure *Error // nil: success
}

type successEnvelope struct {
	Success   bool   `json:"success"`
	RequestID string `json:"request_id"`
	Data      any    `json:"data"`
	Meta      any    `json:"meta,omitzero"`
}

type errorEnvelope struct {
	Success   bool      `json:"success"`
	RequestID string    `json:"request_id"`
	Error     errorBody `json:"error"`
}

type errorBody struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Details Problems `json:"details,omitzero"`
}

// encode writes JSON as the API does: deterministic, and with vendor text that
// is no valid UTF-8 made valid.
func encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

func success(r *Result, requestID string) answer {
	if m := r.Media; m != nil {
		return answer{status: 200, body: m.Body, header: http.Header{
			"Content-Type": {m.Type}, "Content-Disposition": {m.Disposition},
			"Content-Length": {strconv.Itoa(len(m.Body))},
		}}
	}
	body, err := encode(successEnvelope{true, requestID, r.Data, r.Meta})
	if err != nil {
		return failure(ErrInternal.Because(err))
	}
	header := http.Header{"Content-Type": {jsonType}}
	if r.replayed {
		header.Set(replayedHeader, "true")
	}
	return answer{status: 200, header: header, body: body}
}

// failure makes the answer of an error; one that is no *Error is internal.
func failure(err error) answer {
	var e *Error
	if !errors.As(err, &e) {
		e = ErrInternal.Because(err)
	}
	header := http.Header{"Content-Type": {jsonType}}
	maps.Copy(header, e.Header)
	return answer{status: e.Status, header: header, failure: e}
}

func (a *answer) write(w http.ResponseWriter, requestID string) {
	if a.failure != nil {
		// Plain strings and lists of them: encoding cannot fail.
		a.body, _ = encode(errorEnvelope{false, requestID, errorBody{a.failure.Code, a.failure.Message, a.failure.Details}})
	}
	maps.Copy(w.Header(), a.header)
	identify(w, requestID)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func identify(w http.ResponseWriter, requestID string) {
	w.Header()["X-SVC-Request-ID"] = []string{requestID} // as the contract writes it
}

// Identify puts the request's ID on an answer that is not made by a Service, and returns it.
func Identify(w http.ResponseWriter, r *http.Request) string {
	id := requestID(r.Context())
	identify(w, id)
	return id
}

// Refuse answers with an error in the envelope where no Service does.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	a := failure(err)
	a.write(w, requestID(r.Context()))
}

// outcomes name a status's class where metrics are told apart by it.
var outcomes = map[int]string{
	401: "unauthorized", 402: "insufficient_funds", 429: "throttled", 502: "vendor_failed", 503: "unavailable",
}

// outcome is the dimension of metrics: bounded, and the same for all operations.
func (a *answer) outcome() string {
	name, named := outcomes[a.status]
	switch {
	case a.failure == nil:
		return "success"
	case a.failure.Uncertain:
		return "uncertain"
	case a.failure.Code == CodeProjectPaused:
		return "paused"
	case named:
		return name
	case a.failure.Vendor != "" && a.status >= 500:
		return "vendor_failed"
	case a.status >= 500:
		return "error"
	}
	return "refused"
}

// maxPayload is how much of a request's body a log entry holds, in bytes.
const maxPayload = 4 << 10

// record prints the request's one line.
func (s *Service) record(ctx context.Context, x *exchange, a answer) {
	elapsed := s.now().Sub(x.started)
	vendor, level := x.vendor, slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("request_id", x.id), slog.Int("status", a.status), slog.String("method", x.request.Method),
		slog.Int("response_bytes", len(a.body)),
	}
	if x.record != nil {
		attributes = append(attributes, slog.String("project", x.record.ID),
			slog.String("environment", string(x.environment)), slog.String("mode", string(x.mode)))
	}
	if e := a.failure; e != nil {
		vendor = e.Vendor
		attributes = append(attributes, slog.String("code", e.Code))
		if !x.privacy {
			attributes = append(attributes, slog.String("error", e.Error()))
		}
		if a.status >= 500 && e.Code != CodeProjectPaused {
			level = slog.LevelError
		}
	}
	if x.playground {
		attributes = append(attributes, slog.String("client", "playground"))
	}
	if x.decoded && !x.privacy && len(x.body) > 0 {
		attributes = append(attributes, slog.String("payload", cut(string(x.body), maxPayload)))
	}
	operation := x.operation
	if operation == "" {
		operation = "none"
	}
	s.log.Emit(ctx, telemetry.Event{
		Level: level, Message: "request",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: operation}, {Name: "outcome", Value: a.outcome()}, {Name: "vendor", Value: vendor}},
		Metrics: append([]telemetry.Metric{
			{Name: "Requests", Unit: telemetry.Count, Value: 1, Across: true},
			{Name: "Duration", Unit: telemetry.Milliseconds, Value: float64(elapsed.Microseconds()) / 1000},
			{Name: "Credits", Unit: telemetry.Count, Value: float64(x.credits)},
		}, x.metrics...),
		Attributes: append(attributes, x.attributes...),
	})
}

// cut shortens a text to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

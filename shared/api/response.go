package api

import (
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

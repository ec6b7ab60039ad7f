package request

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const jsonType = "application/json"

// StrictTransport is the Strict-Transport-Security of every response (RFC 6797): HTTPS for a year, for this host alone.
const StrictTransport = "max-age=31536000"

type response struct {
	status  int
	header  http.Header
	body    []byte
	base64  []byte // follows body, as Base64
	end     []byte // follows base64
	failure *Error // nil: success
}

func (resp *response) size() int {
	return len(resp.body) + base64.StdEncoding.EncodedLen(len(resp.base64)) + len(resp.end)
}

type successEnvelope struct {
	Success   bool   `json:"success"`
	RequestID string `json:"request_id"`
	Data      any    `json:"data"`
	Meta      any    `json:"meta,omitzero"`
}

// encode writes JSON as the API does: deterministic, and with a replacement character for each invalid byte of vendor
// text.
func encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

func success(r *Result, requestID string) response {
	resp := response{status: 200, header: http.Header{"Content-Type": {jsonType}}}
	var err error
	switch m := r.Media; {
	case m == nil:
		resp.body, err = encode(successEnvelope{true, requestID, r.Data, r.Meta})
	case m.Base64:
		// The text is not made before it is sent, as it may be longer than the memory allows.
		resp.body, err = encode(successEnvelope{Success: true, RequestID: requestID, Data: base64Data{"base64", m.Type, ""}})
		at := bytes.LastIndex(resp.body, []byte(`""`)) + 1
		resp.body, resp.base64, resp.end = resp.body[:at], m.Body, resp.body[at:]
	default:
		resp.body = m.Body
		resp.header = http.Header{
			"Content-Type": {m.Type}, "Content-Disposition": {m.Disposition}, "Content-Length": {strconv.Itoa(len(m.Body))},
		}
	}
	if err != nil {
		return failure(ErrInternal.WithCause(err))
	}
	maps.Copy(resp.header, r.Header)
	if r.replayed {
		resp.header.Set(replayedHeader, "true")
	}
	return resp
}

// base64Data is the envelope's data of a result in Base64. Data is the last field.
type base64Data struct {
	Format    string `json:"format"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

func (resp *response) write(w http.ResponseWriter, requestID string) {
	if resp.failure != nil {
		resp.body = resp.failure.envelope(requestID)
	}
	maps.Copy(w.Header(), resp.header)
	identify(w, requestID)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Strict-Transport-Security", StrictTransport)
	w.WriteHeader(resp.status)
	_, _ = w.Write(resp.body)
	if stream, ok := w.(*streamWriter); ok && resp.base64 != nil {
		stream.body = append(stream.body, &base64Reader{bytes: resp.base64})
	} else if resp.base64 != nil {
		_, _ = w.Write(base64.StdEncoding.AppendEncode(nil, resp.base64))
	}
	if resp.end != nil {
		_, _ = w.Write(resp.end)
	}
}

// announceLimit sets the headers of the rate limit for a counted request, in the letter case of openapi.yaml.
func (state *requestState) announceLimit(header http.Header) {
	if state.window == nil {
		return
	}
	rate := state.window.Decision()
	if rate == nil {
		return
	}
	for name, value := range map[string]int{
		"X-RateLimit-Limit": rate.Limit, "X-RateLimit-Remaining": rate.Remaining, "X-RateLimit-Reset": seconds(rate.Reset),
	} {
		header[name] = []string{strconv.Itoa(value)}
	}
}

// maxNamed and maxName bound the names of ignored fields in a response: their number and their length.
const maxNamed, maxName = 5, 40

// warn adds the warnings of Decode and the one about ignored fields to a response
// (docs/decisions/requests.md#warnings).
func (state *requestState) warn(resp *response) {
	warnings := append(slices.Clone(resp.header["X-SVC-Warnings"]), state.warnings...) //nolint:staticcheck // openapi.yaml
	if len(state.ignored) > 0 {
		warnings = append(warnings, state.unknownFields())
	}
	if len(warnings) > 0 {
		resp.header["X-SVC-Warnings"] = []string{strings.Join(warnings, ", ")}
	}
}

// unknownFields returns the warning about ignored fields. Names that a quoted string of ASCII cannot hold are counted
// only.
func (state *requestState) unknownFields() string {
	var names []string
	for _, name := range state.ignored {
		if len(names) < maxNamed && len(name) <= maxName &&
			strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) < 0 {
			names = append(names, name)
		}
	}
	warning := fmt.Sprintf("unknown-fields;n=%d", len(state.ignored))
	if len(names) > 0 {
		warning += `;names="` + strings.Join(names, " ") + `"`
	}
	return warning
}

func identify(w http.ResponseWriter, requestID string) {
	w.Header()["X-SVC-Request-ID"] = []string{requestID} // in the letter case of openapi.yaml#RequestID
}

// Identify sets the request's ID on a response that no Service makes.
func Identify(w http.ResponseWriter, r *http.Request) { identify(w, requestID(r.Context())) }

// Refuse writes an error in the envelope where no Service does.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	resp := failure(err)
	resp.write(w, requestID(r.Context()))
}

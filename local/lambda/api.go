package lambda

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"svcapi/local/template"
)

// maxPayload is the most bytes that Lambda accepts for an event.
const maxPayload = 6 * 1024 * 1024

// API serves the Lambda API's Invoke of type RequestResponse, and InvokeWithResponseStream. A function is named by its
// name, its logical ID or its ARN, also with the alias live, which the template publishes.
func (h *Host) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", h.serve(false, writeResult))
	mux.HandleFunc("POST /2021-11-15/functions/{name}/response-streaming-invocations", h.serve(true, writeStream))
	return mux
}

// called returns the named function and the tenant ID of a call, and the event, or writes Lambda's refusal and returns
// false.
func (h *Host) called(w http.ResponseWriter, r *http.Request) (key poolKey, payload []byte, ok bool) {
	name := r.PathValue("name")
	if _, after, isARN := strings.Cut(name, ":function:"); isARN {
		name = after
	}
	name, qualifier, _ := strings.Cut(name, ":")
	if q := r.URL.Query().Get("Qualifier"); q != "" {
		qualifier = q
	}
	h.mu.Lock()
	for known, pool := range h.pools {
		if known.function == name || pool.function.Name == name {
			key = poolKey{known.function, r.Header.Get("X-Amz-Tenant-Id")}
		}
	}
	h.mu.Unlock()
	if key.function == "" || qualifier != "" && qualifier != "live" && qualifier != "$LATEST" {
		refuseCall(w, http.StatusNotFound, "ResourceNotFoundException",
			"Function not found: arn:aws:lambda:"+template.Region+":"+template.AccountID+":function:"+r.PathValue("name"))
		return poolKey{}, nil, false
	}
	if kind := r.Header.Get("X-Amz-Invocation-Type"); kind != "" && kind != "RequestResponse" {
		refuseCall(w, http.StatusBadRequest, "InvalidParameterValueException",
			"the local stack plays no invocation of type "+kind)
		return poolKey{}, nil, false
	}
	payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	if err != nil {
		refuseCall(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", "the event is over 6 MB, or incomplete")
		return poolKey{}, nil, false
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	if !json.Valid(payload) {
		refuseCall(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
		return poolKey{}, nil, false
	}
	return key, payload, true
}

// serve returns the handler of a call. write writes the result of a call that Lambda does not refuse.
func (h *Host) serve(streams bool, write func(http.ResponseWriter, Result)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, payload, ok := h.called(w, r)
		if !ok {
			return
		}
		result, err := h.invoke(r.Context(), key, payload, streams)
		w.Header().Set("X-Amzn-RequestId", result.RequestID)
		switch {
		case errors.Is(err, errTenant), errors.Is(err, errNoTenant):
			refuseCall(w, http.StatusBadRequest, "InvalidParameterValueException", err.Error())
		case errors.Is(err, ErrThrottled):
			refuseCall(w, http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
		case err != nil:
			refuseCall(w, http.StatusInternalServerError, "ServiceException", err.Error())
		default:
			w.Header().Set("X-Amz-Executed-Version", "$LATEST")
			write(w, result)
		}
	}
}

func writeResult(w http.ResponseWriter, result Result) {
	w.Header().Set("Content-Type", "application/json")
	if result.FunctionError != "" {
		w.Header().Set("X-Amz-Function-Error", result.FunctionError)
	}
	_, _ = w.Write(result.Payload) // the caller may have gone
}

func writeStream(w http.ResponseWriter, result Result) {
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	encoder, flusher := eventstream.NewEncoder(), http.NewResponseController(w)
	send := func(kind, contentType string, payload []byte) bool {
		m := eventstream.Message{Payload: payload}
		for name, value := range map[string]string{":message-type": "event", ":event-type": kind,
			":content-type": contentType} {
			m.Headers.Set(name, eventstream.StringValue(value))
		}
		return encoder.Encode(w, m) == nil && flusher.Flush() == nil
	}
	failure := &FunctionError{}
	switch {
	case result.FunctionError != "":
		failure = &FunctionError{result.FunctionError, string(result.Payload)}
	case result.Stream == nil:
		send("PayloadChunk", "application/octet-stream", result.Payload)
	default:
		chunk := make([]byte, 64<<10)
		for {
			n, err := result.Stream.Read(chunk)
			if n > 0 && !send("PayloadChunk", "application/octet-stream", chunk[:n]) {
				return // the caller has gone
			}
			if err != nil {
				failure, _ = errors.AsType[*FunctionError](err)
				break
			}
		}
	}
	complete := map[string]string{}
	if failure != nil && failure.Kind != "" {
		complete["ErrorCode"], complete["ErrorDetails"] = failure.Kind, failure.Message
	}
	text, _ := json.Marshal(complete) // texts always marshal
	send("InvokeComplete", "application/json", text)
}

// refuseCall writes an error of the Lambda API.
func refuseCall(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("X-Amzn-ErrorType", kind)
	sendJSON(w, status, map[string]string{"Type": "User", "message": message})
}

// stream carries a streamed response from the process of a function to the caller of the event. A stream keeps what the
// caller has not read: Lambda takes a function's response to its end, also where the caller has gone.
type stream struct {
	mu    sync.Mutex
	more  sync.Cond
	bytes []byte
	ended error // io.EOF after a complete response; nil: more may come
}

func newStream() *stream {
	s := &stream{}
	s.more.L = &s.mu
	return s
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = append(s.bytes, p...)
	s.more.Signal()
	return len(p), nil
}

// end ends the stream with an error, or with io.EOF. The stream may be nil.
func (s *stream) end(err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
	s.more.Signal()
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.bytes) == 0 {
		if s.ended != nil {
			return 0, s.ended
		}
		s.more.Wait()
	}
	n := copy(p, s.bytes)
	s.bytes = s.bytes[n:]
	return n, nil
}

// FunctionError is the error at which a streamed response breaks off.
type FunctionError struct {
	Kind    string // as Lambda names it
	Message string
}

// Error implements error.
func (e *FunctionError) Error() string { return e.Kind + ": " + e.Message }

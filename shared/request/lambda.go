package request

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// gatewayLimit is the time after which API Gateway gives up, counted from its receipt of the request. The start of a
// function counts for the gateway and not for the function (docs/decisions/requests.md#time-budget).
const gatewayLimit = 29 * time.Second

// staleAfter is the age from which an event counts as received now, because the event is replayed from a file.
const staleAfter = time.Minute

// Lambda returns a handler of API Gateway REST (v1) proxy events.
func Lambda(handler http.Handler) func(context.Context,
	events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	adapter := httpadapter.New(handler)
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		ctx, cancel := begin(ctx, &event)
		defer cancel()
		return adapter.ProxyWithContext(ctx, event)
	}
}

// lambdaStream returns a handler as Lambda does, which streams every response of the resources in streams.
func lambdaStream(handler http.Handler, streams []string) func(context.Context,
	events.APIGatewayProxyRequest) (any, error) {
	whole, adapter := Lambda(handler), httpadapter.New(handler)
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (any, error) {
		if !slices.Contains(streams, event.Resource) {
			return whole(ctx, event)
		}
		ctx, cancel := begin(ctx, &event)
		defer cancel()
		request, err := adapter.EventToRequestWithContext(ctx, event)
		if err != nil {
			return nil, err
		}
		w := &streamWriter{header: http.Header{}}
		handler.ServeHTTP(w, request)
		return w.response(), nil
	}
}

// begin prepares an event for the adapter, and returns the context of its request.
func begin(ctx context.Context, event *events.APIGatewayProxyRequest) (context.Context, context.CancelFunc) {
	// The adapter fails on an invalid host or path, such as a malformed escape: the gateway would return its own 500.
	if _, err := url.Parse("https://" + event.RequestContext.DomainName); err != nil {
		event.RequestContext.DomainName = ""
	}
	if _, err := url.Parse("https://host/" + event.Path); err != nil {
		event.Path = "/"
	}
	event.RequestContext.RequestID = invocationID(ctx)
	return withDeadline(ctx, event.RequestContext.RequestTimeEpoch)
}

// streamWriter keeps a response for the stream to the gateway, without a copy of a body, which may fill the memory.
type streamWriter struct {
	status int
	header http.Header
	body   []io.Reader
}

// Header implements http.ResponseWriter.
func (w *streamWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *streamWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter. The bytes must not change afterwards.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.body = append(w.body, bytes.NewReader(p))
	return len(p), nil
}

// response returns the response as the gateway takes it. A stream has no length.
func (w *streamWriter) response() *events.APIGatewayProxyStreamingResponse {
	w.header.Del("Content-Length")
	return &events.APIGatewayProxyStreamingResponse{StatusCode: w.status, MultiValueHeaders: w.header,
		Body: io.MultiReader(w.body...)}
}

// base64Reader reads bytes as Base64.
type base64Reader struct {
	bytes []byte
	text  []byte // that is read before bytes
}

// base64Chunk is the number of bytes that a base64Reader encodes at once, a multiple of three.
const base64Chunk = 48 << 10

// Read implements io.Reader.
func (r *base64Reader) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		if len(r.bytes) == 0 {
			return 0, io.EOF
		}
		n := min(len(r.bytes), base64Chunk)
		r.text = base64.StdEncoding.AppendEncode(nil, r.bytes[:n])
		r.bytes = r.bytes[n:]
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// withDeadline returns a context that ends at the gateway's limit or before. The stream of a response may take longer.
func withDeadline(ctx context.Context, epochMilliseconds int64) (context.Context, context.CancelFunc) {
	received := time.UnixMilli(epochMilliseconds)
	if time.Since(received).Abs() > staleAfter {
		received = time.Now()
	}
	return context.WithDeadline(ctx, received.Add(gatewayLimit))
}

// invocationID returns Lambda's own ID of the invocation, and never the gateway's, which a client can choose
// (docs/decisions/requests.md#request-id).
func invocationID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		if id, err := uuid.Parse(lc.AwsRequestID); err == nil {
			return id.String()
		}
	}
	return uuid.NewString()
}

// requestID returns the ID of the request that the context belongs to, or a new ID.
func requestID(ctx context.Context) string {
	return cmp.Or(gatewayOf(ctx).RequestID, uuid.NewString())
}

// gatewayOf returns what the gateway says of the context's request, such as the time at which the gateway received the
// request, and its extended ID, which is in the gateway's own logs and no client chooses.
func gatewayOf(ctx context.Context) events.APIGatewayProxyRequestContext {
	gateway, _ := core.GetAPIGatewayContextFromContext(ctx)
	return gateway
}

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

// envelope is the body of each response in JSON.
type envelope struct {
	Success   bool       `json:"success"`
	RequestID string     `json:"request_id"`
	Data      any        `json:"data,omitzero"`
	Meta      any        `json:"meta,omitzero"`
	Error     *errorBody `json:"error,omitzero"`
}

// encode writes JSON in a fixed order, with a replacement character for each invalid byte of vendor text.
func encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

func success(r *Result, requestID string) response {
	resp := response{status: 200, header: http.Header{"Content-Type": {jsonType}}}
	var err error
	switch m := r.Media; {
	case m == nil:
		resp.body, err = encode(envelope{Success: true, RequestID: requestID, Data: r.Data, Meta: r.Meta})
	case m.Base64:
		// The text is not made before it is sent, as it may be longer than the memory allows.
		resp.body, err = encode(envelope{Success: true, RequestID: requestID, Data: base64Data{"base64", m.Type, ""}})
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
	w.Header()[requestIDHeader] = []string{requestID}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Strict-Transport-Security", StrictTransport)
	w.WriteHeader(resp.status)
	_, _ = w.Write(resp.body)
	if stream, ok := w.(*streamWriter); ok && resp.base64 != nil {
		stream.body = append(stream.body, &base64Reader{bytes: resp.base64})
	} else if resp.base64 != nil {
		_, _ = w.Write(base64.StdEncoding.AppendEncode(nil, resp.base64))
	}
	_, _ = w.Write(resp.end)
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

// warn adds the warnings to a response (docs/decisions/requests.md#warnings).
func (state *requestState) warn(resp *response) {
	warnings := append(slices.Clone(resp.header["X-SVC-Warnings"]), state.warnings...) //nolint:staticcheck // openapi.yaml
	if len(state.ignored) > 0 {
		warnings = append(warnings, state.unknownFields())
	}
	if len(warnings) > 0 {
		resp.header["X-SVC-Warnings"] = []string{strings.Join(warnings, ", ")}
	}
}

// unknownFields returns the warning about ignored fields, without names that a quoted string of ASCII cannot hold.
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

// requestIDHeader has the letter case of openapi.yaml#RequestID.
const requestIDHeader = "X-SVC-Request-ID"

// Identify sets the request's ID on a response that no Service makes.
func Identify(w http.ResponseWriter, r *http.Request) {
	w.Header()[requestIDHeader] = []string{requestID(r.Context())}
}

// Refuse writes an error in the envelope where no Service does.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	resp := failure(err)
	resp.write(w, requestID(r.Context()))
}

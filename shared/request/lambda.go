package request

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
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

// streamWriter keeps a response for the stream to the gateway. It copies no body, as a body may fill much of the
// memory.
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

// requestID returns the ID of the request that the context belongs to.
func requestID(ctx context.Context) string {
	gateway, ok := core.GetAPIGatewayContextFromContext(ctx)
	if !ok {
		return uuid.NewString()
	}
	return gateway.RequestID
}

// gatewayID returns the gateway's extended ID of the request, which is in the gateway's own logs and no client chooses.
func gatewayID(ctx context.Context) string {
	gateway, _ := core.GetAPIGatewayContextFromContext(ctx)
	return gateway.ExtendedRequestID
}

// received returns when the gateway received the request that the context belongs to, or the zero time.
func received(ctx context.Context) time.Time {
	gateway, _ := core.GetAPIGatewayContextFromContext(ctx)
	return time.UnixMilli(gateway.RequestTimeEpoch)
}

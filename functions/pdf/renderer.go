package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/go-json-experiment/json"

	"svcapi/functions/pdf/render/event"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

// timeForResult is the end of the time of a render, in which the renderer's response reaches this function.
const timeForResult = time.Second

// renderer calls the function pdfrender (docs/decisions/pdf.md#pdf-renderer).
type renderer struct {
	aws      aws.Config
	client   aws.HTTPClient
	function string
	isolates bool // the function takes a tenant ID
	after    afterResponse
}

// afterResponse runs work when the response to a request has been sent, as request.Service does.
type afterResponse func(ctx context.Context, name string, work func(context.Context) error)

func newRenderer(cfg aws.Config, c config, after afterResponse) *renderer {
	return &renderer{
		aws: cfg, client: dynamo.HTTPClient(dynamo.AttemptTimeout).WithTimeout(0), // a stream takes as long as its render
		function: c.Renderer, isolates: c.Isolation == projectIsolation, after: after,
	}
}

// render returns the result of a project's event. A renderer that dies is replaced once, while the time lasts: a render
// has no effect but its result. A renderer that Lambda has no room for is not asked again, because the next call would
// need that room, too.
func (r *renderer) render(ctx context.Context, p *project.Project, e event.Event) (event.Result, error) {
	if until, ok := ctx.Deadline(); ok {
		e.Deadline = until.Add(-timeForResult).UnixMilli()
	}
	payload, err := e.Encode()
	if err != nil {
		return event.Result{}, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if r.isolates {
		header.Set("X-Amz-Tenant-Id", p.TenantID())
	}
	result, err := r.call(ctx, header, payload, e.MaxBytes)
	refused, ok := errors.AsType[*callError](err)
	// Another call may succeed where the renderer or the connection died, or Lambda itself failed.
	if err != nil && ctx.Err() == nil && (!ok || refused.status >= 500) {
		first := err
		if result, err = r.call(ctx, header, payload, e.MaxBytes); err != nil {
			err = fmt.Errorf("%w; before that: %w", err, first)
		}
	}
	if err != nil {
		return result, fmt.Errorf("renderer: %w", err)
	}
	return result, nil
}

// callError is the error of Lambda itself, by the HTTP status and the name of the error.
type callError struct {
	status int
	name   string
}

func (e *callError) Error() string { return fmt.Sprintf("HTTP status %d: %s", e.status, e.name) }

// call makes one call, and returns when the last byte of the result has come (AWS Lambda API Reference,
// InvokeWithResponseStream).
func (r *renderer) call(ctx context.Context, header http.Header, payload []byte, maxBytes int64) (event.Result, error) {
	// The end of the stream is read after the response, when ctx has ended.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	in, err := r.stream(streaming, header, payload)
	if err != nil {
		cancel()
		return event.Result{}, errors.Join(context.Cause(ctx), err)
	}
	end := func() error {
		defer cancel()
		return in.body.Close()
	}
	result, err := event.Read(in, maxBytes)
	if err != nil {
		return event.Result{}, errors.Join(context.Cause(ctx), in.err, err, end())
	}
	r.after(ctx, "end call of the renderer", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, cancel)()
		_, err := io.Copy(io.Discard, in)
		_, rest := io.Copy(io.Discard, in.body) // a connection is used again after the end of its body
		return errors.Join(err, rest, end())
	})
	return result, nil
}

// stream begins a call of the function and returns its response.
func (r *renderer) stream(ctx context.Context, header http.Header, payload []byte) (*chunks, error) {
	request, err := dynamo.SignedRequest(ctx, r.aws, "lambda", http.MethodPost,
		"/2021-11-15/functions/"+url.QueryEscape(r.function)+"/response-streaming-invocations", header, payload)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		name, _, _ := strings.Cut(response.Header.Get("X-Amzn-ErrorType"), ":")
		return nil, errors.Join(&callError{response.StatusCode, name}, response.Body.Close())
	}
	return &chunks{body: response.Body, decoder: eventstream.NewDecoder()}, nil
}

// chunks reads the payload of a stream.
type chunks struct {
	body    io.ReadCloser
	decoder *eventstream.Decoder
	rest    []byte
	err     error // of the function or of the stream; io.EOF at the end
}

// Read implements io.Reader.
func (c *chunks) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		c.rest, c.err = c.next()
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next returns the payload of the next chunk, and io.EOF after the last one.
func (c *chunks) next() ([]byte, error) {
	message, err := c.decoder.Decode(c.body, nil)
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	header := func(name string) string {
		value, _ := message.Headers.Get(name).(eventstream.StringValue)
		return string(value)
	}
	switch kind := header(":event-type"); {
	case header(":message-type") != "event":
		return nil, fmt.Errorf("the stream failed: %s: %s", header(":exception-type"), message.Payload)
	case kind == "PayloadChunk":
		return message.Payload, nil
	case kind != "InvokeComplete":
		return nil, nil
	}
	var end struct{ ErrorCode, ErrorDetails string }
	if err := json.Unmarshal(message.Payload, &end); err != nil {
		return nil, err
	}
	if end.ErrorCode != "" {
		return nil, fmt.Errorf("the function failed: %s: %s", end.ErrorCode, end.ErrorDetails)
	}
	return nil, io.EOF
}

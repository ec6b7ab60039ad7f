package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"svcapi/functions/pdf/render/event"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

// timeForResult is the end of the time of a render, in which the renderer's response reaches this function.
const timeForResult = time.Second

// renderer calls the function pdfrender (docs/decisions/pdf.md#pdf-renderer).
type renderer struct {
	client   func() *lambda.Client
	function string
	isolates bool // the function takes a tenant ID
	after    afterResponse
}

// afterResponse runs work when the response to a request has been sent, as request.Service does.
type afterResponse func(ctx context.Context, name string, work func(context.Context) error)

func newRenderer(cfg aws.Config, c config, after afterResponse) *renderer {
	http := dynamo.Streaming()
	// Each call has a client of its own: two streams of one client share the state of a decoder (smithy-go 1.28.9,
	// internal/eventstream), and the end of a failed stream may be read beside the next call.
	client := func() *lambda.Client {
		return lambda.NewFromConfig(cfg, func(o *lambda.Options) {
			o.HTTPClient = http
			o.Retryer = aws.NopRetryer{} // the method render decides which calls are repeated
		})
	}
	return &renderer{client: client, function: c.Renderer, isolates: c.Isolation == projectIsolation, after: after}
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
	in := &lambda.InvokeWithResponseStreamInput{FunctionName: &r.function, Payload: payload}
	if r.isolates {
		in.TenantId = aws.String(p.TenantID())
	}
	result, err := r.call(ctx, in, e.MaxBytes)
	if err != nil && ctx.Err() == nil && another(err) {
		first := err
		if result, err = r.call(ctx, in, e.MaxBytes); err != nil {
			err = fmt.Errorf("%w; before that: %w", err, first)
		}
	}
	if err != nil {
		return result, fmt.Errorf("renderer: %w", err)
	}
	return result, nil
}

// another reports whether another call may succeed: the renderer or the connection died, or Lambda itself failed.
func another(err error) bool {
	response, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return !ok || response.HTTPStatusCode() < 400 || response.HTTPStatusCode() >= 500
}

// call makes one call, and returns when the last byte of the result has come.
func (r *renderer) call(ctx context.Context, input *lambda.InvokeWithResponseStreamInput,
	maxBytes int64) (event.Result, error) {
	// The end of the stream is read after the response, when ctx has ended.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	out, err := r.client().InvokeWithResponseStream(streaming, input)
	if err != nil {
		cancel()
		return event.Result{}, errors.Join(context.Cause(ctx), err)
	}
	stream := out.GetStream()
	in := &chunks{stream: stream}
	end := func() error {
		defer cancel()
		return stream.Close()
	}
	result, err := event.Read(in, maxBytes)
	if err != nil {
		return event.Result{}, errors.Join(context.Cause(ctx), in.err, err, end())
	}
	r.after(ctx, "end call of the renderer", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, cancel)()
		_, err := io.Copy(io.Discard, in) // a connection is used again after the end of its stream
		return errors.Join(err, end())
	})
	return result, nil
}

// chunks reads the payload of a stream.
type chunks struct {
	stream *lambda.InvokeWithResponseStreamEventStream
	rest   []byte
	err    error // of the function or of the stream; io.EOF at the end
}

// Read implements io.Reader.
func (c *chunks) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		switch e := (<-c.stream.Events()).(type) {
		case *types.InvokeWithResponseStreamResponseEventMemberPayloadChunk:
			c.rest = e.Value.Payload
		case *types.InvokeWithResponseStreamResponseEventMemberInvokeComplete:
			if c.err = io.EOF; aws.ToString(e.Value.ErrorCode) != "" {
				c.err = fmt.Errorf("the function failed: %s: %s", aws.ToString(e.Value.ErrorCode),
					aws.ToString(e.Value.ErrorDetails))
			}
		case nil: // the channel is closed
			if c.err = c.stream.Err(); c.err == nil {
				c.err = io.ErrUnexpectedEOF
			}
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

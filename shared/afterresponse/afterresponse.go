// Package afterresponse runs an invocation's work after its response (docs/decisions/requests.md#after-response).
//
// A Runner is an internal extension of the function. Lambda freezes the execution environment, and hands out the next
// event, only when the runtime and the extension have both asked for the next event. The extension asks when the work
// has ended. Where no Extensions API exists, the work runs before the response.
package afterresponse

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"svcapi/shared/telemetry"
)

// most is the longest time that the work after one response has.
const most = 3 * time.Second

// Work is a piece of work that no client waits for and that nothing depends on: the process may die before Run.
type Work struct {
	Name      string // for the log
	RequestID string // for the log
	Run       func(context.Context) error
}

// Runner runs work after responses. A Runner that has not started, as in tests, runs work at once.
type Runner struct {
	log     *telemetry.Logger
	api     *extensionsAPI // nil: work runs before the response
	handled chan *invocation
}

// New returns a Runner that logs failed work.
func New(log *telemetry.Logger) *Runner {
	return &Runner{log: log, handled: make(chan *invocation, 1)}
}

// Registration waits for the registration of the extension, and returns nil where no Runtime API exists.
type Registration func() (*extensionsAPI, error)

// Register begins to register the extension. The function initialises meanwhile.
func Register() Registration {
	registration := sync.OnceValues(func() (*extensionsAPI, error) {
		return register(os.Getenv("AWS_LAMBDA_RUNTIME_API"))
	})
	go func() { _, _ = registration() }() // Start returns the error
	return registration
}

// Start makes the Runner the registered extension and serves the events of the function with the handler. Start does
// not return. A result that is a stream is sent as it is, and any other result as JSON.
func Start[In, Out any](r *Runner, registration Registration, handler func(context.Context, In) (Out, error)) {
	api, err := registration()
	if err != nil {
		r.report(slog.LevelWarn, Work{Name: "register extension"}, err)
	} else if api != nil {
		r.api = api
		go r.extend()
	}
	lambda.Start(wrap(r, handler))
}

// wrap returns a handler that collects the work of each invocation. The runtime closes the response once the response
// has been posted; the extension then gets the work.
func wrap[In, Out any](r *Runner, handler func(context.Context, In) (Out, error)) func(context.Context,
	In) (io.Reader, error) {
	return func(ctx context.Context, event In) (io.Reader, error) {
		i := &invocation{ctx: ctx}
		var body stream
		out, err := handler(context.WithValue(ctx, invocationKey{}, i), event)
		if err == nil {
			body, err = encode(out)
		}
		posted := func() { r.handled <- i }
		if r.api == nil {
			r.run(i.ctx, i.take())
			posted = func() {}
		}
		if err != nil {
			posted() // an error has no Close
			return nil, err
		}
		return &response{body, posted}, nil
	}
}

// stream is a result that has its own form, such as events.APIGatewayProxyStreamingResponse.
type stream interface {
	io.Reader
	ContentType() string
}

type jsonResult struct{ bytes.Buffer }

// ContentType returns the type of the result for the Runtime API.
func (*jsonResult) ContentType() string { return "application/json" }

// encode returns the bytes of a result that are sent.
func encode(out any) (stream, error) {
	if body, ok := out.(stream); ok {
		return body, nil
	}
	body := &jsonResult{}
	encoder := json.NewEncoder(body)
	encoder.SetEscapeHTML(false) // a response has a limit in bytes
	return body, encoder.Encode(out)
}

// extend asks for events as an extension, and for the next one when the work of the last has ended. Without the
// Extensions API the environment would never be frozen, so the process ends, as the runtime does without its API.
func (r *Runner) extend() {
	for {
		if err := r.api.next(); err != nil {
			telemetry.Exit(fmt.Errorf("extension: %w", err))
		}
		i := <-r.handled
		r.run(i.ctx, i.take())
	}
}

// Do runs work after the response of the invocation that ctx belongs to.
func (r *Runner) Do(ctx context.Context, w Work) {
	if i, ok := ctx.Value(invocationKey{}).(*invocation); ok {
		i.add(w)
		return
	}
	r.run(ctx, []Work{w})
}

// run runs all work at the same time, and returns when all has ended or the time is over.
func (r *Runner) run(ctx context.Context, all []Work) {
	deadline, limited := ctx.Deadline()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	if limited {
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	var wg sync.WaitGroup
	for _, w := range all {
		end := make(chan error, 1)
		go func() { end <- Recovered(func() error { return w.Run(ctx) }) }()
		wg.Go(func() {
			var err error
			select {
			case err = <-end:
			case <-ctx.Done():
				err = ctx.Err()
			}
			if err != nil {
				r.report(slog.LevelError, w, err)
			}
		})
	}
	wg.Wait()
}

// Recovered returns the error of work, or its panic as an error.
func Recovered(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work()
}

func (r *Runner) report(level slog.Level, w Work, err error) {
	attributes := []slog.Attr{slog.String("work", w.Name), slog.String("error", err.Error())}
	if w.RequestID != "" {
		attributes = append(attributes, slog.String("request_id", w.RequestID))
	}
	r.log.Emit(context.Background(), telemetry.Event{Level: level, Message: "after response", Attributes: attributes})
}

type invocationKey struct{}

// invocation holds the work that waits for the response of one event.
type invocation struct {
	ctx  context.Context // the deadline of the function
	mu   sync.Mutex
	work []Work
}

func (i *invocation) add(w Work) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.work = append(i.work, w)
}

func (i *invocation) take() []Work {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.work
}

// response is a result that learns when it has been posted. The runtime sends a reader without a JSON form as it is.
type response struct {
	stream
	posted func()
}

// Close is called by the runtime after the response has been posted, and before the runtime asks for the next event.
func (r *response) Close() error {
	r.posted()
	return nil
}

// extensionsAPI is the Lambda Extensions API, version 2020-01-01, for one registered extension.
type extensionsAPI struct {
	client *http.Client
	root   string
	id     string
}

const identifier = "Lambda-Extension-Identifier"

// register registers an internal extension for INVOKE events at an address, or nothing without an address. Lambda
// refuses SHUTDOWN to internal extensions.
func register(address string) (*extensionsAPI, error) {
	if address == "" {
		return nil, nil
	}
	// A transport of its own has no proxy: a proxy of the environment does not reach the API.
	api := &extensionsAPI{client: &http.Client{Transport: &http.Transport{}},
		root: "http://" + address + "/2020-01-01/extension/"}
	header, err := api.call(http.MethodPost, "register", `{"events":["INVOKE"]}`,
		"Lambda-Extension-Name", "after-response")
	if err == nil && header.Get(identifier) == "" {
		err = fmt.Errorf("the response has no %s", identifier)
	}
	api.id = header.Get(identifier)
	return api, err
}

func (api *extensionsAPI) next() error {
	_, err := api.call(http.MethodGet, "event/next", "", identifier, api.id)
	return err
}

// call returns the header of a successful response. The call has no time-out, as an event may be long in coming.
func (api *extensionsAPI) call(method, path, body, name, value string) (http.Header, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, api.root+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set(name, value)
	reply, err := api.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 64<<10))
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, reply.Status, text)
	}
	return reply.Header, err
}

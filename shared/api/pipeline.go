// Package api is the pipeline that every request of every operation takes, from the Lambda event to
// the answer and the log line.
//
// An operation is a value, Operation, that says what differs: route, integration kind, how the body
// decodes, what the request costs, what the operation refuses, how the work runs. Service.serve does
// the rest and shows the order of all steps.
//
// Service decides every step up to the credits in memory once Service has the project's record. The
// count of the rate limit and the reservation of credits then go out together, and no work begins
// before both have succeeded. A request with an Idempotency-Key claims the key first and reserves
// nothing before the request has won the key. Service captures the credits of work that succeeds,
// releases those of work that fails, and captures as uncertain those of work whose outcome is not
// known (an SMS without a response). The response to a panic is a 500.
//
// An error carries what the client sees apart from its cause, which only the log line tells.
package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/credit"
	"svcapi/shared/idempotency"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/telemetry"
)

// maxBody is the largest request body, in bytes; a larger one is a 413.
const maxBody = 4 << 20

// reserveForAnswer is what is kept of a request's time for capture and answer
// once the work must have ended.
const reserveForAnswer = 5 * time.Second

// Service runs every operation in the contract's order: route, size,
// credentials, pause, rate limit, body, confirmation, integration, the
// operation's refusals, credits, work.
type Service struct {
	cfg      Config
	db       *dynamodb.Client
	projects *project.Cache
	limiter  *ratelimit.Limiter
	wallet   *credit.Store
	keys     *idempotency.Store
	log      *telemetry.Logger
	now      func() time.Time
}

// Handler serves the routes and answers everything else with 404 or 405.
func (s *Service) Handler(routes ...Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{id: requestID(r.Context()), started: s.now(), request: r}
		a := s.answer(r.Context(), x, routes)
		a.write(w, x.id)
		s.record(r.Context(), x, a)
	})
}

// answer never panics: a panic is an internal error.
func (s *Service) answer(ctx context.Context, x *exchange, routes []Route) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = failure(ErrInternal.Because(panicked(p)))
		}
	}()
	route, parameters, err := match(routes, x.request)
	if err != nil {
		return failure(err)
	}
	x.operation, _, _ = route.route()
	x.price = route.pricedAs()
	result, err := s.serve(ctx, x, route, parameters)
	if err != nil {
		return failure(err)
	}
	x.vendor = result.Vendor
	x.attributes, x.metrics = append(x.attributes, result.Attributes...), append(x.metrics, result.Metrics...)
	if result.Cause != nil && !x.privacy {
		x.note("error", result.Cause)
	}
	return success(result, x.id)
}

func panicked(p any) error { return fmt.Errorf("panic: %v\n%s", p, debug.Stack()) }

func match(routes []Route, r *http.Request) (Route, map[string]string, error) {
	escaped := strings.Split(r.URL.EscapedPath(), "/")
	for _, route := range routes {
		_, method, path := route.route()
		if parameters, ok := pathParameters(strings.Split(path, "/"), escaped); ok {
			if r.Method != method {
				return nil, nil, ErrMethod(method)
			}
			return route, parameters, nil
		}
	}
	return nil, nil, ErrNotFound
}

// serve takes one request through all steps, in the order of docs/decisions.md#order-of-checks.
func (s *Service) serve(ctx context.Context, x *exchange, route Route, parameters map[string]string) (*Result, error) {
	if err := x.readBody(); err != nil { // 413
		return nil, err
	}
	if err := s.authenticate(ctx, x); err != nil { // 401
		return nil, err
	}
	if x.record.Paused { // 503
		return nil, errPaused
	}
	if err := s.exhausted(x); err != nil { // 429, known from memory
		return nil, err
	}
	counted := s.count(ctx, x) // 429, beside the steps that follow and before their errors
	request, err := route.decode(x, parameters)
	if err != nil { // 422, or 400 for a currency code
		return nil, first(counted(), err)
	}
	if err := s.confirm(x, request); err != nil { // 428, then 422 for the Idempotency-Key
		return nil, first(counted(), err)
	}
	claim, kept, err := s.claim(ctx, x, request.key, counted)
	if err != nil || kept != nil { // 422, 409, or the outcome of the key's first request
		return kept, err
	}
	job, err := request.prepare(ctx, s.cfg.Prices)
	if err != nil { // 422 for the integration, then the operation's own refusals
		return nil, claim.end(ctx, x, nil, first(counted(), err))
	}
	reservation, err := s.reserve(ctx, x, job, counted)
	if err != nil { // 402
		return nil, claim.end(ctx, x, nil, err)
	}
	if err := s.mark(ctx, x, job, reservation); err != nil { // 500
		return nil, claim.end(ctx, x, nil, err)
	}
	result, err := work(ctx, job)
	return result, s.finish(ctx, x, claim, reservation, result, err)
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readBody reads the request's body, and the header that asks for privacy.
func (x *exchange) readBody() (err error) {
	x.privacy = isTrue(x.request.Header.Get("X-Privacy-Mode"))
	if x.body, err = io.ReadAll(io.LimitReader(x.request.Body, maxBody+1)); err != nil {
		return ErrInternal.Because(err)
	}
	if len(x.body) > maxBody {
		x.body = nil
		return errTooLarge
	}
	return nil
}

// authenticate finds the project's record by the request's credentials.
func (s *Service) authenticate(ctx context.Context, x *exchange) error {
	clientID, secret, env, ok := credentials(x.request.Header)
	if !ok {
		return errUnauthorized
	}
	var err error
	x.record, x.environment, err = s.projects.Authenticate(ctx, clientID, secret, env)
	if errors.Is(err, project.ErrUnauthorized) {
		return errUnauthorized
	}
	if err != nil {
		return ErrInternal.Because(fmt.Errorf("authenticate: %w", err))
	}
	return nil
}

// credentials takes the headers that authenticate. One that stands twice with
// different values matches no credentials: which of them counts is not for
// whoever stands between to choose.
func credentials(header http.Header) (clientID, secret, env string, ok bool) {
	for name, into := range map[string]*string{"X-API-KEY": &clientID, "X-API-SECRET": &secret, "X-ENV": &env} {
		*into = header.Get(name)
		if slices.ContainsFunc(header.Values(name), func(v string) bool { return v != *into }) {
			return "", "", "", false
		}
	}
	return clientID, secret, env, true
}

// exhausted refuses the request if this instance has seen the window's limit reached.
func (s *Service) exhausted(x *exchange) error {
	if d, exhausted := s.limiter.Exhausted(&x.record.Project, string(x.environment)); exhausted {
		return errRateLimited(seconds(d.RetryAfter))
	}
	return nil
}

// count starts to count the request, and returns a function that waits for the result.
func (s *Service) count(ctx context.Context, x *exchange) (wait func() error) {
	return async(func() error {
		decision, err := s.limiter.Count(ctx, &x.record.Project, string(x.environment))
		switch {
		case err != nil:
			return ErrInternal.Because(fmt.Errorf("count request: %w", err))
		case !decision.Allowed:
			return errRateLimited(seconds(decision.RetryAfter))
		}
		return nil
	})
}

// confirm refuses a send from the documentation playground that nobody confirmed, and an invalid Idempotency-Key.
func (s *Service) confirm(x *exchange, r *request) error {
	x.playground = s.fromPlayground(x.request)
	if r.sends && x.playground && !isTrue(x.request.Header.Get("X-Confirm-Send")) {
		return errUnconfirmed
	}
	if len(r.keyProblems) > 0 {
		return errInvalid(r.keyProblems)
	}
	return nil
}

// async starts f and returns a function that waits for the result of f. A panic of f is an error, as the panic would
// otherwise end the process.
func async(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- panicked(p)
			}
		}()
		done <- f()
	}()
	return sync.OnceValue(func() error { return <-done })
}

// fromPlayground tells the requests of the documentation page: by their mark, or by their origin. That is the API's own
// where the stack serves the page, and the configured one where the page has another name.
func (s *Service) fromPlayground(r *http.Request) bool {
	if r.Header.Get("X-SVC-Client") == "playground" {
		return true
	}
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return host != "" && (origin == s.cfg.PlaygroundOrigin || host == r.Host)
}

// work runs the job with what is left of the request's time.
func work(ctx context.Context, job *Job) (result *Result, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-reserveForAnswer))
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			e := ErrInternal.Because(panicked(p))
			e.Reached, e.Uncertain = job.Irrevocable, job.Irrevocable
			result, err = nil, e
		}
	}()
	return job.Run(ctx)
}

// isTrue reads a header boolean: 1 or true, in any case.
func isTrue(header string) bool { return header == "1" || strings.EqualFold(header, "true") }

// seconds rounds up to whole seconds.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

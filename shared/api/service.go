// Package api is the pipeline that every request of every operation takes, from the Lambda event to
// the answer and the log line.
//
// An operation is a value, Operation, that says what differs: route, integration kind, how the body
// decodes, what it costs, what it refuses, how it runs. Service does the rest, in one order:
//
//	route (404, 405) → size (413) → credentials (401) → paused (503) → rate limit (429)
//	→ body (422) → playground's confirmation (428) → Idempotency-Key → integration (422)
//	→ the operation's refusals → credits (402) → work → capture or release → answer, log line
//
// All up to the credits is decided in memory once the project's record is at hand. The count of the
// rate limit and the reservation of credits then go out together, and no work begins before both
// have said yes. A request with an Idempotency-Key claims it first and reserves nothing before it
// has won. Work that succeeds is captured, work that fails released, and work whose outcome is not
// known (an SMS without an answer) captured as uncertain. Panics are answered with 500.
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

// serve takes one request from its route to its result.
func (s *Service) serve(ctx context.Context, x *exchange, route Route, parameters map[string]string) (*Result, error) {
	header := x.request.Header
	x.privacy = isTrue(header.Get("X-Privacy-Mode"))
	body, err := io.ReadAll(io.LimitReader(x.request.Body, maxBody+1))
	if err != nil {
		return nil, ErrInternal.Because(err)
	}
	if len(body) > maxBody {
		return nil, errTooLarge
	}
	clientID, secret, env, ok := credentials(header)
	if !ok {
		return nil, errUnauthorized
	}
	x.record, x.environment, err = s.projects.Authenticate(ctx, clientID, secret, env)
	if errors.Is(err, project.ErrUnauthorized) {
		return nil, errUnauthorized
	}
	if err != nil {
		return nil, ErrInternal.Because(fmt.Errorf("authenticate: %w", err))
	}
	if x.record.Paused {
		return nil, errPaused
	}
	if d, exhausted := s.limiter.Exhausted(&x.record.Project, string(x.environment)); exhausted {
		return nil, errRateLimited(seconds(d.RetryAfter))
	}
	x.body = body
	x.playground = s.fromPlayground(x.request)

	u, refusal := s.read(x, route, parameters)
	if refusal == nil && u.key != "" {
		return s.once(ctx, x, u)
	}
	var job *Job
	if refusal == nil {
		job, refusal = u.decide(ctx, s.cfg.Prices)
	}
	reservation, err := s.admit(ctx, x, job, refusal, s.count(ctx, x))
	if err != nil {
		return nil, err
	}
	return s.perform(ctx, x, job, reservation, nil)
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

// read takes the body apart.
func (s *Service) read(x *exchange, route Route, parameters map[string]string) (*understood, error) {
	in, err := ReadInput(x.body, parameters)
	if err != nil && x.request.Method == http.MethodPost {
		in.problems.Add("body", err.Error())
		return nil, errInvalid(in.problems)
	}
	// A request that asks for privacy gets it, also where the field itself or another one is wrong.
	if v, ok := in.members["privacy_mode"]; ok && v.Kind() != 'f' && v.Kind() != 'n' {
		x.privacy = true
	}
	return route.understand(x, in)
}

// count counts the request, at once.
func (s *Service) count(ctx context.Context, x *exchange) chan error {
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

// admit sends the reservation and the job's own read, unless something has
// refused the request already, and awaits them with the count that is under
// way. The limit's no comes first, then the refusal, then the credits'.
func (s *Service) admit(ctx context.Context, x *exchange, job *Job, refusal error, counted chan error) (*credit.Reservation, error) {
	var reservation *credit.Reservation
	var reserved, read chan error
	if refusal == nil && job.Credits > 0 {
		x.credits = job.Credits
		reservation = &credit.Reservation{
			Project: x.record.ID, Parts: x.record.Parts.At(s.now()), Key: credit.NewKey(s.now(), x.id), Credits: job.Credits, Operation: x.price,
			Environment: string(x.environment), RequestID: x.id, Irrevocable: job.Irrevocable,
		}
		reserved = async(func() error { return s.wallet.Reserve(ctx, reservation) })
	}
	if refusal == nil && job.Beside != nil {
		read = async(func() error { return job.Beside(ctx) })
	}
	limited, reserveErr, readErr := await(counted), await(reserved), await(read)

	no := limited
	switch {
	case no != nil:
	case refusal != nil:
		no = refusal
	case errors.Is(reserveErr, credit.ErrInsufficientCredits):
		no = errNoCredits
	case reserveErr != nil:
		no = ErrInternal.Because(fmt.Errorf("reserve credits: %w", reserveErr))
	case readErr != nil:
		no = ErrInternal.Because(readErr)
	default:
		return reservation, nil
	}
	x.credits = 0
	if reservation != nil && reserveErr == nil {
		s.release(ctx, x, reservation)
	}
	return nil, no
}

// async runs f at once; a panic of it is an error, as it would otherwise end the process.
func async(f func() error) chan error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- panicked(p)
			}
		}()
		done <- f()
	}()
	return done
}

func await(done chan error) error {
	if done == nil {
		return nil
	}
	return <-done
}

// perform does the work, settles its reservation (captured on success, captured
// as uncertain where it may have happened, released else) and beside it tells
// the claim what came of it, where there is one.
func (s *Service) perform(ctx context.Context, x *exchange, job *Job, reservation *credit.Reservation, claim *claim) (*Result, error) {
	if reservation != nil && job.Irrevocable {
		if err := s.wallet.Mark(ctx, reservation); err != nil {
			x.credits = 0
			err = ErrInternal.Because(fmt.Errorf("mark reservation: %w", err))
			claim.end(ctx, x, nil, err)
			return nil, err
		}
	}
	result, err := work(ctx, job)
	told := async(func() error { claim.end(ctx, x, result, err); return nil })
	if reservation != nil {
		s.settle(ctx, x, reservation, result, err)
	}
	if p := await(told); p != nil {
		x.note("outcome_not_kept", p)
	}
	return result, err
}

func (s *Service) settle(ctx context.Context, x *exchange, r *credit.Reservation, result *Result, err error) {
	var failed *Error
	switch {
	case err == nil && !result.NotCharged:
		s.capture(ctx, x, r, credit.Outcome{Vendor: result.Vendor})
	case errors.As(err, &failed) && failed.Uncertain:
		x.metric("UncertainSends")
		s.capture(ctx, x, r, credit.Outcome{Uncertain: true, Vendor: failed.Vendor})
	default:
		s.release(ctx, x, r)
	}
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

func (s *Service) capture(ctx context.Context, x *exchange, r *credit.Reservation, o credit.Outcome) {
	if err := s.wallet.Capture(ctx, r, o); err != nil {
		x.unsettled("capture", err)
		return
	}
	s.wallet.Remove(ctx, r)
}

func (s *Service) release(ctx context.Context, x *exchange, r *credit.Reservation) {
	x.credits = 0
	if err := s.wallet.Release(ctx, r); err != nil {
		x.unsettled("release", err)
	}
}

// unsettled notes a reservation that the settler has to finish.
func (x *exchange) unsettled(step string, err error) {
	x.note("unsettled", fmt.Errorf("%s: %w", step, err))
	x.metric("UnsettledReservations")
}

// isTrue reads a header boolean: 1 or true, in any case.
func isTrue(header string) bool { return header == "1" || strings.EqualFold(header, "true") }

// seconds rounds up to whole seconds.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

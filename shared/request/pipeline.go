// Package request is the pipeline that every request of every operation takes, from the Lambda event to the response
// and the log line. Service.serve shows the order of all steps (docs/decisions/requests.md#order-of-checks).
//
// Once Service has read the project's record, Service makes all checks before the reservation of credits in memory. The
// count of the rate limit, the reservation of credits and the counts of further limits then go out together, and no
// work begins before all of them have succeeded. A request with an Idempotency-Key reserves nothing before the request
// has won the key. Service captures the credits of work that succeeds, releases those of work that fails, and captures
// as uncertain those of work whose outcome is unknown (an SMS without a response). The response to a panic is a 500.
package request

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/admit"
	"svcapi/shared/afterresponse"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

// maxBody is the largest request body, in bytes; a larger one is a 413.
const maxBody = 4 << 20

// timeForResponse is the end of a request's time, which capture and response need after the work.
const timeForResponse = 5 * time.Second

// Service runs every operation, with the checks in the order of docs/decisions/requests.md#order-of-checks.
type Service struct {
	Stores *admit.Stores

	cfg      Config
	db       *dynamodb.Client
	projects *project.Cache
	guesses  *guesses
	keys     *keyStore
	after    *afterresponse.Runner
}

// requestState holds what the pipeline knows of one request. The log line is written from it.
type requestState struct {
	id          string
	started     time.Time
	request     *http.Request
	body        []byte
	operation   string
	price       string
	record      *project.Record
	environment project.Environment
	mode        project.Mode
	playground  bool
	privacy     bool
	decoded     bool
	vendor      string
	key         string   // the Idempotency-Key of a send; empty: none
	ignored     []string // unknown fields of the body, and query parameters of a GET, sorted
	warnings    []string // of the operation's Decode
	holds       *admit.Request
	window      *admit.Window // nil: the request is not authenticated
	claim       *claim        // of the Idempotency-Key that the request has won; nil: none
	job         *Job          // nil: the request is not accepted
	credits     int64         // that are charged

	mu         sync.Mutex // guards the fields below, which concurrent steps change
	attributes []slog.Attr
	metrics    []telemetry.Metric
}

func (state *requestState) note(name string, err error) {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.attributes = append(state.attributes, slog.String(name, err.Error()))
}

func (state *requestState) metric(name string) {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.metrics = append(state.metrics, telemetry.Metric{Name: name, Unit: telemetry.Count, Value: 1})
}

// Handler returns a handler that serves the routes, and refuses everything else with 404 or 405.
func (s *Service) Handler(routes ...Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state := &requestState{id: requestID(r.Context()), started: s.Stores.Now(), request: r}
		resp := s.respond(r.Context(), state, routes)
		state.announceLimit(w.Header())
		state.warn(&resp)
		resp.write(w, state.id)
		s.record(r.Context(), state, resp)
	})
}

// respond returns the response to a request. A panic becomes an internal error.
func (s *Service) respond(ctx context.Context, state *requestState, routes []Route) (resp response) {
	defer func() {
		if p := recover(); p != nil {
			resp = failure(ErrInternal.WithCause(panicked(p)))
		}
	}()
	route, parameters, err := match(routes, state.request)
	if err != nil {
		return failure(err)
	}
	state.operation, _, _ = route.route()
	state.price = route.price()
	result, err := s.serve(ctx, state, route, parameters)
	if err != nil {
		return failure(err)
	}
	state.vendor = result.Vendor
	state.attributes, state.metrics = append(state.attributes, result.Attributes...),
		append(state.metrics, result.Metrics...)
	if result.Cause != nil && !state.privacy {
		state.note("error", errors.New(s.cfg.errorText(result.Cause.Error(), "")))
	}
	return success(result, state.id)
}

func panicked(p any) error { return fmt.Errorf("%w: %v\n%s", ErrPanicked, p, debug.Stack()) }

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

// serve takes one request through all steps, in the order of docs/decisions/requests.md#order-of-checks.
func (s *Service) serve(ctx context.Context, state *requestState, route Route,
	parameters map[string]string) (*Result, error) {
	if err := state.readBody(); err != nil { // 413
		return nil, err
	}
	if err := s.authenticate(ctx, state); err != nil { // 401, or 429 for too many wrong secrets
		return nil, err
	}
	if state.record.Paused { // 503
		return nil, errPaused
	}
	state.holds = &admit.Request{Stores: s.Stores, ID: state.id, Project: &state.record.Project,
		Environment: state.environment, Received: time.UnixMilli(gatewayOf(ctx).RequestTimeEpoch)}
	state.window = state.holds.Window()
	if err := state.holds.Take(ctx, state.window); err != nil { // 429, from memory
		return nil, state.refusal(err)
	}
	state.playground = s.fromPlayground(state.request)
	result, err := s.accept(ctx, state, route, parameters)
	if refused := state.holds.Wait(); refused != nil { // 429, 402
		err = state.refusal(refused)
	}
	if state.job != nil && err == nil {
		result, err = state.run(ctx) // 500 for the mark, 429 for the recipients of a bulk, then the work's own
	}
	return result, s.finish(ctx, state, result, err)
}

// accept decodes the request, wins its Idempotency-Key, and begins to take what its job needs. The result is that of
// the key's first request; otherwise state.job is set, or the request is refused.
func (s *Service) accept(ctx context.Context, state *requestState, route Route,
	parameters map[string]string) (*Result, error) {
	prepare, err := route.decode(state, parameters)
	if err != nil { // 422, or 400 for a currency code; then 428; then 422 for the Idempotency-Key
		return nil, err
	}
	if kept, err := s.claim(ctx, state, state.key); err != nil || kept != nil { // 422, 409, or the kept outcome
		return kept, err
	}
	job, err := prepare(ctx, s.cfg.Prices)
	if err != nil { // 422 for the integration, then the operation's own refusals
		return nil, err
	}
	state.job = job
	return nil, state.refusal(state.holds.Take(ctx, job.holds(state)...)) // 429, 402, from memory
}

// holds returns what the job takes beside the request itself, in the order in which a response names refusals.
func (job *Job) holds(state *requestState) []admit.Hold {
	var holds []admit.Hold
	limits := state.record.Limits
	if job.Messages != nil {
		messages := admit.Hold(job.Messages)
		if state.mode == project.BYOK {
			messages = state.holds.Day(messages, ratelimit.Units, limits.DailyUnits, job.Messages.Units())
		}
		holds = append(holds, messages)
	}
	if credits := job.Credits.Amount(); credits > 0 {
		holds = append(holds, state.holds.Day(job.Credits, ratelimit.Credits, limits.DailyCredits, credits))
	}
	if job.Prefetch != nil {
		holds = append(holds, admit.Read(job.Prefetch))
	}
	return holds
}

// finish captures the credits of work that succeeded or may have happened, returns what the work has not used, and
// stores the outcome of the Idempotency-Key meanwhile. finish returns the error of the response.
func (s *Service) finish(ctx context.Context, state *requestState, result *Result, failed error) error {
	worked := failed // the outcome to store, whatever the capture says
	kept := admit.Async(func() error { state.endClaim(ctx, result, worked); return nil })
	if outcome, charged := charge(result, failed); charged && state.job != nil && state.job.Credits.Amount() > 0 {
		if outcome.Uncertain {
			state.metric("UncertainSends")
		}
		failed = cmp.Or(s.capture(ctx, state, outcome), failed)
	}
	if err := state.holds.Return(ctx); err != nil {
		state.unsettled(err)
	}
	if panicked := kept(); panicked != nil {
		state.note("outcome_not_kept", panicked)
	}
	return failed
}

// charge returns the outcome that a request is charged for, and false for a request that is not charged.
func charge(result *Result, err error) (wallet.Outcome, bool) {
	failed, _ := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return wallet.Outcome{Vendor: result.Vendor, VendorID: result.VendorID}, !result.NotCharged
	case failed != nil && failed.Uncertain:
		return wallet.Outcome{Uncertain: true, Vendor: failed.Vendor, Reference: failed.Reference}, true
	}
	return wallet.Outcome{}, false
}

// capture charges the project. Work that can be taken back is not served where its credits were settled and could not
// be reserved again (docs/decisions/money.md#leases).
func (s *Service) capture(ctx context.Context, state *requestState, o wallet.Outcome) error {
	state.credits = state.job.Credits.Amount()
	err := state.job.Credits.Capture(ctx, o)
	if err == nil {
		return nil
	}
	state.unsettled(fmt.Errorf("capture: %w", err))
	if state.job.Irrevocable || !errors.Is(err, wallet.ErrReleased) {
		return nil
	}
	state.credits = 0
	return state.refusal(err)
}

// unsettled notes a reservation that the settling function has to finish.
func (state *requestState) unsettled(err error) {
	state.note("unsettled", err)
	state.metric("UnsettledReservations")
}

// readBody reads the request's body, and the header that asks for privacy.
func (state *requestState) readBody() (err error) {
	state.privacy = isTrue(state.request.Header.Get("X-Privacy-Mode"))
	if state.body, err = io.ReadAll(io.LimitReader(state.request.Body, maxBody+1)); err != nil {
		return ErrInternal.WithCause(err)
	}
	if len(state.body) > maxBody {
		state.body = nil
		return errTooLarge
	}
	return nil
}

// fromPlayground reports whether a request comes from the documentation page, by its mark or by its origin. The origin
// is the API's own where the stack serves the page, and the configured one where the page has another name.
func (s *Service) fromPlayground(r *http.Request) bool {
	if r.Header.Get("X-SVC-Client") == "playground" {
		return true
	}
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return host != "" && (origin == s.cfg.PlaygroundOrigin || host == r.Host)
}

// run marks irrevocable work in the ledger, and works.
func (state *requestState) run(ctx context.Context) (*Result, error) {
	job := state.job
	if job.Irrevocable && job.Credits.Amount() > 0 {
		if err := job.Credits.Mark(ctx, job.Died); err != nil {
			return nil, state.refusal(err)
		}
	}
	result, err := work(ctx, job)
	if job.Messages != nil {
		err = cmp.Or(state.refusal(job.Messages.Err()), err)
	}
	return result, err
}

// work runs the job with what is left of the request's time.
func work(ctx context.Context, job *Job) (result *Result, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-timeForResponse))
		defer cancel()
	}
	failed := func(cause error) error { // work that cannot be taken back may have happened
		e := ErrInternal.WithCause(cause)
		e.Reached, e.Uncertain = job.Irrevocable, job.Irrevocable
		return e
	}
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, failed(panicked(p))
		}
	}()
	result, err = job.Run(ctx)
	if _, known := errors.AsType[*Error](err); err != nil && !known {
		err = failed(err)
	}
	return result, err
}

// isTrue reads a header boolean: 1 or true, in any case (docs/decisions/requests.md#header-booleans).
func isTrue(header string) bool { return header == "1" || strings.EqualFold(header, "true") }

// seconds returns the duration in seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

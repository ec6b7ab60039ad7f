package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/shared/telemetry"
)

// Operation is one row of the API: what differs between operations. T is the
// decoded request. Everything else is the pipeline's.
type Operation[T any] struct {
	// Name stands in logs and metrics.
	Name string
	// Method and Path are matched exactly; a path segment {name} is a parameter.
	Method, Path string
	// Kind is the kind of integration that the operation resolves against.
	Kind project.Kind
	// Price is the operation's name in the price list and the ledger; empty: free.
	Price string
	// Decode takes the request apart. It notes wrong fields in the input; an
	// error of its own beats them.
	Decode func(in *Input) (T, error)
	// Sends tells which requests have an effect outside that cannot be taken
	// back: they need the playground's confirmation and heed an
	// Idempotency-Key; nil: none.
	Sends func(T) bool
	// Prepare refuses what can be refused before anything is counted or paid,
	// and says what is to be done. It touches nothing outside but caches.
	Prepare func(ctx context.Context, call *Call, in T) (*Job, error)
}

// Route is an operation of any request type.
type Route interface {
	route() (name, method, path string)
	pricedAs() string
	decode(x *exchange, parameters map[string]string) (*request, error)
}

// request is a well-formed request of any operation.
type request struct {
	sends       bool     // the request has an effect outside that cannot be taken back
	key         string   // the Idempotency-Key; empty: none
	keyProblems Problems // of an invalid key
	prepare     func(ctx context.Context, prices credit.Prices) (*Job, error)
}

func (o *Operation[T]) route() (name, method, path string) { return o.Name, o.Method, o.Path }

func (o *Operation[T]) pricedAs() string { return o.Price }

// Input is a request as Decode sees it.
type Input struct {
	Object                       // the body
	parameters map[string]string // of the path
}

// ReadInput reads a body with the parameters of its path. The error says why the body is no object; the input then holds
// what stands before the fault.
func ReadInput(body []byte, parameters map[string]string) (*Input, error) {
	object, err := parseObject(body, "", Problems{})
	return &Input{object, parameters}, err
}

// Problems are what has been noted of the fields taken so far.
func (in *Input) Problems() Problems { return in.problems }

// Parameter returns a path parameter, decoded.
func (in *Input) Parameter(name string) string { return in.parameters[name] }

// Call is an authenticated request as Prepare sees it.
type Call struct {
	RequestID    string
	Project      *project.Project
	Environment  project.Environment
	Mode         project.Mode
	Integrations []project.Integration // active ones of the operation's kind, at least one, by priority
	prices       credit.Prices
	price        string
}

// Credits is the price of so many units: 0 for Manual (BYOK) and for free operations.
func (c *Call) Credits(units int) int64 {
	if c.Mode != project.Managed || c.price == "" {
		return 0
	}
	return int64(units) * c.prices.Of(c.price)
}

// Job is accepted work.
type Job struct {
	// Credits are reserved before Run and captured when it succeeds; 0: nothing to pay.
	Credits int64
	// Irrevocable work cannot be taken back (a sent SMS): when its request dies
	// it stays charged. It is marked so in the ledger before Run.
	Irrevocable bool
	// Prefetch is a read that goes out together with the count and the
	// reservation; nil: none.
	Prefetch func(ctx context.Context) error
	// Run does the work. The context ends in time for the answer to be sent.
	Run func(ctx context.Context) (*Result, error)
}

// Result is an operation's success.
type Result struct {
	Data  any    // the envelope's data
	Meta  any    // the envelope's meta; nil: none
	Media *Media // a body that is no JSON, instead of both

	Vendor     string             // who did it, for log and metrics
	NotCharged bool               // a success that costs nothing (location of an unknown address)
	Attributes []slog.Attr        // more for the log entry
	Cause      error              // why a part of the work failed, for the log only; nil: all was done
	Metrics    []telemetry.Metric // more for the metrics

	replayed bool // the answer of an earlier request with the same Idempotency-Key
}

// Media is an answer that is no JSON.
type Media struct {
	Type        string // of the content
	Disposition string // Content-Disposition
	Body        []byte
}

// decode reads the body and the path parameters into a request.
func (o *Operation[T]) decode(x *exchange, parameters map[string]string) (*request, error) {
	in, err := ReadInput(x.body, parameters)
	if err != nil && x.request.Method == http.MethodPost {
		in.problems.Add("body", err.Error())
		return nil, errInvalid(in.problems)
	}
	// A request that asks for privacy gets it, also where the field itself or another one is wrong.
	if v, ok := in.members["privacy_mode"]; ok && v.Kind() != 'f' && v.Kind() != 'n' {
		x.privacy = true
	}
	decoded, err := o.Decode(in)
	if err != nil {
		return nil, err
	}
	malformed := len(in.problems) > 0
	r := &request{keyProblems: in.problems, prepare: func(ctx context.Context, prices credit.Prices) (*Job, error) {
		return o.prepare(ctx, x, prices, decoded)
	}}
	if o.Sends != nil {
		r.sends = o.Sends(decoded)
		if key := idempotencyKey(x.request.Header, in.problems); r.sends {
			r.key = key
		}
	}
	if malformed {
		return nil, errInvalid(in.problems)
	}
	x.decoded = true
	return r, nil
}

// prepare selects the integrations, lets the operation refuse the request, and returns the work.
func (o *Operation[T]) prepare(ctx context.Context, x *exchange, prices credit.Prices, decoded T) (*Job, error) {
	integrations := x.record.Active(o.Kind, x.environment)
	if len(integrations) == 0 {
		return nil, ErrNoIntegration
	}
	x.mode = integrations[0].Mode
	return o.Prepare(ctx, &Call{
		RequestID: x.id, Project: &x.record.Project, Environment: x.environment,
		Mode: x.mode, Integrations: integrations, prices: prices, price: o.Price,
	}, decoded)
}

func errInvalid(p Problems) *Error {
	return &Error{Status: 422, Code: CodeValidationFailed, Message: "The request has missing or invalid fields.", Details: p}
}

// exchange is what is known of one request so far; the log line is made of it.
type exchange struct {
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
	credits     int64
	vendor      string

	mu         sync.Mutex // what follows is noted by steps that run side by side
	attributes []slog.Attr
	metrics    []telemetry.Metric
}

// note adds an operator's remark to the log line.
func (x *exchange) note(name string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.attributes = append(x.attributes, slog.String(name, err.Error()))
}

// metric counts one of something.
func (x *exchange) metric(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.metrics = append(x.metrics, telemetry.Metric{Name: name, Unit: telemetry.Count, Value: 1})
}

// pathParameters matches an encoded path against a pattern. Segments are
// compared as they were sent; only parameters are decoded.
func pathParameters(pattern, escaped []string) (map[string]string, bool) {
	if len(pattern) != len(escaped) {
		return nil, false
	}
	var parameters map[string]string
	for i, p := range pattern {
		if len(p) < 2 || p[0] != '{' {
			if p != escaped[i] {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(escaped[i])
		if err != nil || value == "" {
			return nil, false
		}
		if parameters == nil {
			parameters = map[string]string{}
		}
		parameters[p[1:len(p)-1]] = value
	}
	return parameters, true
}

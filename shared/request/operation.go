package request

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"svcapi/shared/admit"
	"svcapi/shared/project"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

// Operation holds the differences between the operations of the API. T is the decoded request.
type Operation[T any] struct {
	// Name is the operation's name in logs and metrics.
	Name string
	// Method and Path are matched exactly; a path segment {name} is a parameter.
	Method, Path string
	// Streams reports that the gateway streams the responses of the path, so that these have no limit of size.
	Streams bool
	// Kind is the kind of integration that the operation needs.
	Kind project.Kind
	// Price is the operation's name in the price list and the ledger; empty: free.
	Price string
	// Decode reads the fields and notes invalid ones in the input. An error that Decode returns replaces them.
	Decode func(in *Input) (T, error)
	// Sends reports whether a request has an external effect that cannot be undone. Such a request needs the playground's
	// confirmation, and its Idempotency-Key is used. nil: no request has such an effect.
	Sends func(T) bool
	// Prepare refuses a request before a reservation, or returns the work. Prepare has no effect outside the process.
	Prepare func(ctx context.Context, call *Call, in T) (*Job, error)
}

// Route is an operation of any request type.
type Route interface {
	route() (name, method, path string)
	streams() bool
	price() string
	decode(state *requestState, parameters map[string]string) (prepare, error)
}

// prepare refuses a well-formed request, or returns its work.
type prepare func(ctx context.Context, prices wallet.Prices) (*Job, error)

func (o *Operation[T]) route() (name, method, path string) { return o.Name, o.Method, o.Path }

func (o *Operation[T]) streams() bool { return o.Streams }

func (o *Operation[T]) price() string { return o.Price }

// Input is the request that Decode reads.
type Input struct {
	Object                       // the body
	parameters map[string]string // of the path
	query      url.Values
	asked      map[string]bool // query parameters that Decode has read
}

// ReadInput reads a body. Where the body is no object, ReadInput returns the fields before the fault and the reason.
func ReadInput(body []byte, parameters map[string]string) (*Input, error) {
	object, err := parseObject(body, "", newNotes())
	return &Input{Object: object, parameters: parameters, asked: map[string]bool{}}, err
}

// Problems returns the messages about the fields that have been read.
func (in *Input) Problems() Problems { return in.problems }

// Warnings returns the warnings that Decode has added.
func (in *Input) Warnings() []string { return in.warnings }

// Parameter returns a path parameter, decoded.
func (in *Input) Parameter(name string) string { return in.parameters[name] }

// Query returns a query parameter, the values of a repeated one joined by a comma, and whether the request has it.
func (in *Input) Query(name string) (value string, sent bool) {
	in.asked[name] = true
	values, sent := in.query[name]
	return strings.Join(values, ","), sent
}

// Call is the authenticated request that Prepare reads.
type Call struct {
	RequestID    string
	Project      *project.Project
	Environment  project.Environment
	Mode         project.Mode
	Integrations []project.Integration // active ones of the operation's kind, at least one, by priority
	kind         project.Kind
	prices       wallet.Prices
	price        string
	holds        *admit.Request
}

// Credits returns the credits for a number of units: 0 for Manual (BYOK), free operations and the vendor "test".
func (c *Call) Credits(units int) *admit.Credits {
	amount := int64(0)
	free := slices.ContainsFunc(c.Integrations, func(i project.Integration) bool { return i.Vendor == project.TestVendor })
	if c.Mode == project.Managed && c.price != "" && !free {
		amount = int64(units) * c.Project.Price(c.price, c.prices[c.price])
	}
	return admit.NewCredits(c.holds, c.price, units, amount)
}

// Messages returns the messages of a send for the limits of the project (docs/limits-and-429.md).
func (c *Call) Messages(all []admit.Message) *admit.Messages { return admit.NewMessages(c.holds, all) }

// NoIntegration returns the error for a project without a usable active integration of the operation's kind. The error
// names the kind, the environment, and the vendors of the integrations that cannot be used.
func (c *Call) NoIntegration(cause error) *Error {
	message := fmt.Sprintf("The project has no active %s integration in %s.", c.kind, c.Environment)
	if len(c.Integrations) > 0 {
		var vendors []string
		for _, i := range c.Integrations {
			vendors = append(vendors, i.Vendor)
		}
		message = fmt.Sprintf("The project's active %s integration in %s cannot be used: %s lacks a setting, a secret or "+
			"data.",
			c.kind, c.Environment, strings.Join(vendors, ", "))
	}
	return &Error{Status: 422, Code: CodeProviderSelection, Message: message, Cause: cause}
}

// Job is accepted work.
type Job struct {
	// Credits are reserved before Run and captured when Run succeeds; nil: nothing to pay.
	Credits *admit.Credits
	// Irrevocable work (a sent SMS) is marked in the ledger before Run, and stays charged if the request dies.
	Irrevocable bool
	// Died returns what the ledger says of irrevocable work if the request dies; nil: nothing.
	Died func() wallet.Outcome
	// Messages are those of a send, which Run begins one by one (Messages.Begin); nil: no send.
	Messages *admit.Messages
	// Prefetch is a read that goes out together with the count and the reservation; nil: no such read.
	Prefetch func(ctx context.Context) error
	// Run does the work. The context ends in time for the response.
	Run func(ctx context.Context) (*Result, error)
}

// Result is the success of an operation.
type Result struct {
	Data  any    // the envelope's data
	Meta  any    // the envelope's meta; nil: no meta
	Media *Media // a body that is no JSON, in place of both
	// Reduced returns the data for repeats where Data is too large to be kept; nil: such an outcome is not kept.
	Reduced func() any

	Header http.Header // further headers of the response, in the letter case of openapi.yaml

	Vendor     string             // the vendor that did the work, for log and metrics
	VendorID   string             // the vendor's ID of the work, for the ledger; empty: none
	NotCharged bool               // a success that costs nothing (location of an unknown address)
	Attributes []slog.Attr        // further attributes of the log entry
	Cause      error              // the reason why a part of the work failed, for the log only; nil: no part failed
	Metrics    []telemetry.Metric // further metrics

	replayed bool // the response of an earlier request with the same Idempotency-Key
}

// Media is a response body that is no JSON, or that is a Base64 text in the envelope.
type Media struct {
	Type        string // of the content
	Disposition string // Content-Disposition
	Body        []byte
	Base64      bool // the response is the envelope, with Body in data (openapi.yaml#PdfBase64Result)
}

// decode refuses a request that is malformed, unconfirmed (docs/decisions/requests.md#playground), or has an invalid
// Idempotency-Key, in this order.
func (o *Operation[T]) decode(state *requestState, parameters map[string]string) (prepare, error) {
	in, err := ReadInput(state.body, parameters)
	if err != nil && state.request.Method == http.MethodPost {
		in.problems.Add("body", err.Error())
		return nil, errInvalid(in.notes)
	}
	in.query = state.request.URL.Query()
	// A request that asks for privacy gets it, also where the field itself or another one is wrong.
	if v, ok := in.members["privacy_mode"]; ok && v.Kind() != 'f' && v.Kind() != 'n' {
		state.privacy = true
	}
	decoded, err := o.Decode(in)
	if err != nil {
		return nil, err
	}
	state.ignored, state.warnings = in.noteMisspelt(), in.warnings
	for _, name := range slices.Sorted(maps.Keys(in.query)) {
		if !in.asked[name] {
			state.ignored = append(state.ignored, name)
		}
	}
	state.decoded = len(in.problems) == 0
	sends := o.Sends != nil && o.Sends(decoded)
	if o.Sends != nil {
		if key := idempotencyKey(state.request.Header, in.problems); sends {
			state.key = key
		}
	}
	switch {
	case state.decoded && sends && state.playground && !isTrue(state.request.Header.Get("X-Confirm-Send")):
		return nil, errUnconfirmed
	case len(in.problems) > 0:
		return nil, errInvalid(in.notes)
	}
	return func(ctx context.Context, prices wallet.Prices) (*Job, error) {
		return o.prepare(ctx, state, prices, decoded)
	}, nil
}

// prepare selects the integrations, lets the operation refuse the request, and returns the work.
func (o *Operation[T]) prepare(ctx context.Context, state *requestState, prices wallet.Prices,
	decoded T) (*Job, error) {
	call := &Call{
		RequestID: state.id, Project: &state.record.Project, Environment: state.environment,
		Integrations: state.record.Chain(o.Kind, state.environment), kind: o.Kind, prices: prices, price: o.Price,
		holds: state.holds,
	}
	if len(call.Integrations) == 0 {
		return nil, call.NoIntegration(nil)
	}
	call.Mode = call.Integrations[0].Mode
	state.mode = call.Mode
	return o.Prepare(ctx, call, decoded)
}

func errInvalid(n *notes) *Error {
	message := "The request has missing or invalid fields"
	for list, items := range n.unreported { // an operation has at most one list
		message = fmt.Sprintf("%s, and %d more in %s", message, items, list)
	}
	return &Error{Status: 422, Code: CodeValidationFailed, Message: message + ".", Details: n.problems}
}

// pathParameters matches a path as sent, and returns its decoded parameters (docs/decisions/requests.md#routes).
func pathParameters(pattern, escaped []string) (map[string]string, bool) {
	if len(pattern) != len(escaped) {
		return nil, false
	}
	parameters := map[string]string{}
	for i, p := range pattern {
		if !strings.HasPrefix(p, "{") {
			if p != escaped[i] {
				return nil, false
			}
			continue
		}
		value, _ := url.PathUnescape(escaped[i]) // empty for a malformed escape
		if value == "" {
			return nil, false
		}
		parameters[p[1:len(p)-1]] = value
	}
	return parameters, true
}

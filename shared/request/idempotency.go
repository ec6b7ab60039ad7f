package request

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
	maxKey         = 128
	// longestRequest is the longest life of a request whose context has no deadline.
	longestRequest = 30 * time.Second
)

var (
	errOtherBody = &Error{Status: 422, Code: CodeHTTPError, Reason: ReasonIdempotencyKeyReused,
		Message: "The Idempotency-Key was used with another request body."}
	errRunning = &Error{Status: 409, Code: CodeHTTPError, Reason: ReasonIdempotencyInProgress,
		Message: "The first request with this Idempotency-Key is still at work."}
	// errNotKept is stored in place of an outcome that is too large (docs/decisions/extensions.md#idempotency-size).
	errNotKept = &Error{Status: 409, Code: CodeHTTPError, Reason: ReasonIdempotencyNotKept,
		Message: "The first request with this Idempotency-Key was carried out, but its response is too large to be repeated."}
	// errDied is stored for a dead request (docs/decisions/extensions.md#idempotency-dead-claims).
	errDied = &Error{Status: 503, Code: CodeHTTPError, Reason: ReasonOutcomeUncertain,
		Message: "The first request with this Idempotency-Key was cut off. The message may have been sent: do not retry " +
			"automatically."}
)

// idempotencyKey reads and validates the header (docs/decisions/extensions.md#idempotency-key).
func idempotencyKey(h http.Header, problems Problems) string {
	values := h.Values(keyHeader)
	if len(values) == 0 {
		return ""
	}
	key := values[0]
	invisible := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if len(values) != 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, invisible) {
		problems.Add(keyHeader, "must be 1 to 128 visible ASCII characters, once")
	}
	return key
}

// claim wins the request's key, or returns the outcome of the key's first request. If the request dies afterwards, its
// claim stays: only a request from which nothing reached a provider frees its claim.
func (s *Service) claim(ctx context.Context, state *requestState, key string) (*Result, error) {
	if key == "" {
		return nil, nil
	}
	until := s.now().Add(longestRequest)
	if deadline, ok := ctx.Deadline(); ok {
		until = deadline
	}
	won, outcome, err := s.keys.claim(ctx, state.record.ID, string(state.environment), key, state.body, until)
	state.claim = won
	if err != nil || won != nil {
		return nil, err
	}
	return replay(outcome)
}

// endClaim stores the outcome of a request that may have reached a provider, and frees the key of any other request
// (docs/decisions/extensions.md#idempotency-outcomes).
func (state *requestState) endClaim(ctx context.Context, result *Result, failed error) {
	if state.claim == nil {
		return
	}
	var e *Error
	if reached := failed == nil || errors.As(failed, &e) && e.Reached; !reached {
		if err := state.claim.free(ctx); err != nil {
			state.note("key_not_freed", err)
		}
		return
	}
	err := state.keep(ctx, result, e)
	if errors.Is(err, errOutcomeTooLarge) && result.Reduced != nil {
		err = state.keep(ctx, &Result{Data: result.Reduced(), Vendor: result.Vendor}, nil)
	}
	if errors.Is(err, errOutcomeTooLarge) {
		err = errors.Join(err, state.keep(ctx, nil, errNotKept))
	}
	if err != nil {
		state.note("outcome_not_kept", err)
		state.metric("OutcomesNotKept")
	}
}

func (state *requestState) keep(ctx context.Context, result *Result, failed *Error) error {
	outcome, err := encodeOutcome(result, failed)
	if err != nil {
		return err
	}
	return state.claim.keep(ctx, outcome)
}

type outcome struct {
	Status     int            `json:"status"`
	Vendor     string         `json:"vendor,omitzero"`
	Data       jsontext.Value `json:"data,omitzero"`
	Code       string         `json:"code,omitzero"`
	Reason     Reason         `json:"reason,omitzero"`
	VendorCode string         `json:"vendor_code,omitzero"`
	Reference  string         `json:"reference,omitzero"`
	Message    string         `json:"message,omitzero"`
}

func encodeOutcome(result *Result, failed *Error) ([]byte, error) {
	if failed != nil {
		return encode(outcome{
			Status: failed.Status, Vendor: failed.Vendor, Code: failed.Code, Reason: failed.Reason,
			VendorCode: failed.VendorCode,
			Reference:  failed.Reference, Message: failed.Message,
		})
	}
	data, err := encode(result.Data)
	if err != nil {
		return nil, err
	}
	return encode(outcome{Status: 200, Vendor: result.Vendor, Data: data})
}

// replay returns the result or the error of the first request from its stored outcome.
func replay(text []byte) (*Result, error) {
	var o outcome
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, ErrInternal.WithCause(fmt.Errorf("kept outcome: %w", err))
	}
	if o.Code == "" {
		return &Result{Data: o.Data, Vendor: o.Vendor, replayed: true}, nil
	}
	return nil, &Error{
		Status: o.Status, Code: o.Code, Reason: o.Reason, VendorCode: o.VendorCode, Reference: o.Reference,
		Message: o.Message, Vendor: o.Vendor,
		Header: http.Header{replayedHeader: {"true"}},
	}
}

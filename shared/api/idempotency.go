package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/idempotency"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
	maxKey         = 128
	// longestRequest is how long a request lives where its context does not say.
	longestRequest = 30 * time.Second
)

var (
	errOtherBody = &Error{Status: 422, Code: CodeHTTPError, Message: "The Idempotency-Key was used with another request body."}
	errRunning   = &Error{Status: 409, Code: CodeHTTPError, Message: "The first request with this Idempotency-Key is still at work."}
	// errNotKept is kept for a request whose outcome is too large to be kept.
	errNotKept = &Error{Status: 409, Code: CodeHTTPError, Message: "The first request with this Idempotency-Key was carried out, but its response is too large to be repeated."}
	// errDied is kept for a request that died without an outcome.
	errDied = &Error{Status: 503, Code: CodeHTTPError, Message: "The first request with this Idempotency-Key was cut off. The message may have been sent: do not retry automatically."}
)

// idempotencyKey reads the header: 1 to 128 visible ASCII characters, once.
func idempotencyKey(h http.Header, problems Problems) string {
	values := h.Values(keyHeader)
	if len(values) == 0 {
		return ""
	}
	key := values[0]
	valid := len(values) == 1 && key != "" && len(key) <= maxKey
	for i := range len(key) {
		valid = valid && key[i] > ' ' && key[i] < 0x7f
	}
	if !valid {
		problems.Add(keyHeader, "must be 1 to 128 visible ASCII characters, once")
	}
	return key
}

// claim is the Idempotency-Key that a request has won. The zero claim belongs to a request without a key.
type claim struct{ won *idempotency.Claim }

// claim wins the request's key, beside the count that is under way, or returns the outcome of the key's first request.
// Nothing is prepared or reserved before the key is won. Whatever dies afterwards, no other request with the key comes
// this far again unless the claim was freed, which happens only when nothing reached a provider.
func (s *Service) claim(ctx context.Context, x *exchange, key string, counted func() error) (claim, *Result, error) {
	if key == "" {
		return claim{}, nil, nil
	}
	died, err := encodeOutcome(nil, errDied)
	if err != nil {
		return claim{}, nil, first(counted(), ErrInternal.Because(err))
	}
	until := s.now().Add(longestRequest)
	if deadline, ok := ctx.Deadline(); ok {
		until = deadline
	}
	won, outcome, err := s.keys.Claim(ctx, x.record.ID, string(x.environment), key, x.body, until, died)
	c := claim{won}
	if limited := counted(); limited != nil {
		return claim{}, nil, c.end(ctx, x, nil, limited)
	}
	switch {
	case errors.Is(err, idempotency.ErrOtherBody):
		return claim{}, nil, errOtherBody
	case errors.Is(err, idempotency.ErrRunning):
		return claim{}, nil, errRunning
	case err != nil:
		return claim{}, nil, ErrInternal.Because(err)
	case won == nil:
		kept, err := replay(outcome)
		return claim{}, kept, err
	}
	return c, nil, nil
}

// end keeps the outcome of a request that may have reached a provider, and frees the key of any other request. end
// returns the request's error.
func (c claim) end(ctx context.Context, x *exchange, result *Result, failed error) error {
	if c.won == nil {
		return failed
	}
	var e *Error
	reached := failed == nil || errors.As(failed, &e) && e.Reached
	if !reached {
		if err := c.won.Free(ctx); err != nil {
			x.note("key_not_freed", err)
		}
		return failed
	}
	outcome, err := encodeOutcome(result, e)
	if err == nil {
		err = c.won.Keep(ctx, outcome)
	}
	if errors.Is(err, idempotency.ErrTooLarge) {
		if outcome, failed := encodeOutcome(nil, errNotKept); failed == nil {
			err = errors.Join(err, c.won.Keep(ctx, outcome))
		}
	}
	if err != nil {
		x.note("outcome_not_kept", err)
		x.metric("OutcomesNotKept")
	}
	return failed
}

// outcome is what is kept of a request.
type outcome struct {
	Status  int            `json:"status"`
	Vendor  string         `json:"vendor,omitzero"`
	Data    jsontext.Value `json:"data,omitzero"`
	Code    string         `json:"code,omitzero"`
	Message string         `json:"message,omitzero"`
}

func encodeOutcome(result *Result, failed *Error) ([]byte, error) {
	if failed != nil {
		return encode(outcome{Status: failed.Status, Vendor: failed.Vendor, Code: failed.Code, Message: failed.Message})
	}
	data, err := encode(result.Data)
	if err != nil {
		return nil, err
	}
	return encode(outcome{Status: 200, Vendor: result.Vendor, Data: data})
}

// replay answers as the first request was answered.
func replay(text []byte) (*Result, error) {
	var o outcome
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, ErrInternal.Because(fmt.Errorf("kept outcome: %w", err))
	}
	if o.Code == "" {
		return &Result{Data: o.Data, Vendor: o.Vendor, replayed: true}, nil
	}
	return nil, &Error{Status: o.Status, Code: o.Code, Message: o.Message, Vendor: o.Vendor, Header: http.Header{replayedHeader: {"true"}}}
}

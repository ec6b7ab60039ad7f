package request

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"svcapi/shared/ratelimit"
	"svcapi/shared/wallet"
)

// The values of error.code (openapi.yaml#Error).
const (
	CodeHTTPError           = "http_error"
	CodeUnauthorized        = "unauthorized"
	CodeInsufficientFunds   = "insufficient_funds"
	CodeForbidden           = "forbidden"
	CodeValidationFailed    = "validation_failed"
	CodeProviderSelection   = "provider_selection_failed"
	CodeConfirmationMissing = "send_confirmation_required"
	CodeRateLimitExceeded   = "rate_limit_exceeded"
	CodeInternalError       = "internal_error"
	CodeServiceUnavailable  = "service_unavailable"
	CodeProjectPaused       = "project_paused"
	CodeInvalidCurrency     = "invalid_currency_code"
)

// Reason is the value of error.details.reason, which every http_error and the refusals of a send have
// (docs/decisions/requests.md#error-reasons).
type Reason string

// The reasons (openapi.yaml#ErrorReason).
const (
	ReasonRouteNotFound            Reason = "route_not_found"
	ReasonMethodNotAllowed         Reason = "method_not_allowed"
	ReasonBodyTooLarge             Reason = "body_too_large"
	ReasonRequestNotServed         Reason = "request_not_served" // of the gateway's own responses only
	ReasonRenderRejected           Reason = "render_rejected"
	ReasonLimitExceeded            Reason = "limit_exceeded"
	ReasonIntegrationIncomplete    Reason = "integration_incomplete"
	ReasonUnitPriceMissing         Reason = "unit_price_missing"
	ReasonBalanceUnavailable       Reason = "balance_unavailable"
	ReasonDateNotStored            Reason = "date_not_stored"
	ReasonMessageTooLong           Reason = "message_too_long"
	ReasonBulkNeedsManual          Reason = "bulk_needs_manual"
	ReasonTrialDestination         Reason = "trial_destination"
	ReasonVendorRejected           Reason = "vendor_rejected"
	ReasonVendorCredentialsRefused Reason = "vendor_credentials_refused"
	ReasonVendorResponseUnusable   Reason = "vendor_response_unusable"
	ReasonVendorUnreachable        Reason = "vendor_unreachable"
	ReasonOutcomeUncertain         Reason = "outcome_uncertain"
	ReasonReferenceNotFound        Reason = "reference_not_found"
	ReasonIdempotencyKeyReused     Reason = "idempotency_key_reused"
	ReasonIdempotencyInProgress    Reason = "idempotency_in_progress"
	ReasonIdempotencyNotKept       Reason = "idempotency_outcome_not_kept"
	ReasonCreditsReserved          Reason = "credits_reserved"
)

// Error is a failed request. The client does not see the cause and the vendor. An Idempotency-Key keeps the JSON form.
type Error struct {
	Status     int    `json:"status"`
	Code       string `json:"code"`
	Reason     Reason `json:"reason,omitzero"` // "": the code has no reasons
	Message    string `json:"message"`
	VendorCode string `json:"vendor_code,omitzero"` // the vendor's own code of the failure; empty: it has none
	Reference  string `json:"reference,omitzero"`   // of an uncertain send; empty: none
	Vendor     string `json:"vendor,omitzero"`      // that failed, for the log; empty: no vendor did

	Details Problems    `json:"-"` // of validation_failed
	Amounts Amounts     `json:"-"` // further members of details
	Header  http.Header `json:"-"` // further headers of the response

	Cause     error  `json:"-"` // for the log only
	Quoted    string `json:"-"` // a part of the payload in message and cause, which the log masks; empty: none
	Reached   bool   `json:"-"` // irrevocable work may have reached a vendor: an Idempotency-Key keeps this outcome
	Uncertain bool   `json:"-"` // the work may still have happened, so it stays charged

	outcome string // of the metrics, where the status does not decide; empty: the status decides
}

// Amounts are integers of error.details, such as price and balance (openapi.yaml#Error).
type Amounts map[string]int64

// Error returns the public message and the cause, for the log.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return strings.TrimSuffix(e.Message, ".") + ": " + e.Cause.Error()
}

// details is error.details of an error whose fields are all valid.
type details struct {
	Reason     Reason  `json:"reason,omitzero"`
	Vendor     string  `json:"vendor,omitzero"`
	VendorCode string  `json:"vendor_code,omitzero"`
	Reference  string  `json:"reference,omitzero"`
	Amounts    Amounts `json:",embed"`
}

// details returns error.details, or nil where the response has none. An http_error about a vendor names the vendor.
func (e *Error) details() any {
	about := strings.HasPrefix(string(e.Reason), "vendor_") || e.Reason == ReasonOutcomeUncertain
	switch {
	case e.Code == CodeHTTPError && about:
		return details{e.Reason, e.Vendor, e.VendorCode, e.Reference, nil}
	case e.Reason != "" || e.Amounts != nil:
		return details{Reason: e.Reason, Amounts: e.Amounts}
	case e.Details != nil:
		return e.Details
	}
	return nil
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// WithCause returns a copy of the error with its cause.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Errors that are the same for all operations. WithCause copies these values, and no code changes them.
var (
	errTooLarge = &Error{Status: 413, Code: CodeHTTPError, Reason: ReasonBodyTooLarge,
		Message: "The request body is over 4 MiB."}
	errUnauthorized = &Error{Status: 401, Code: CodeUnauthorized,
		Message: "The credentials are missing, invalid or inactive, or do not match the environment."}
	errPaused      = &Error{Status: 503, Code: CodeProjectPaused, Message: "The project is paused."}
	errUnconfirmed = &Error{Status: 428, Code: CodeConfirmationMissing,
		Message: "Sending from the documentation playground needs the header X-Confirm-Send: true."}
	errNoCredits = &Error{Status: 402, Code: CodeInsufficientFunds,
		Message: "The project has too few credits for this request."}

	// ErrNotFound is the error for a path without a resource. The gateway has the same text for paths of no function.
	ErrNotFound = &Error{
		Status: 404, Code: CodeHTTPError, Reason: ReasonRouteNotFound,
		Message: "There is no such resource. Operations are below /api/v1, the document is /docs/openapi.yaml, and no path " +
			"ends with a slash.",
	}
	// ErrInternal is every failure of the service itself.
	ErrInternal = &Error{Status: 500, Code: CodeInternalError,
		Message: "The request failed unexpectedly. Keep the request ID for support."}
)

// ErrPanicked marks the cause of an error as a panic of the service, also where the response names a vendor.
var ErrPanicked = errors.New("panic")

// ErrMethod returns the error for a wrong method; allow names the methods of the path.
func ErrMethod(allow string) *Error {
	return &Error{Status: 405, Code: CodeHTTPError, Reason: ReasonMethodNotAllowed,
		Message: "This resource takes " + allow + " only.",
		Header:  http.Header{"Allow": {allow}}}
}

// errLimited returns the error for a limit in a window, of which the rest is left.
func errLimited(outcome string, rest time.Duration, limit int, window time.Duration, message string) *Error {
	return &Error{Status: 429, Code: CodeRateLimitExceeded, outcome: outcome, Message: message,
		Amounts: Amounts{"limit": int64(limit), "window_seconds": int64(window / time.Second)},
		Header:  http.Header{"Retry-After": {strconv.Itoa(max(1, seconds(rest)))}}}
}

// refusal returns the response to a request that an error of a hold refuses, and nil for no error.
func (state *requestState) refusal(err error) error {
	if d, ok := errors.AsType[ratelimit.Decision](err); ok {
		return errLimited("", d.Reset, d.Limit, state.record.Limit.Window, "The project's request limit is reached.")
	}
	if r, ok := errors.AsType[*ratelimit.RecipientRefusal](err); ok {
		const message = "The project's limit of %d messages to one number in %s is reached."
		return errLimited(outcomeRecipient, r.Reset, r.Limit.Messages, r.Limit.Window,
			fmt.Sprintf(message, r.Limit.Messages, inWords(r.Limit.Window)))
	}
	if day, ok := errors.AsType[ratelimit.Day](err); ok {
		return errDaily(day)
	}
	if lacking, ok := errors.AsType[*wallet.InsufficientError](err); ok {
		return errLacking(state.job.Credits.Amount(), lacking, state.holds.Now())
	}
	if err == nil {
		return nil
	}
	return ErrInternal.WithCause(err)
}

// The settling function closes a lease SettleAfterSeconds and a run after its begin; an older one waits for a late run.
const (
	leaseClosed = 170 * time.Second
	longestWait = 180 * time.Second
)

// errLacking is the response to a request for which a wallet lacks credits. Where leases hold them, the response says
// when to try again (docs/decisions/money.md#leases).
func errLacking(price int64, lacking *wallet.InsufficientError, now time.Time) *Error {
	e := *errNoCredits
	e.Amounts = Amounts{"price": price, "balance": lacking.Balance}
	if !lacking.Oldest.IsZero() {
		wait := lacking.Oldest.Add(leaseClosed).Sub(now)
		if wait <= 0 || wait > longestWait {
			wait = longestWait
		}
		e.Reason = ReasonCreditsReserved
		e.Message = "Requests that have not ended hold the project's credits."
		e.Header = http.Header{"Retry-After": {strconv.Itoa(max(1, seconds(wait)))}}
	}
	return &e
}

func errDaily(day ratelimit.Day) *Error {
	what := map[ratelimit.Unit]string{ratelimit.Credits: "credits", ratelimit.Units: "SMS units"}[day.Limit.Unit]
	return &Error{
		Status: http.StatusPaymentRequired, Code: CodeInsufficientFunds, outcome: outcomeDaily,
		Amounts: Amounts{"limit": day.Limit.Most, "window_seconds": int64(day.End().Sub(day.Start) / time.Second)},
		Message: fmt.Sprintf("The request would exceed the project's daily limit of %s %s, which ends at %s.",
			wallet.Grouped(day.Limit.Most), what, day.End().Format(time.RFC3339)),
	}
}

// inWords returns a window in the largest unit of which it is a whole number: 10 minutes, 24 hours.
func inWords(window time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := window / unit.length; window%unit.length == 0 && n > 0 {
			if n == 1 {
				return "one " + unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return window.String()
}

// errorBody is error in the envelope.
type errorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details any    `json:"details,omitzero"`
}

// envelope returns the body of the response to a failed request, of strings and integers, so that encode cannot fail.
func (e *Error) envelope(requestID string) []byte {
	body, _ := encode(envelope{RequestID: requestID, Error: &errorBody{e.Code, e.Message, e.details()}})
	return body
}

// failure returns the response to an error. An error that is no *Error is internal.
func failure(err error) response {
	var e *Error
	if !errors.As(err, &e) {
		e = ErrInternal.WithCause(err)
	}
	header := http.Header{"Content-Type": {jsonType}}
	maps.Copy(header, e.Header)
	return response{status: e.Status, header: header, failure: e}
}

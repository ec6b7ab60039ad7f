package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// The values of error.code (contract: Errors).
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

// Error is a request that failed: what the client sees, and apart from it what
// the operator sees.
type Error struct {
	Status  int
	Code    string
	Message string
	Details map[string][]string // of validation_failed: messages by field path
	Header  http.Header         // more headers of the answer

	Cause     error  // for the log only
	Vendor    string // who failed, where a vendor did
	Reached   bool   // a byte of irrevocable work may have reached a vendor: an Idempotency-Key keeps this outcome
	Uncertain bool   // the work may have happened all the same: it stays charged
}

// Error is for the log: the public message and the cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return strings.TrimSuffix(e.Message, ".") + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Because returns a copy that names its cause.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Errors that say the same whatever the operation. They are values to copy
// from (Because), never to change.
var (
	errTooLarge     = &Error{Status: 413, Code: CodeHTTPError, Message: "The request body is over 4 MiB."}
	errUnauthorized = &Error{Status: 401, Code: CodeUnauthorized, Message: "The credentials are missing, invalid or inactive, or do not match the environment."}
	errPaused       = &Error{Status: 503, Code: CodeProjectPaused, Message: "The project is paused."}
	errUnconfirmed  = &Error{Status: 428, Code: CodeConfirmationMissing, Message: "Sending from the documentation playground needs the header X-Confirm-Send: true."}
	errNoCredits    = &Error{Status: 402, Code: CodeInsufficientFunds, Message: "The project has too few credits for this request."}

	// ErrNotFound: nothing at this path.
	ErrNotFound = &Error{Status: 404, Code: CodeHTTPError, Message: "There is no such resource."}
	// ErrNoIntegration: nothing active for the project's environment.
	ErrNoIntegration = &Error{Status: 422, Code: CodeProviderSelection, Message: "The project has no usable active integration for this operation in this environment."}
	// ErrInternal is every failure that is the service's own.
	ErrInternal = &Error{Status: 500, Code: CodeInternalError, Message: "The request failed unexpectedly. Keep the request ID for support."}
)

// internal returns the response to a failure of the service itself, with the step that failed; nil for no error.
func internal(step string, err error) error {
	if err == nil {
		return nil
	}
	if step != "" {
		err = fmt.Errorf("%s: %w", step, err)
	}
	return ErrInternal.Because(err)
}

// ErrMethod says that the path has other methods, which allow names.
func ErrMethod(allow string) *Error {
	return &Error{Status: 405, Code: CodeHTTPError, Message: "This resource takes " + allow + " only.", Header: http.Header{"Allow": {allow}}}
}

func errRateLimited(seconds int) *Error {
	return &Error{Status: 429, Code: CodeRateLimitExceeded, Message: "The project's request limit is reached.",
		Header: http.Header{"Retry-After": {strconv.Itoa(max(1, seconds))}}}
}

package browser

import (
	"errors"
	"fmt"
	"time"
)

// DocumentError is the reason in the document, and not in the service, why the document was not rendered.
type DocumentError struct {
	Reason  string // short and fixed
	Message string // for the client; names the limit, where there is one
}

// reasonRanges is the reason of a page range without a page.
const reasonRanges = "ranges"

// ReasonSize is the reason of a PDF with too many bytes.
const ReasonSize = "size"

// Error implements error.
func (e *DocumentError) Error() string { return "browser: " + e.Message }

// ClientMessage returns the text for the client.
func (e *DocumentError) ClientMessage() string { return e.Message }

// ExceedsLimit reports whether the document exceeds a limit.
func (e *DocumentError) ExceedsLimit() bool {
	return e.Reason != errUnprintable.Reason && e.Reason != reasonRanges
}

func documentErrorf(reason, format string, values ...any) *DocumentError {
	return &DocumentError{reason, fmt.Sprintf(format, values...)}
}

func tooSlow(limit time.Duration) error {
	return documentErrorf("time", "rendering took longer than %s", limit)
}

var (
	errUnprintable = &DocumentError{"unprintable", "the document could not be rendered"}
	errNoPage      = &DocumentError{reasonRanges, "the document has no page in one of the page_ranges"}
	errEnded       = errors.New("browser: the browser has ended") // by itself, or by another process
)

// imageError marks an error of package fetch, so that healthy can distinguish the error from one of the browser.
type imageError struct{ error }

func (e *imageError) Unwrap() error { return e.error }

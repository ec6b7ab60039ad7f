package browser

import (
	"errors"
	"time"

	"svcapi/functions/pdf/render/event"
)

// reasonPages is the reason of a document with too many pages, reasonHeight that of one with too high a page,
// reasonRanges that of a page range without a page, and reasonWarnings that of a strict document with a warning.
const (
	reasonPages    = "pages"
	reasonHeight   = "height"
	reasonRanges   = "ranges"
	reasonWarnings = "warnings"
)

func tooSlow(limit time.Duration) error {
	return event.Exceeded("time", "rendering took longer than %s", limit)
}

var (
	errUnprintable = &event.RejectionError{Reason: "unprintable", Message: "the document could not be rendered"}
	errProgram     = errors.New("browser: a program has failed in the page")
	errNoPage      = &event.RejectionError{Reason: reasonRanges,
		Message: "the document has no page in one of the page_ranges"}
	errEnded  = errors.New("browser: the browser has ended") // by itself, or by another process
	errClosed = errors.New("browser: the renderer is closed")
)

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

// Error implements error.
func (e *DocumentError) Error() string { return "browser: " + e.Message }

// ClientMessage returns the text for the client.
func (e *DocumentError) ClientMessage() string { return e.Message }

func tooLarge(size, limit int64) error {
	return &DocumentError{"size", fmt.Sprintf("the PDF has %d bytes; at most %d are allowed", size, limit)}
}

func tooManyPages(limit int) error {
	return &DocumentError{"pages", fmt.Sprintf("the document has more than %d pages", limit)}
}

func tooSlow(limit time.Duration) error {
	return &DocumentError{"time", fmt.Sprintf("rendering took longer than %s", limit)}
}

func tooMuchMemory(limit int64) error {
	return &DocumentError{"memory", fmt.Sprintf("rendering needs more than %d MiB of memory", limit>>20)}
}

var (
	errUnprintable = &DocumentError{"unprintable", "the document could not be rendered"}
	errEnded       = errors.New("browser: the browser has ended") // by itself, or by another process
)

// imageError marks an error of package fetch, so that healthy can distinguish the error from one of the browser.
type imageError struct{ error }

func (e *imageError) Unwrap() error { return e.error }

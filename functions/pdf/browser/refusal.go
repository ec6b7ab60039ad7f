package browser

import (
	"fmt"
	"time"
)

// RefusedError says why a document was not rendered, in words for the client: the document's own doing, not a fault of
// the service.
type RefusedError struct {
	Reason  string // short and fixed, for metrics
	Message string // names the limit, where there is one
}

// Error implements error.
func (r *RefusedError) Error() string { return "browser: " + r.Message }

// Refusal returns the words for the client.
func (r *RefusedError) Refusal() string { return r.Message }

func tooLarge(size, limit int64) error {
	return &RefusedError{"size", fmt.Sprintf("the PDF has %d bytes; at most %d are allowed", size, limit)}
}

func tooManyPages(limit int) error {
	return &RefusedError{"pages", fmt.Sprintf("the document has more than %d pages", limit)}
}

func tooSlow(limit time.Duration) error {
	return &RefusedError{"time", fmt.Sprintf("rendering took longer than %s", limit)}
}

func tooMuchMemory(limit int64) error {
	return &RefusedError{"memory", fmt.Sprintf("rendering needs more than %d MiB of memory", limit>>20)}
}

var errUnprintable = &RefusedError{"unprintable", "the document could not be rendered"}

package browser

import (
	"fmt"
	"time"
)

// Refusal says why a document was not rendered, in words for the client: the document's own doing, not a fault of
// the service.
type Refusal struct {
	Reason  string // short and fixed, for metrics
	Message string // names the limit, where there is one
}

// Error implements error.
func (r *Refusal) Error() string { return "browser: " + r.Message }

// Refusal returns the words for the client.
func (r *Refusal) Refusal() string { return r.Message }

func tooLarge(size, limit int64) error {
	return &Refusal{"size", fmt.Sprintf("the PDF has %d bytes; at most %d are allowed", size, limit)}
}

func tooManyPages(limit int) error {
	return &Refusal{"pages", fmt.Sprintf("the document has more than %d pages", limit)}
}

func tooSlow(limit time.Duration) error {
	return &Refusal{"time", fmt.Sprintf("rendering took longer than %s", limit)}
}

func tooMuchMemory(limit int64) error {
	return &Refusal{"memory", fmt.Sprintf("rendering needs more than %d MiB of memory", limit>>20)}
}

var errUnprintable = &Refusal{"unprintable", "the document could not be rendered"}

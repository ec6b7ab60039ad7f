package stack

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/local/lambda"
)

// TestAwaitRenderer checks that an event of 29 seconds waits for the browser, unless too little time would be left for
// its PDF: the function begins no work in the last five seconds.
func TestAwaitRenderer(t *testing.T) {
	for after, waits := range map[time.Duration]bool{15 * time.Second: true, 23 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			s := &Stack{pdf: &pdf{added: make(chan struct{})}}
			time.AfterFunc(after, func() { close(s.pdf.added) })
			ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
			defer cancel()
			err := s.awaitRenderer(ctx)
			if _, refused := errors.AsType[*lambda.StartingError](err); refused == waits || err != nil && !refused {
				t.Errorf("a browser after %s: %v", after, err)
			}
		})
	}
}

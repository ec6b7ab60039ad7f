package lambda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svcapi/local/template"
)

// ErrDropped means that Lambda drops an asynchronous event.
var ErrDropped = errors.New("the event is dropped")

// How long Lambda waits before it runs such an event again (AWS Lambda Developer Guide, How Lambda handles errors and
// retries with asynchronous invocation): a minute after the first failed run and two after the second; after an event
// was throttled a second at first, and up to five minutes.
const (
	afterFailure    = time.Minute
	afterThrottle   = time.Second
	longestThrottle = 5 * time.Minute
)

// Enqueue puts an event into the function's queue, as an asynchronous invocation does, and returns. report gets the
// outcome of each run, and an error that wraps ErrDropped if the event is dropped. Enqueue has no tenant ID, and
// refuses a function with tenant isolation as Invoke does.
func (h *Host) Enqueue(function string, payload []byte, report func(Result, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	pool, err := h.find(poolKey{function: function})
	if err != nil {
		return err
	}
	h.queued.Go(func() {
		deliver(h.ending, pool.function.Asynchronous, func() (Result, error) {
			result, err := h.Invoke(h.ending, function, payload)
			if h.ending.Err() == nil {
				report(result, err)
			}
			return result, err
		}, func(err error) { report(Result{}, err) })
	})
	return nil
}

// deliver runs an event until a run succeeds, the retries are used up or the event is too old.
func deliver(ctx context.Context, rules template.Asynchronous, run func() (Result, error), dropped func(error)) {
	began, failures, pause := time.Now(), 0, afterThrottle
	for {
		result, err := run()
		var wait time.Duration
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrThrottled):
			wait, pause = pause, min(2*pause, longestThrottle)
		case err == nil && result.FunctionError == "":
			return
		default:
			failures++
			wait = time.Duration(failures) * afterFailure
		}
		if failures > rules.Retries {
			dropped(fmt.Errorf("%w after %d failed runs", ErrDropped, failures))
			return
		}
		if time.Since(began)+wait > rules.MaxAge {
			dropped(fmt.Errorf("%w: it would be older than %s", ErrDropped, rules.MaxAge))
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

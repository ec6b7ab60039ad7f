package browser

import (
	"context"
	"time"
)

const (
	// clockStep is the interval at which withRunningTime adds up the running time.
	clockStep = 20 * time.Millisecond
	// longestStep is the most that one step counts. Lambda freezes the process and the browser between two events, for
	// hours, and neither of them works in such a gap. Waiting for the processor takes less.
	longestStep = 10 * clockStep
)

// withRunningTime returns a context that ends with cause after the process has run for d. The time of a freeze does not
// count, whereas a timer of the runtime would fire at the thaw.
func withRunningTime(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(clockStep)
		defer ticker.Stop()
		last := time.Now()
		for ran := time.Duration(0); ran < d; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			now := time.Now()
			ran += min(now.Sub(last), longestStep)
			last = now
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// waitFor waits until a channel is closed, for at most d of running time.
func waitFor(closed <-chan struct{}, d time.Duration) {
	ctx, cancel := withRunningTime(context.Background(), d, context.DeadlineExceeded)
	defer cancel()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

package browser

import (
	"context"
	"time"
)

const (
	// step is how often a limit on running time is looked at.
	step = 20 * time.Millisecond
	// longestStep is the most that one step counts. Lambda freezes the process and the browser between two events, for
	// hours: such a gap is no time in which either of them worked. Waiting for the processor takes less.
	longestStep = 10 * step
)

// withRunningTime returns a context that ends with cause after the process has run for d. The time of a freeze does not
// count, where a timer of the runtime would fire at the thaw.
func withRunningTime(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(step)
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

// within waits for a channel to be closed, for at most d of running time.
func within(d time.Duration, closed <-chan struct{}) {
	ctx, cancel := withRunningTime(context.Background(), d, context.DeadlineExceeded)
	defer cancel()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

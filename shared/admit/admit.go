// Package admit holds what a request takes before its work, and returns where the work has not used it: a request of
// the project's window, messages to numbers, credits or SMS units of the day, and credits of the wallet. Package
// ratelimit has the counters, package wallet the credits.
package admit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"svcapi/shared/afterresponse"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
)

// Hold is something of a project that a request takes before its work.
type Hold interface {
	// Reached returns the refusal that this instance remembers of a moment ago, or nil.
	Reached() error
	// Take takes the hold, or returns the refusal: a ratelimit.Decision, a *ratelimit.RecipientRefusal, a ratelimit.Day or
	// a *wallet.InsufficientError. Any other error is a failure of the service.
	Take(ctx context.Context) error
	// Return returns what the work has not used, after Take has ended in any way, and says how much that is for certain,
	// in the unit of the hold. The error is for the log: the settling function returns the rest.
	Return(ctx context.Context) (unused int64, err error)
}

// Stores are what the holds of all requests of an instance are taken from.
type Stores struct {
	Limiter *ratelimit.Limiter
	Wallet  *wallet.Store
	Log     *telemetry.Logger
	// After runs work after the response to the context's request.
	After func(ctx context.Context, name string, work func(context.Context) error)
	Now   func() time.Time
}

// Request takes and returns the holds of one request.
type Request struct {
	*Stores
	ID          string
	Project     *project.Project
	Environment project.Environment
	Received    time.Time // by the gateway; zero: not known

	at     time.Time // of the last Take: the day of a daily limit and the time of the credits' key
	taken  []taken
	unused []ratelimit.Count // to be subtracted after the response
}

type taken struct {
	Hold
	wait func() error
}

// Take begins to take holds, all at the same time and beside those before. Take returns the first refusal that this
// instance remembers, and then begins nothing (docs/decisions/requests.md#phases).
func (r *Request) Take(ctx context.Context, holds ...Hold) error {
	r.at = r.Now()
	for _, h := range holds {
		if err := h.Reached(); err != nil {
			return err
		}
	}
	for _, h := range holds {
		r.taken = append(r.taken, taken{h, Async(func() error { return h.Take(ctx) })})
	}
	return nil
}

// Wait waits until no hold is being taken any more, and returns the error of the first one in their order.
func (r *Request) Wait() (first error) {
	for _, h := range r.taken {
		if err := h.wait(); first == nil {
			first = err
		}
	}
	return first
}

// Return returns what the work has not used of the holds, the last one first. Counts are subtracted after the response:
// those of a request that dies before stay, and the limits then let fewer through. A queue keeps what the time after
// the response does not suffice for.
func (r *Request) Return(ctx context.Context) (failed error) {
	for _, h := range slices.Backward(r.taken) {
		_, err := h.Return(ctx)
		failed = errors.Join(failed, err)
	}
	counts := slices.DeleteFunc(r.unused, func(c ratelimit.Count) bool { return c.By == 0 })
	if len(counts) > 0 {
		r.After(ctx, "subtract counts", func(ctx context.Context) error {
			_, err := r.Limiter.SubtractAll(ctx, counts)
			return err
		})
	}
	return failed
}

// Async starts f and returns a function that waits for its result. A panic of f becomes an error, and so ends no
// process.
func Async(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- afterresponse.Recovered(f) }()
	return sync.OnceValue(func() error { return <-done })
}

// Read is a read that goes out beside the holds. Nothing of a Read is returned.
type Read func(ctx context.Context) error

// Reached implements Hold.
func (Read) Reached() error { return nil }

// Take implements Hold.
func (r Read) Take(ctx context.Context) error { return r(ctx) }

// Return implements Hold.
func (Read) Return(context.Context) (int64, error) { return 0, nil }

// Package admit holds what a request takes before its work, and returns where the work has not used it: counts of
// package ratelimit, and credits of package wallet.
package admit

import (
	"context"
	"errors"
	"fmt"
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

// Return returns what the work has not used of the holds, the last one first. Counts are subtracted after the response,
// or by a queue: those of a request that dies before stay, and the limits then let fewer through.
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

// Async starts f and returns a function that waits for its result. A panic of f becomes an error.
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

// Credits are the credits of one request. The zero Credits is of a request that costs nothing.
type Credits struct {
	request *Request
	amount  int64
	units   int64
	price   string

	reservation *wallet.Reservation // nil: nothing is reserved
	charged     bool                // or that may be so
}

// NewCredits returns the credits of a request: the price of units, by the name that the price list and the ledger use.
func NewCredits(r *Request, price string, units int, amount int64) *Credits {
	return &Credits{request: r, amount: amount, units: int64(units), price: price}
}

// Amount returns the credits, 0 where the request costs nothing.
func (c *Credits) Amount() int64 {
	if c == nil {
		return 0
	}
	return c.amount
}

// Key returns the key of the credits in the ledger, once they are reserved, and "" before.
func (c *Credits) Key() wallet.Key {
	if c.reservation == nil {
		return ""
	}
	return c.reservation.Key
}

// Reached implements Hold. No instance remembers a balance.
func (*Credits) Reached() error { return nil }

// Take implements Hold: it reserves the credits.
func (c *Credits) Take(ctx context.Context) error {
	r := c.request
	reservation := &wallet.Reservation{
		Project: r.Project.ID, Began: r.at, Received: r.Received, Credits: c.amount, Price: c.price,
		Units: c.units, Environment: string(r.Environment), RequestID: r.ID,
	}
	err := r.Wallet.Reserve(ctx, reservation)
	if err == nil {
		c.reservation = reservation
	}
	return err
}

// Mark writes the ledger entry which says that irrevocable work is about to begin; died, unless it is nil, returns what
// the ledger says of a request that dies afterwards, by the Key of that entry. Where Mark fails, no work may begin. The
// entry may have been written, and the settling function then charges the project.
func (c *Credits) Mark(ctx context.Context, died func() wallet.Outcome) error {
	err := c.again(ctx, func(r *wallet.Reservation) error {
		if r.Irrevocable = true; died != nil {
			r.Died = died()
		}
		return c.request.Wallet.Mark(ctx, r)
	})
	if err != nil {
		c.ended(err)
	}
	return err
}

// Capture charges the project. Where the reservation was released while the request was alive, and the credits could
// not be reserved again, the error is ErrReleased, beside the cause: work that can be taken back must not be served
// (docs/decisions/money.md#leases). After any other error the charge is unknown.
func (c *Credits) Capture(ctx context.Context, o wallet.Outcome) error {
	w := c.request.Wallet
	err := c.again(ctx, func(r *wallet.Reservation) error { return w.Capture(ctx, r, o) })
	r := c.reservation
	if c.ended(err); err == nil {
		c.request.After(ctx, "remove reservation", func(ctx context.Context) error { w.Remove(ctx, r); return nil })
	}
	return err
}

// again takes a step of a reservation. Where nothing irrevocable has begun and the settling function has released the
// credits, again reserves once more, and takes the step with the new reservation.
func (c *Credits) again(ctx context.Context, step func(*wallet.Reservation) error) error {
	begun := c.reservation.Irrevocable
	err := step(c.reservation)
	if begun || !errors.Is(err, wallet.ErrReleased) {
		return err
	}
	if refused := c.Take(ctx); refused != nil {
		return fmt.Errorf("%w: %w", err, refused)
	}
	return step(c.reservation)
}

// ended notes that nothing is left to release. Released credits are unused.
func (c *Credits) ended(err error) {
	c.charged, c.reservation = !errors.Is(err, wallet.ErrReleased), nil
}

// Return implements Hold: it releases the credits, unless they are captured.
func (c *Credits) Return(ctx context.Context) (unused int64, err error) {
	switch {
	case c.charged:
		return 0, nil
	case c.reservation == nil:
		return c.amount, nil
	}
	if err := c.request.Wallet.Release(ctx, c.reservation); err != nil {
		err = fmt.Errorf("release: %w", err)
		if c.reservation.Irrevocable {
			return 0, err // the settling function decides
		}
		return c.amount, err // nothing can charge credits that were never marked
	}
	return c.amount, nil
}

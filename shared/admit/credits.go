package admit

import (
	"context"
	"errors"
	"fmt"

	"svcapi/shared/wallet"
)

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

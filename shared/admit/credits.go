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
		Project: r.Project.ID, Key: wallet.NewKey(r.at, r.ID), Received: r.Received, Credits: c.amount, Price: c.price,
		Units: c.units, Environment: string(r.Environment), RequestID: r.ID,
	}
	err := r.Wallet.Reserve(ctx, reservation)
	if err == nil {
		c.reservation = reservation
	}
	return err
}

// Mark writes the ledger entry which says that irrevocable work is about to begin; died is what the ledger says of a
// request that dies afterwards. Where Mark fails, no work may begin. The entry may have been written, and the settling
// function then charges the project.
func (c *Credits) Mark(ctx context.Context, died wallet.Outcome) error {
	c.reservation.Irrevocable, c.reservation.Died = true, died
	err := c.request.Wallet.Mark(ctx, c.reservation)
	if err != nil {
		c.ended(err)
	}
	return err
}

// ended notes that nothing is left to release. Credits that were settled and could not be reserved again are unused.
func (c *Credits) ended(err error) {
	_, lacking := errors.AsType[*wallet.InsufficientError](err)
	c.reservation, c.charged = nil, !lacking
}

// Capture charges the project. Where the reservation was settled while the request was alive, and the credits could not
// be reserved again, the error is a *wallet.InsufficientError or another cause of ErrSettled: work that can be taken
// back must not be served (docs/decisions/money.md#leases). After any other error the charge is unknown.
func (c *Credits) Capture(ctx context.Context, o wallet.Outcome) error {
	r, wallet := c.reservation, c.request.Wallet
	err := wallet.Capture(ctx, r, o)
	c.ended(err)
	if err == nil {
		c.request.After(ctx, "remove reservation", func(ctx context.Context) error { wallet.Remove(ctx, r); return nil })
	}
	return err
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

package wallet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Outcome describes how successful work ended.
type Outcome struct {
	// Uncertain means that the vendor was reached and no usable response came. The project is charged, and the
	// charge is listed for the operator to resolve.
	Uncertain bool
	// Vendor did the work, if any vendor did.
	Vendor string
	// VendorID is the vendor's ID of the work, if any. An ID of over 64 bytes is not stored: one write pays for 1 KB.
	VendorID string
	// Reference is that of an uncertain send (docs/decisions/extensions.md#references).
	Reference string
}

// Mark writes the ledger entry which says that irrevocable work is about to begin. The project is charged for a
// request that dies after Mark. On any error nothing may be sent; Mark has then released the reservation.
func (s *Store) Mark(ctx context.Context, r *Reservation) error {
	timed, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	r.marked = true
	entry := newEntry(r, Sending)
	entry.Vendor, entry.Reference = r.Died.Vendor, r.Died.Reference
	stored, err := s.put(timed, entry, "")
	switch {
	case err == nil, stored.State == Sending: // an earlier attempt took effect
		return nil
	case stored.State != "":
		return r.settled(stored.State)
	}
	return errors.Join(fmt.Errorf("wallet: mark: %w", err), s.Release(ctx, r))
}

// Capture writes the ledger entry that charges the project. ErrSettled says that the reservation was settled before.
// After any other error the charge is unknown, although the request has succeeded. The context's deadline is the
// deadline of the request and not of the work.
func (s *Store) Capture(ctx context.Context, r *Reservation, o Outcome) error {
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	entry := newEntry(r, Captured)
	entry.Uncertain, entry.Vendor, entry.Reference = o.Uncertain, o.Vendor, o.Reference
	if len(o.VendorID) <= 64 {
		entry.VendorID = o.VendorID
	}
	allowed := State("")
	if r.Irrevocable {
		allowed = Sending
	}
	stored, err := s.put(ctx, entry, allowed)
	switch {
	case err == nil, stored.State == Captured: // an earlier attempt took effect
		r.captured = true
		r.lease.end(r, r.Credits, 0)
		return nil
	case errors.Is(err, errConflict):
		return r.settled(stored.State)
	}
	return fmt.Errorf("wallet: capture: %w", err)
}

// settled leaves the rest of the lease to the settling function, which has written an entry of the lease.
func (r *Reservation) settled(as State) error {
	r.lease.become(left)
	if as == Released {
		return ErrReleased
	}
	return fmt.Errorf("%w: found %q", ErrSettled, as)
}

// Remove takes the lease of a captured reservation out of the wallet, where the lease has one slot. Remove returns no
// error, because nothing depends on the removal: the settling function closes a lease that Remove leaves. Remove does
// nothing in three cases: Capture has not succeeded; a late copy of the reservation may arrive, which must still find
// the lease; or less than Limits.Remove is left before the deadline.
func (s *Store) Remove(ctx context.Context, r *Reservation) {
	// Other requests may change the state of a lease with several slots: the number of slots comes first.
	if !r.captured || r.lease == nil || r.lease.Slots > 1 || r.lease.state != single {
		return
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < s.limits.Remove {
		return
	}
	ctx, cancel := within(ctx, s.limits.Remove)
	defer cancel()
	_ = s.remove(ctx, r.lease.Lease)
}

// Release returns the credits of failed work: to the balance, or to a lease with several slots, which costs no write.
// After Mark, Release forbids the capture first; where the condition of that write fails or no response comes, the
// settling function decides. Without Mark there is no entry, and no late copy but that of the reservation, which the
// settling function finds. An error is for the log: the credits return to the balance when the lease is settled.
func (s *Store) Release(ctx context.Context, r *Reservation) error {
	if r.marked {
		if err := s.forbidCapture(ctx, r); err != nil {
			return fmt.Errorf("wallet: release: %w", err)
		}
	}
	r.lease.end(r, 0, r.Credits)
	if r.lease == nil || r.lease.Slots > 1 {
		return nil
	}
	if err := s.returnCredits(ctx, r.lease.Lease); err != nil {
		return fmt.Errorf("wallet: release: %w", err)
	}
	return nil
}

// forbidCapture writes the entry "released", so that a capture which arrives later fails.
func (s *Store) forbidCapture(ctx context.Context, r *Reservation) error {
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	_, err := s.put(ctx, newEntry(r, Released), "", Sending, Released)
	return err
}

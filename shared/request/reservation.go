package request

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"svcapi/shared/wallet"
)

// reserve sends the reservation of the job's credits, the counts of the project's limits and the job's prefetch, and
// awaits all of them with the count that is under way. The error of the count comes first, then those of the messages,
// of the reservation and of the day. reserve releases the credits and subtracts the counts where another step fails.
// The reservation is nil for a job without credits (docs/decisions/requests.md#phases).
func (s *Service) reserve(ctx context.Context, state *requestState, job *Job,
	counted func() error) (*wallet.Reservation, error) {
	now := s.now()
	state.used = usageOf(state, job, now)
	if err := s.limitsReached(state, state.used); err != nil {
		return nil, cmp.Or(counted(), err)
	}
	var reservation *wallet.Reservation
	reserved, prefetched := nothing, nothing
	if job.Credits > 0 {
		state.credits = job.Credits
		reservation = &wallet.Reservation{
			Project: state.record.ID, Key: wallet.NewKey(now,
				state.id), Received: received(ctx), Credits: job.Credits, Price: state.price,
			Units: max(1, state.used.units), Environment: string(state.environment), RequestID: state.id,
			Irrevocable: job.Irrevocable,
		}
		job.Reservation = reservation.Key
		reserved = async(func() error { return s.wallet.Reserve(ctx, reservation) })
	}
	if job.Prefetch != nil {
		prefetched = async(func() error { return job.Prefetch(ctx) })
	}
	if state.used.recipients {
		job.count = func(ctx context.Context, messages []*Message) { s.countMessages(ctx, state, messages) }
	}
	messages, daily := s.countUsage(ctx, state, state.used)
	limited, reserveErr, prefetchErr, messagesErr, dailyErr := counted(), reserved(), prefetched(), messages(), daily()
	err := cmp.Or(limited, messagesErr, reserveError(job.Credits, reserveErr), dailyErr, internal("", prefetchErr))
	if err == nil {
		return reservation, nil
	}
	// A reservation that was never marked cannot be charged, whatever becomes of its release.
	s.subtractUsage(ctx, state.used, func(*Message) bool { return true }, true)
	state.credits = 0
	if reservation != nil && reserveErr == nil {
		s.release(ctx, state, reservation)
	}
	return nil, err
}

func nothing() error { return nil }

// reserveError returns the response to a failed reservation.
func reserveError(price int64, err error) error {
	if lacking, ok := errors.AsType[*wallet.InsufficientError](err); ok {
		refused := *errNoCredits
		refused.Amounts = Amounts{"price": price, "balance": lacking.Balance}
		return &refused
	}
	return internal("reserve credits", err)
}

// mark writes the ledger entry which says that irrevocable work is about to begin.
func (s *Service) mark(ctx context.Context, state *requestState, job *Job, r *wallet.Reservation) error {
	if r == nil || !job.Irrevocable {
		return nil
	}
	if job.Died != nil {
		r.Died = job.Died()
	}
	err := s.wallet.Mark(ctx, r)
	if err != nil {
		state.credits = 0
		// The mark may have been written, and the settling function then charges the project.
		s.subtractUsage(ctx, state.used, func(*Message) bool { return true }, false)
	}
	return internal("mark reservation", err)
}

// finish captures or releases the reservation while it stores the claim's outcome, and returns the error of the work,
// or of the capture of work that cannot be charged.
func (s *Service) finish(ctx context.Context, state *requestState, r *wallet.Reservation,
	result *Result, failed error) error {
	kept := async(func() error { _ = state.endClaim(ctx, result, failed); return nil })
	released := false
	if r != nil {
		released, failed = s.captureOrRelease(ctx, state, r, result, failed)
	}
	s.subtractUsage(ctx, state.used, func(m *Message) bool { return m.Unsent }, released)
	if panicked := kept(); panicked != nil {
		state.note("outcome_not_kept", panicked)
	}
	return failed
}

// captureOrRelease captures the credits of work that succeeded or may have happened, and releases the credits of all
// other work. captureOrRelease reports whether the credits have certainly returned to the balance, and returns the
// error of the response.
func (s *Service) captureOrRelease(ctx context.Context, state *requestState, r *wallet.Reservation, result *Result,
	err error) (bool, error) {
	var failed *Error
	switch {
	case err == nil && !result.NotCharged:
		return false, s.capture(ctx, state, r, wallet.Outcome{Vendor: result.Vendor, VendorID: result.VendorID})
	case errors.As(err, &failed) && failed.Uncertain:
		state.metric("UncertainSends")
		return false, cmp.Or(s.capture(ctx, state, r,
			wallet.Outcome{Uncertain: true, Vendor: failed.Vendor, Reference: failed.Reference}), err)
	default:
		return s.release(ctx, state, r), err
	}
}

// capture charges the project. Where the reservation was settled while the request was alive, and the credits could not
// be reserved again, work that can be taken back is not served (docs/decisions/money.md#leases).
func (s *Service) capture(ctx context.Context, state *requestState, r *wallet.Reservation, o wallet.Outcome) error {
	err := s.wallet.Capture(ctx, r, o)
	if err == nil {
		s.AfterResponse(ctx, "remove reservation", func(ctx context.Context) error { s.wallet.Remove(ctx, r); return nil })
		return nil
	}
	state.unsettled("capture", err)
	if r.Irrevocable || !errors.Is(err, wallet.ErrSettled) {
		return nil
	}
	state.credits = 0
	return reserveError(r.Credits, err)
}

func (s *Service) release(ctx context.Context, state *requestState, r *wallet.Reservation) (released bool) {
	state.credits = 0
	err := s.wallet.Release(ctx, r)
	if err != nil {
		state.unsettled("release", err)
	}
	return err == nil
}

// unsettled notes a reservation that the settling function has to finish.
func (state *requestState) unsettled(step string, err error) {
	state.note("unsettled", fmt.Errorf("%s: %w", step, err))
	state.metric("UnsettledReservations")
}

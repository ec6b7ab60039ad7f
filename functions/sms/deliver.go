package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/upstream"
)

// status is what is known of one recipient's message.
type status string

const (
	accepted     status = "accepted"
	rejected     status = "rejected"
	uncertain    status = "uncertain"     // may have been sent
	notAttempted status = "not_attempted" // certainly not sent
)

// statuses maps how a call failed to what that means for its recipients.
var statuses = map[upstream.Class]status{
	upstream.NotSent:            notAttempted,
	upstream.NoResponse:         uncertain,
	upstream.Unusable:           uncertain,
	upstream.Rejected:           rejected,
	upstream.CredentialsRefused: rejected,
}

// outcome is what came of one recipient's message.
type outcome struct {
	receipt vendors.Receipt
	vendor  string
	asked   bool  // a call to the vendor was begun
	err     error // nil: accepted
}

func (o outcome) status() status {
	if o.err == nil {
		return accepted
	}
	return statuses[upstream.ClassOf(o.err)]
}

const (
	// sendsAtOnce and batchesAtOnce bound the calls that one request has under way.
	sendsAtOnce   = 32
	batchesAtOnce = 4
	// leastTime is the shortest time in which a send is begun at all.
	leastTime = 2 * time.Second
)

// The reasons for which no further send through an account is begun.
var (
	errNoTime  = errors.New("no time left")
	errRefused = errors.New("the vendor has refused the credentials")
)

// errPanicked marks a panic of an adapter.
var errPanicked = errors.New("panic")

// delivery is the sending of one request's messages.
type delivery struct {
	*group
	same    bool         // all messages have one text
	slowest atomic.Int64 // answer of a vendor so far, in nanoseconds
}

// deliver sends the messages along the chain of accounts, and returns the
// recipients with their outcomes. The next account gets only what certainly did
// not leave through the one before.
func (g *group) deliver(ctx context.Context, accounts []upstream.Account, r sendRequest) []recipient {
	d := &delivery{group: g, same: r.method == bulkSame}
	recipients := slices.Clone(r.recipients)
	left := make([]*recipient, len(recipients))
	for i := range recipients {
		left[i] = &recipients[i]
	}
	for _, account := range accounts {
		if left = d.through(ctx, account, left); len(left) == 0 {
			break
		}
	}
	return recipients
}

// through sends messages through one account, and returns those that another
// account may try: the ones that certainly did not leave. The sends begin in the
// order of the messages.
func (d *delivery) through(ctx context.Context, account upstream.Account, left []*recipient) []*recipient {
	vendor := d.vendors.Find(account.Integration.Vendor)
	size, atOnce := d.batch(vendor, account, len(left)), sendsAtOnce
	if size > 1 {
		atOnce = batchesAtOnce
	}
	pace := rate.Inf
	if vendor.Pace > 0 {
		pace = rate.Limit(vendor.Pace)
	}
	// The context begin ends when no further send may begin; the sends under way keep the request's own context.
	begin, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &sender{delivery: d, account: account, limiter: rate.NewLimiter(pace, 1), stop: stop}
	// While the circuit is not closed, one send goes first: its outcome decides whether the circuit takes the others.
	probing := !d.breakers.Closed(account)

	var calls sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for batch := range slices.Chunk(left, size) {
		slots <- struct{}{}
		if err := s.ready(ctx, begin); err != nil {
			note(batch, outcome{vendor: vendor.Name, err: err})
			<-slots
			continue
		}
		calls.Go(func() {
			note(batch, s.call(ctx, batch))
			<-slots
		})
		if probing {
			calls.Wait()
			probing = false
		}
	}
	calls.Wait()
	return slices.DeleteFunc(left, func(p *recipient) bool { return p.status() != notAttempted })
}

// note sets the outcome of messages. An account that was not asked hides
// nothing of one that was.
func note(batch []*recipient, o outcome) {
	for _, p := range batch {
		if o.asked || !p.asked {
			p.outcome = o
		}
	}
}

// batch is how many messages go into one call to the vendor.
func (d *delivery) batch(vendor *vendors.Vendor, account upstream.Account, messages int) int {
	adapter := d.adapter(account)
	_, same := adapter.(vendors.SameSender)
	_, different := adapter.(vendors.DifferentSender)
	switch {
	case messages == 1:
		return 1
	case d.same && same:
		return vendor.Batch
	case !d.same && different:
		return vendors.MaxDifferent
	}
	return 1
}

// worthwhile tells whether a send that begins now can end in time: the slowest
// answer so far, twice, must fit. A send that is cut off would be uncertain.
func (d *delivery) worthwhile(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	needed := min(d.timeout, max(leastTime, 2*time.Duration(d.slowest.Load())))
	return !ok || time.Until(deadline) >= needed
}

// sender sends messages of a delivery through one account.
type sender struct {
	*delivery
	account upstream.Account
	limiter *rate.Limiter
	stop    context.CancelCauseFunc // no further send begins
}

// ready waits until the vendor's pace permits a send. The error says why no send
// may begin.
func (s *sender) ready(ctx, begin context.Context) error {
	err := s.limiter.Wait(begin)
	if err == nil && !s.worthwhile(ctx) {
		err = errNoTime
		s.stop(err)
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(begin); cause != nil {
		err = cause
	}
	return &upstream.Error{Class: upstream.NotSent, Vendor: s.account.Integration.Vendor, Detail: "not attempted: " + err.Error()}
}

// call makes one call to the vendor, for one message or for a batch. A panic of
// the adapter is an answer that cannot be used: a byte may have left.
func (s *sender) call(ctx context.Context, batch []*recipient) (o outcome) {
	o.vendor, o.asked = s.account.Integration.Vendor, true
	used := s.account // with the secret in use
	defer func() {
		if p := recover(); p != nil {
			detail := fmt.Sprintf("%s\n%s", upstream.Redact(fmt.Sprint(p), used.Redact()), debug.Stack())
			o.err = fmt.Errorf("%w: %w", errPanicked, &upstream.Error{Class: upstream.Unusable, Vendor: o.vendor, Detail: detail})
		}
	}()
	started := time.Now()
	o.receipt, o.err = upstream.Call(s.breakers, s.account, func() (vendors.Receipt, error) {
		return upstream.WithSecretRefresh(ctx, s.secrets, s.account, func(a upstream.Account) (vendors.Receipt, error) {
			used = a
			return s.send(ctx, s.adapter(a), batch)
		})
	})
	switch {
	case o.err == nil:
	case errors.Is(o.err, upstream.ErrOpen):
		o.asked = false
		s.stop(upstream.ErrOpen)
		return o
	case upstream.ClassOf(o.err) == upstream.NotSent: // no answer, whatever time it took
		return o
	case upstream.ClassOf(o.err) == upstream.CredentialsRefused:
		s.stop(errRefused)
	}
	elapsed := int64(time.Since(started))
	for seen := s.slowest.Load(); elapsed > seen && !s.slowest.CompareAndSwap(seen, elapsed); seen = s.slowest.Load() {
	}
	return o
}

func (d *delivery) send(ctx context.Context, adapter vendors.Adapter, batch []*recipient) (vendors.Receipt, error) {
	first := batch[0].message
	if len(batch) == 1 {
		return adapter.Send(ctx, first)
	}
	if d.same {
		to := make([]string, len(batch))
		for i, p := range batch {
			to[i] = p.message.To
		}
		return adapter.(vendors.SameSender).SendSame(ctx, to, first.Text, first.Unicode)
	}
	messages := make([]vendors.Message, len(batch))
	for i, p := range batch {
		messages[i] = p.message
	}
	return adapter.(vendors.DifferentSender).SendDifferent(ctx, messages)
}

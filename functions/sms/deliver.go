package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/ratelimit"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

// status is the known state of the message to one recipient.
type status string

const (
	undecided    status = "" // before the delivery; nothing is charged for it
	accepted     status = "accepted"
	rejected     status = "rejected"
	uncertain    status = "uncertain"     // possibly sent
	notAttempted status = "not_attempted" // certainly not sent
)

// consequences maps the class of a failed call to the status of its recipients, and to whether the next account gets
// them.
var consequences = map[upstream.Class]struct {
	status status
	next   bool
}{
	upstream.NotSent:            {notAttempted, true},
	upstream.NoResponse:         {uncertain, false},
	upstream.Unusable:           {uncertain, false},
	upstream.Rejected:           {rejected, false},
	upstream.AccountRefused:     {rejected, true},
	upstream.TooFast:            {rejected, true},
	upstream.CredentialsRefused: {rejected, true},
}

// outcome is the result of the message to one recipient. The zero outcome is undecided.
type outcome struct {
	receipt vendors.Receipt // the number of removed recipients is in the first outcome of a call alone
	size    int             // recipients of the call
	vendor  string
	called  bool  // a call to the vendor began
	err     error // why the message is not accepted; nil: the called vendor has accepted the message
	passed  error // the failure of another account, for the operator; nil: none

	reference string // of a call that the vendor may have accepted
}

// then returns the outcome after a further attempt. An attempt without a call changes no outcome of a call. A refusal
// outlives a failure to connect (docs/decisions/sms.md#fail-over).
func (o outcome) then(next outcome) outcome {
	refused := o.called && upstream.ClassOf(o.err) != upstream.NotSent
	switch {
	case o.called && !next.called:
		return o
	case refused && upstream.ClassOf(next.err) == upstream.NotSent:
		o.passed = next.err
		return o
	}
	next.passed = o.passed
	if refused && o.vendor != next.vendor {
		next.passed = o.err
	}
	return next
}

func (o outcome) status() status {
	switch {
	case o.err != nil:
		return consequences[upstream.ClassOf(o.err)].status
	case o.called:
		return accepted
	}
	return undecided
}

// excluded reports whether the limit of messages to the number, or a failed count, keeps the message from being sent.
func (o outcome) excluded() bool {
	return errors.Is(o.err, errLimited) || errors.Is(o.err, errUncounted)
}

const (
	// batchesAtOnce bounds the concurrent bulk calls of one request.
	batchesAtOnce = 4
	// leastTime is the least time in which a send may begin.
	leastTime = 2 * time.Second
)

var (
	// Reasons why no further send through an account begins.
	errNoTime  = errors.New("no time left")
	errRefused = errors.New("the vendor has refused the account")
	// Outcomes of a message whose recipient's limit is reached, and of one whose count failed.
	errLimited   = &upstream.Error{Class: upstream.NotSent, Detail: "the limit of messages to the number is reached"}
	errUncounted = &upstream.Error{Class: upstream.NotSent, Detail: "the message could not be counted"}
)

// delivery is the sending of one request's messages.
type delivery struct {
	*group
	sendRequest
	later   int          // accounts after the present one
	slowest atomic.Int64 // response of a vendor so far, in nanoseconds
}

// deliver sends the messages along the chain of accounts, and decides the outcomes of the recipients. The next account
// receives only the messages that the previous account has certainly not sent (docs/decisions/sms.md#fail-over).
func (g *group) deliver(ctx context.Context, accounts []upstream.Account, r sendRequest) {
	d := &delivery{group: g, sendRequest: r}
	left := make([]*recipient, len(r.recipients))
	for i := range r.recipients {
		left[i] = &r.recipients[i]
	}
	for i, account := range accounts {
		d.later = len(accounts) - 1 - i
		if left = d.sendThrough(ctx, account, left); len(left) == 0 {
			break
		}
	}
}

// sendThrough sends messages through one account in their order, and returns those for the next account.
func (d *delivery) sendThrough(ctx context.Context, account upstream.Account, left []*recipient) []*recipient {
	vendor := d.vendors().Find(account.Integration.Vendor)
	size, atOnce := d.batchSize(vendor, account), vendor.Concurrency
	if size > 1 {
		atOnce = min(atOnce, batchesAtOnce)
	}
	pace := cmp.Or(rate.Limit(vendor.Pace), rate.Inf)
	// The context begin ends when no further send may begin. The running sends keep the context of the request.
	begin, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &sender{delivery: d, account: account, limiter: rate.NewLimiter(pace, 1), stop: stop}
	// While the circuit is not closed, one send goes first, and its outcome decides whether the circuit permits the
	// others.
	probing := !d.breakers.Closed(account)

	slots := make(chan struct{}, atOnce)
	for batch := range s.batches(ctx, begin, left, size, atOnce) {
		slots <- struct{}{}
		if err := s.ready(ctx, begin); err != nil {
			record(batch, outcome{vendor: vendor.Name, err: err})
			<-slots
			continue
		}
		s.calls.Go(func() {
			record(batch, s.call(ctx, begin, batch))
			<-slots
		})
		if probing {
			s.calls.Wait()
			probing = false
		}
	}
	s.calls.Wait()
	return slices.DeleteFunc(left, func(p *recipient) bool { return !s.goesOn(p) })
}

// goesOn reports whether the next account gets the message: it was certainly not sent. A refusal by words alone is the
// message's own once the account has accepted another message.
func (s *sender) goesOn(p *recipient) bool {
	refusal, ok := errors.AsType[*upstream.Error](p.err)
	own := ok && refusal.ByWords && p.vendor == s.account.Integration.Vendor && s.accepted.Load()
	return ok && !own && consequences[refusal.Class].next && !p.excluded()
}

// batches yields messages in batches for one call each. While the sends of the batches before are running, batches
// counts as many messages as are sent at once, and excludes those that must not be sent.
func (s *sender) batches(ctx, begin context.Context, left []*recipient, size, atOnce int) iter.Seq[[]*recipient] {
	return func(yield func([]*recipient) bool) {
		for next := range slices.Chunk(left, max(size, atOnce)) {
			begins := begin.Err() == nil && s.hasTime(ctx, 0, 1) // otherwise no send begins any more
			next = s.counted(ctx, next, begins)
			for batch := range slices.Chunk(next, size) {
				if !yield(batch) {
					return
				}
			}
		}
	}
}

// counted counts messages whose send begins, and returns those that may be sent.
func (s *sender) counted(ctx context.Context, next []*recipient, begins bool) (sendable []*recipient) {
	if begins {
		indexes := make([]int, len(next))
		for i, p := range next {
			indexes[i] = p.index
		}
		s.messages.Begin(ctx, indexes)
	}
	for _, p := range next {
		err := s.messages.MessageErr(p.index)
		_, refused := errors.AsType[*ratelimit.RecipientRefusal](err)
		switch {
		case refused:
			record([]*recipient{p}, outcome{err: errLimited})
		case err != nil:
			record([]*recipient{p}, outcome{err: fmt.Errorf("%w: %w", errUncounted, err)})
		default:
			sendable = append(sendable, p)
		}
	}
	return sendable
}

// record sets the outcome of messages.
func record(batch []*recipient, o outcome) {
	o.size = len(batch)
	for _, p := range batch {
		p.outcome = p.outcome.then(o)
		o.receipt.Removed = vendors.Removed{}
	}
}

// batchSize returns the number of messages in one call to the vendor.
func (d *delivery) batchSize(vendor *vendors.Vendor, account upstream.Account) int {
	if d.method == bulkSame {
		return max(1, vendor.Batch)
	}
	if _, different := d.adapter(account).(vendors.DifferentSender); different {
		return vendors.MaxDifferent
	}
	return 1
}

// hasTime reports whether a number of sends can end in time, one after the other, when the first one begins after a
// pause: the slowest response so far must fit twice. A send that the deadline interrupts would be uncertain.
func (d *delivery) hasTime(ctx context.Context, pause time.Duration, sends int) bool {
	deadline, ok := ctx.Deadline()
	needed := min(d.timeout, max(leastTime, 2*time.Duration(d.slowest.Load())))
	return !ok || time.Until(deadline)-pause >= time.Duration(sends)*needed
}

// sender sends messages of a delivery through one account.
type sender struct {
	*delivery
	account upstream.Account
	limiter *rate.Limiter
	stop    context.CancelCauseFunc // no further send begins
	calls   sync.WaitGroup          // the sends that are running

	accepted  atomic.Bool // the vendor has accepted a message of the delivery
	suspected atomic.Bool // the vendor has refused the account, by words alone
}

// ready waits until a further send may begin. The returned error is the reason why no send may begin. No running send
// calls ready, because ready may wait for the running sends.
func (s *sender) ready(ctx, begin context.Context) error {
	err := s.paced(ctx, begin)
	if s.suspected.Swap(false) && !s.accepted.Load() {
		s.calls.Wait() // a running send may be accepted
		if !s.accepted.Load() {
			s.stop(errRefused)
			err = s.paced(ctx, begin)
		}
	}
	return err
}

// paced waits until the vendor's pace permits a send. The returned error is the reason why no send may begin.
func (s *sender) paced(ctx, begin context.Context) error {
	err := s.limiter.Wait(begin)
	if err == nil && !s.hasTime(ctx, 0, 1) {
		err = errNoTime
		s.stop(err)
	}
	if err == nil {
		return nil
	}
	err = cmp.Or(context.Cause(begin), err)
	return &upstream.Error{Class: upstream.NotSent, Vendor: s.account.Integration.Vendor,
		Detail: "not attempted: " + err.Error()}
}

// call calls the vendor, and again after each pause for which the vendor refuses the account's pace, as long as the
// later accounts keep the time for a send (docs/decisions/sms.md#pace).
func (s *sender) call(ctx, begin context.Context, batch []*recipient) outcome {
	for last := (outcome{}); ; {
		o := s.attempt(ctx, batch)
		last = last.then(o)
		pause := s.breakers.Pause(s.account, o.err)
		switch paced := upstream.ClassOf(o.err) == upstream.TooFast || errors.Is(o.err, upstream.ErrPaused); {
		case !paced:
			return last
		case !s.hasTime(ctx, pause, 1+s.later):
			s.stop(upstream.ErrPaused)
			return last
		}
		select {
		case <-time.After(pause):
		case <-begin.Done():
		}
		if s.suspected.Load() && !s.accepted.Load() || s.paced(ctx, begin) != nil {
			return last
		}
	}
}

// attempt makes one call to the vendor. A panic of the adapter is an unusable response, because a byte may have left.
func (s *sender) attempt(ctx context.Context, batch []*recipient) (o outcome) {
	o.vendor, o.called = s.account.Integration.Vendor, true
	used := s.account // with the secret of the last attempt
	defer func() {
		if p := recover(); p != nil {
			detail := fmt.Sprintf("%s\n%s", upstream.Redact(fmt.Sprint(p), used.Redact()), debug.Stack())
			o.err = fmt.Errorf("%w: %w", request.ErrPanicked,
				&upstream.Error{Class: upstream.Unusable, Vendor: o.vendor, Detail: detail})
		}
		o.reference = s.reference(used, batch, o)
	}()
	started := time.Now()
	o.receipt, o.err = upstream.Call(ctx, s.breakers, s.secrets, s.account,
		func(a upstream.Account) (vendors.Receipt, error) {
			used = a
			return s.send(ctx, s.adapter(a), batch)
		})
	o.receipt.Status = vendors.ForClient(o.receipt.Status, used)
	refusal, refused := errors.AsType[*upstream.Error](o.err)
	switch {
	case o.err == nil:
		s.accepted.Store(true)
	case errors.Is(o.err, upstream.ErrPaused):
		o.called = false
		return o
	case errors.Is(o.err, upstream.ErrOpen):
		o.called = false
		s.stop(upstream.ErrOpen)
		return o
	case upstream.ClassOf(o.err) == upstream.NotSent: // there is no response whose time counts
		return o
	case refused && refusal.ByWords:
		s.suspected.Store(true)
	case refused && (refusal.Class == upstream.CredentialsRefused || refusal.Class == upstream.AccountRefused):
		s.stop(errRefused)
	}
	elapsed := int64(time.Since(started))
	for seen := s.slowest.Load(); elapsed > seen && !s.slowest.CompareAndSwap(seen, elapsed); seen = s.slowest.Load() {
	}
	return o
}

// reference returns the reference of a call that the vendor may have accepted, and "" for any other call.
func (d *delivery) reference(by upstream.Account, batch []*recipient, o outcome) string {
	if known := o.status(); known != accepted && known != uncertain {
		return ""
	}
	number := ""
	if len(batch) == 1 {
		number = batch[0].To
	}
	return d.references.Seal(by, vendors.SendKey(d.key, batch[0].index), o.receipt.ID, number, batch[0].text)
}

func (d *delivery) send(ctx context.Context, adapter vendors.Adapter, batch []*recipient) (vendors.Receipt, error) {
	messages := make([]vendors.Message, len(batch))
	for i, p := range batch {
		messages[i] = vendors.Message{To: []string{p.To}, Text: p.text, Unicode: p.unicode,
			Key: vendors.SendKey(d.key, p.index)}
	}
	if len(batch) > 1 && d.method != bulkSame {
		return adapter.(vendors.DifferentSender).SendDifferent(ctx, messages)
	}
	all := messages[0]
	for _, m := range messages[1:] {
		all.To = append(all.To, m.To...)
	}
	return adapter.Send(ctx, all)
}

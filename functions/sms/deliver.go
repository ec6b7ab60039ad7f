package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
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
	upstream.NoAnswer:           uncertain,
	upstream.Unusable:           uncertain,
	upstream.Rejected:           rejected,
	upstream.CredentialsRefused: rejected,
}

// outcome is what came of one recipient's message.
type outcome struct {
	receipt vendors.Receipt
	vendor  string
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

// delivery is the sending of one request's messages.
type delivery struct {
	*group
	same     bool // all messages have one text
	messages []vendors.Message
	outcomes []outcome
	slowest  atomic.Int64 // answer of a vendor so far, in nanoseconds
	refused  atomic.Bool  // the account in use: no use in going on with it
}

// deliver sends the messages along the chain of accounts. The next account
// gets only what certainly did not leave through the one before.
func (g *group) deliver(ctx context.Context, accounts []upstream.Account, r sendRequest) []outcome {
	d := &delivery{group: g, same: r.method == bulkSame, messages: r.messages, outcomes: make([]outcome, len(r.messages))}
	left := make([]int, len(r.messages))
	for i := range left {
		left[i] = i
	}
	for _, account := range accounts {
		if left = d.through(ctx, account, left); len(left) == 0 {
			break
		}
	}
	return d.outcomes
}

// through sends messages, by index, through one account, and returns those
// that another account may try.
func (d *delivery) through(ctx context.Context, account upstream.Account, indices []int) []int {
	d.refused.Store(false)
	vendor := d.vendors.Find(account.Integration.Vendor)
	size, atOnce := d.batch(vendor, account, len(indices)), sendsAtOnce
	if size > 1 {
		atOnce = batchesAtOnce
	}
	pace := rate.Inf
	if vendor.Pace > 0 {
		pace = rate.Limit(vendor.Pace)
	}
	limiter := rate.NewLimiter(pace, 1)

	var mu sync.Mutex
	var left []int
	var calls errgroup.Group
	calls.SetLimit(atOnce)
	for batch := range slices.Chunk(indices, size) {
		calls.Go(func() error {
			o := outcome{vendor: vendor.Name}
			if limiter.Wait(ctx) != nil || !d.worthwhile(ctx) {
				o.err = &upstream.Error{Class: upstream.NotSent, Vendor: vendor.Name, Detail: "not attempted: no time left, or the credentials were refused"}
			} else if o.receipt, o.err = d.call(ctx, account, batch); o.err != nil && upstream.ClassOf(o.err) == upstream.NotSent {
				mu.Lock()
				left = append(left, batch...)
				mu.Unlock()
			}
			for _, i := range batch {
				d.outcomes[i] = o
			}
			return nil
		})
	}
	_ = calls.Wait() // no call returns an error: outcomes hold them
	slices.Sort(left)
	return left
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
	if d.refused.Load() {
		return false
	}
	deadline, ok := ctx.Deadline()
	needed := min(d.timeout, max(leastTime, 2*time.Duration(d.slowest.Load())))
	return !ok || time.Until(deadline) >= needed
}

// call makes one call to a vendor, for one message or for a batch.
func (d *delivery) call(ctx context.Context, account upstream.Account, batch []int) (vendors.Receipt, error) {
	started := time.Now()
	receipt, err := upstream.Through(d.breakers, account, func() (vendors.Receipt, error) {
		return upstream.WithFresh(ctx, d.secrets, account, func(a upstream.Account) (vendors.Receipt, error) {
			return d.send(ctx, d.adapter(a), batch)
		})
	})
	elapsed := int64(time.Since(started))
	for seen := d.slowest.Load(); elapsed > seen && !d.slowest.CompareAndSwap(seen, elapsed); seen = d.slowest.Load() {
	}
	if err != nil && upstream.ClassOf(err) == upstream.CredentialsRefused {
		d.refused.Store(true)
	}
	return receipt, err
}

func (d *delivery) send(ctx context.Context, adapter vendors.Adapter, batch []int) (vendors.Receipt, error) {
	first := d.messages[batch[0]]
	if len(batch) == 1 {
		return adapter.Send(ctx, first)
	}
	if d.same {
		to := make([]string, len(batch))
		for n, i := range batch {
			to[n] = d.messages[i].To
		}
		return adapter.(vendors.SameSender).SendSame(ctx, to, first.Text, first.Unicode)
	}
	messages := make([]vendors.Message, len(batch))
	for n, i := range batch {
		messages[n] = d.messages[i]
	}
	return adapter.(vendors.DifferentSender).SendDifferent(ctx, messages)
}

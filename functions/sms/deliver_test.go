package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/admit"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

const (
	// tick is the time of a fake vendor's response, long enough that the maximum of sends runs at once.
	tick = 10 * time.Millisecond
	// callTimeout bounds one call to a vendor.
	callTimeout = 10 * time.Second
	// requestTime is the time for the sends of a request on AWS.
	requestTime = 23 * time.Second
	// sendsAtOnce is the concurrency of the fake vendors.
	sendsAtOnce = 32
	// failuresToOpen is the number of consecutive failures that opens a circuit, and openTime the time that it stays open.
	failuresToOpen = 3
	openTime       = 30 * time.Second
)

// behaviour is one call of a fake vendor. The error is nil where the vendor accepts.
type behaviour func(ctx context.Context) error

func accepts(ctx context.Context) error { return respond(ctx, tick, nil) }
func down(ctx context.Context) error    { return respond(ctx, tick, fault(upstream.NotSent)) }
func hangs(ctx context.Context) error   { return respond(ctx, time.Hour, nil) }

// Failures by their class.
var (
	refuses   = failsWith(upstream.CredentialsRefused)
	rejects   = failsWith(upstream.Rejected)
	noFunds   = failsWith(upstream.AccountRefused)
	isTooFast = failsWith(upstream.TooFast)
	unusable  = failsWith(upstream.Unusable)
	silent    = failsWith(upstream.NoResponse)
)

func failsWith(class upstream.Class) behaviour {
	return func(ctx context.Context) error { return respond(ctx, tick, fault(class)) }
}

// tooFastFor is a refusal of the pace with a named pause.
func tooFastFor(pause time.Duration) behaviour {
	return func(ctx context.Context) error {
		return respond(ctx, tick,
			&upstream.Error{Class: upstream.TooFast, Vendor: "fake", Pause: pause, Detail: "slow down"})
	}
}

// refusesByWords is a refusal of the account that only the words of the vendor show.
func refusesByWords(ctx context.Context) error {
	return respond(ctx, tick,
		&upstream.Error{Class: upstream.CredentialsRefused, Vendor: "fake", ByWords: true, Detail: "not allowed"})
}

func slow(response time.Duration) behaviour {
	return func(ctx context.Context) error { return respond(ctx, response, nil) }
}

// connects emulates a connection that does not succeed before the context ends, so no byte has left.
func connects(ctx context.Context) error {
	<-ctx.Done()
	return fault(upstream.NotSent)
}

// acceptsLate emulates a response that arrives at the moment when the context ends.
func acceptsLate(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func noClass(ctx context.Context) error { return respond(ctx, tick, errors.New("no class")) }

func panics(ctx context.Context) error {
	_ = respond(ctx, tick, nil)
	panic("broken with " + secretKey)
}

// inTurn has the first behaviour for a number of calls, and the other behaviour from then on.
func inTurn(calls int, first, then behaviour) behaviour {
	var mu sync.Mutex
	return func(ctx context.Context) error {
		mu.Lock()
		calls--
		b := then
		if calls >= 0 {
			b = first
		}
		mu.Unlock()
		return b(ctx)
	}
}

func fault(class upstream.Class) error {
	return &upstream.Error{Class: class, Vendor: "fake", Detail: "with " + string(class)}
}

// respond returns err after a time, or NoResponse where the call ends before, because a byte has left then.
func respond(ctx context.Context, response time.Duration, err error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	select {
	case <-time.After(response):
		return err
	case <-ctx.Done():
		return fault(upstream.NoResponse)
	}
}

const secretKey = "s3cret-key"

// fakeVendor is a fake vendor in memory.
type fakeVendor struct {
	name  string
	pace  int
	batch int // maximum of recipients of one call; 0: one recipient a call
	// atOnce is the maximum of calls at once; 0: sendsAtOnce.
	atOnce int

	mu    sync.Mutex
	does  behaviour
	calls int
	left  []string // numbers of messages that may have left through the vendor
	keys  []string // of the calls with one text
}

func (p *fakeVendor) call(ctx context.Context, to []string) (vendors.Receipt, error) {
	p.mu.Lock()
	p.calls++
	id := p.name + strconv.Itoa(p.calls)
	does := p.does
	p.mu.Unlock()
	left := true
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if left {
			p.left = append(p.left, to...)
		}
	}()
	if err := does(ctx); err != nil {
		class := upstream.ClassOf(err)
		left = class == upstream.Rejected || class.Uncertain()
		return vendors.Receipt{}, err
	}
	return vendors.Receipt{Status: "queued", ID: id}, nil
}

// fakeAdapter sends one message a call.
type fakeAdapter struct{ *fakeVendor }

func (a fakeAdapter) Send(ctx context.Context, m vendors.Message) (vendors.Receipt, error) {
	a.mu.Lock()
	a.keys = append(a.keys, m.Key)
	a.mu.Unlock()
	return a.call(ctx, m.To)
}

// fakeBulkAdapter accepts several messages in one call.
type fakeBulkAdapter struct{ fakeAdapter }

func (a fakeBulkAdapter) SendDifferent(ctx context.Context, messages []vendors.Message) (vendors.Receipt, error) {
	var to []string
	for _, m := range messages {
		to = append(to, m.To...)
	}
	return a.call(ctx, to)
}

// chain is the vendors of a project by priority.
type chain []*fakeVendor

// fixture is a group with fake vendors, and the accounts of one project with them by priority.
type fixture struct {
	*group
	vendors  chain
	table    vendors.Table
	accounts []upstream.Account
	messages counter // nil: no limit
}

func newFixture(chain ...*fakeVendor) *fixture {
	b := &fixture{group: &group{breakers: upstream.NewBreakers(), timeout: callTimeout}, vendors: chain}
	b.group.vendors = func() vendors.Table { return b.table }
	for i, p := range chain {
		p.name = string(rune('a' + i))
		b.table = append(b.table, vendors.Vendor{
			Spec: upstream.Spec{Name: p.name}, Pace: p.pace, Concurrency: cmp.Or(p.atOnce, sendsAtOnce), Batch: p.batch,
			New: func(*upstream.Client, upstream.Account) vendors.Adapter {
				if p.batch > 0 {
					return fakeBulkAdapter{fakeAdapter{p}}
				}
				return fakeAdapter{p}
			},
		})
		b.accounts = append(b.accounts, upstream.Account{
			Integration: project.Integration{ID: p.name, Vendor: p.name},
		})
	}
	return b
}

// bulk returns a request with a number of messages.
func bulk(method string, messages int) sendRequest {
	r := sendRequest{method: method, references: vendors.NewSealer(&project.Project{ID: "p"}, project.Development),
		messages: admit.NewMessages(nil, make([]admit.Message, messages))}
	for i := range messages {
		text := "m"
		if method == bulkDifferent {
			text += strconv.Itoa(i)
		}
		r.add(fmt.Sprintf("+9477%07d", i), text)
	}
	return r
}

// send delivers a number of messages, and checks the rules that hold for every delivery.
func (b *fixture) send(ctx context.Context, t *testing.T, method string, messages int) []recipient {
	t.Helper()
	r := bulk(method, messages)
	if b.messages != nil {
		r.messages = b.messages
	}
	b.deliver(ctx, b.accounts, r)
	recipients := r.recipients
	left := map[string]string{} // the vendor through which a message may have left
	for _, p := range b.vendors {
		for _, to := range p.left {
			if left[to] != "" {
				t.Errorf("the message to %s may have left through %s and through %s", to, left[to], p.name)
			}
			left[to] = p.name
		}
		p.left = nil
	}
	for i, o := range recipients {
		through, certain := left[o.To], o.status() == notAttempted
		if through != "" && (certain || through != o.vendor) {
			t.Errorf("message %d left through %s, the outcome is %s of %s", i, through, o.status(), o.vendor)
		}
		if through == "" && (o.status() == accepted || o.status() == uncertain) {
			t.Errorf("message %d did not leave, the outcome is %s of %s", i, o.status(), o.vendor)
		}
	}
	return recipients
}

// tally returns the number of outcomes by vendor and status.
func tally(outcomes []recipient) string {
	counts := map[string]int{}
	for _, o := range outcomes {
		counts[o.vendor+" "+string(o.status())]++
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
	}
	return strings.Join(parts, ", ")
}

// one returns a vendor with one recipient a call, many a vendor with 100, and paced a vendor with 20 calls a second.
func one(does behaviour) *fakeVendor  { return &fakeVendor{does: does} }
func many(does behaviour) *fakeVendor { return &fakeVendor{does: does, batch: 100} }
func paced(does behaviour) *fakeVendor {
	return &fakeVendor{does: does, pace: 20}
}

// The next vendor gets a message exactly while the message certainly did not leave (docs/decisions/sms.md#fail-over).
func TestDeliver(t *testing.T) {
	for _, c := range []struct {
		name     string
		chain    chain
		method   string
		messages int
		time     time.Duration // of the request; 0: requestTime
		want     string
		calls    []int // maximum of calls to each vendor
		took     time.Duration
		fails    string // the failure where nothing was accepted
	}{
		{"accepts", chain{one(accepts), one(accepts)}, single, 1, 0, "a accepted 1", []int{1, 0}, tick, ""},
		{"rejects", chain{one(rejects), one(accepts)}, single, 1, 0, "a rejected 1", []int{1, 0},
			tick, "502 rejected a reached"},
		{"refuses", chain{one(refuses), one(accepts)}, single, 1, 0, "b accepted 1", []int{1, 1}, 2 * tick, ""},
		{"refuses alone", chain{one(refuses)}, single, 1, 0, "a rejected 1", []int{1},
			tick, "502 credentials_refused a reached"},
		{"no funds", chain{one(noFunds), one(accepts)}, single, 1, 0, "b accepted 1", []int{1, 1}, 2 * tick, ""},
		{"no funds anywhere", chain{one(down), one(noFunds)}, single, 1, 0, "b rejected 1",
			[]int{1, 1}, 2 * tick, "502 account_refused b reached"},
		// A refusal outlives a failure to connect.
		{"no funds, then down", chain{one(noFunds), one(down)}, single, 1, 0,
			"a rejected 1", []int{1, 1}, 2 * tick, "502 account_refused a reached"},
		{"no funds, down, rejects", chain{one(noFunds), one(down),
			one(rejects)}, single, 1, 0, "c rejected 1", []int{1, 1, 1}, 3 * tick,
			"502 rejected c reached"},
		{"too fast, then down", chain{one(inTurn(1, isTooFast, down))}, single, 1, 0,
			"a rejected 1", []int{2}, time.Second + 2*tick, "502 too_fast a reached"},
		// docs/decisions/sms.md#pace: again on the account after a pause, while a later account has time.
		{"too fast once", chain{one(inTurn(1, isTooFast, accepts)), one(accepts)}, single, 1, 0,
			"a accepted 1", []int{2, 0}, time.Second + 2*tick, ""},
		{"too fast", chain{one(isTooFast), one(accepts)}, single, 1, 0, "b accepted 1", []int{5, 1},
			15*time.Second + 6*tick, ""},
		{"too fast without time for a pause and the next", chain{one(isTooFast), one(accepts)},
			single, 1, 4500 * time.Millisecond, "b accepted 1", []int{1, 1}, 2 * tick, ""},
		{"too fast alone", chain{one(isTooFast)}, single, 1, 10 * time.Second, "a rejected 1",
			[]int{4}, 7*time.Second + 4*tick, "502 too_fast a reached"},
		{"too fast for long", chain{one(tooFastFor(time.Hour)), one(accepts)}, single, 1, 0, "b accepted 1",
			[]int{1, 1}, 2 * tick, ""},
		{"hangs", chain{one(hangs), one(accepts)}, single, 1, 0, "a uncertain 1", []int{1, 0}, callTimeout,
			"503 no_response a reached uncertain"},
		{"unusable", chain{one(unusable), one(accepts)}, single, 1, 0, "a uncertain 1",
			[]int{1, 0}, tick, "502 unusable_response a reached uncertain"},
		{"nonsense", chain{one(noClass), one(accepts)}, single, 1, 0, "a uncertain 1", []int{1, 0}, tick,
			"502 unusable_response a reached uncertain"},
		{"panics", chain{one(panics), one(accepts)}, single, 1, 0, "a uncertain 1", []int{1, 0}, tick,
			"502 unusable_response a reached uncertain"},
		{"down", chain{one(down)}, single, 1, 0, "a not_attempted 1", []int{1}, tick, "503 not_sent a"},
		{"two down", chain{one(down), one(down)}, single, 1, 0, "b not_attempted 1", []int{1, 1}, 2 * tick, "503 not_sent b"},
		{"the second accepts", chain{one(down), one(accepts)}, single, 1, 0, "b accepted 1", []int{1, 1}, 2 * tick, ""},
		{"the third accepts", chain{one(down), one(down), one(accepts)}, single, 1, 0, "c accepted 1",
			[]int{1, 1, 1}, 3 * tick, ""},
		{"the second rejects", chain{one(down), one(rejects), one(accepts)}, single, 1, 0,
			"b rejected 1", []int{1, 1, 0}, 2 * tick, "502 rejected b reached"},
		{"the second panics", chain{one(down), one(panics), one(accepts)}, single, 1, 0, "b uncertain 1",
			[]int{1, 1, 0}, 2 * tick, "502 unusable_response b reached uncertain"},

		{"bulk accepts", chain{one(accepts), one(accepts)}, bulkSame, 100, 0, "a accepted 100", []int{100, 0}, 4 * tick, ""},
		{"bulk in batches", chain{many(accepts)}, bulkSame, 1000, 0, "a accepted 1000", []int{10}, 3 * tick, ""},
		{"list in one batch", chain{many(accepts)}, bulkDifferent, 20, 0, "a accepted 20", []int{1}, tick, ""},
		{"list one by one", chain{one(accepts)}, bulkDifferent, 20, 0, "a accepted 20", []int{20}, tick, ""},
		{"bulk of one", chain{many(accepts)}, bulkSame, 1, 0, "a accepted 1", []int{1}, tick, ""},
		{"bulk rejects", chain{one(rejects), one(accepts)}, bulkSame, 40, 0, "a rejected 40",
			[]int{40, 0}, 2 * tick, "502 rejected a reached"},
		{"bulk panics", chain{one(panics), one(accepts)}, bulkSame, 100, 0, "a uncertain 100", []int{100, 0},
			4 * tick, "502 unusable_response a reached uncertain"},
		{"a batch panics", chain{many(inTurn(1, panics, accepts))}, bulkSame, 300, 0,
			"a accepted 200, a uncertain 100", []int{3}, tick, ""},
		{"bulk, the first down", chain{one(down), one(accepts)}, bulkSame, 1000, 0, "b accepted 1000",
			[]int{sendsAtOnce + failuresToOpen, 1000}, 0, ""},
		{"batches, the first down", chain{many(down), one(accepts)}, bulkSame, 1000, 0, "b accepted 1000",
			[]int{batchesAtOnce + failuresToOpen, 1000}, 0, ""},
		{"bulk, two down", chain{one(down), many(down), one(accepts)}, bulkSame, 100, 0, "c accepted 100",
			[]int{sendsAtOnce + failuresToOpen, 1, 100}, 0, ""},
		{"bulk, all down", chain{one(down), many(down)}, bulkSame, 100, 0, "b not_attempted 100",
			[]int{sendsAtOnce + failuresToOpen, 1}, 0, "503 not_sent b"},
		{"down in the middle", chain{one(inTurn(96, accepts, down)), one(accepts)}, bulkSame, 1000, 0,
			"a accepted 96, b accepted 904", []int{96 + sendsAtOnce + failuresToOpen, 904}, 0, ""},

		// After a refusal of the account no further send begins, and all messages continue with the next vendor.
		{"refuses a bulk", chain{paced(refuses), one(accepts)}, bulkSame, 100, 0,
			"b accepted 100", []int{1, 100}, 5 * tick, ""},
		{"refuses all under way", chain{one(refuses), one(accepts)}, bulkSame, 100, 0,
			"b accepted 100", []int{32, 100}, 5 * tick, ""},
		{"refuses batches", chain{many(refuses), one(accepts)}, bulkSame, 1000, 0,
			"b accepted 1000", []int{4, 1000}, 33 * tick, ""},
		{"refuses a list", chain{paced(refuses), many(accepts)}, bulkDifferent, 20, 0,
			"b accepted 20", []int{1, 1}, 2 * tick, ""},
		{"two refuse", chain{paced(refuses),
			paced(refuses), one(accepts)}, bulkSame, 100, 0, "c accepted 100", []int{1, 1, 100},
			6 * tick, ""},
		{"down, then refuses", chain{many(down), paced(refuses), one(accepts)},
			bulkSame, 100, 0, "c accepted 100", []int{1, 1, 100}, 6 * tick, ""},
		{"refuses without a next one", chain{paced(refuses)}, bulkSame, 1000, 0,
			"a not_attempted 999, a rejected 1", []int{1}, tick, "502 credentials_refused a reached"},
		{"refuses, then down", chain{paced(refuses), many(down)}, bulkSame, 100, 0,
			"a rejected 1, b not_attempted 99", []int{1, 1}, 2 * tick, "502 credentials_refused a reached"},
		{"no funds without a next one", chain{paced(noFunds)}, bulkSame, 1000, 0,
			"a not_attempted 999, a rejected 1", []int{1}, tick, "502 account_refused a reached"},
		{"too fast beside words", chain{one(inTurn(1, isTooFast, refusesByWords)), one(accepts)},
			bulkSame, 2, 0, "b accepted 2", []int{2, 2}, 0, ""},
		{"too fast, late", chain{one(inTurn(1, isTooFast,
			inTurn(1, func(ctx context.Context) error {
				return respond(ctx, 3*time.Second, fault(upstream.TooFast)) // after the pause of the first refusal
			}, accepts)))}, bulkSame, 2, 0, "a accepted 2", []int{4}, 4*time.Second + tick, ""},
		{"a bulk too fast", chain{one(inTurn(40, isTooFast, accepts)), one(accepts)}, bulkSame, 100,
			0, "a accepted 100", []int{140, 0}, 0, ""},
		{"batches too fast", chain{many(inTurn(2, accepts, isTooFast)), many(accepts)}, bulkSame,
			1000, 0, "a accepted 200, b accepted 800", []int{22, 8}, 0, ""},
		{"refuses, then hangs", chain{paced(refuses), many(hangs)}, bulkSame, 100, 0,
			"b uncertain 100", []int{1, 1}, tick + callTimeout, "503 no_response b reached uncertain"},

		// A refusal by words is the message's own once the account has accepted another message, also one that is under way.
		{"words after an acceptance", chain{one(inTurn(50, accepts, inTurn(1, refusesByWords, accepts))),
			one(accepts)}, bulkSame, 1000, 0, "a accepted 999, a rejected 1", []int{1000, 0}, 32 * tick, ""},
		{"words before an acceptance", chain{one(inTurn(1, refusesByWords, accepts)), one(accepts)}, bulkSame, 1000,
			0, "a accepted 999, a rejected 1", []int{1000, 0}, 32 * tick, ""},
		{"words of a batch", chain{many(inTurn(1, accepts, inTurn(1, refusesByWords, accepts)))}, bulkSame, 1000, 0,
			"a accepted 900, a rejected 100", []int{10}, 3 * tick, ""},
		{"words for every message", chain{one(refusesByWords), one(accepts)}, bulkSame, 100, 0, "b accepted 100",
			[]int{32, 100}, 5 * tick, ""},
		{"words at a pace", chain{paced(refusesByWords), one(accepts)}, bulkSame, 100, 0, "b accepted 100",
			[]int{1, 100}, 9 * tick, ""},

		// A context that has ended, or ends too soon for a send to begin.
		{"no time", chain{one(accepts), one(accepts)}, bulkSame, 100, leastTime - 1, "b not_attempted 100",
			[]int{0, 0}, 0, "503 not_sent b"},
		{"time is over", chain{one(accepts), many(accepts)}, bulkSame, 100, -1, "b not_attempted 100",
			[]int{0, 0}, 0, "503 not_sent b"},
		{"just time", chain{one(accepts)}, single, 1, leastTime, "a accepted 1", []int{1}, tick, ""},
		// A context that ends before a byte has left, during the wait for the response, and with the response.
		{"ends before a byte", chain{one(connects), one(accepts)}, single, 1, 5 * time.Second, "a not_attempted 1",
			[]int{1, 0}, 5 * time.Second, "503 not_sent a"},
		{"ends after a byte", chain{one(hangs), one(accepts)}, single, 1, 5 * time.Second, "a uncertain 1",
			[]int{1, 0}, 5 * time.Second, "503 no_response a reached uncertain"},
		{"ends with the response", chain{one(acceptsLate), one(accepts)}, single, 1, 5 * time.Second, "a accepted 1",
			[]int{1, 0}, 5 * time.Second, ""},
		// No send begins without time for the slowest response twice, also with the next vendor.
		{"slow", chain{one(slow(4 * time.Second)), one(accepts)}, bulkSame, 1000, 0,
			"a accepted 128, b not_attempted 872", []int{128, 0}, 16 * time.Second, ""},
		{"slow and paced", chain{paced(slow(4 * time.Second))}, bulkSame, 400, 10 * time.Second,
			"a accepted 32, a not_attempted 368", []int{32}, 5550 * time.Millisecond, ""},
		// A connection that fails is no response, so the next vendor has the whole remaining time.
		{"slow to connect", chain{many(func(ctx context.Context) error {
			return respond(ctx, 5*time.Second, fault(upstream.NotSent))
		}), one(slow(3 * time.Second))}, bulkSame, 32, 12 * time.Second, "b accepted 32", []int{1, 32}, 8 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(c.chain...)
				if c.time == 0 {
					c.time = requestTime
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.time)
				defer cancel()
				began := time.Now()
				outcomes := b.send(ctx, t, c.method, c.messages)
				took := time.Since(began)
				if got := tally(outcomes); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				for i, p := range b.vendors {
					if p.calls > c.calls[i] {
						t.Errorf("%d calls to %s, want %d at most", p.calls, p.name, c.calls[i])
					}
				}
				if c.took > 0 && took != c.took {
					t.Errorf("%v, want %v", took, c.took)
				}
				if got := described(failure(outcomes)); got != c.fails {
					t.Errorf("the failure is %q, want %q", got, c.fails)
				}
			})
		})
	}
}

// slowCounter takes a second for 100 messages, and counts each once.
type slowCounter struct {
	refuse func(i int) error // nil: nothing is refused
	errs   map[int]error     // of the counted messages
	unsent []bool
}

func (c *slowCounter) Begin(_ context.Context, indexes []int) {
	time.Sleep(time.Second * time.Duration(len(indexes)) / 100)
	for _, i := range indexes {
		if _, counted := c.errs[i]; counted {
			continue
		}
		c.errs[i] = nil
		if c.refuse != nil {
			c.errs[i] = c.refuse(len(c.errs) - 1)
		}
	}
}

func (c *slowCounter) MessageErr(i int) error { return c.errs[i] }

func (c *slowCounter) End(i int, _ admit.Sent, unsent bool) { c.unsent[i] = unsent }

// The messages of a bulk are counted just before their sends, while the sends before are running. What cannot be
// counted or is refused is not sent through any account, and no message is counted for which no send can begin.
func TestCounts(t *testing.T) {
	const slowly = 4 * time.Second
	for _, c := range []struct {
		name   string
		chain  chain
		refuse func(i int) error // the messages by the order of their counts
		want   string
		most   int // messages counted
		took   time.Duration
	}{
		{"beside the sends", chain{many(slow(slowly))}, nil, "a accepted 1000", 1000, 14 * time.Second},
		{"one by one", chain{one(accepts)}, nil, "a accepted 1000", 1000, 0},
		{"a failed count", chain{many(accepts), one(accepts)}, func(i int) error {
			if i >= 100 && i < 200 {
				return errors.New("throttled")
			}
			return nil
		}, " not_attempted 100, a accepted 900", 1000, 0},
		{"a number's limit", chain{one(down), one(accepts)}, func(i int) error {
			if i%2 == 1 {
				return &ratelimit.RecipientRefusal{}
			}
			return nil
		}, " not_attempted 500, b accepted 500", 1000, 0},
		{"a refused account", chain{many(refuses)}, nil, "a not_attempted 900, a rejected 100", 300, 0},
		{"no time", chain{many(slow(9 * time.Second))}, nil, "a accepted 800, a not_attempted 200", 900, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(c.chain...)
				counts := &slowCounter{refuse: c.refuse, errs: map[int]error{}}
				b.messages = counts
				ctx, cancel := context.WithTimeout(t.Context(), requestTime)
				defer cancel()
				began := time.Now()
				outcomes := b.send(ctx, t, bulkSame, 1000)
				if got := tally(outcomes); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				if took := time.Since(began); c.took > 0 && took != c.took {
					t.Errorf("%v, want %v", took, c.took)
				}
				if len(counts.errs) > c.most {
					t.Errorf("%d counted, want %d at most", len(counts.errs), c.most)
				}
				for i := range outcomes {
					if _, counted := counts.errs[i]; outcomes[i].called && !counted {
						t.Fatalf("message %d was sent without a count", i)
					}
				}
			})
		})
	}
}

// A panic of an adapter is the outcome of the messages of that call alone. The cause has the panic and its stack, the
// response has neither, and the secret of the account is in none of them.
func TestPanic(t *testing.T) {
	const broken = "unusable_response: broken with ***"
	const contract = "The SMS provider's response was unexpected. The message may have been sent: do not retry " +
		"automatically."
	for _, c := range []struct {
		name    string
		does    behaviour
		want    string
		parts   []string // of the cause
		message string   // of the error; empty: something was accepted
	}{
		{"every one", panics, "a uncertain 40", []string{broken}, contract},
		{"one of many", inTurn(1, panics, accepts), "a accepted 39, a uncertain 1", []string{broken}, ""},
		{"not the first", inTurn(32, unusable, panics), "a uncertain 40",
			[]string{"with unusable_response", broken}, contract},
		{"among rejected", inTurn(39, rejects, panics), "a rejected 39, a uncertain 1", []string{broken}, contract},
		{"none", inTurn(1, unusable, accepts), "a accepted 39, a uncertain 1", []string{"with unusable_response"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(one(c.does))
				b.accounts[0].Secrets = map[string]string{"key": secretKey}
				outcomes := b.send(t.Context(), t, bulkSame, 40)
				if got := tally(outcomes); got != c.want {
					t.Fatalf("%s, want %s", got, c.want)
				}
				text := cause(outcomes).Error()
				for _, part := range c.parts {
					if !strings.Contains(text, part) {
						t.Errorf("the cause lacks %q: %s", part, text)
					}
				}
				// The stack begins where the adapter panics.
				if want := slices.Contains(c.parts, broken); strings.Contains(text, "panic") != want ||
					strings.Contains(text, "sms.panics(") != want {
					t.Errorf("a panic with its stack is in the cause, want %t: %s", want, text)
				}
				if strings.Contains(text, secretKey) {
					t.Errorf("the cause contains the secret: %s", text)
				}
				var e *request.Error
				if err := failure(outcomes); errors.As(err, &e) != (c.message != "") ||
					errors.Is(err, request.ErrPanicked) != (e != nil) ||
					e != nil && (e.Message != c.message || e.Details != nil ||
						e.Error() != strings.TrimSuffix(c.message, ".")+": "+text) {
					t.Errorf("the client gets %+v", e)
				}
			})
		})
	}
}

// described returns a failure of a send in short form.
func described(err error) string {
	if err == nil {
		return ""
	}
	var e *request.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	class := upstream.ClassOf(err)
	words := fmt.Sprintf("%d %s %s", e.Status, class, e.Vendor)
	if e.Code != request.CodeHTTPError || e.Message != sendErrors[class].Message {
		words += " " + e.Code + " " + e.Message
	}
	if e.Reached {
		words += " reached"
	}
	if e.Uncertain {
		words += " uncertain"
	}
	return words
}

// A circuit opens after consecutive failures and permits one send after a while. The outcome of that send closes the
// circuit or keeps the circuit open for all messages of the request (docs/decisions/sms.md#circuits).
func TestCircuit(t *testing.T) {
	const messages = 1000
	for _, c := range []struct {
		name  string
		first *fakeVendor // its circuit has opened
		does  behaviour   // from then on
		after time.Duration
		next  *fakeVendor // in the chain; nil: none
		want  string
		calls int // to the first; -1: any number
		fails string
	}{
		{"up again", one(down), accepts, openTime, nil, "a accepted 1000", 1000, ""},
		{"up again, in batches", many(down), accepts, openTime, nil, "a accepted 1000", 10, ""},
		{"up again, with a pace", &fakeVendor{does: down, pace: 100}, accepts, openTime, nil, "a accepted 1000", 1000, ""},
		{"up again, with a next one", one(down), accepts, openTime, one(accepts), "a accepted 1000", 1000, ""},
		{"still down", one(down), down, openTime, nil, "a not_attempted 1000", 1, "503 not_sent a"},
		{"still down, with a next one", one(down), down, openTime, one(accepts), "b accepted 1000", 1, ""},
		{"still down, in batches", many(down), down, openTime, many(accepts), "b accepted 1000", 1, ""},
		{"up for the probe alone", one(down), inTurn(1, accepts, down), openTime, one(accepts),
			"a accepted 1, b accepted 999", -1, ""},
		{"open", one(down), accepts, openTime - time.Second, nil, "a not_attempted 1000", 0, "503 not_sent a"},
		{"open, with a next one", one(down), accepts, openTime - time.Second, one(accepts), "b accepted 1000", 0, ""},
		// A circuit that becomes half-open during the request is too late, because the request reads its state once.
		{"open when the request began", &fakeVendor{does: down, pace: 20}, accepts, openTime - time.Millisecond, one(accepts),
			"b accepted 1000", 0, ""},
		// Every response closes the circuit, because the vendor can be reached.
		{"the probe is rejected", one(down), inTurn(1, rejects, accepts), openTime, nil,
			"a accepted 999, a rejected 1", 1000, ""},
		{"the probe hangs", one(down), inTurn(1, hangs, accepts), openTime, nil, "a accepted 999, a uncertain 1", 1000, ""},
		{"the probe panics", one(down), inTurn(1, panics, accepts), openTime, nil, "a accepted 999, a uncertain 1", 1000, ""},
		{"the probe is refused", one(down), refuses, openTime, one(accepts), "b accepted 1000", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := chain{c.first}
				if c.next != nil {
					all = append(all, c.next)
				}
				b := newFixture(all...)
				accounts := b.accounts
				b.accounts = accounts[:1]
				for i := range failuresToOpen + 1 {
					if outcomes := b.send(t.Context(), t, single, 1); tally(outcomes) != "a not_attempted 1" ||
						errors.Is(outcomes[0].err, upstream.ErrOpen) != (i >= failuresToOpen) {
						t.Fatalf("send %d: %s, %v", i, tally(outcomes), outcomes[0].err)
					}
				}
				b.accounts = accounts
				c.first.calls = 0
				time.Sleep(c.after + time.Nanosecond)
				var began atomic.Int32
				c.first.does = func(ctx context.Context) error {
					probe := began.Add(1) == 1
					err := c.does(ctx)
					if n := began.Load(); probe && n > 1 {
						t.Errorf("%d sends have begun while the circuit takes one", n)
					}
					return err
				}
				ctx, cancel := context.WithTimeout(t.Context(), requestTime)
				defer cancel()
				outcomes := b.send(ctx, t, bulkSame, messages)
				if got := tally(outcomes); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				if c.calls >= 0 && c.first.calls != c.calls {
					t.Errorf("%d calls, want %d", c.first.calls, c.calls)
				}
				if got := described(failure(outcomes)); got != c.fails {
					t.Errorf("the failure is %q, want %q", got, c.fails)
				}
			})
		})
	}
}

// A message that no vendor accepted names the last called vendor. A vendor with an open circuit is not called.
func TestLastCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(one(down), one(down))
		first, second := b.accounts[0], b.accounts[1]
		for _, c := range []struct {
			accounts []upstream.Account
			want     string
			open     bool // the error of the outcome is an open circuit
		}{
			{[]upstream.Account{second}, "b not_attempted 1", false},
			{[]upstream.Account{second}, "b not_attempted 1", false},
			{[]upstream.Account{second}, "b not_attempted 1", false},
			{[]upstream.Account{second}, "b not_attempted 1", true},
			{[]upstream.Account{first, second}, "a not_attempted 1", false},
			{[]upstream.Account{second, first}, "a not_attempted 1", false},
			{[]upstream.Account{first}, "a not_attempted 1", false},
			{[]upstream.Account{first, second}, "b not_attempted 1", true},
		} {
			b.accounts = c.accounts
			outcomes := b.send(t.Context(), t, single, 1)
			if got := tally(outcomes); got != c.want || errors.Is(outcomes[0].err, upstream.ErrOpen) != c.open {
				t.Errorf("%s, %v; want %s, open %t", got, outcomes[0].err, c.want, c.open)
			}
		}
	})
}

// docs/decisions/sms.md#pace: one Managed account serves all projects, so each project waits after its refusal.
func TestPaceOfAccount(t *testing.T) {
	for mode, calls := range map[project.Mode]int{project.Managed: 1, project.BYOK: 2} {
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(one(tooFastFor(openTime)))
			for _, id := range []string{"p", "q"} {
				ctx, cancel := context.WithTimeout(t.Context(), leastTime+time.Second)
				defer cancel()
				call := b.caller(mode, nil)
				call.Project = &project.Project{ID: id}
				if _, err := b.run(ctx, call, bulk(single, 1)); err == nil {
					t.Errorf("%s, project %s: accepted", mode, id)
				}
			}
			if got := b.vendors[0].calls; got != calls {
				t.Errorf("%s: %d calls, want %d", mode, got, calls)
			}
		})
	}
}

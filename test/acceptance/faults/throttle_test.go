package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/shared/credit"
	"svcapi/test/faultproxy"
)

// throttler throttles the first attempts of one kind of write.
type throttler struct {
	mu   sync.Mutex
	step step
	left int // attempts that are still to be throttled
	met  int // attempts of that kind
	all  []*faultproxy.Request
}

func (t *throttler) decide(r *faultproxy.Request) faultproxy.Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, r)
	if decode(r).step != t.step {
		return faultproxy.Deliver
	}
	t.met++
	if t.left == 0 {
		return faultproxy.Deliver
	}
	t.left--
	all := faultproxy.Throttles(r.Operation)
	return all[t.left%len(all)]
}

// expect makes the throttler throttle the next attempts of a step.
func (t *throttler) expect(s step, attempts int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step, t.left, t.met, t.all = s, attempts, 0, nil
}

func (t *throttler) seen() (met, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.met, t.left
}

// slow reports that the function gave an attempt up, as happens on a busy machine.
func (t *throttler) slow() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.all, (*faultproxy.Request).GivenUp)
}

// throttled is a request whose writes are throttled, one kind after another.
type throttled struct {
	name    string
	op      *operation
	body    string // %s is the request's token
	token   string // empty: a new token
	key     bool   // with an Idempotency-Key
	credits int64
	status  int
	charged bool
	steps   []step
	limited bool // by number and day
}

const plenty = 1_000_000

func throttledRequests() []throttled {
	sms := func(to string) string {
		return fmt.Sprintf(`{"send_method":"single","to":%q,"message":"%%s"}`, to)
	}
	const good, bad = "0771234567", "0770000001"
	paid := []step{count, reserve, capture, remove}
	of := func(name string) *operation {
		return &operations[slices.IndexFunc(operations, func(o operation) bool { return o.name == name })]
	}
	list := []throttled{
		{"SMS", of(credit.SMS), sms(good), "", false, plenty, 200, true, []step{count, reserve, mark, capture, remove}, false},
		{"SMS with a key", of(credit.SMS), sms(good), "", true, plenty, 200, true, []step{claim, count, reserve, mark, capture, keep, remove}, false},
		{"rejected SMS", of(credit.SMS), sms(bad), "", false, plenty, 502, false, []step{reserve, mark, forbidCapture, returnCredits}, false},
		{"rejected SMS with a key", of(credit.SMS), sms(bad), "", true, plenty, 502, false, []step{claim, forbidCapture, returnCredits, keep}, false},
		{"SMS without credits, with a key", of(credit.SMS), sms(good), "", true, 0, 402, false, []step{claim, reserve, free}, false},
		{"unknown address", of(credit.Location), "", "45.83.0.7", false, plenty, 200, false, []step{returnCredits}, false},
		{"PDF", &pdf, "", "", false, plenty, 200, true, []step{capture}, false},
	}
	list = append(list,
		throttled{"SMS with limits", of(credit.SMS), sms(good), "", false, plenty, 200, true, []step{recipient, daily, alert, mark}, true},
		throttled{"rejected SMS with limits", of(credit.SMS), sms(bad), "", false, plenty, 502, false, []step{subtract}, true})
	for _, name := range []string{credit.BurnerEmailShield, credit.Barcode, credit.QRCode} {
		list = append(list, throttled{name, of(name), "", "", false, plenty, 200, true, paid, false})
	}
	for _, name := range []string{credit.VPNShield, credit.Location} {
		list = append(list, throttled{name, of(name), "", "112.134.7.1", false, plenty, 200, true, paid, false})
	}
	return list
}

// TestThrottles checks that a table that throttles the first attempts of one kind of write changes neither a response nor
// a charge (decisions on money: a failed request is not charged, a successful request is charged its price).
func TestThrottles(t *testing.T) {
	s, err := newFixture(t).newStage()
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(atWork)
	for _, attempts := range []int{mostThrottles, 4, 1} { // the longest first
		for _, r := range throttledRequests() {
			group.Go(func() error { return s.throttled(t, r, attempts) })
		}
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if err := s.drop(); err != nil {
		t.Error(err)
	}
}

// throttled runs a request for each of its steps, in one process and with a new project for each step.
func (s *stage) throttled(t *testing.T, c throttled, attempts int) error {
	th := &throttler{}
	i, err := s.newInstance(c.op.function, nil, th.decide)
	if err != nil {
		return err
	}
	defer i.kill()
	for _, at := range c.steps {
		p := &plan{credits: c.credits, limit: unlimited}
		if c.limited {
			p.perNumber, p.daily = 1, s.prices.Of(c.op.name)
		}
		project := s.fixture.name("throttled")
		s.fixture.clients.Store(project, func(*faultproxy.Request) faultproxy.Fault { return faultproxy.Deliver })
		if err := s.create(project, p); err != nil {
			return err
		}
		th.expect(at, attempts)
		wrong := func(format string, args ...any) {
			t.Errorf("%s, %d throttles of %s: %s", c.name, attempts, at, fmt.Sprintf(format, args...))
		}
		r := c.request(s.fixture, 1)
		if a := i.ask(project, r); a.status != c.status || a.replayed {
			wrong("%d %s, want %d", a.status, a.message, c.status)
		}
		if err := i.host.AwaitIdle(t.Context(), i.function); err != nil { // a removal follows the response
			return err
		}
		if met, left := th.seen(); met == 0 || at != remove && (left > 0 || met <= attempts) {
			wrong("%d attempts, of which %d were to be throttled", met, attempts)
		}
		if c.key { // an outcome is stored; a freed key can be used again
			if again := i.ask(project, r); again.status != c.status || again.replayed != (c.status != 402) {
				wrong("repeated: %d %s, replayed %t", again.status, again.message, again.replayed)
			}
		}
		// The longest burst may outlast the short time for a removal; the settling function then removes the reservation, as
		// it does after a slow attempt.
		removed := (at != remove || attempts < mostThrottles) && !th.slow()
		if err := s.charges(project, c, removed, wrong); err != nil {
			return err
		}
		if sent := received(s.fixture.sandbox.Calls())[r.token]; c.op.name == credit.SMS && (sent != 1) != (c.status == 402) {
			wrong("the vendor received %d messages", sent)
		}
	}
	return nil
}

// request returns the request with that number of a project.
func (c *throttled) request(fixture *fixture, number int) *request {
	r := &request{number: number, op: c.op, token: c.token}
	if r.token == "" {
		r.token = fmt.Sprintf("M%dR%dE", fixture.names.Add(1), number)
	}
	body := c.body
	if body == "" {
		body = c.op.body
	}
	r.body = fmt.Sprintf(body, r.token)
	if c.key {
		r.key = r.token
	}
	return r
}

// charges checks what a project was charged for its request. The removal of a captured reservation may need a moment.
func (s *stage) charges(project string, c throttled, removed bool, wrong func(string, ...any)) error {
	ctx := context.Background()
	wallet, err := s.credits.Wallet(ctx, project)
	for i := 0; err == nil && removed && wallet.Reserved > 0 && i < 20; i++ {
		time.Sleep(100 * time.Millisecond)
		wallet, err = s.credits.Wallet(ctx, project)
	}
	if err != nil {
		return err
	}
	price, times := s.prices.Of(c.op.name), 0
	if c.charged {
		times = 1
	}
	if want := c.credits - int64(times)*price; wallet.Balance != want || removed && wallet.Reserved > 0 {
		wrong("the wallet is %+v, want a balance of %d", *wallet, want)
	}
	entries, err := s.entries(project, time.Now().Add(-time.Hour))
	captured := 0
	for _, e := range entries {
		switch {
		case e.State == credit.Captured && e.Credits == price && !e.Uncertain && e.Actor == "":
			captured++
		case e.State != credit.Granted && e.State != credit.Released:
			wrong("the ledger holds %+v", e)
		}
	}
	uncertain, listed := s.credits.Uncertain(ctx, project)
	if captured != times || len(uncertain) > 0 {
		wrong("the request is charged %d times, want %d; uncertain: %+v", captured, times, uncertain)
	}
	return errors.Join(err, listed)
}

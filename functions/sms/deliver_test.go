package main

import (
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
	"svcapi/shared/api"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

const (
	// answerTime is how long a played vendor takes: all sends that may be under way at once are.
	answerTime = 10 * time.Millisecond
	// callTimeout bounds one call to a vendor.
	callTimeout = 10 * time.Second
	// requestTime is what a request has for its sends on AWS.
	requestTime = 23 * time.Second
	// failuresToOpen is after how many failures in a row a circuit opens, and openTime for how long it is open.
	failuresToOpen = 3
	openTime       = 30 * time.Second
)

// behaviour is what a played vendor does with one call. The error is nil where the vendor accepts.
type behaviour func(ctx context.Context) error

func accepts(ctx context.Context) error { return within(ctx, answerTime, nil) }
func down(ctx context.Context) error    { return within(ctx, answerTime, fault(upstream.NotSent)) }
func hangs(ctx context.Context) error   { return within(ctx, time.Hour, nil) }

func answers(class upstream.Class) behaviour {
	return func(ctx context.Context) error { return within(ctx, answerTime, fault(class)) }
}

func slow(answer time.Duration) behaviour {
	return func(ctx context.Context) error { return within(ctx, answer, nil) }
}

// connects plays a connection that is not made before the context ends: no byte has left then.
func connects(ctx context.Context) error {
	<-ctx.Done()
	return fault(upstream.NotSent)
}

// acceptsLate plays an answer that arrives in the moment in which the context ends.
func acceptsLate(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func nonsense(ctx context.Context) error { return within(ctx, answerTime, errors.New("no class")) }

func panics(ctx context.Context) error {
	_ = within(ctx, answerTime, nil)
	panic("broken with " + secretKey)
}

// inTurn plays the first behaviour for so many calls, and the other one from then on.
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
	return &upstream.Error{Class: class, Vendor: "played", Detail: "with " + string(class)}
}

// within gives the answer after its time, unless the call ends before: a byte has left then.
func within(ctx context.Context, answer time.Duration, err error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	select {
	case <-time.After(answer):
		return err
	case <-ctx.Done():
		return fault(upstream.NoResponse)
	}
}

const secretKey = "s3cret-key"

// played is a vendor in memory.
type played struct {
	name  string
	pace  int
	batch int // most recipients of one call; 0: the vendor takes one recipient a call

	mu    sync.Mutex
	does  behaviour
	calls int
	left  []string // numbers of messages that may have left through the vendor
}

func (p *played) call(ctx context.Context, to []string) (vendors.Receipt, error) {
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
		left = class != upstream.NotSent && class != upstream.CredentialsRefused
		return vendors.Receipt{}, err
	}
	return vendors.Receipt{Status: "queued", ID: id}, nil
}

// playedAdapter sends one message a call.
type playedAdapter struct{ *played }

func (a playedAdapter) Send(ctx context.Context, m vendors.Message) (vendors.Receipt, error) {
	return a.call(ctx, []string{m.To})
}

// playedBulk takes many recipients in a call.
type playedBulk struct{ playedAdapter }

func (a playedBulk) SendSame(ctx context.Context, to []string, _ string, _ bool) (vendors.Receipt, error) {
	return a.call(ctx, to)
}

func (a playedBulk) SendDifferent(ctx context.Context, messages []vendors.Message) (vendors.Receipt, error) {
	var to []string
	for _, m := range messages {
		to = append(to, m.To)
	}
	return a.call(ctx, to)
}

// bench is a group over played vendors, and the accounts of one project at them by priority.
type bench struct {
	*group
	vendors  []*played
	accounts []upstream.Account
}

func newBench(chain ...*played) *bench {
	b := &bench{group: &group{breakers: upstream.NewBreakers(), timeout: callTimeout}, vendors: chain}
	for i, p := range chain {
		p.name = string(rune('a' + i))
		b.group.vendors = append(b.group.vendors, vendors.Vendor{
			Spec: upstream.Spec{Name: p.name}, Pace: p.pace, Batch: p.batch,
			New: func(*upstream.Client, upstream.Account) vendors.Adapter {
				if p.batch > 0 {
					return playedBulk{playedAdapter{p}}
				}
				return playedAdapter{p}
			},
		})
		b.accounts = append(b.accounts, upstream.Account{
			Project: "p", Integration: project.Integration{ID: p.name, Vendor: p.name},
		})
	}
	return b
}

// bulk is a request of so many messages.
func bulk(method string, messages int) sendRequest {
	r := sendRequest{method: method}
	for i := range messages {
		text := "m"
		if method == bulkDifferent {
			text += strconv.Itoa(i)
		}
		r.add(fmt.Sprintf("+9477%07d", i), text)
	}
	return r
}

// send delivers so many messages, and checks what holds of every delivery.
func (b *bench) send(ctx context.Context, t *testing.T, method string, messages int) []recipient {
	t.Helper()
	r := bulk(method, messages)
	recipients := b.deliver(ctx, b.accounts, r)
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
		through, certain := left[o.message.To], o.status() == notAttempted
		if through != "" && (certain || through != o.vendor) {
			t.Errorf("message %d left through %s, the outcome is %s of %s", i, through, o.status(), o.vendor)
		}
		if through == "" && (o.status() == accepted || o.status() == uncertain) {
			t.Errorf("message %d did not leave, the outcome is %s of %s", i, o.status(), o.vendor)
		}
	}
	return recipients
}

// tally counts outcomes by vendor and status.
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

// one is a vendor that takes one recipient a call, many one that takes 100.
func one(does behaviour) *played  { return &played{does: does} }
func many(does behaviour) *played { return &played{does: does, batch: 100} }
func paced(does behaviour) *played {
	return &played{does: does, pace: 20}
}

// A message goes on along the chain while it certainly did not leave, and no further.
func TestDeliver(t *testing.T) {
	for _, c := range []struct {
		name     string
		chain    []*played
		method   string
		messages int
		time     time.Duration // of the request; 0: requestTime
		want     string
		calls    []int // most calls to each vendor
		took     time.Duration
		fails    string // the answer where nothing was accepted, and what is kept of it
	}{
		{"accepts", []*played{one(accepts), one(accepts)}, single, 1, 0, "a accepted 1", []int{1, 0}, answerTime, ""},
		{"rejects", []*played{one(answers(upstream.Rejected)), one(accepts)}, single, 1, 0, "a rejected 1", []int{1, 0}, answerTime, "502 rejected a reached"},
		{"refuses", []*played{one(answers(upstream.CredentialsRefused)), one(accepts)}, single, 1, 0, "a rejected 1", []int{1, 0}, answerTime, "502 credentials_refused a reached"},
		{"hangs", []*played{one(hangs), one(accepts)}, single, 1, 0, "a uncertain 1", []int{1, 0}, callTimeout, "503 no_answer a reached uncertain"},
		{"unusable", []*played{one(answers(upstream.Unusable)), one(accepts)}, single, 1, 0, "a uncertain 1", []int{1, 0}, answerTime, "502 unusable_answer a reached uncertain"},
		{"nonsense", []*played{one(nonsense), one(accepts)}, single, 1, 0, "a uncertain 1", []int{1, 0}, answerTime, "502 unusable_answer a reached uncertain"},
		{"panics", []*played{one(panics), one(accepts)}, single, 1, 0, "a uncertain 1", []int{1, 0}, answerTime, "502 unusable_answer a reached uncertain"},
		{"down", []*played{one(down)}, single, 1, 0, "a not_attempted 1", []int{1}, answerTime, "503 not_sent a"},
		{"two down", []*played{one(down), one(down)}, single, 1, 0, "b not_attempted 1", []int{1, 1}, 2 * answerTime, "503 not_sent b"},
		{"the second accepts", []*played{one(down), one(accepts)}, single, 1, 0, "b accepted 1", []int{1, 1}, 2 * answerTime, ""},
		{"the third accepts", []*played{one(down), one(down), one(accepts)}, single, 1, 0, "c accepted 1", []int{1, 1, 1}, 3 * answerTime, ""},
		{"the second rejects", []*played{one(down), one(answers(upstream.Rejected)), one(accepts)}, single, 1, 0, "b rejected 1", []int{1, 1, 0}, 2 * answerTime, "502 rejected b reached"},
		{"the second panics", []*played{one(down), one(panics), one(accepts)}, single, 1, 0, "b uncertain 1", []int{1, 1, 0}, 2 * answerTime, "502 unusable_answer b reached uncertain"},

		{"bulk accepts", []*played{one(accepts), one(accepts)}, bulkSame, 100, 0, "a accepted 100", []int{100, 0}, 4 * answerTime, ""},
		{"bulk in batches", []*played{many(accepts)}, bulkSame, 1000, 0, "a accepted 1000", []int{10}, 3 * answerTime, ""},
		{"list in one batch", []*played{many(accepts)}, bulkDifferent, 20, 0, "a accepted 20", []int{1}, answerTime, ""},
		{"list one by one", []*played{one(accepts)}, bulkDifferent, 20, 0, "a accepted 20", []int{20}, answerTime, ""},
		{"bulk of one", []*played{many(accepts)}, bulkSame, 1, 0, "a accepted 1", []int{1}, answerTime, ""},
		{"bulk rejects", []*played{one(answers(upstream.Rejected)), one(accepts)}, bulkSame, 40, 0, "a rejected 40", []int{40, 0}, 2 * answerTime, "502 rejected a reached"},
		{"bulk panics", []*played{one(panics), one(accepts)}, bulkSame, 100, 0, "a uncertain 100", []int{100, 0}, 4 * answerTime, "502 unusable_answer a reached uncertain"},
		{"a batch panics", []*played{many(inTurn(1, panics, accepts))}, bulkSame, 300, 0, "a accepted 200, a uncertain 100", []int{3}, answerTime, ""},
		{"bulk, the first down", []*played{one(down), one(accepts)}, bulkSame, 1000, 0, "b accepted 1000", []int{sendsAtOnce + failuresToOpen, 1000}, 0, ""},
		{"batches, the first down", []*played{many(down), one(accepts)}, bulkSame, 1000, 0, "b accepted 1000", []int{batchesAtOnce + failuresToOpen, 1000}, 0, ""},
		{"bulk, two down", []*played{one(down), many(down), one(accepts)}, bulkSame, 100, 0, "c accepted 100", []int{sendsAtOnce + failuresToOpen, 1, 100}, 0, ""},
		{"bulk, all down", []*played{one(down), many(down)}, bulkSame, 100, 0, "b not_attempted 100", []int{sendsAtOnce + failuresToOpen, 1}, 0, "503 not_sent b"},
		{"down in the middle", []*played{one(inTurn(96, accepts, down)), one(accepts)}, bulkSame, 1000, 0, "a accepted 96, b accepted 904", []int{96 + sendsAtOnce + failuresToOpen, 904}, 0, ""},

		// The key is refused: what was under way is rejected, the others go on.
		{"refuses a bulk", []*played{paced(answers(upstream.CredentialsRefused)), one(accepts)}, bulkSame, 100, 0, "a rejected 1, b accepted 99", []int{1, 99}, 5 * answerTime, ""},
		{"refuses all under way", []*played{one(answers(upstream.CredentialsRefused)), one(accepts)}, bulkSame, 100, 0, "a rejected 32, b accepted 68", []int{32, 68}, 4 * answerTime, ""},
		{"refuses batches", []*played{many(answers(upstream.CredentialsRefused)), one(accepts)}, bulkSame, 1000, 0, "a rejected 400, b accepted 600", []int{4, 600}, 20 * answerTime, ""},
		{"refuses a list", []*played{paced(answers(upstream.CredentialsRefused)), many(accepts)}, bulkDifferent, 20, 0, "a rejected 1, b accepted 19", []int{1, 1}, 2 * answerTime, ""},
		{"two refuse", []*played{paced(answers(upstream.CredentialsRefused)), paced(answers(upstream.CredentialsRefused)), one(accepts)}, bulkSame, 100, 0, "a rejected 1, b rejected 1, c accepted 98", []int{1, 1, 98}, 6 * answerTime, ""},
		{"down, then refuses", []*played{many(down), paced(answers(upstream.CredentialsRefused)), one(accepts)}, bulkSame, 100, 0, "b rejected 1, c accepted 99", []int{1, 1, 99}, 6 * answerTime, ""},
		{"refuses without a next one", []*played{paced(answers(upstream.CredentialsRefused))}, bulkSame, 1000, 0, "a not_attempted 999, a rejected 1", []int{1}, answerTime, "502 credentials_refused a reached"},
		{"refuses, then down", []*played{paced(answers(upstream.CredentialsRefused)), many(down)}, bulkSame, 100, 0, "a rejected 1, b not_attempted 99", []int{1, 1}, 2 * answerTime, "502 credentials_refused a reached"},
		{"refuses, then hangs", []*played{paced(answers(upstream.CredentialsRefused)), many(hangs)}, bulkSame, 100, 0, "a rejected 1, b uncertain 99", []int{1, 1}, answerTime + callTimeout, "503 no_answer b reached uncertain"},

		// A context that has ended, or ends too soon for a send to begin.
		{"no time", []*played{one(accepts), one(accepts)}, bulkSame, 100, leastTime - 1, "b not_attempted 100", []int{0, 0}, 0, "503 not_sent b"},
		{"time is over", []*played{one(accepts), many(accepts)}, bulkSame, 100, -1, "b not_attempted 100", []int{0, 0}, 0, "503 not_sent b"},
		{"just time", []*played{one(accepts)}, single, 1, leastTime, "a accepted 1", []int{1}, answerTime, ""},
		// It ends before a byte has left, while the answer is awaited, and with the answer.
		{"ends before a byte", []*played{one(connects), one(accepts)}, single, 1, 5 * time.Second, "a not_attempted 1", []int{1, 0}, 5 * time.Second, "503 not_sent a"},
		{"ends after a byte", []*played{one(hangs), one(accepts)}, single, 1, 5 * time.Second, "a uncertain 1", []int{1, 0}, 5 * time.Second, "503 no_answer a reached uncertain"},
		{"ends with the answer", []*played{one(acceptsLate), one(accepts)}, single, 1, 5 * time.Second, "a accepted 1", []int{1, 0}, 5 * time.Second, ""},
		// No send begins that the slowest answer, twice, does not leave time for; the next vendor is no exception.
		{"slow", []*played{one(slow(4 * time.Second)), one(accepts)}, bulkSame, 1000, 0, "a accepted 128, b not_attempted 872", []int{128, 0}, 16 * time.Second, ""},
		{"slow and paced", []*played{paced(slow(4 * time.Second))}, bulkSame, 400, 10 * time.Second, "a accepted 32, a not_attempted 368", []int{32}, 5550 * time.Millisecond, ""},
		// A connection that is not made is no answer: the next vendor has all the time that is left.
		{"slow to connect", []*played{many(func(ctx context.Context) error {
			return within(ctx, 5*time.Second, fault(upstream.NotSent))
		}), one(slow(3 * time.Second))}, bulkSame, 32, 12 * time.Second, "b accepted 32", []int{1, 32}, 8 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(c.chain...)
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

// A panic of an adapter is the outcome of its own messages alone. The operator sees it with its stack, the client sees
// neither, and nobody sees the account's secret.
func TestPanic(t *testing.T) {
	const broken = "unusable_answer: broken with ***"
	const contract = "The SMS provider's answer was unexpected. The message may have been sent: do not retry automatically."
	for _, c := range []struct {
		name    string
		does    behaviour
		want    string
		says    []string // of the cause
		message string   // of the error; empty: something was accepted
	}{
		{"every one", panics, "a uncertain 40", []string{broken}, contract},
		{"one of many", inTurn(1, panics, accepts), "a accepted 39, a uncertain 1", []string{broken}, ""},
		{"not the first", inTurn(32, answers(upstream.Unusable), panics), "a uncertain 40", []string{"with unusable_answer", broken}, contract},
		{"among rejected", inTurn(39, answers(upstream.Rejected), panics), "a rejected 39, a uncertain 1", []string{broken}, contract},
		{"none", inTurn(1, answers(upstream.Unusable), accepts), "a accepted 39, a uncertain 1", []string{"with unusable_answer"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(one(c.does))
				b.accounts[0].Secrets = map[string]string{"key": secretKey}
				outcomes := b.send(t.Context(), t, bulkSame, 40)
				if got := tally(outcomes); got != c.want {
					t.Fatalf("%s, want %s", got, c.want)
				}
				text := cause(outcomes).Error()
				for _, part := range c.says {
					if !strings.Contains(text, part) {
						t.Errorf("the cause lacks %q: %s", part, text)
					}
				}
				// The stack begins where the adapter panics.
				if want := slices.Contains(c.says, broken); strings.Contains(text, "panic") != want || strings.Contains(text, "sms.panics(") != want {
					t.Errorf("a panic with its stack is in the cause, want %t: %s", want, text)
				}
				if strings.Contains(text, secretKey) {
					t.Errorf("the cause contains the secret: %s", text)
				}
				var e *api.Error
				if errors.As(failure(outcomes), &e) != (c.message != "") || e != nil && (e.Message != c.message || e.Details != nil || e.Error() != strings.TrimSuffix(c.message, ".")+": "+text) {
					t.Errorf("the client gets %+v", e)
				}
			})
		})
	}
}

// described is a failure of a send in few words.
func described(err error) string {
	if err == nil {
		return ""
	}
	var e *api.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	class := upstream.ClassOf(err)
	words := fmt.Sprintf("%d %s %s", e.Status, class, e.Vendor)
	if e.Code != api.CodeHTTPError || e.Message != sendErrors[class].Message {
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

// A circuit opens after failures in a row, lets one send try the vendor after a while, and closes or stays open for all
// messages of the request by what became of it.
func TestCircuit(t *testing.T) {
	const messages = 1000
	for _, c := range []struct {
		name  string
		first *played   // its circuit has opened
		does  behaviour // from then on
		after time.Duration
		next  *played // in the chain; nil: none
		want  string
		calls int // to the first; -1: as many as it takes
		fails string
	}{
		{"up again", one(down), accepts, openTime, nil, "a accepted 1000", 1000, ""},
		{"up again, in batches", many(down), accepts, openTime, nil, "a accepted 1000", 10, ""},
		{"up again, with a pace", &played{does: down, pace: 100}, accepts, openTime, nil, "a accepted 1000", 1000, ""},
		{"up again, with a next one", one(down), accepts, openTime, one(accepts), "a accepted 1000", 1000, ""},
		{"still down", one(down), down, openTime, nil, "a not_attempted 1000", 1, "503 not_sent a"},
		{"still down, with a next one", one(down), down, openTime, one(accepts), "b accepted 1000", 1, ""},
		{"still down, in batches", many(down), down, openTime, many(accepts), "b accepted 1000", 1, ""},
		{"up for the probe alone", one(down), inTurn(1, accepts, down), openTime, one(accepts), "a accepted 1, b accepted 999", -1, ""},
		{"open", one(down), accepts, openTime - time.Second, nil, "a not_attempted 1000", 0, "503 not_sent a"},
		{"open, with a next one", one(down), accepts, openTime - time.Second, one(accepts), "b accepted 1000", 0, ""},
		// The circuit is asked once: it lets calls through while the request goes on, which then is too late.
		{"open when the request began", &played{does: down, pace: 20}, accepts, openTime - time.Millisecond, one(accepts), "b accepted 1000", 0, ""},
		// Whatever the vendor answers, it can be reached.
		{"the probe is rejected", one(down), inTurn(1, answers(upstream.Rejected), accepts), openTime, nil, "a accepted 999, a rejected 1", 1000, ""},
		{"the probe hangs", one(down), inTurn(1, hangs, accepts), openTime, nil, "a accepted 999, a uncertain 1", 1000, ""},
		{"the probe panics", one(down), inTurn(1, panics, accepts), openTime, nil, "a accepted 999, a uncertain 1", 1000, ""},
		{"the probe is refused", one(down), answers(upstream.CredentialsRefused), openTime, one(accepts), "a rejected 1, b accepted 999", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				chain := []*played{c.first}
				if c.next != nil {
					chain = append(chain, c.next)
				}
				b := newBench(chain...)
				accounts := b.accounts
				b.accounts = accounts[:1]
				for i := range failuresToOpen + 1 {
					if outcomes := b.send(t.Context(), t, single, 1); tally(outcomes) != "a not_attempted 1" || errors.Is(outcomes[0].err, upstream.ErrOpen) != (i >= failuresToOpen) {
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

// A message that nobody took names the vendor that was asked last: an account whose circuit is open was not asked.
func TestAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(one(down), one(down))
		first, second := b.accounts[0], b.accounts[1]
		for _, c := range []struct {
			accounts []upstream.Account
			want     string
			open     bool // the outcome says that the circuit is
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

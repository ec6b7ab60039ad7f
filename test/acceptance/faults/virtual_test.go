package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

// A schedule in virtual time runs the wallet's protocol in this process, and on a clock of its own: its requests take
// the pipeline's steps with credits, in instances whose clocks differ or stop, and its settlers and operators are among
// them. Exactly one of them takes a step at a time, so that the seed decides the order of all steps, too.
const (
	// requestLife is when Lambda kills a request.
	requestLife = 28 * time.Second
	// settleAfter is more than a lease, a request and the differences of clocks.
	settleAfter = 90 * time.Second
	clockSkew   = 2 * time.Second
	// longestStop is how long the clock of an instance stops at most.
	longestStop = 150 * time.Second
	// mostTurns is the largest number of steps after which a late copy may arrive.
	mostTurns = 80
)

// virtualLimits has small numbers for leases, so that small schedules reach every branch.
var virtualLimits = wallet.Limits{
	Write: time.Hour, Remove: time.Hour,
	Leasing: wallet.Leasing{Life: 20 * time.Second, Slots: 8, From: 2, Floor: 8, Share: 4, AtOnce: 1},
}

// clock is the state of a schedule in virtual time.
type clock struct {
	elapsed  time.Duration
	turns    int
	made     int            // instances
	programs sync.WaitGroup // killed ones, too
}

// project returns the name of the project of a schedule.
func (p *plan) project() string {
	return fmt.Sprintf("%s-%d", map[bool]string{false: "seed", true: "virtual"}[p.virtual], p.seed)
}

// begin returns when a schedule of the plan begins: in virtual time just before a day ends, so that it has keys of two.
// That day is the one before yesterday: a statement has no entry of a clock that is ahead of this process's.
func (p *plan) begin() time.Time {
	if p.virtual {
		return time.Now().UTC().Truncate(24 * time.Hour).Add(-24*time.Hour - 30*time.Second)
	}
	return time.Now()
}

// settling is one run of a settler.
type settling struct{ number int }

func (s *settling) label() string { return fmt.Sprintf("settle %d", s.number) }

func newVirtualPlan(seed uint64, _ wallet.Prices) *plan {
	rng := rand.New(rand.NewPCG(seed, 12))
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	p := &plan{
		seed: seed, virtual: true, limit: 1, most: 2 + rng.IntN(4), stops: rng.IntN(4) == 0,
		credits: 1 + rng.Int64N([]int64{60, 600, 4000}[rng.IntN(3)]),
		loss:    pick(0, 0.05, 0.2, 0.35), refusal: pick(0, 0, 0.1), bursts: pick(0, 0, 0.1), crash: pick(0, 0.01, 0.03),
		lateCopies: 0.5, lossy: lossySteps[rng.IntN(len(lossySteps))],
	}
	unit := 1 + rng.Int64N(5)
	for n := range 3 + rng.IntN(20) {
		r := &request{
			number: n, op: &operations[rng.IntN(2)], price: unit * []int64{1, 1, 1, 1, 1, 2, 3, 20}[rng.IntN(8)],
			limited: rng.IntN(10) == 0, rejected: rng.IntN(5) == 0,
		}
		r.first, r.token, r.doubtful = r, fmt.Sprint(n), r.op.name == wallet.SMS && rng.IntN(10) == 0
		p.requests = append(p.requests, r)
		p.order = append(p.order, r)
	}
	for n := range rng.IntN(3) {
		c := &command{name: fmt.Sprintf("%s %d", wallet.Granted, n), state: wallet.Granted, credits: 1 + rng.Int64N(30)}
		p.commands = append(p.commands, c)
		p.order = slices.Insert(p.order, rng.IntN(len(p.order)+1), starter(c))
	}
	settlers := 1 + rng.IntN(5)
	if p.stops {
		settlers *= 3
	}
	for n := range settlers {
		p.order = slices.Insert(p.order, rng.IntN(len(p.order)+1), starter(&settling{n}))
	}
	return p
}

// now returns the time by the clock of the schedule.
func (sched *schedule) now() time.Time {
	if sched.virtual {
		return sched.began.Add(sched.elapsed)
	}
	return time.Now()
}

// pass lets virtual time pass, kills what has lived too long, and now and then compares the wallet with its entries. No
// call is under way, and the lock is held.
func (sched *schedule) pass() {
	if !sched.virtual {
		return
	}
	sched.turns++
	turn, jump := fmt.Sprint(sched.turns), 0.005
	if len(sched.alive) == 0 {
		jump = 0.3
	}
	sched.elapsed += time.Duration(sched.uniform("clock", turn) * float64(300*time.Millisecond))
	if sched.chance(jump, "jump", turn) {
		sched.elapsed += time.Duration(sched.uniform("far", turn) * float64(8*time.Minute))
	}
	for _, a := range slices.Clone(sched.alive) {
		if sched.now().Sub(a.first) > requestLife {
			sched.killAt(a.parked[0], "timed out")
		}
	}
	if sched.chance(0.02, "exact", turn) {
		sched.exact()
	}
}

// store returns the real store, as an instance has it, behind the proxy. A call waits for its turn without a time
// limit.
func (sched *schedule) store(client string) *books.Store {
	f := sched.stage.fixture
	db := enginetest.ClientOf(f.tables.URL(client), func(o *dynamodb.Options) {
		o.HTTPClient, o.Retryer = f.http, dynamo.Retryer(0)
	})
	return wallettest.WithLimits(books.NewStore(db, books.NamedTables(sched.stage.table)), virtualLimits)
}

// direct returns the store without faults.
func (sched *schedule) direct() *books.Store {
	return wallettest.WithLimits(sched.stage.credits, virtualLimits)
}

// skew returns how far a clock is off.
func (sched *schedule) skew(clock string) time.Duration {
	x := sched.uniform("skew", clock)
	if x < 0.5 {
		return 0
	}
	return time.Duration(4 * (x - 0.75) * float64(clockSkew))
}

// environment returns an instance of this process that runs no request, or a new one.
func (sched *schedule) environment(of string) *instance {
	sched.mu.Lock()
	defer sched.mu.Unlock()
	if n := len(sched.idle); n > 0 && (sched.made >= 4 || sched.chance(0.8, "instance", of)) {
		at := int(sched.uniform("which", of) * sched.uniform("which of", of) * float64(n))
		i := sched.idle[at]
		sched.idle = slices.Delete(sched.idle, at, at+1)
		return i
	}
	sched.made++
	i := &instance{fixture: sched.stage.fixture, name: sched.stage.fixture.name(sched.project)}
	i.skew = sched.skew(fmt.Sprint("instance ", sched.made))
	i.store = sched.store(i.name)
	i.fixture.clients.Store(i.name, i.decide)
	return i
}

// startVirtual starts what the plan orders next.
func (sched *schedule) startVirtual(s starter) {
	i := sched.environment(s.label())
	a := sched.newActor(s.label(), i.kill)
	i.actor.Store(a)
	run := func() { sched.settleLeases(i.store, sched.skew(s.label())) }
	switch s := s.(type) {
	case *request:
		if s.actor = a; sched.stops && sched.chance(0.1, s.label(), "stop") {
			i.skew -= time.Duration(sched.uniform(s.label(), "stopped for") * float64(longestStop))
			i.stopped = true
		}
		s.stopped, s.response.id = i.stopped, s.label()
		reservation := &wallet.Reservation{
			Project: sched.project, Began: sched.now().Add(i.skew), Received: sched.now(),
			RequestID: s.response.id, Credits: s.price, Price: s.op.name, Irrevocable: s.op.name == wallet.SMS,
			Environment: "production",
		}
		run = func() { s.pay(i.store, reservation) }
	case *command:
		run = func() { c := s; c.done = i.store.Grant(context.Background(), sched.grant(c)) == nil }
	}
	sched.programs.Go(func() {
		run()
		sched.mu.Lock()
		defer sched.mu.Unlock()
		defer sched.poke()
		i.actor.Store(nil)
		if r, is := s.(*request); is {
			if r.response.killed = a.killed; !a.killed {
				sched.note("%s returned %d", r.label(), r.response.status)
			}
		}
		if !a.killed {
			sched.gone(a)
			sched.idle = append(sched.idle, i)
		}
	})
}

func (sched *schedule) grant(c *command) wallet.Entry {
	return wallet.Entry{Project: sched.project, Key: c.id, Credits: c.credits, Reason: "test", Actor: "test"}
}

// pay takes the pipeline's steps with credits, one by one (shared/request/pipeline.go).
func (r *request) pay(store *books.Store, own *wallet.Reservation) {
	ctx, respond := context.Background(), func(status int, message string) {
		r.response.status, r.response.message = status, message
	}
	switch lacking, err := (*wallet.InsufficientError)(nil), store.Reserve(ctx, own); {
	case errors.As(err, &lacking) && lacking.Balance >= own.Credits && lacking.Oldest.IsZero(): // no lease holds them
		respond(0, "refused with credits")
		return
	case lacking != nil:
		respond(http.StatusPaymentRequired, "")
		return
	case err != nil:
		respond(http.StatusInternalServerError, err.Error())
		return
	}
	if r.limited {
		_ = store.Release(ctx, own)
		respond(http.StatusTooManyRequests, "")
		return
	}
	if own.Irrevocable {
		if err := store.Mark(ctx, own); err != nil {
			r.settled = errors.Is(err, wallet.ErrSettled)
			respond(http.StatusInternalServerError, err.Error())
			return
		}
		r.sent = true
	}
	if r.rejected {
		_ = store.Release(ctx, own)
		respond(http.StatusBadGateway, "")
		return
	}
	err := store.Capture(ctx, own, wallet.Outcome{Uncertain: r.doubtful, Vendor: "vendor"})
	if r.settled = errors.Is(err, wallet.ErrSettled); err == nil {
		store.Remove(ctx, own)
	}
	if respond(http.StatusOK, ""); r.doubtful {
		respond(http.StatusServiceUnavailable, "may have been sent")
	}
}

// settleLeases closes the old leases of the project, as functions/settle does.
func (sched *schedule) settleLeases(store *books.Store, skew time.Duration) (failed error) {
	var dead []wallet.Lease
	err := store.VisitPending(context.Background(), func(found wallet.Visited) error {
		for _, l := range found.Leases {
			if l.Project == sched.project && sched.now().Add(skew).Sub(l.Key.Time()) >= settleAfter {
				dead = append(dead, l)
			}
		}
		return errors.Join(found.Unreadable...)
	})
	store.Settle(context.Background(), dead, func(_ wallet.Lease, _ wallet.Settled, err error) {
		failed = errors.Join(failed, err)
	})
	return errors.Join(err, failed)
}

// exact checks that the wallet holds the sum of its entries, and that the balance which is shown is that of the wallet
// and of all entries of its leases. The lock is held.
func (sched *schedule) exact() {
	_, err := sched.direct().Statement(context.Background(), &books.Reading{}, sched.project, sched.began, sched.now(),
		func() {})
	if err = errors.Join(err, sched.explained()); err != nil {
		sched.wrong = append(sched.wrong, fmt.Sprintf("at %s: %v", sched.now().Format(time.TimeOnly), err))
	}
}

// explained compares the balance which is shown with the wallet and all entries of its leases.
func (sched *schedule) explained() error {
	ctx := context.Background()
	item, err := sched.direct().Item(ctx, sched.project)
	if err != nil || item == nil {
		return err
	}
	shown, err := sched.direct().Available(ctx, item)
	want, invalid := dynamo.NumberOf(item["balance"])
	err = errors.Join(err, invalid)
	for _, l := range wallet.LeasesOf(item, func(_ string, failed error) { err = errors.Join(err, failed) }) {
		if l.Slots == 1 {
			continue
		}
		want += l.Credits
		in := dynamo.Partition(sched.stage.table("ledger"), wallet.Partition(l.Project, l.Key))
		_, unread := dynamo.Query(ctx, sched.stage.fixture.direct, in, func(entry dynamo.Item) error {
			credits, err := dynamo.NumberOf(entry["cr"])
			if strings.HasPrefix(dynamo.TextOf(entry["sk"]), string(l.Key)) &&
				slices.Contains([]string{"sending", "captured"}, dynamo.TextOf(entry["st"])) {
				want -= credits
			}
			return err
		})
		err = errors.Join(err, unread)
	}
	if shown != want {
		err = errors.Join(err, fmt.Errorf("the balance is %d, and %d by the wallet and all entries", shown, want))
	}
	return err
}

// settleAll ends a schedule in virtual time without faults: an operator without a response repeats the command, and the
// last settler comes when every clock is past every lease.
func (sched *schedule) settleAll() {
	sched.programs.Wait()
	for _, c := range sched.commands {
		if err := sched.direct().Grant(context.Background(), sched.grant(c)); err != nil {
			sched.fail("%v", err)
		}
	}
	sched.elapsed += time.Hour
	if err := sched.settleLeases(sched.direct(), 0); err != nil {
		sched.fail("the last settler: %v", err)
	}
}

// replays checks that a seed alone decides the order of all steps in virtual time.
func replays(t *testing.T, r *fixture) {
	seeds, traces := sequence(fixedSeed, 10), [2][]string{}
	for i := range traces {
		for _, sched := range runBatch(t, r, seeds, newVirtualPlan) {
			traces[i] = append(traces[i], strings.Join(sched.trace, "\n"))
		}
	}
	for i, seed := range seeds {
		if traces[0][i] != traces[1][i] {
			t.Errorf("seed %d ran\n%s\nand then\n%s", seed, traces[0][i], traces[1][i])
		}
	}
}

// findsPlanted checks that a 500 which no fault of the harness explains is reported.
func findsPlanted(t *testing.T, r *fixture) {
	planted := func(seed uint64, prices wallet.Prices) *plan {
		p := newVirtualPlan(seed, prices)
		p.loss, p.crash, p.lossy, p.planted = 0, 0, "", mark
		return p
	}
	found := 0
	for _, sched := range runBatch(t, r, sequence(fixedSeed, 10), planted) {
		for _, wrong := range sched.wrong {
			if !strings.Contains(wrong, "500, and no call of the request was lost; it waited longest for") {
				t.Errorf("seed %d: %s", sched.seed, wrong)
			}
			found++
		}
	}
	if found < 10 {
		t.Errorf("%d planted failures are reported", found)
	}
}

func runBatch(t *testing.T, r *fixture, seeds []uint64, kind planner) []*schedule {
	t.Helper()
	return must.Get(r.runBatch(seeds, kind, &sync.Mutex{})).Or(t).schedules
}

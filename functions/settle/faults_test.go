package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

var (
	firstSeed     = flag.Uint64("seed", rand.Uint64()>>24, "the first seed of the fault schedules")
	scheduleCount = flag.Int("schedules", 60, "the number of fault schedules; 1 prints its trace")
)

const (
	// functionLife is when Lambda kills a request, in the schedule's time.
	functionLife = 28 * time.Second
	// copyLife is how long a late copy may still arrive: it is signed, and a signature lapses.
	copyLife = 14 * time.Minute
	lanes    = 8
	// settleAfter is more than a lease, a request and the differences of clocks.
	settleAfter = 90 * time.Second
	clockSkew   = 2 * time.Second
)

// limits has small numbers for leases, so that small schedules reach every branch.
var limits = wallet.Limits{
	Write: time.Hour, Remove: time.Hour, Leasing: wallet.Leasing{Life: 20 * time.Second, Slots: 8, From: 2,
		Floor: 8, Share: 4, AtOnce: 1},
}

// anomalies are the only ways in which a request's response and its charge may disagree.
var anomalies = []string{
	"charged, provider never called: died at the mark",
	"served, not charged: every response of the capture lost",
	"charged though failed, after lost responses or a crash",
	"charged though 500, after lost responses or a crash",
}

// TestFaultSchedules runs instances with requests, settlers and operators on one wallet in random order, with lost
// requests and responses, copies that arrive late, workers that die between any two steps, and clocks that differ or
// stop. Every movement counts once, the balance is never negative, and each response agrees with its charge, except for
// the known anomalies (docs/decisions/money.md#what-is-charged, docs/decisions/money.md#leases).
func TestFaultSchedules(t *testing.T) {
	t.Logf("%d schedules from seed %d", *scheduleCount, *firstSeed)
	newPool(t).runAll(t, *firstSeed, *scheduleCount)
}

// TestReplay checks that a seed alone decides the whole schedule.
func TestReplay(t *testing.T) {
	pool := newPool(t)
	for seed := range uint64(10) {
		one, other := pool.run(t, seed, pool.lanes[0]), pool.run(t, seed, pool.lanes[1])
		if !slices.Equal(one.trace, other.trace) {
			t.Fatalf("seed %d ran\n%s\nand then\n%s", seed, strings.Join(one.trace, "\n"), strings.Join(other.trace, "\n"))
		}
	}
}

// pool is the engine behind one proxy, and lanes of tables that schedules use one after another.
type pool struct {
	proxy   *faultproxy.Proxy
	http    *http.Client
	lanes   []*lane
	names   atomic.Int64
	workers sync.Map // client name: *worker
}

// lane is a set of tables: a settler sees only its own schedule's wallet.
type lane struct {
	direct *dynamodb.Client
	tables books.Tables
}

func newPool(t *testing.T) *pool {
	p := &pool{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	var err error
	p.proxy, err = faultproxy.Start(enginetest.URL(t), p.decide)
	must.Succeed(t, err)
	t.Cleanup(func() {
		p.proxy.Close()
		p.http.CloseIdleConnections()
	})
	for range lanes {
		client, tables := enginetest.Client(t)
		p.lanes = append(p.lanes, &lane{client, tables.Tables})
	}
	return p
}

// decide parks a request until its schedule decides the request's fault.
func (p *pool) decide(r *faultproxy.Request) faultproxy.Fault {
	found, ok := p.workers.Load(r.Client)
	if !ok {
		return faultproxy.DropRequest // of a worker that died
	}
	w := found.(*worker)
	a := &arrival{request: r, at: w.schedule.clock(), fault: make(chan faultproxy.Fault, 1)}
	w.schedule.events <- event{worker: w, arrival: a}
	return <-a.fault
}

// store returns the real store, as a worker has it, behind the proxy.
func (p *pool) store(l *lane, client string) *books.Store {
	db := enginetest.ClientOf(p.proxy.URL(client), func(o *dynamodb.Options) {
		o.HTTPClient = p.http // no time-out: a parked request waits for its turn
		o.Retryer = dynamo.Retryer(0)
	})
	return books.NewStore(db, l.tables).WithLimits(limits)
}

func (p *pool) runAll(t *testing.T, first uint64, count int) {
	began := time.Now()
	outcomes, odd := map[string]int{}, map[string]int{}
	var mu sync.Mutex
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, l := range p.lanes {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < int64(count) && !t.Failed(); n = next.Add(1) - 1 {
				result := p.run(t, first+uint64(n), l)
				if count == 1 {
					t.Log(strings.Join(result.trace, "\n"))
				}
				mu.Lock()
				for _, w := range result.requests {
					outcomes[w.outcome]++
				}
				for _, o := range result.odd {
					odd[o]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("outcomes %v in %s", outcomes, time.Since(began).Round(time.Millisecond))
	t.Logf("known anomalies %v", odd)
}

// worker is one process: a request, a settler or an operator.
type worker struct {
	schedule *schedule
	name     string // in the trace
	client   string // at the proxy
	started  time.Time
	run      func(ctx context.Context, store *books.Store) (outcome string)
	life     time.Duration
	parked   *arrival
	dead     bool

	// of a request
	instance    *instance
	reservation wallet.Reservation
	limited     bool // the rate limit, counted beside the reservation, says no
	fails       bool // the work fails for certain
	uncertain   bool
	sent        bool
	lost        int // attempts without a response
	outcome     string
	// of an operator
	grant *books.Movement
}

// instance is an environment of a function: one request at a time, with leases and a clock of its own.
type instance struct {
	client string // at the proxy
	store  *books.Store
	skew   time.Duration
	unit   int64 // credits of most of its requests
	busy   bool
}

type arrival struct {
	request *faultproxy.Request
	at      time.Time
	fault   chan faultproxy.Fault
}

// event is a worker's request at the proxy, or without one its end.
type event struct {
	worker  *worker
	arrival *arrival
	outcome string
}

// late is a dropped write that may still arrive.
type late struct {
	name    string
	request *faultproxy.Request
	until   time.Time
}

// schedule is one schedule of faults. Its loop lets exactly one worker take one step at a time, so that the seed alone
// decides the order of all steps.
type schedule struct {
	t       *testing.T
	seed    uint64
	pool    *pool
	lane    *lane
	direct  *books.Store
	rng     *rand.Rand
	now     atomic.Int64 // microseconds; settlers read it
	project string
	first   int64 // what the wallet held at the start
	stale   bool  // clocks stop while an instance is frozen
	loss    float64
	crash   float64
	arrive  float64 // chance of a late copy, per step

	events    chan event
	instances []*instance
	alive     []*worker // all parked, whenever the loop runs
	ghosts    int       // killed, and not ended yet
	late      []late
	requests  []*worker
	grants    []*worker
	serial    int
	trace     []string
	odd       []string
	failed    bool
}

func (w *schedule) clock() time.Time { return time.UnixMicro(w.now.Load()).UTC() }

func (w *schedule) advance(d time.Duration) { w.now.Add(d.Microseconds()) }

func (w *schedule) note(format string, args ...any) {
	w.trace = append(w.trace, w.clock().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *schedule) chance(p float64) bool { return w.rng.Float64() < p }

func (w *schedule) fail(format string, args ...any) {
	if w.failed {
		return
	}
	w.failed = true
	w.t.Errorf("seed %d (replay: go test ./functions/settle -run TestFaultSchedules -v -args -seed=%d -schedules=1): "+
		"%s\n%s",
		w.seed, w.seed, fmt.Sprintf(format, args...), strings.Join(w.trace, "\n"))
}

func (p *pool) run(t *testing.T, seed uint64, l *lane) *schedule {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &schedule{
		t: t, seed: seed, pool: p, lane: l, rng: rng, direct: books.NewStore(l.direct, l.tables).WithLimits(limits),
		project: "p" + strconv.FormatInt(p.names.Add(1), 10),
		loss:    []float64{0, 0.05, 0.2, 0.35}[rng.IntN(4)], crash: []float64{0, 0.01, 0.05}[rng.IntN(3)],
		arrive: []float64{0.1, 0.02}[rng.IntN(2)],
		stale:  rng.IntN(4) == 0,
		events: make(chan event, 64), // room for every ghost
	}
	w.now.Store(time.Date(2026, 1, 2, 23, 59, 30, 0, time.UTC).UnixMicro()) // keys of two days
	defer w.close()
	total := 3 + rng.IntN(20)
	w.first = rng.Int64N([]int64{60, 600, 4000}[rng.IntN(3)])
	w.createWallet()
	for range 1 + rng.IntN(4) {
		w.instances = append(w.instances, w.newInstance(1+rng.Int64N(5)))
	}

	for !w.failed && (len(w.requests) < total || len(w.alive) > 0 || len(w.late) > 0) {
		w.advance(time.Duration(rng.IntN(300)) * time.Millisecond)
		if w.chance(0.005) || len(w.alive) == 0 && w.chance(0.1) {
			w.advance(time.Duration(rng.IntN(8*60)) * time.Second)
		}
		w.expire()
		w.deliverLate()
		if len(w.requests) < total && w.chance(0.3) {
			w.startRequest()
		}
		if w.living("settle") < 2 && w.chance(0.02) {
			w.startSettler()
		}
		if len(w.grants) < 2 && w.chance(0.01) {
			w.startOperator()
		}
		if len(w.alive) > 0 {
			w.step(w.alive[rng.IntN(len(w.alive))])
			if w.chance(0.05) {
				w.check()
			}
		}
	}
	if w.failed {
		return w
	}
	w.finish()
	return w
}

// createWallet creates the wallet with its first balance in one write.
func (w *schedule) createWallet() {
	item := walletKey(w.project)
	item["balance"], item["lent"], item["fence"] = dynamo.Number(w.first), dynamo.Number(0), dynamo.Text("0")
	item["pending"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
	_, err := w.lane.direct.PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: &w.lane.tables.Wallets, Item: item})
	w.must(err)
}

func (w *schedule) newInstance(unit int64) *instance {
	w.serial++
	i := &instance{client: w.project + "." + strconv.Itoa(w.serial), unit: unit, skew: w.skew()}
	i.store = w.pool.store(w.lane, i.client)
	return i
}

// skew returns how far a clock is off.
func (w *schedule) skew() time.Duration {
	if w.chance(0.5) {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(2*clockSkew))) - clockSkew
}

func (w *schedule) living(kind string) (n int) {
	for _, worker := range w.alive {
		if strings.HasPrefix(worker.name, kind) {
			n++
		}
	}
	return n
}

// step lets one worker take its parked step, or kills it there.
func (w *schedule) step(worker *worker) {
	if w.chance(w.crash) {
		w.kill(worker, "killed")
		return
	}
	a := worker.parked
	worker.parked = nil
	fault := w.fault(a)
	if fault != faultproxy.Deliver {
		worker.lost++
	}
	w.note("%s %s %s", worker.name, a.request.Operation, fault)
	w.keepLate(worker, a, fault)
	a.fault <- fault
	w.settleDown(worker)
}

func (w *schedule) fault(a *arrival) faultproxy.Fault {
	switch fault := w.rng.Float64(); {
	case fault < w.loss:
		return faultproxy.DropRequest
	case fault < 1.8*w.loss:
		return faultproxy.DropResponse
	case fault < 2*w.loss:
		return faultproxy.CutResponse
	}
	return faultproxy.Deliver
}

// keepLate keeps half of the writes that were dropped on their way, to arrive later.
func (w *schedule) keepLate(worker *worker, a *arrival, fault faultproxy.Fault) {
	read := slices.Contains([]string{"Scan", "GetItem", "Query"}, a.request.Operation)
	if fault == faultproxy.DropRequest && w.chance(0.5) && !read {
		w.late = append(w.late, late{worker.name + " " + a.request.Operation, a.request, a.at.Add(copyLife)})
	}
}

// kill ends a worker at its parked step, which may still take effect, now or later. Nothing that the
// worker does afterwards passes.
func (w *schedule) kill(victim *worker, how string) {
	a := victim.parked
	victim.parked, victim.dead = nil, true
	w.alive = slices.DeleteFunc(w.alive, func(x *worker) bool { return x == victim })
	fault := []faultproxy.Fault{faultproxy.DropRequest, faultproxy.DropResponse}[w.rng.IntN(2)]
	w.note("%s %s at %s, %s", victim.name, how, a.request.Operation, fault)
	w.keepLate(victim, a, fault)
	if i := slices.Index(w.instances, victim.instance); i >= 0 {
		w.instances[i] = w.newInstance(victim.instance.unit)
	}
	w.pool.workers.Delete(victim.client)
	w.ghosts++
	victim.outcome = "crash"
	if fault == faultproxy.DropResponse { // before any other step
		if err := a.request.Deliver(w.t.Context()); err != nil {
			w.fail("deliver: %v", err)
		}
	}
	a.fault <- faultproxy.DropRequest
}

// start lets a worker run to its first step.
func (w *schedule) start(worker *worker) {
	i := worker.instance
	if i == nil { // a settler, or an operator
		i = w.newInstance(0)
	}
	worker.schedule, worker.started, worker.client = w, w.clock(), i.client
	w.pool.workers.Store(worker.client, worker)
	w.alive = append(w.alive, worker)
	w.note("%s starts", worker.name)
	store := i.store
	go func() {
		w.events <- event{worker: worker, outcome: worker.run(w.t.Context(), store)}
	}()
	w.settleDown(worker)
}

// settleDown waits until the worker that was let go is parked again, or has ended.
func (w *schedule) settleDown(running *worker) {
	for {
		e, ok := w.next()
		switch {
		case !ok:
			return
		case e.worker != running:
			w.ghost(e)
		case e.arrival != nil:
			running.parked = e.arrival
			return
		default:
			w.note("%s ends: %s", running.name, e.outcome)
			running.outcome = e.outcome
			w.pool.workers.Delete(running.client)
			w.alive = slices.DeleteFunc(w.alive, func(x *worker) bool { return x == running })
			if running.instance != nil {
				running.instance.busy = false
			}
			return
		}
	}
}

func (w *schedule) next() (event, bool) {
	select {
	case e := <-w.events:
		return e, true
	case <-time.After(time.Minute):
		w.fail("nothing happens")
		return event{}, false
	}
}

// ghost handles what a killed worker still does: nothing of it passes.
func (w *schedule) ghost(e event) {
	if e.arrival != nil {
		e.arrival.fault <- faultproxy.DropRequest
		return
	}
	w.ghosts--
}

func (w *schedule) close() {
	for _, worker := range slices.Clone(w.alive) { // only after a failure
		w.kill(worker, "ended")
	}
	for w.ghosts > 0 {
		e, ok := w.next()
		if !ok {
			return
		}
		w.ghost(e)
	}
	for _, table := range []string{w.lane.tables.Wallets, w.lane.tables.Ledger, w.lane.tables.Movements} {
		for _, item := range w.scan(table) {
			key := dynamo.Item{"pk": item["pk"]}
			if item["sk"] != nil {
				key["sk"] = item["sk"]
			}
			_, err := w.lane.direct.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
			w.must(err)
		}
	}
}

// scan returns the items of a table, all of which belong to the schedule.
func (w *schedule) scan(table string) []dynamo.Item {
	out, err := w.lane.direct.Scan(context.Background(),
		&dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		w.fail("%v", err)
		return nil
	}
	return out.Items
}

func (w *schedule) must(err error) {
	if err != nil {
		w.fail("%v", err)
	}
}

// expire kills what has lived too long, and forgets late copies whose signature has lapsed.
func (w *schedule) expire() {
	for _, worker := range slices.Clone(w.alive) {
		if w.clock().Sub(worker.started) > worker.life {
			w.kill(worker, "timed out")
		}
	}
	w.late = slices.DeleteFunc(w.late, func(l late) bool { return w.clock().After(l.until) })
}

func (w *schedule) deliverLate() {
	if len(w.late) == 0 || !w.chance(w.arrive) {
		return
	}
	i := w.rng.IntN(len(w.late))
	l := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	w.note("%s arrives late", l.name)
	w.must(l.request.Deliver(w.t.Context()))
}

func (w *schedule) startRequest() {
	i := w.instances[min(w.rng.IntN(len(w.instances)), w.rng.IntN(len(w.instances)))]
	if i.busy {
		return
	}
	if i.busy = true; w.stale && w.chance(0.1) {
		i.skew -= time.Duration(w.rng.Int64N(int64(150 * time.Second)))
	}
	n := len(w.requests)
	id := fmt.Sprintf("r%d", n)
	worker := &worker{
		name: fmt.Sprintf("request %d", n), life: functionLife, instance: i,
		reservation: wallet.Reservation{
			Project: w.project, Key: wallet.NewKey(w.clock().Add(i.skew), id), Received: w.clock(), RequestID: id,
			Credits: i.unit * []int64{1, 1, 1, 1, 1, 2, 3, 20}[w.rng.IntN(8)], Price: wallet.Barcode, Environment: "production",
		},
		limited: w.chance(0.1), fails: w.chance(0.2),
	}
	if w.chance(0.5) {
		worker.reservation.Price, worker.reservation.Irrevocable = wallet.SMS, true
		worker.uncertain = w.chance(0.1)
	}
	worker.run = worker.request
	w.requests = append(w.requests, worker)
	w.start(worker)
}

// request takes the pipeline's steps with credits, one by one.
func (w *worker) request(ctx context.Context, store *books.Store) string {
	r := w.reservation // the process's own
	lacking, err := (*wallet.InsufficientError)(nil), store.Reserve(ctx, &r)
	switch {
	case errors.As(err, &lacking) && lacking.Balance >= r.Credits:
		return "402 with credits"
	case lacking != nil:
		return "402"
	case err != nil:
		return "500"
	}
	if w.limited {
		_ = store.Release(ctx, &r)
		return "429"
	}
	if r.Irrevocable {
		switch err := store.Mark(ctx, &r); {
		case errors.Is(err, wallet.ErrSettled):
			return "settled while alive"
		case err != nil:
			return "500"
		}
		w.sent = true
	}
	if w.fails {
		_ = store.Release(ctx, &r)
		return "failed"
	}
	switch err := store.Capture(ctx, &r, wallet.Outcome{Uncertain: w.uncertain, Vendor: "vendor"}); {
	case errors.Is(err, wallet.ErrSettled):
		return "settled while alive"
	case err != nil:
		return "200, capture unknown"
	}
	store.Remove(ctx, &r)
	return "200"
}

func (w *schedule) startSettler() {
	skew := w.skew()
	w.start(&worker{
		name: "settle", life: time.Minute,
		run: func(ctx context.Context, store *books.Store) string {
			report, err := w.settler(store, skew).Run(ctx)
			return fmt.Sprint(report.Settled, report.Failed, err != nil)
		},
	})
}

func (w *schedule) settler(store *books.Store, skew time.Duration) *Settler {
	now := func() time.Time { return w.clock().Add(skew) }
	return &Settler{Store: store.Store, After: settleAfter, AtOnce: 1, Now: now,
		Log: telemetry.New(io.Discard, telemetry.Config{})}
}

func (w *schedule) startOperator() {
	m := &books.Movement{
		Project: w.project, ID: wallet.NewKey(w.clock(), fmt.Sprintf("g%d", len(w.grants))),
		Credits: 1 + w.rng.Int64N(30), Actor: "operator",
	}
	worker := &worker{
		name: fmt.Sprintf("operator %d", len(w.grants)), life: functionLife, grant: m,
		run: func(ctx context.Context, store *books.Store) string { return fmt.Sprint(store.Grant(ctx, *m) == nil) },
	}
	w.grants = append(w.grants, worker)
	w.start(worker)
}

// state is the wallet and its ledger at rest: every worker is parked.
type state struct {
	balance, lent int64
	leases        []wallet.Lease
	entries       []dynamo.Item
}

func (w *schedule) read() (s state) {
	for _, item := range w.scan(w.lane.tables.Wallets) {
		var err, invalid error
		s.balance, err = dynamo.NumberOf(item["balance"])
		s.lent, invalid = dynamo.NumberOf(item["lent"])
		w.must(errors.Join(err, invalid))
	}
	w.must(w.direct.VisitPending(w.t.Context(), func(l wallet.Lease, err error) error {
		s.leases = append(s.leases, l)
		return err
	}, nil))
	s.entries = w.scan(w.lane.tables.Ledger)
	return s
}

func walletKey(project string) dynamo.Item { return dynamo.Item{"pk": dynamo.Text(project)} }

// charged returns the credits of the captured entries whose key begins with a text.
func (s state) charged(key wallet.Key) (sum int64) {
	for _, e := range s.entries {
		if strings.HasPrefix(dynamo.TextOf(e["sk"]), string(key)) && dynamo.TextOf(e["st"]) == string(wallet.Captured) {
			credits, _ := dynamo.NumberOf(e["cr"])
			sum += credits
		}
	}
	return sum
}

// check fails the schedule where credits are lost or invented, or leases have more than their share.
func (w *schedule) check() state {
	s := w.read()
	granted := w.first
	for _, item := range w.scan(w.lane.tables.Movements) {
		credits, err := dynamo.NumberOf(item["cr"])
		w.must(err)
		granted += credits
	}
	captured, held, lent := s.charged(""), int64(0), int64(0)
	for _, l := range s.leases {
		unspent := l.Credits - s.charged(l.Key)
		if held += unspent; unspent < 0 {
			w.fail("the lease %s of %d credits has charged %d more", l.Key, l.Credits, -unspent)
		}
		if l.Slots > 1 {
			lent += limits.Leasing.Share * l.Credits
		}
	}
	if s.balance+captured+held != granted || s.balance < 0 || s.lent != lent {
		w.fail("balance %d + captured %d + held %d is not granted %d, or lent %d is not %d", s.balance, captured,
			held, granted, s.lent, lent)
	}
	return s
}

// finish settles to the end without faults and compares every response with its charge.
func (w *schedule) finish() {
	for _, g := range w.grants { // an operator who got no response repeats
		w.must(w.direct.Grant(w.t.Context(), *g.grant))
	}
	w.advance(settleAfter + 2*clockSkew)
	if w.stale {
		w.advance(time.Hour)
	}
	w.note("last settler")
	report, err := w.settler(w.direct, 0).Run(w.t.Context())
	w.must(err)
	s := w.check()
	if report.Failed > 0 || len(s.leases) > 0 {
		w.fail("%d leases cannot be settled, %d are left", report.Failed, len(s.leases))
	}
	charges := map[string]wallet.Entry{}
	for _, item := range s.entries {
		e := wallet.Entry{
			RequestID: dynamo.TextOf(item["rid"]), State: wallet.State(dynamo.TextOf(item["st"])),
			Actor: dynamo.TextOf(item["by"]), Uncertain: item["uncertain"] != nil,
		}
		e.Credits, err = dynamo.NumberOf(item["cr"])
		w.must(err)
		if _, twice := charges[e.RequestID]; twice && e.State == wallet.Captured {
			w.fail("%s is charged twice", e.RequestID)
		}
		switch e.State {
		case wallet.Captured:
			charges[e.RequestID] = e
		case wallet.Sending:
			w.fail("%s is left as sending", e.RequestID)
		}
	}
	for _, r := range w.requests {
		w.judge(r, charges[r.reservation.RequestID])
	}
}

func (w *schedule) judge(r *worker, entry wallet.Entry) {
	charged := entry.State == wallet.Captured
	responded := r.lost < dynamo.Attempts // every call
	sends := r.reservation.Irrevocable
	refused := r.outcome == "429" || r.outcome == "500" || r.outcome == "failed"
	switch {
	case r.outcome == "settled while alive" && !w.stale, r.outcome == "402 with credits",
		r.outcome == "settled while alive" && charged && !sends,
		r.outcome == "200" && !charged,
		r.outcome == "402" && charged,
		refused && !sends && charged:
		w.fail("%s responded %s; its entry is %q", r.name, r.outcome, entry.State)
	case charged && entry.Credits != r.reservation.Credits:
		w.fail("%s is charged %d", r.name, entry.Credits)
	case charged && entry.Actor != "" && !entry.Uncertain:
		w.fail("%s was charged by the settler and is not listed as uncertain", r.name)
	case r.outcome == "200" && entry.Uncertain != r.uncertain && !w.stale:
		w.fail("%s: uncertain is %t", r.name, entry.Uncertain)
	case r.outcome == "crash" && r.sent && !r.fails && !charged:
		w.fail("%s died with its message sent; its entry is %q", r.name, entry.State)
	case charged && refused && responded && !w.stale,
		!charged && r.outcome == "200, capture unknown" && responded:
		w.fail("%s responded %s, its entry is %q, and no call of it was lost", r.name, r.outcome, entry.State)
	}
	if charged && refused {
		w.anomaly("charged though " + r.outcome + ", after lost responses or a crash")
	}
	if charged && sends && !r.sent {
		w.anomaly("charged, provider never called: died at the mark")
	}
	if !charged && r.outcome == "200, capture unknown" {
		w.anomaly("served, not charged: every response of the capture lost")
	}
}

func (w *schedule) anomaly(name string) {
	if !slices.Contains(anomalies, name) {
		w.fail("not allowed: %s", name)
	}
	w.odd = append(w.odd, name)
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/shared/telemetry"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
)

var (
	scheduleSeed  = flag.Int64("schedule", -1, "replay the fault schedule of this seed alone, with its trace")
	scheduleCount = flag.Int("schedules", 200, "fault schedules on the fixed seed, and a fifth of them on another seed")
)

const (
	// functionLife is when Lambda kills a request, in the schedule's time.
	functionLife = 28 * time.Second
	// copyLife is how long a late copy may still arrive: it is signed, and a signature lapses.
	copyLife = 14 * time.Minute
	lanes    = 8
)

var testAges = Ages{Dead: functionLife + 2*time.Second, Captured: 15 * time.Minute}

// anomalies are the only ways in which a request's response and its charge may disagree.
var anomalies = []string{
	"charged, provider never called: died at the mark",
	"served, not charged: every response of the capture lost",
	"charged though failed, after lost responses or a crash",
	"charged though 500, after lost responses or a crash",
}

// TestFaultSchedules runs requests, settlers and operators on one wallet in random order, with lost requests and responses,
// copies that arrive late, and workers that die between any two steps. Every movement counts once, the balance is never
// negative, and each response agrees with its charge, except for the known anomalies
// (docs/decisions/money.md#what-is-charged, docs/decisions/money.md#settle).
func TestFaultSchedules(t *testing.T) {
	pool := newPool(t)
	if *scheduleSeed >= 0 {
		result := pool.run(t, uint64(*scheduleSeed), pool.lanes[0])
		t.Log(strings.Join(result.trace, "\n"))
		return
	}
	for _, batch := range []struct {
		name  string
		first func(*testing.T) uint64
		count int
	}{
		{"fixed", func(*testing.T) uint64 { return 0 }, *scheduleCount},
		{"random", randomSeed, *scheduleCount / 5},
	} {
		t.Run(batch.name, func(t *testing.T) {
			first := batch.first(t)
			t.Logf("%d schedules from seed %d", batch.count, first)
			pool.runAll(t, first, batch.count)
		})
	}
}

// randomSeed returns the seed that make test chose and printed, or a new one.
func randomSeed(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv("FAULT_SEED")
	if given == "" {
		return rand.Uint64() >> 24
	}
	seed, err := strconv.ParseUint(given, 10, 40)
	if err != nil {
		t.Fatalf("FAULT_SEED: %v", err)
	}
	return seed
}

func TestMain(m *testing.M) { enginetest.Main(m) }

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
	tables credit.Tables
}

func newPool(t *testing.T) *pool {
	p := &pool{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	var err error
	p.proxy, err = faultproxy.Start(enginetest.URL(t), p.decide)
	if err != nil {
		t.Fatal(err)
	}
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
func (p *pool) store(l *lane, client string) *credit.Store {
	db := enginetest.ClientOf(p.proxy.URL(client), func(o *dynamodb.Options) {
		o.HTTPClient = p.http // no time-out: a parked request waits for its turn
		o.Retryer = dynamo.Retryer(0)
	})
	return credit.NewStore(db, l.tables).WithLimits(credit.Limits{Write: time.Hour, Remove: time.Hour, Rebalance: time.Hour})
}

func (p *pool) runAll(t *testing.T, first uint64, count int) {
	began, passed := time.Now(), p.proxy.Passed()
	outcomes, odd := map[string]int{}, map[string]int{}
	var mu sync.Mutex
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, l := range p.lanes {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < int64(count) && !t.Failed(); n = next.Add(1) - 1 {
				result := p.run(t, first+uint64(n), l)
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
	t.Logf("%d writes and reads in %s", p.proxy.Passed()-passed, time.Since(began).Round(time.Millisecond))
	t.Logf("outcomes %v", outcomes)
	t.Logf("known anomalies %v", odd)
}

// worker is one process: a request, a settler or an operator.
type worker struct {
	schedule *schedule
	name     string // in the trace
	client   string // at the proxy
	started  time.Time
	run      func(ctx context.Context, store *credit.Store) (outcome string)
	life     time.Duration
	parked   *arrival
	dead     bool

	// of a request
	reservation credit.Reservation
	limited     bool // the rate limit, counted beside the reservation, says no
	fails       bool // the work fails for certain
	uncertain   bool
	sent        bool
	lost        int // attempts without a response
	outcome     string
	// of an operator
	grant *credit.Movement
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
	direct  *credit.Store
	rng     *rand.Rand
	now     atomic.Int64 // microseconds; settlers read it
	project string
	shards  int                  // that the wallet is kept in
	first   int64                // what the wallet held at the start
	days    map[string]time.Time // that have ledger entries
	loss    float64
	crash   float64
	arrive  float64 // chance of a late copy, per step

	events   chan event
	alive    []*worker // all parked, whenever the loop runs
	ghosts   int       // killed, and not ended yet
	late     []late
	requests []*worker
	grants   []*worker
	serial   int
	trace    []string
	odd      []string
	failed   bool
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
	w.t.Errorf("seed %d (replay: go test ./functions/settle -run TestFaultSchedules -v -args -schedule=%d): %s\n%s",
		w.seed, w.seed, fmt.Sprintf(format, args...), strings.Join(w.trace, "\n"))
}

func (p *pool) run(t *testing.T, seed uint64, l *lane) *schedule {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &schedule{
		t: t, seed: seed, pool: p, lane: l, rng: rng, direct: credit.NewStore(l.direct, l.tables),
		project: "p" + strconv.FormatInt(p.names.Add(1), 10),
		loss:    []float64{0, 0.05, 0.2, 0.35}[rng.IntN(4)], crash: []float64{0, 0.01, 0.05}[rng.IntN(3)],
		arrive: []float64{0.1, 0.02}[rng.IntN(2)],
		shards: []int{1, 1, 3}[rng.IntN(3)],
		days:   map[string]time.Time{}, events: make(chan event, 64), // room for every ghost
	}
	w.now.Store(time.Date(2026, 1, 2, 23, 59, 30, 0, time.UTC).UnixMicro()) // keys of two days
	defer w.close()
	total := 3 + rng.IntN(6)
	w.first = rng.Int64N(int64(total)*12 + 1)
	w.createWallet()

	for !w.failed && (len(w.requests) < total || len(w.alive) > 0 || len(w.late) > 0) {
		w.advance(time.Duration(rng.IntN(300)) * time.Millisecond)
		if w.chance(0.005) || len(w.alive) == 0 && w.chance(0.1) {
			w.advance(time.Duration(rng.IntN(8*60)) * time.Second)
		}
		w.expire()
		w.deliverLate()
		if len(w.requests) < total && w.living("request") < 4 && w.chance(0.3) {
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
	item := walletKey(w.wallet(0))
	item["balance"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(w.first, 10)}
	item["pending"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
	_, err := w.lane.direct.PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: &w.lane.tables.Wallets, Item: item})
	w.must(err)
	w.must(w.direct.AddShards(w.t.Context(), w.project, w.shards))
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
	read := slices.Contains([]string{"Scan", "GetItem", "BatchGetItem"}, a.request.Operation)
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
	w.serial++
	worker.schedule, worker.started = w, w.clock()
	worker.client = w.project + "." + strconv.Itoa(w.serial)
	w.pool.workers.Store(worker.client, worker)
	w.alive = append(w.alive, worker)
	w.note("%s starts", worker.name)
	store := w.pool.store(w.lane, worker.client)
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
	for shard := range w.shards {
		_, err := w.lane.direct.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{
			TableName: &w.lane.tables.Wallets, Key: walletKey(w.wallet(shard)),
		})
		w.must(err)
	}
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
	n := len(w.requests)
	id := fmt.Sprintf("r%d", n)
	sends := w.chance(0.5)
	worker := &worker{
		name: fmt.Sprintf("request %d", n), life: functionLife,
		reservation: credit.Reservation{
			Project: w.project, Shards: w.shards, Key: w.key(id), RequestID: id, Credits: 1 + w.rng.Int64N(20),
			Price: credit.Barcode, Environment: "production",
		},
		limited: w.chance(0.1), fails: w.chance(0.2),
	}
	if sends {
		worker.reservation.Price, worker.reservation.Irrevocable = credit.SMS, true
		worker.uncertain = w.chance(0.1)
	}
	worker.run = worker.request
	w.requests = append(w.requests, worker)
	w.start(worker)
}

// request takes the pipeline's steps with credits, one by one.
func (w *worker) request(ctx context.Context, store *credit.Store) string {
	r := w.reservation // the process's own
	switch err := store.Reserve(ctx, &r); {
	case errors.Is(err, credit.ErrInsufficientCredits):
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
		case errors.Is(err, credit.ErrSettled):
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
	switch err := store.Capture(ctx, &r, credit.Outcome{Uncertain: w.uncertain, Vendor: "vendor"}); {
	case errors.Is(err, credit.ErrSettled):
		return "settled while alive"
	case err != nil:
		return "200, capture unknown"
	}
	store.Remove(ctx, &r)
	return "200"
}

func (w *schedule) startSettler() {
	w.start(&worker{
		name: "settle", life: time.Minute,
		run: func(ctx context.Context, store *credit.Store) string {
			report, err := w.settler(store).Run(ctx)
			return fmt.Sprint(report.Settled, report.Failed, err != nil)
		},
	})
}

func (w *schedule) settler(store *credit.Store) *Settler {
	return &Settler{Store: store, Ages: testAges, AtOnce: 1, Now: w.clock, Log: telemetry.New(io.Discard, telemetry.Config{})}
}

func (w *schedule) startOperator() {
	m := &credit.Movement{
		Project: w.project, ID: w.key(fmt.Sprintf("g%d", len(w.grants))),
		Credits: 1 + w.rng.Int64N(30), Actor: "operator",
	}
	worker := &worker{
		name: fmt.Sprintf("operator %d", len(w.grants)), life: functionLife, grant: m,
		run: func(ctx context.Context, store *credit.Store) string { return fmt.Sprint(store.Grant(ctx, *m) == nil) },
	}
	w.grants = append(w.grants, worker)
	w.start(worker)
}

// state is the wallet and its ledger at rest: every worker is parked.
type state struct {
	balance int64 // of all shards
	least   int64 // of any shard
	pending map[place]int64
	entries map[place]credit.Entry
}

// place identifies a reservation and its ledger entry. A late copy may reserve in one shard for a request that went on in
// another.
type place struct {
	wallet string
	key    credit.Key
}

// entry returns the entry that charges a reservation, or any other entry of the reservation.
func (s state) entry(key credit.Key) (found credit.Entry) {
	for at, e := range s.entries {
		if at.key == key && (found.State != credit.Captured) {
			found = e
		}
	}
	return found
}

func (w *schedule) read() state {
	ctx := w.t.Context()
	number := func(v types.AttributeValue) int64 {
		n, err := strconv.ParseInt(v.(*types.AttributeValueMemberN).Value, 10, 64)
		w.must(err)
		return n
	}
	s := state{pending: map[place]int64{}, entries: map[place]credit.Entry{}}
	for shard := range w.shards {
		wallet := w.wallet(shard)
		out, err := w.lane.direct.GetItem(ctx, &dynamodb.GetItemInput{TableName: &w.lane.tables.Wallets, Key: walletKey(wallet)})
		if err != nil {
			w.fail("%v", err)
			return state{}
		}
		balance := number(out.Item["balance"])
		s.balance, s.least = s.balance+balance, min(s.least, balance)
		for key, held := range out.Item["pending"].(*types.AttributeValueMemberM).Value {
			s.pending[place{wallet, credit.Key(key)}] = number(held)
		}
	}
	for _, day := range w.days {
		entries, err := w.direct.Entries(ctx, w.project, day, day)
		w.must(err)
		for _, e := range entries {
			s.entries[place{e.Wallet, e.Key}] = e
		}
	}
	return s
}

func walletKey(wallet string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: wallet}}
}

// wallet returns the name of a shard.
func (w *schedule) wallet(shard int) string {
	if shard == 0 {
		return w.project
	}
	return w.project + "#" + strconv.Itoa(shard)
}

// key returns the key of a request or movement that begins now.
func (w *schedule) key(id string) credit.Key {
	key := credit.NewKey(w.clock(), id)
	w.days[key.Day()] = key.Time()
	return key
}

// check fails the schedule where credits are lost or invented.
func (w *schedule) check() state {
	s := w.read()
	granted := w.first
	var captured, held int64
	for _, e := range s.entries {
		switch e.State {
		case credit.Granted:
			granted += e.Credits
		case credit.Captured:
			captured += e.Credits
		}
	}
	for at, credits := range s.pending {
		if s.entries[at].State != credit.Captured {
			held += credits
		}
	}
	if s.balance+captured+held != granted || s.least < 0 {
		w.fail("balance %d + captured %d + held %d is not granted %d", s.balance, captured, held, granted)
	}
	return s
}

// finish settles to the end without faults and compares every response with its charge.
func (w *schedule) finish() {
	for _, g := range w.grants { // an operator who got no response repeats
		w.must(w.direct.Grant(w.t.Context(), *g.grant))
	}
	s := w.check()
	for _, age := range []time.Duration{testAges.Dead, testAges.Captured} {
		if len(s.pending) == 0 {
			break
		}
		w.advance(age)
		w.note("last settler")
		report, err := w.settler(w.direct).Run(w.t.Context())
		w.must(err)
		if report.Failed > 0 {
			w.fail("%d reservations cannot be settled", report.Failed)
		}
		s = w.check()
	}
	if len(s.pending) > 0 {
		w.fail("%d reservations are left after the settler", len(s.pending))
	}
	for _, r := range w.requests {
		w.judge(r, s.entry(r.reservation.Key))
	}
}

func (w *schedule) judge(r *worker, entry credit.Entry) {
	charged := entry.State == credit.Captured
	responded := r.lost < dynamo.Attempts // every call
	sends := r.reservation.Irrevocable
	refused := r.outcome == "429" || r.outcome == "500" || r.outcome == "failed"
	switch {
	case r.outcome == "settled while alive",
		r.outcome == "200" && !charged,
		r.outcome == "402" && charged,
		refused && !sends && charged:
		w.fail("%s responded %s; its entry is %q", r.name, r.outcome, entry.State)
	case charged && entry.Credits != r.reservation.Credits:
		w.fail("%s is charged %d", r.name, entry.Credits)
	case charged && entry.Actor != "" && !entry.Uncertain:
		w.fail("%s was charged by the settler and is not listed as uncertain", r.name)
	case r.outcome == "200" && entry.Uncertain != r.uncertain:
		w.fail("%s: uncertain is %t", r.name, entry.Uncertain)
	case r.outcome == "crash" && r.sent && !r.fails && !charged:
		w.fail("%s died with its message sent; its entry is %q", r.name, entry.State)
	case charged && refused && responded,
		!charged && r.outcome == "200, capture unknown" && responded:
		w.fail("%s responded %s, its entry is %q, and no call of it was lost", r.name, r.outcome, entry.State)
	case entry.State == credit.Sending:
		w.fail("%s is left as sending", r.name)
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

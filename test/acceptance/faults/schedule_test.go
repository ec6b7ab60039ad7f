package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svcapi/shared/dynamo"
	"svcapi/test/faultproxy"
)

const (
	// most is how many requests and commands of a schedule are alive at once, unless the schedule is busy.
	most = 4
	// grace is how long an actor must have been quiet to count as waiting: calls that the actor sends at once arrive
	// together.
	grace = 3 * time.Millisecond
	// busyWait bounds how long the others wait for an actor that is busy (a render, the pauses of svc).
	busyWait = 120 * time.Millisecond
	// longest is how long an attempt waits for its turn: a client gives it one second. A call that has been under way for
	// overdue goes first, too: a client gives a write a few seconds with all its pauses.
	longest = 450 * time.Millisecond
	overdue = 1500 * time.Millisecond
	// life is the age at which a live request is killed: the time of some throttled writes in turn. Settlers wait longer.
	life = 12 * time.Second
)

// actor is a running request or command.
type actor struct {
	schedule *schedule
	name     string
	kill     func()
	first    time.Time // its start

	// guarded by the schedule's lock
	parked []*arrival
	busy   time.Time // the time since which no call of the actor is parked, or of the decision on its last call
	calls  map[step]*calls
	killed bool
	ended  bool
}

// attempt is one attempt of a call.
type attempt struct {
	fault   faultproxy.Fault
	request *faultproxy.Request
	at      time.Time // of its fault
}

// responded reports that the client received a response of the service itself.
func (t attempt) responded() bool { return t.fault == faultproxy.Deliver && !t.request.GivenUp() }

// silent reports that the client got no complete response: the request or its response was dropped, or the response was
// truncated or came too late.
func (t attempt) silent() bool { return !t.responded() && !t.refused() }

// refused reports that the proxy responded for the service, in time, with a throttle or a 5xx.
func (t attempt) refused() bool {
	refusal := t.fault.Throttled() || t.fault == faultproxy.Fail || t.fault == faultproxy.FailApplied
	return refusal && !t.request.GivenUp()
}

// faulty reports that the client cannot know the effect of the attempt. A throttle that the client saw means no effect.
func (t attempt) faulty() bool {
	return !t.responded() && (!t.fault.Throttled() || t.request.GivenUp())
}

// exchange is one call of a program: attempts with one body, up to a response.
type exchange struct {
	name     string // request 3: reserve, call 2
	body     string
	began    time.Time
	throttle int  // so many attempts are throttled first
	endless  bool // the call has no time limit
	attempts []attempt
}

// open reports that no attempt has a response of the service yet, so that another attempt may follow.
func (e *exchange) open() bool { return !slices.ContainsFunc(e.attempts, attempt.responded) }

// waited returns how long the client has waited for the call so far, and how long of that the harness held its
// attempts: in the queue of the schedule, in the proxy and in the engine.
func (e *exchange) waited() (whole, held time.Duration) {
	end := e.began
	for _, t := range e.attempts {
		from, took := t.request.Held()
		held, end = held+took, from.Add(took)
	}
	return end.Sub(e.began), held
}

// lost reports that a function may have given a write up: it had as many attempts without a response as it must make,
// or the time for the write has ended, of which the harness knows how much it has used itself. Throttles and 5xx are
// repeated for as long as that time lasts.
func (e *exchange) lost() bool {
	if !e.open() || len(e.attempts) == 0 {
		return false
	}
	silent, limit := 0, dynamo.WriteTimeout-dynamo.Backoff
	for _, t := range e.attempts {
		if t.silent() {
			silent++
		}
		if t.request.GivenUp() {
			limit = dynamo.WriteTimeout - dynamo.AttemptTimeout - dynamo.Backoff
		}
	}
	whole, _ := e.waited()
	return silent >= attempts || !e.endless && whole > limit
}

// calls is the outcome of an actor's calls of one step.
type calls struct {
	attempts  int
	arrived   int // attempts, at the service, whether or not the response came back
	exchanges []*exchange
}

// some reports that any attempt of the step is as the condition says.
func (c *calls) some(is func(attempt) bool) bool {
	return slices.ContainsFunc(c.exchanges, func(e *exchange) bool { return slices.ContainsFunc(e.attempts, is) })
}

// whole returns the calls of the step as the program made them. The proxy may notice only after the next attempt that
// the client gave the previous attempt up; the two then look like two calls.
func (c *calls) whole() []*exchange {
	var all []*exchange
	for _, e := range c.exchanges {
		same := slices.IndexFunc(all, func(before *exchange) bool { return before.body == e.body && before.open() })
		if same < 0 {
			whole := *e
			whole.attempts = slices.Clone(e.attempts)
			all = append(all, &whole)
			continue
		}
		all[same].attempts = append(all[same].attempts, e.attempts...)
	}
	return all
}

// lost reports that a function may have given a write of the step up.
func (c *calls) lost() bool { return slices.ContainsFunc(c.whole(), (*exchange).lost) }

// exhausted reports that a read of the step used up a function's attempts, of which throttles and 5xx are some.
func (c *calls) exhausted() bool {
	return slices.ContainsFunc(c.whole(), func(e *exchange) bool { return e.open() && len(e.attempts) >= attempts })
}

// tooLate reports that a copy of an attempt may have arrived after the program had its response.
func (c *calls) tooLate() bool {
	return c.some(func(t attempt) bool { return t.fault == faultproxy.DropRequest })
}

// exchange is the call that an attempt belongs to, a new one where each of that body has a response.
func (c *calls) exchange(p *plan, who string, s step, r *faultproxy.Request) *exchange {
	c.attempts++
	body := canonical(r.Body)
	for _, e := range c.exchanges {
		if e.body == body && e.open() {
			return e
		}
	}
	e := &exchange{name: fmt.Sprintf("%s: %s, call %d", who, s, len(c.exchanges)+1), body: body, began: time.Now(),
		endless: p.virtual}
	if s == claim && len(c.exchanges) > 0 { // both writes of a claim have one time limit (shared/request/idempotency.go)
		e.began = c.exchanges[0].began
	}
	e.throttle = p.burst(s, e.name)
	c.exchanges = append(c.exchanges, e)
	return e
}

// canonical is a body whose members have one order: a client that repeats a call may write them in another.
func canonical(body []byte) string {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return string(body)
	}
	text, _ := json.Marshal(value) // came from JSON
	return string(text)
}

type arrival struct {
	actor   *actor
	step    step
	call    *exchange
	id      string
	at      time.Time
	request *faultproxy.Request
	fault   chan faultproxy.Fault
}

// urgent reports that the attempt must not wait any longer.
func (p *arrival) urgent() bool {
	return time.Since(p.at) > longest || time.Since(p.call.began) > overdue
}

// late is a copy of an attempt that was dropped.
type late struct {
	id      string
	step    step
	request *faultproxy.Request
	due     int // in virtual time: the turn from which the copy may arrive
}

// schedule is one running schedule. Its loop releases one waiting call at a time.
type schedule struct {
	*plan
	stage   *stage
	project string
	began   time.Time

	mu       sync.Mutex
	changed  chan struct{} // something happened
	parallel bool          // calls are decided as they come, each by itself
	calm     atomic.Bool   // the vendors respond
	alive    []*actor
	idle     []*instance // those that this schedule has used
	late     []late      // to arrive while requests live
	later    []late      // to arrive among the settlers
	counts   map[string]int
	settling map[step]*calls // of settlers
	trace    []string
	wrong    []string
	odd      []string
	tally    map[string]int
	pool     *pool
	clock    // of a schedule in virtual time
}

func newSchedule(p *plan, s *stage, pool *pool) *schedule {
	sched := &schedule{
		plan: p, stage: s, project: p.project(), began: p.begin(), pool: pool,
		changed: make(chan struct{}, 1), counts: map[string]int{}, settling: map[step]*calls{}, tally: map[string]int{},
	}
	sched.fill(sched.project)
	return sched
}

func (sched *schedule) note(format string, args ...any) {
	sched.trace = append(sched.trace,
		fmt.Sprintf("%6.3f ", sched.now().Sub(sched.began).Seconds())+fmt.Sprintf(format, args...))
}

func (sched *schedule) fail(format string, args ...any) {
	sched.mu.Lock()
	defer sched.mu.Unlock()
	sched.wrong = append(sched.wrong, fmt.Sprintf(format, args...))
}

func (sched *schedule) poke() {
	select {
	case sched.changed <- struct{}{}:
	default:
	}
}

// run runs the schedule from its first request until none is alive.
func (sched *schedule) run() {
	sched.stage.fixture.clients.Store(sched.project, sched.vendor)
	next := 0
	for {
		sched.mu.Lock()
		if wait := sched.unsettled(); wait > 0 {
			sched.mu.Unlock()
			select {
			case <-sched.changed:
			case <-time.After(wait):
			}
			continue
		}
		if len(sched.alive) == 0 && next == len(sched.order) && len(sched.late) == 0 {
			sched.parallel = true
			sched.mu.Unlock()
			break
		}
		sched.pass()
		start, copied, chosen := sched.choose(next)
		switch {
		case start:
			sched.mu.Unlock()
			sched.start(sched.order[next])
			next++
			continue
		case copied >= 0:
			l := sched.late[copied]
			sched.late = slices.Delete(sched.late, copied, copied+1)
			sched.note("%s arrives late", l.id)
			sched.mu.Unlock()
			sched.deliver(l)
			continue
		case chosen != nil:
			sched.decide(chosen)
			check := chosen.step.writes() && !sched.virtual && sched.chance(0.15, chosen.id, "check")
			sched.mu.Unlock()
			if check {
				sched.solvent()
			}
			continue
		}
		sched.mu.Unlock() // only busy actors are alive
		select {
		case <-sched.changed:
		case <-time.After(20 * time.Millisecond):
		}
	}
	if sched.virtual {
		sched.settleAll()
		return
	}
	sched.pool.put(sched.idle)
	sched.idle = nil
}

// unsettled returns the time to wait until every actor waits at a proxy or has ended; 0: none, or it takes too long.
func (sched *schedule) unsettled() time.Duration {
	now := time.Now()
	var wait time.Duration
	for _, a := range sched.alive {
		switch {
		case sched.virtual && len(a.parked) == 0:
			return time.Minute
		case sched.virtual:
			continue
		case slices.ContainsFunc(a.parked, (*arrival).urgent):
			return 0
		}
		quiet := now.Sub(a.busy)
		need := grace
		if len(a.parked) == 0 || a.expected(now) {
			need = busyWait
		}
		wait = max(wait, need-quiet)
	}
	return wait
}

// expected reports that the actor is about to repeat a lost attempt.
func (a *actor) expected(now time.Time) bool {
	for s, c := range a.calls {
		for _, e := range c.exchanges {
			if n := len(e.attempts); s != vendor && n > 0 && e.attempts[n-1].faulty() && now.Sub(e.attempts[n-1].at) < busyWait {
				return true
			}
		}
	}
	return false
}

// choose returns the next event: the next start, a late copy, or a call that waits. Each has a fixed number, drawn from
// the seed and its name; the lowest comes first. So the order is the seed's, and one call that comes a bit later in a
// replay changes nothing about the others.
func (sched *schedule) choose(next int) (start bool, copied int, chosen *arrival) {
	best := 2.0
	copied = -1
	if next < len(sched.order) && len(sched.alive) < sched.most {
		best, start = 0.6*sched.uniform("start", sched.order[next].label()), true
	}
	for i, l := range sched.late {
		if x := sched.uniform("late", l.id); x < best && (l.due <= sched.turns || len(sched.alive) == 0 && !start) {
			best, start, copied = x, false, i
		}
	}
	for _, a := range sched.alive {
		for _, p := range a.parked {
			x := sched.uniform("order", p.id)
			if !sched.virtual && p.urgent() {
				x -= 2
			}
			if x < best {
				best, start, copied, chosen = x, false, -1, p
			}
		}
	}
	return start, copied, chosen
}

// killAtWork kills an actor after a time, wherever it is then, unless it has ended.
func (sched *schedule) killAtWork(a *actor, after time.Duration) {
	time.AfterFunc(after, func() {
		sched.mu.Lock()
		defer sched.mu.Unlock()
		if !a.ended {
			sched.note("%s is killed during its work", a.name)
			sched.tally["killed at work"]++
			sched.end(a)
			sched.poke()
		}
	})
}

// arrive parks a call until the loop decides, or decides at once where the loop has ended.
func (sched *schedule) arrive(a *actor, s step, r *faultproxy.Request) faultproxy.Fault {
	sched.mu.Lock()
	if a.killed {
		sched.mu.Unlock()
		return faultproxy.DropRequest
	}
	if a.calls[s] == nil {
		a.calls[s] = &calls{}
	}
	call := a.calls[s].exchange(sched.plan, a.name, s, r)
	p := &arrival{
		actor: a, step: s, call: call, id: fmt.Sprintf("%s: %s %d", a.name, s,
			a.calls[s].attempts), at: time.Now(), request: r,
		fault: make(chan faultproxy.Fault, 1),
	}
	if len(call.attempts) < call.throttle {
		defer sched.mu.Unlock()
		return sched.throttle(p)
	}
	a.parked = append(a.parked, p)
	a.busy = p.at
	if sched.parallel {
		sched.decide(p)
	}
	sched.mu.Unlock()
	sched.poke()
	return <-p.fault
}

// decide returns the fault plan of a call. The lock is held.
func (sched *schedule) decide(p *arrival) {
	a := p.actor
	c := a.calls[p.step]
	if sched.chance(sched.crashAt(p.step), p.id, "crash") {
		sched.killAt(p, "killed there")
		return
	}
	a.parked = slices.DeleteFunc(a.parked, func(x *arrival) bool { return x == p })
	a.busy = time.Now()
	fault := sched.fault(p)
	sched.note("%s %s", p.id, fault)
	sched.tally[string(fault)]++
	if fault.Arrives() {
		c.arrived++
	}
	p.call.attempts = append(p.call.attempts, attempt{fault, p.request, a.busy})
	if fault == faultproxy.DropRequest {
		sched.keepLate(p)
	}
	if p.step == reserve && sched.crash > 0 && !sched.virtual && sched.chance(sched.crash, p.id, "at work") {
		sched.killAtWork(a, time.Duration(sched.uniform(p.id, "when")*float64(150*time.Millisecond)))
	}
	p.fault <- fault
}

// killAt kills the program of a call that waits, which may still arrive. The lock is held.
func (sched *schedule) killAt(p *arrival, how string) {
	a, arrives := p.actor, sched.chance(0.5, p.id, "arrives")
	sched.note("%s, %s; it arrives: %t", p.id, how, arrives)
	sched.tally["killed at "+string(p.step)]++
	a.parked = slices.DeleteFunc(a.parked, func(x *arrival) bool { return x == p })
	if arrives {
		a.calls[p.step].arrived++
		p.call.attempts = append(p.call.attempts, attempt{faultproxy.DropResponse, p.request, time.Now()})
		if err := p.request.Deliver(context.Background()); err != nil {
			sched.wrong = append(sched.wrong, err.Error())
		}
		p.fault <- faultproxy.DropRequest
	} else {
		sched.drop(p)
	}
	sched.end(a)
}

// throttle returns the response to an attempt within a burst. The lock is held.
func (sched *schedule) throttle(p *arrival) faultproxy.Fault {
	fault := sched.shape(p)
	p.call.attempts = append(p.call.attempts, attempt{fault, p.request, p.at})
	if len(p.call.attempts) == 1 {
		sched.note("%s meets %d throttles, the first %q", p.call.name, p.call.throttle, fault)
	}
	sched.tally[fmt.Sprintf("%s, in a burst", fault)]++
	return fault
}

// shape draws the error of a throttled attempt.
func (sched *schedule) shape(p *arrival) faultproxy.Fault {
	all := faultproxy.Throttles(p.request.Operation)
	return all[int(sched.uniform(p.id, "shape")*float64(len(all)))]
}

// crashAt is the chance that a process is killed at a step.
func (sched *schedule) crashAt(s step) float64 {
	if s == sched.lossy {
		return 4 * sched.crash
	}
	return sched.crash
}

// fault draws the fault plan of a call.
func (sched *schedule) fault(p *arrival) faultproxy.Fault {
	if p.step == sched.planted {
		return faultproxy.Refuse
	}
	x := sched.uniform(p.id, "fate") // another label would change the schedule of every seed
	if p.step == sched.lossy && p.step != vendor {
		switch {
		case x < 0.55:
			return faultproxy.DropRequest
		case x < 0.75:
			return faultproxy.DropResponse
		}
		x = (x - 0.75) * 4
	}
	type band struct {
		fault faultproxy.Fault
		share float64
	}
	bands := []band{
		{faultproxy.DropRequest, sched.loss}, {faultproxy.DropResponse,
			0.6 * sched.loss}, {faultproxy.CutResponse, 0.2 * sched.loss},
		{sched.shape(p), sched.refusal / 2}, {faultproxy.Fail,
			sched.refusal / 4}, {faultproxy.FailApplied, sched.refusal / 4},
	}
	if p.step == vendor || p.step == question {
		bands = bands[:0]
		for _, f := range []faultproxy.Fault{faultproxy.DropRequest, faultproxy.DropResponse, faultproxy.CutResponse,
			faultproxy.Fail, faultproxy.FailApplied} {
			bands = append(bands, band{f, sched.outage / 5})
		}
	}
	for _, b := range bands {
		if x < b.share {
			return b.fault
		}
		x -= b.share
	}
	return faultproxy.Deliver
}

// keepLate keeps some of the dropped attempts, to arrive later: while requests live, or among the settlers.
func (sched *schedule) keepLate(p *arrival) {
	if !p.step.writes() || !sched.chance(sched.lateCopies, p.id, "late") {
		return
	}
	sched.tally["late"]++
	due := 0
	if sched.virtual {
		due = sched.turns + int(sched.uniform("due", p.id)*sched.uniform("far", p.id)*mostTurns)
	}
	if l := (late{p.id, p.step, p.request, due}); !sched.virtual && (sched.parallel || sched.chance(0.6, p.id, "later")) {
		sched.later = append(sched.later, l)
	} else {
		sched.late = append(sched.late, l)
	}
}

func (sched *schedule) deliver(l late) {
	if err := l.request.Deliver(context.Background()); err != nil {
		sched.fail("deliver %s: %v", l.id, err)
	}
}

// end kills an actor. Its pending calls are lost. The lock is held.
func (sched *schedule) end(a *actor) {
	a.killed = true
	sched.gone(a)
	a.kill()
}

// sentClaim reports that the actor wrote the claim of that owner. The lock is held.
func (a *actor) sentClaim(owner string) bool {
	c := a.calls[claim]
	return c != nil && owner != "" &&
		slices.ContainsFunc(c.exchanges, func(e *exchange) bool { return strings.Contains(e.body, owner) })
}

// owner returns the mark of the claim that holds a key, and "" where no claim does.
func (sched *schedule) owner(key string) (string, error) {
	item, err := sched.stage.transient(sched.keyID(key))
	if item["freed"] != nil {
		return "", nil
	}
	return dynamo.TextOf(item["o"]), err
}

// keyID returns the partition key of an Idempotency-Key's item.
func (sched *schedule) keyID(key string) string {
	return "idem#" + sched.project + "#development#" + key
}

// drop loses an attempt on its way. The lock is held.
func (sched *schedule) drop(p *arrival) {
	p.call.attempts = append(p.call.attempts, attempt{faultproxy.DropRequest, p.request, time.Now()})
	sched.keepLate(p)
	p.fault <- faultproxy.DropRequest
}

// gone removes an actor from the live actors. The client has given up an attempt that still waits. The lock is
// held.
func (sched *schedule) gone(a *actor) {
	for _, p := range a.parked {
		sched.note("%s is lost with its program", p.id)
		sched.drop(p)
	}
	a.parked = nil
	a.ended = true
	sched.alive = slices.DeleteFunc(sched.alive, func(x *actor) bool { return x == a })
}

// solvent checks that the balance is not negative at this moment.
func (sched *schedule) solvent() {
	balance, err := sched.stage.credits.Balance(context.Background(), sched.project)
	if err != nil || balance < 0 {
		sched.fail("while requests run the balance is %d, %v", balance, err)
	}
}

func (sched *schedule) newActor(name string, kill func()) *actor {
	a := &actor{schedule: sched, name: name, first: sched.now(), busy: time.Now(), calls: map[step]*calls{}, kill: kill}
	sched.mu.Lock()
	defer sched.mu.Unlock()
	sched.alive = append(sched.alive, a)
	sched.note("%s starts", name)
	return a
}

// start begins a request or a command and returns at once.
func (sched *schedule) start(s starter) (done chan struct{}) {
	done = make(chan struct{})
	if sched.virtual {
		sched.startVirtual(s)
		return nil
	}
	switch s := s.(type) {
	case *request:
		i, err := sched.instance(s.op.function)
		if err != nil {
			sched.fail("start: %v", err)
			close(done)
			return done
		}
		s.actor = sched.newActor(s.label(), i.kill)
		i.actor.Store(s.actor)
		sched.killAtWork(s.actor, life)
		go func() {
			defer close(done)
			sched.send(s, i)
		}()
	case *command:
		go func() {
			defer close(done)
			sched.command(s, true)
		}()
		sched.waitFor(s.label())
	}
	return done
}

// waitFor waits until a command's process has started.
func (sched *schedule) waitFor(name string) {
	for range 200 {
		sched.mu.Lock()
		there := slices.ContainsFunc(sched.alive, func(a *actor) bool { return a.name == name }) ||
			sched.counts["ended "+name] > 0
		sched.mu.Unlock()
		if there {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// instance returns an unused process, preferably a process that has served this project before.
func (sched *schedule) instance(function string) (*instance, error) {
	sched.mu.Lock()
	for at, i := range sched.idle {
		if i.function == function {
			sched.idle = slices.Delete(sched.idle, at, at+1)
			sched.mu.Unlock()
			return i, nil
		}
	}
	sched.mu.Unlock()
	return sched.pool.take(function)
}

// response is a client's response.
type response struct {
	status   int
	id       string // of the request
	message  string
	replayed bool
	data     string
	killed   bool // there was no response
	took     time.Duration
}

// accessLog keeps Lambda's request ID of the newest line of a gateway's log.
type accessLog struct{ invocation atomic.Pointer[string] }

// Write implements io.Writer.
func (l *accessLog) Write(line []byte) (int, error) {
	var of struct {
		ID string `json:"lambda_request_id"`
	}
	if err := json.Unmarshal(line, &of); err != nil {
		return 0, err
	}
	if of.ID != "" {
		l.invocation.Store(&of.ID)
	}
	return len(line), nil
}

// ask sends a client's request through the gateway of a function's process.
func (i *instance) ask(project string, r *request) response {
	in := httptest.NewRequest(http.MethodPost, r.op.path, strings.NewReader(r.body))
	in.Header.Set("Content-Type", "application/json")
	in.Header.Set("X-Api-Key", clientID(project))
	in.Header.Set("X-Api-Secret", clientSecret)
	if r.key != "" {
		in.Header.Set("Idempotency-Key", r.key)
	}
	out := httptest.NewRecorder()
	i.api.ServeHTTP(out, in)
	a := response{
		status: out.Code, id: out.Header().Get("X-Svc-Request-Id"),
		replayed: out.Header().Get("Idempotency-Replayed") == "true",
	}
	if id := i.access.invocation.Load(); id != nil { // a response of the gateway itself has the gateway's ID
		a.id = *id
	}
	var envelope struct {
		Data  json.RawMessage
		Error struct{ Message string }
	}
	if json.Unmarshal(out.Body.Bytes(), &envelope) == nil {
		a.message, a.data = envelope.Error.Message, string(envelope.Data)
	}
	return a
}

// send sends a request of the schedule, records its response, and waits for the work after the response. The process
// may be killed in either part.
func (sched *schedule) send(r *request, i *instance) {
	a := i.ask(sched.project, r)
	sched.mu.Lock()
	// Where the process was killed, a 5xx may be the gateway's.
	a.killed, a.took = r.actor.killed && a.status >= 500, time.Since(r.actor.first)
	r.response = a
	if !a.killed {
		sched.note("%s returned %d %s", r.label(), a.status, a.message)
	}
	sched.mu.Unlock()
	if err := i.host.AwaitIdle(context.Background(), i.function); err != nil {
		sched.fail("%s: %v", r.label(), err)
	}
	sched.mu.Lock()
	defer sched.mu.Unlock()
	i.actor.Store(nil)
	switch {
	case !r.actor.killed:
		sched.gone(r.actor)
		sched.idle = append(sched.idle, i)
	case !a.killed:
		sched.note("%s was killed after its response", r.label())
		sched.tally["killed after the response"]++
	}
	sched.poke()
}

// vendor decides about a call to a vendor.
func (sched *schedule) vendor(r *faultproxy.Request) faultproxy.Fault {
	switch asks := strings.HasSuffix(r.Operation, "/check-transaction"); {
	case strings.HasPrefix(r.Operation, "GET /twilio/"): // among all schedules' sends to one number, a search says nothing
		return faultproxy.Fail
	case strings.HasSuffix(r.Operation, "/user/login"), asks && sched.calm.Load():
		return faultproxy.Deliver
	case asks:
		fault, _ := sched.visit(question, r) // no program dies there: the resolver has written nothing since
		return fault
	}
	token := tokenOf(r.Operation + " " + string(r.Body))
	sched.mu.Lock()
	var callers []*request
	for _, request := range sched.requests {
		if request.token == token && request.actor != nil {
			callers = append(callers, request)
		}
	}
	sched.mu.Unlock()
	var owner string
	// with one key: only the request that holds the key may call, also one that has been killed since
	if len(callers) > 1 {
		var err error
		if owner, err = sched.owner(callers[0].key); err != nil {
			sched.fail("owner of %s: %v", callers[0].key, err)
		}
	}
	sched.mu.Lock()
	at := slices.IndexFunc(callers, func(c *request) bool { return len(callers) == 1 || c.actor.sentClaim(owner) })
	ended := at < 0 || callers[at].actor.ended
	sched.mu.Unlock()
	if ended { // its process was killed
		return faultproxy.DropRequest
	}
	return sched.arrive(callers[at].actor, vendor, r)
}

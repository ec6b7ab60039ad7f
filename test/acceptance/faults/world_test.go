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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
	"svcapi/shared/awsclient"
	"svcapi/test/faultproxy"
)

const (
	// most is how many requests and commands of a schedule are alive at once.
	most = 4
	// grace is how long an actor must have been quiet to count as waiting: what it sends at once arrives together.
	grace = 3 * time.Millisecond
	// patience bounds how long the others wait for an actor that is busy (a render, the pauses of svc).
	patience = 120 * time.Millisecond
	// longest is how long an attempt waits for its turn: a client gives it one second. A call that has been under way for
	// overdue goes first, too: a client gives a write a few seconds with all its pauses.
	longest = 450 * time.Millisecond
	overdue = 1500 * time.Millisecond
	// life is when a request is killed that still lives: some writes in turn that are throttled. Settlers are set to more.
	life = 12 * time.Second
)

// actor is a request or a command at work: something that calls DynamoDB and dies.
type actor struct {
	world *world
	name  string
	kill  func()
	first time.Time // its start

	// guarded by the world's lock
	parked []*arrival
	busy   time.Time // since when nothing of it is parked, or since its last call was decided
	calls  map[step]*calls
	killed bool
	ended  bool
}

// attempt is one attempt of a call.
type attempt struct {
	fate    faultproxy.Fate
	request *faultproxy.Request
	at      time.Time // of its fate
}

// answered reports that the client received a response of the service itself.
func (t attempt) answered() bool { return t.fate == faultproxy.Deliver && !t.request.GivenUp() }

// silent reports that the client got no complete response: the request or its response was dropped, or the response was
// truncated or came too late.
func (t attempt) silent() bool { return !t.answered() && !t.refused() }

// refused reports that the proxy responded for the service, in time, with a throttle or a 5xx.
func (t attempt) refused() bool {
	refusal := t.fate.Throttled() || t.fate == faultproxy.Fail || t.fate == faultproxy.FailApplied
	return refusal && !t.request.GivenUp()
}

// faulty reports that the client cannot know what the attempt did. A throttle that the client saw says that it did nothing.
func (t attempt) faulty() bool {
	return !t.answered() && (!t.fate.Throttled() || t.request.GivenUp())
}

// exchange is one call of a program: attempts with one body, up to a response.
type exchange struct {
	name     string // request 3: reserve, call 2
	body     string
	began    time.Time
	throttle int // so many attempts are throttled first
	attempts []attempt
}

// open reports that no attempt has a response of the service yet, so that another attempt may follow.
func (e *exchange) open() bool { return !slices.ContainsFunc(e.attempts, attempt.answered) }

// lost reports that a function may have given a write up: it had as many attempts without a response as it must make, or
// the time for the write has ended because an attempt took its whole second. Throttles and 5xx are repeated for as long as
// that time lasts, which is more than any schedule has of them.
func (e *exchange) lost() bool {
	if !e.open() || len(e.attempts) == 0 {
		return false
	}
	silent, slow := 0, false
	for _, t := range e.attempts {
		if t.silent() {
			silent++
		}
		slow = slow || t.request.GivenUp()
	}
	took := e.attempts[len(e.attempts)-1].at.Sub(e.began)
	return silent >= attempts || slow && took > awsclient.WriteTimeout-awsclient.AttemptTimeout-awsclient.Backoff
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

// whole are the calls of the step as the program made them. The proxy may notice only after the next attempt has come
// that the client gave the one before up; the two then look like two calls.
func (c *calls) whole() []*exchange {
	var all []*exchange
	for _, e := range c.exchanges {
		same := slices.IndexFunc(all, func(before *exchange) bool { return before.body == e.body && before.open() })
		if same < 0 {
			all = append(all, &exchange{body: e.body, began: e.began, attempts: slices.Clone(e.attempts)})
			continue
		}
		all[same].attempts = append(all[same].attempts, e.attempts...)
	}
	return all
}

// lost reports that a function may have given a write of the step up.
func (c *calls) lost() bool { return slices.ContainsFunc(c.whole(), (*exchange).lost) }

// unanswered reports that a read of the step used up a function's attempts, of which throttles and 5xx are some.
func (c *calls) unanswered() bool {
	return slices.ContainsFunc(c.whole(), func(e *exchange) bool { return e.open() && len(e.attempts) >= attempts })
}

// tooLate reports that a copy of an attempt may have arrived after the program had its response.
func (c *calls) tooLate() bool {
	return c.some(func(t attempt) bool { return t.fate == faultproxy.DropRequest })
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
	e := &exchange{name: fmt.Sprintf("%s: %s, call %d", who, s, len(c.exchanges)+1), body: body, began: time.Now()}
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
	fate    chan faultproxy.Fate
}

// urgent reports that the attempt must not wait any longer.
func (p *arrival) urgent() bool {
	return time.Since(p.at) > longest || time.Since(p.call.began) > overdue
}

// late is a copy of an attempt that was dropped.
type late struct {
	id      string
	request *faultproxy.Request
}

// world is one schedule at work. Its loop lets one waiting call go at a time.
type world struct {
	*plan
	stage   *stage
	project string
	began   time.Time

	mu       sync.Mutex
	changed  chan struct{} // something happened
	parallel bool          // calls are decided as they come, each by itself
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
}

func newWorld(p *plan, s *stage, pool *pool) *world {
	w := &world{
		plan: p, stage: s, project: fmt.Sprintf("seed-%d", p.seed), began: time.Now(), pool: pool,
		changed: make(chan struct{}, 1), counts: map[string]int{}, settling: map[step]*calls{}, tally: map[string]int{},
	}
	w.fill(w.project)
	return w
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%6.3f ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func (w *world) poke() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// run runs the schedule from its first request until none is alive.
func (w *world) run() {
	w.stage.rig.clients.Store(w.project, w.vendor)
	next := 0
	for {
		w.mu.Lock()
		if wait := w.unsettled(); wait > 0 {
			w.mu.Unlock()
			select {
			case <-w.changed:
			case <-time.After(wait):
			}
			continue
		}
		if len(w.alive) == 0 && next == len(w.order) && len(w.late) == 0 {
			w.parallel = true
			w.mu.Unlock()
			break
		}
		start, copied, chosen := w.choose(next)
		switch {
		case start:
			w.mu.Unlock()
			w.start(w.order[next])
			next++
			continue
		case copied >= 0:
			l := w.late[copied]
			w.late = slices.Delete(w.late, copied, copied+1)
			w.note("%s arrives late", l.id)
			w.mu.Unlock()
			w.deliver(l)
			continue
		case chosen != nil:
			w.decide(chosen)
			check := chosen.step.writes() && w.chance(0.15, chosen.id, "check")
			w.mu.Unlock()
			if check {
				w.solvent()
			}
			continue
		}
		w.mu.Unlock() // only busy ones are alive
		select {
		case <-w.changed:
		case <-time.After(20 * time.Millisecond):
		}
	}
	w.pool.put(w.idle)
	w.idle = nil
}

// unsettled returns the time to wait until every actor waits at a proxy or has ended; 0: none, or it takes too long.
func (w *world) unsettled() time.Duration {
	now := time.Now()
	var wait time.Duration
	for _, a := range w.alive {
		if slices.ContainsFunc(a.parked, (*arrival).urgent) {
			return 0
		}
		quiet := now.Sub(a.busy)
		need := grace
		if len(a.parked) == 0 || a.expected(now) {
			need = patience
		}
		wait = max(wait, need-quiet)
	}
	return wait
}

// expected reports that the actor is about to repeat an attempt that was lost.
func (a *actor) expected(now time.Time) bool {
	for s, c := range a.calls {
		for _, e := range c.exchanges {
			if n := len(e.attempts); s != vendor && n > 0 && e.attempts[n-1].faulty() && now.Sub(e.attempts[n-1].at) < patience {
				return true
			}
		}
	}
	return false
}

// choose picks what happens next: the next start, a late copy, or a call that waits. Each has a fixed number, drawn from the
// seed and its name; the lowest comes first. So the order is the seed's, and one call that comes a bit later in a replay
// changes nothing about the others.
func (w *world) choose(next int) (start bool, copied int, chosen *arrival) {
	best := 2.0
	copied = -1
	if next < len(w.order) && len(w.alive) < most {
		best, start = 0.6*w.uniform("start", w.order[next].label()), true
	}
	for i, l := range w.late {
		if x := w.uniform("late", l.id); x < best {
			best, start, copied = x, false, i
		}
	}
	for _, a := range w.alive {
		for _, p := range a.parked {
			x := w.uniform("order", p.id)
			if p.urgent() {
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
func (w *world) killAtWork(a *actor, after time.Duration) {
	time.AfterFunc(after, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !a.ended {
			w.note("%s is killed at its work", a.name)
			w.tally["killed at work"]++
			w.end(a)
			w.poke()
		}
	})
}

// arrive parks a call until the loop decides, or decides at once where the loop has ended.
func (w *world) arrive(a *actor, s step, r *faultproxy.Request) faultproxy.Fate {
	w.mu.Lock()
	if a.killed {
		w.mu.Unlock()
		return faultproxy.DropRequest
	}
	if a.calls[s] == nil {
		a.calls[s] = &calls{}
	}
	call := a.calls[s].exchange(w.plan, a.name, s, r)
	p := &arrival{
		actor: a, step: s, call: call, id: fmt.Sprintf("%s: %s %d", a.name, s, a.calls[s].attempts), at: time.Now(), request: r,
		fate: make(chan faultproxy.Fate, 1),
	}
	if len(call.attempts) < call.throttle {
		defer w.mu.Unlock()
		return w.throttle(p)
	}
	a.parked = append(a.parked, p)
	a.busy = p.at
	if w.parallel {
		w.decide(p)
	}
	w.mu.Unlock()
	w.poke()
	return <-p.fate
}

// decide returns the fault plan of a call. The lock is held.
func (w *world) decide(p *arrival) {
	a := p.actor
	a.parked = slices.DeleteFunc(a.parked, func(x *arrival) bool { return x == p })
	a.busy = time.Now()
	c := a.calls[p.step]
	if w.chance(w.crashAt(p.step), p.id, "crash") {
		arrives := w.chance(0.5, p.id, "arrives")
		w.note("%s, killed there; it arrives: %t", p.id, arrives)
		w.tally["killed at "+string(p.step)]++
		if arrives {
			c.arrived++
			p.call.attempts = append(p.call.attempts, attempt{faultproxy.DropAnswer, p.request, a.busy})
			if err := p.request.Deliver(context.Background()); err != nil {
				w.wrong = append(w.wrong, err.Error())
			}
			p.fate <- faultproxy.DropRequest
		} else {
			w.drop(p)
		}
		w.end(a)
		return
	}
	fate := w.fate(p)
	w.note("%s %s", p.id, fate)
	w.tally[string(fate)]++
	if fate.Arrives() {
		c.arrived++
	}
	p.call.attempts = append(p.call.attempts, attempt{fate, p.request, a.busy})
	if fate == faultproxy.DropRequest {
		w.keepLate(p)
	}
	if p.step == reserve && w.crash > 0 && w.chance(w.crash, p.id, "at work") {
		w.killAtWork(a, time.Duration(w.uniform(p.id, "when")*float64(150*time.Millisecond)))
	}
	p.fate <- fate
}

// throttle returns the response to an attempt within a burst. The lock is held.
func (w *world) throttle(p *arrival) faultproxy.Fate {
	fate := w.shape(p)
	p.call.attempts = append(p.call.attempts, attempt{fate, p.request, p.at})
	if len(p.call.attempts) == 1 {
		w.note("%s meets %d throttles, the first %q", p.call.name, p.call.throttle, fate)
	}
	w.tally[fmt.Sprintf("%s, in a burst", fate)]++
	return fate
}

// shape draws the error of a throttled attempt.
func (w *world) shape(p *arrival) faultproxy.Fate {
	all := faultproxy.Throttles(p.request.Operation)
	return all[int(w.uniform(p.id, "shape")*float64(len(all)))]
}

// crashAt is the chance that a process is killed at a step.
func (w *world) crashAt(s step) float64 {
	if s == w.sore {
		return 4 * w.crash
	}
	return w.crash
}

// fate draws the fault plan of a call.
func (w *world) fate(p *arrival) faultproxy.Fate {
	x := w.uniform(p.id, "fate")
	if p.step == w.sore && p.step != vendor {
		switch {
		case x < 0.55:
			return faultproxy.DropRequest
		case x < 0.75:
			return faultproxy.DropAnswer
		}
		x = (x - 0.75) * 4
	}
	bands := []struct {
		fate  faultproxy.Fate
		share float64
	}{
		{faultproxy.DropRequest, w.loss}, {faultproxy.DropAnswer, 0.6 * w.loss}, {faultproxy.CutAnswer, 0.2 * w.loss},
		{w.shape(p), w.refusal / 2}, {faultproxy.Fail, w.refusal / 4}, {faultproxy.FailApplied, w.refusal / 4},
	}
	if p.step == vendor {
		bands = bands[:0]
		for _, f := range []faultproxy.Fate{faultproxy.DropRequest, faultproxy.DropAnswer, faultproxy.CutAnswer, faultproxy.Fail, faultproxy.FailApplied} {
			bands = append(bands, struct {
				fate  faultproxy.Fate
				share float64
			}{f, w.outage / 5})
		}
	}
	for _, b := range bands {
		if x < b.share {
			return b.fate
		}
		x -= b.share
	}
	return faultproxy.Deliver
}

// keepLate keeps some of what was dropped on its way, to arrive later: while requests live, or among the settlers.
func (w *world) keepLate(p *arrival) {
	if !p.step.writes() || !w.chance(w.tardy, p.id, "late") {
		return
	}
	w.tally["late"]++
	if l := (late{p.id, p.request}); w.parallel || w.chance(0.6, p.id, "later") {
		w.later = append(w.later, l)
	} else {
		w.late = append(w.late, l)
	}
}

func (w *world) deliver(l late) {
	if err := l.request.Deliver(context.Background()); err != nil {
		w.fail("deliver %s: %v", l.id, err)
	}
}

// end kills an actor. What it has under way is lost. The lock is held.
func (w *world) end(a *actor) {
	a.killed = true
	w.gone(a)
	a.kill()
}

// sentClaim reports that the actor made the claim of that owner. The lock is held.
func (a *actor) sentClaim(owner string) bool {
	c := a.calls[claim]
	return c != nil && owner != "" && slices.ContainsFunc(c.exchanges, func(e *exchange) bool { return strings.Contains(e.body, owner) })
}

// owner returns the mark of the claim that holds a key, and "" where no claim does.
func (w *world) owner(key string) (string, error) {
	out, err := w.stage.rig.direct.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName:      aws.String(w.stage.table("transient")),
		Key:            map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: w.keyID(key)}},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return "", err
	}
	return attr.TextOf(out.Item["o"]), nil
}

// keyID returns the partition key of an Idempotency-Key's item.
func (w *world) keyID(key string) string { return "idem#" + w.project + "#development#" + key }

// drop loses an attempt on its way. The lock is held.
func (w *world) drop(p *arrival) {
	p.call.attempts = append(p.call.attempts, attempt{faultproxy.DropRequest, p.request, time.Now()})
	w.keepLate(p)
	p.fate <- faultproxy.DropRequest
}

// gone takes an actor out of those alive. An attempt that still waits is one that its client has given up. The lock is
// held.
func (w *world) gone(a *actor) {
	for _, p := range a.parked {
		w.note("%s is lost with its program", p.id)
		w.drop(p)
	}
	a.parked = nil
	a.ended = true
	w.alive = slices.DeleteFunc(w.alive, func(x *actor) bool { return x == a })
}

// solvent: the balance is never negative, not for a moment.
func (w *world) solvent() {
	balance, err := w.stage.credits.Balance(context.Background(), w.project)
	if err != nil || balance < 0 {
		w.fail("in the midst the balance is %d, %v", balance, err)
	}
}

func (w *world) newActor(name string, kill func()) *actor {
	a := &actor{world: w, name: name, first: time.Now(), busy: time.Now(), calls: map[step]*calls{}, kill: kill}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive = append(w.alive, a)
	w.note("%s starts", name)
	return a
}

// start begins a request or a command and returns at once.
func (w *world) start(s starter) (done chan struct{}) {
	done = make(chan struct{})
	switch s := s.(type) {
	case *request:
		i, err := w.instance(s.op.function)
		if err != nil {
			w.fail("start: %v", err)
			close(done)
			return done
		}
		s.actor = w.newActor(s.label(), i.kill)
		i.actor.Store(s.actor)
		w.killAtWork(s.actor, life)
		go func() {
			defer close(done)
			w.send(s, i)
		}()
	case *command:
		go func() {
			defer close(done)
			w.command(s, true)
		}()
		w.waitFor(s.label())
	}
	return done
}

// waitFor waits until a command's process is there.
func (w *world) waitFor(name string) {
	for range 200 {
		w.mu.Lock()
		there := slices.ContainsFunc(w.alive, func(a *actor) bool { return a.name == name }) || w.counts["ended "+name] > 0
		w.mu.Unlock()
		if there {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// instance returns an unused process, one that has served this project before if there is one.
func (w *world) instance(function string) (*instance, error) {
	w.mu.Lock()
	for at, i := range w.idle {
		if i.function == function {
			w.idle = slices.Delete(w.idle, at, at+1)
			w.mu.Unlock()
			return i, nil
		}
	}
	w.mu.Unlock()
	return w.pool.take(function)
}

// answer is a client's response.
type answer struct {
	status   int
	id       string // of the request
	code     string
	message  string
	replayed bool
	data     string
	killed   bool // there was none
	took     time.Duration
}

// ask sends a client's request through the gateway of a function's process.
func (i *instance) ask(project string, r *request) answer {
	in := httptest.NewRequest(http.MethodPost, r.op.path, strings.NewReader(r.body))
	in.Header.Set("Content-Type", "application/json")
	in.Header.Set("X-Api-Key", clientID(project))
	in.Header.Set("X-Api-Secret", clientSecret)
	if r.key != "" {
		in.Header.Set("Idempotency-Key", r.key)
	}
	out := httptest.NewRecorder()
	i.api.ServeHTTP(out, in)
	a := answer{
		status: out.Code, id: out.Header().Get("X-Svc-Request-Id"),
		replayed: out.Header().Get("Idempotency-Replayed") == "true",
	}
	var envelope struct {
		Data  json.RawMessage
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(out.Body.Bytes(), &envelope) == nil {
		a.code, a.message, a.data = envelope.Error.Code, envelope.Error.Message, string(envelope.Data)
	}
	return a
}

// send sends a request of the schedule, records its response, and waits for the work after the response. The process may
// be killed in either part.
func (w *world) send(r *request, i *instance) {
	a := i.ask(w.project, r)
	w.mu.Lock()
	// Where the process was killed, a 5xx may be the gateway's.
	a.killed, a.took = r.actor.killed && a.status >= 500, time.Since(r.actor.first)
	r.answer = a
	if !a.killed {
		w.note("%s is answered %d %s", r.label(), a.status, a.message)
	}
	w.mu.Unlock()
	if err := i.host.AwaitIdle(context.Background(), i.function); err != nil {
		w.fail("%s: %v", r.label(), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i.actor.Store(nil)
	switch {
	case !r.actor.killed:
		w.gone(r.actor)
		w.idle = append(w.idle, i)
	case !a.killed:
		w.note("%s was killed after its answer", r.label())
		w.tally["killed after the answer"]++
	}
	w.poke()
}

// vendor decides about a call to a vendor.
func (w *world) vendor(r *faultproxy.Request) faultproxy.Fate {
	token := tokenOf(r.Operation + " " + string(r.Body))
	w.mu.Lock()
	var callers []*request
	for _, request := range w.requests {
		if request.token == token && request.actor != nil && !request.actor.ended {
			callers = append(callers, request)
		}
	}
	w.mu.Unlock()
	var mine *actor
	if len(callers) > 0 {
		mine = callers[0].actor
	}
	if len(callers) > 1 { // with one key: only the one that holds the key may call
		owner, err := w.owner(callers[0].key)
		if err != nil {
			w.fail("owner of %s: %v", callers[0].key, err)
		}
		w.mu.Lock()
		for _, caller := range callers {
			if caller.actor.sentClaim(owner) {
				mine = caller.actor
			}
		}
		w.mu.Unlock()
	}
	if mine == nil {
		return faultproxy.DropRequest // its process was killed
	}
	return w.arrive(mine, vendor, r)
}

package lambda

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"svcapi/local/jail"
	"svcapi/local/template"
)

// event waits in a pool's queue, then runs in one instance.
type event struct {
	id      string
	payload []byte
	done    chan Result // takes the first result; later ones are dropped
	leave   func()      // returns its place in the account's concurrency, once

	streams  bool // the caller takes the response as a stream
	extended bool // an extension has the event, too

	began    time.Time // the zero time before an instance has the event
	reported sync.Once // the platform has written how the run failed
}

// delivery is an event on its way into an instance.
type delivery struct {
	*event
	deadline time.Time
	trace    string
}

// finish gives the result to the caller of the event. The event keeps its place in the account's concurrency while an
// extension works after the response.
func (e *event) finish(result Result) {
	if !e.extended {
		e.leave()
	}
	e.deliver(result)
}

// deliver gives the result to the caller of the event, unless the event has one.
func (e *event) deliver(result Result) {
	select {
	case e.done <- result:
	default:
	}
}

// The types of the errors of a process that took too long, and of one that ended.
const (
	timedOut  = "Sandbox.Timedout"
	exitError = "Runtime.ExitError"
)

// report writes how a run failed, once.
func (p *pool) report(e *event, kind string) {
	e.reported.Do(func() { p.failed("runtimeDone", "report", kind, e.began, map[string]any{"requestId": e.id}) })
}

// failed writes the platform's two events of a run or an init that failed: a time-out by its status, anything else by
// the type of the error, too (aws-lambda-runtime-interface-emulator, interop.BuildStatusFromError). No event has a
// message.
func (p *pool) failed(done, report, kind string, began time.Time, r map[string]any) {
	if r["status"] = "timeout"; kind != timedOut {
		r["status"], r["errorType"] = "error", kind
	}
	p.output.platform(done, r)
	took := 0.0 // milliseconds
	if !began.IsZero() {
		took = float64(time.Since(began).Microseconds()) / 1000
	}
	metrics := map[string]any{"durationMs": took}
	if report == "report" {
		metrics["billedDurationMs"], metrics["memorySizeMB"] = math.Ceil(took), p.function.MemoryMB
	}
	r["metrics"] = metrics
	p.output.platform(report, r)
}

// failedInit writes how an init failed.
func (p *pool) failedInit(kind string, began time.Time) {
	p.failed("initRuntimeDone", "initReport", kind, began,
		map[string]any{"initializationType": "on-demand", "phase": "init"})
}

// fail finishes an event as Lambda does when a function dies or takes too long.
func (p *pool) fail(e *event, kind, message string) {
	p.report(e, kind)
	payload, _ := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message}) // strings always marshal
	e.finish(Result{Payload: payload, FunctionError: "Unhandled"})
}

// settings are those of all pools of one function.
type settings struct {
	function template.Function
	jail     *jail.Jail
	command  jail.Command
	limit    int                 // processes
	room     *semaphore.Weighted // events at once, often together with other functions
	output   *output
}

// pool is one function's processes and the events that wait for them.
type pool struct {
	settings
	tenant string // that the processes serve; empty: the function has no tenants

	mu        sync.Mutex
	queue     []*event
	idle      []*instance // frozen; the last used is used next
	instances map[*instance]bool
	starting  int // instances that have not asked for their first event
	closed    bool
}

// submit hands an event to an idle instance, or queues it for the first that is free and starts one where the limit
// allows.
func (p *pool) submit(e *event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		e.leave()
		e.finish(Result{err: ErrClosed})
		return
	}
	if n := len(p.idle); n > 0 {
		i := p.idle[n-1]
		p.idle = p.idle[:n-1]
		i.process.Continue()
		i.begin(e)
		return
	}
	p.queue = append(p.queue, e)
	p.grow()
}

// grow starts instances for queued events. The lock is held.
func (p *pool) grow() {
	for !p.closed && len(p.instances) < p.limit && p.starting < len(p.queue) {
		i, err := start(p)
		if err != nil {
			first := p.queue[0]
			p.queue = p.queue[1:]
			p.failedInit("Runtime.InvalidEntrypoint", time.Time{})
			p.fail(first, "Runtime.InvalidEntrypoint", err.Error())
			continue
		}
		p.instances[i] = true
		p.starting++
	}
}

// next notes that the runtime of an instance asks for its next event.
func (p *pool) next(i *instance) {
	p.output.take(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i.running != nil && !i.asked && !i.responded { // the runtime asks again without a response
		p.fail(i.running, "Runtime.NoResponse", "the function asked for its next event without a response to this one")
	}
	i.asked = true
	p.rest(i)
}

// rest ends the running event of an instance when the runtime and every extension have asked for their next event. The
// instance then gets a queued event, or is frozen. The lock is held.
func (p *pool) rest(i *instance) {
	if !i.asked || i.atWork() || !p.instances[i] { // or it has ended meanwhile
		return
	}
	if !i.ready {
		i.ready = true
		i.init = time.Since(i.started)
		p.starting--
	}
	i.timer.Stop()
	if i.running != nil {
		i.running.leave()
		i.running = nil
	}
	if len(p.queue) > 0 {
		e := p.queue[0]
		p.queue = p.queue[1:]
		i.begin(e)
		return
	}
	p.idle = append(p.idle, i)
	i.process.Stop()
}

// withdraw takes an event out of the queue. The result is false when the event has left the queue.
func (p *pool) withdraw(e *event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := len(p.queue)
	p.queue = slices.DeleteFunc(p.queue, func(other *event) bool { return other == e })
	return len(p.queue) < waiting
}

// ended removes an instance whose process has ended.
func (p *pool) ended(i *instance) {
	p.output.take(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	i.timer.Stop()
	delete(p.instances, i)
	p.idle = slices.DeleteFunc(p.idle, func(other *instance) bool { return other == i })
	e := i.running
	select {
	case <-i.events: // it died before it took the event: another instance can run it
		e.extended = false
		p.queue = slices.Insert(p.queue, 0, e)
		e = nil
	default:
	}
	if !i.ready {
		p.starting--
		if len(p.queue) > 0 { // the event that it was started for, or one that waits as long
			e = p.queue[0]
			p.queue = p.queue[1:]
		}
	}
	if e != nil {
		e.leave()
	}
	if p.closed {
		if e != nil {
			e.finish(Result{err: ErrClosed})
		}
		return
	}
	if !i.ready {
		p.failedInit(map[bool]string{true: timedOut, false: cmp.Or(i.initError, exitError)}[i.timedOut], i.started)
	}
	if e != nil {
		kind, message := exitError, fmt.Sprintf("Error: Runtime exited: %v", i.process.Err())
		switch {
		case i.timedOut && i.ready:
			kind, message = timedOut, fmt.Sprintf("Error: Task timed out after %.2f seconds", p.function.Timeout.Seconds())
		case i.timedOut:
			kind, message = timedOut, fmt.Sprintf("Error: init took longer than %s", initTimeout)
		}
		p.fail(e, kind, "RequestId: "+e.id+" "+message)
	}
	p.grow()
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	instances := slices.Collect(maps.Keys(p.instances))
	for _, i := range instances {
		i.process.Kill()
	}
	for _, e := range p.queue {
		e.finish(Result{err: ErrClosed})
	}
	p.queue = nil
	p.mu.Unlock()
	for _, i := range instances {
		<-i.gone
	}
}

// ErrDropped means that Lambda drops an asynchronous event.
var ErrDropped = errors.New("the event is dropped")

// How long Lambda waits before it runs such an event again (AWS Lambda Developer Guide, How Lambda handles errors and
// retries with asynchronous invocation): a minute after the first failed run and two after the second; after an event
// was throttled a second at first, and up to five minutes.
const (
	afterFailure    = time.Minute
	afterThrottle   = time.Second
	longestThrottle = 5 * time.Minute
)

// Enqueue puts an event into the function's queue, as an asynchronous invocation does, and returns. report gets the
// outcome of each run, and an error that wraps ErrDropped if the event is dropped. Enqueue has no tenant ID, and
// refuses a function with tenant isolation as Invoke does.
func (h *Host) Enqueue(function string, payload []byte, report func(Result, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	pool, err := h.find(poolKey{function: function})
	if err != nil {
		return err
	}
	h.queued.Go(func() {
		deliver(h.ending, pool.function.Asynchronous, func() (Result, error) {
			result, err := h.Invoke(h.ending, function, payload)
			if h.ending.Err() == nil {
				report(result, err)
			}
			return result, err
		}, func(err error) { report(Result{}, err) })
	})
	return nil
}

// deliver runs an event until a run succeeds, the retries are used up or the event is too old.
func deliver(ctx context.Context, rules template.Asynchronous, run func() (Result, error), dropped func(error)) {
	began, failures, pause := time.Now(), 0, afterThrottle
	for {
		result, err := run()
		var wait time.Duration
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrThrottled):
			wait, pause = pause, min(2*pause, longestThrottle)
		case err == nil && result.FunctionError == "":
			return
		default:
			failures++
			wait = time.Duration(failures) * afterFailure
		}
		if failures > rules.Retries {
			dropped(fmt.Errorf("%w after %d failed runs", ErrDropped, failures))
			return
		}
		if time.Since(began)+wait > rules.MaxAge {
			dropped(fmt.Errorf("%w: it would be older than %s", ErrDropped, rules.MaxAge))
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

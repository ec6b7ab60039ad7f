package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"svcapi/local/process"
	"svcapi/shared/books"
	"svcapi/shared/dynamo"
	"svcapi/shared/wallet"
	"svcapi/test/faultproxy"
)

// attempts is how often a function repeats a read, or a write without a response.
const attempts = dynamo.Attempts

// Ages of a lease at which a settler takes it up, in seconds. While requests live, dead is more than any lives; a
// request that begins late in a lease of several slots then reserves again. When all are dead and nothing is under way
// any more, a second is enough: a longer wait has the same result.
const (
	deadWhileLiving = "16"
	never           = "900"
	atOnce          = "1"
)

// pool holds the processes of functions that no schedule uses.
type pool struct {
	stage *stage
	mu    sync.Mutex
	free  map[string][]*instance
	all   []*instance
}

func (p *pool) take(function string) (*instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free[function]); n > 0 {
		i := p.free[function][n-1]
		p.free[function] = p.free[function][:n-1]
		return i, nil
	}
	i, err := p.stage.newInstance(function, nil, nil)
	if err == nil {
		p.all = append(p.all, i)
	}
	return i, err
}

func (p *pool) put(instances []*instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range instances {
		p.free[i.function] = append(p.free[i.function], i)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.all {
		i.kill()
	}
}

// batch is schedules that share a set of tables and one wait for the settlers' ages. Each schedule has its own project.
type batch struct {
	stage     *stage
	pool      *pool
	schedules []*schedule
	of        map[string]*schedule // by project
}

func (r *fixture) newBatch(seeds []uint64, kind planner) (*batch, error) {
	s, err := r.newStage()
	if err != nil {
		return nil, err
	}
	b := &batch{stage: s, pool: &pool{stage: s, free: map[string][]*instance{}}, of: map[string]*schedule{}}
	var group errgroup.Group
	group.SetLimit(atWork)
	for _, seed := range seeds {
		sched := newSchedule(kind(seed, s.prices), s, b.pool)
		b.schedules = append(b.schedules, sched)
		b.of[sched.project] = sched
		group.Go(func() error { return s.create(sched.project, sched.plan, sched.began) })
	}
	return b, group.Wait()
}

// atWork is how many schedules of a batch run at the same time.
const atWork = 16

// live runs the schedules, with a settler and a resolver among them.
func (b *batch) live() error {
	ctx, cancel := context.WithCancel(context.Background())
	var settling errgroup.Group
	settling.Go(func() error {
		for runs := 0; ctx.Err() == nil; {
			if err := b.settle(deadWhileLiving, true); err != nil {
				return err
			}
			if runs++; runs%4 == 0 {
				if err := b.resolve(never, true); err != nil {
					return err
				}
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return nil
	})
	b.each(func(sched *schedule) { sched.run() })
	cancel()
	return settling.Wait()
}

func (b *batch) each(do func(*schedule)) {
	var group errgroup.Group
	group.SetLimit(atWork)
	for _, sched := range b.schedules {
		group.Go(func() error { do(sched); return nil })
	}
	_ = group.Wait() // no function returns an error
}

// aftermath runs settlers, late copies, repeated requests, operators and resolvers after all requests are dead, and
// ends with an undisturbed settler and an undisturbed resolver. No message reaches its vendor any more when absence
// begins to be proof.
func (b *batch) aftermath() error {
	ripen()
	b.each(func(sched *schedule) { sched.deliverLate(0.3, other) })
	var group errgroup.Group // two settlers at once
	for range 2 {
		group.Go(func() error { return b.settle(atOnce, true) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	b.each(func(sched *schedule) {
		sched.askAgain()
		sched.deliverLate(0, vendor)
	})
	ripen()
	for range 2 { // at once, and at once with the operators
		group.Go(func() error { return b.resolve(atOnce, true) })
	}
	b.each(func(sched *schedule) {
		sched.operate()
		sched.deliverLate(0.5, other)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	ripen()
	if err := b.settle(atOnce, true); err != nil {
		return err
	}
	b.each(func(sched *schedule) { sched.deliverLate(1, other) })
	b.pool.close()
	ripen()
	// A busy machine may be too slow for some call of the settler: the next run is the remedy, as in AWS.
	for range 5 {
		if err := b.settle(atOnce, false); err != nil {
			return err
		}
		left := 0
		err := b.stage.credits.VisitPending(context.Background(), func(found wallet.Visited) error {
			left += len(found.Leases) + len(found.Unreadable)
			return nil
		})
		if err != nil {
			return err
		}
		if left == 0 {
			break // else the verdict reports the rest
		}
	}
	b.each(func(sched *schedule) { sched.calm.Store(true) })
	ripen()
	// The vendor takes two questions a second, of all batches: what twenty runs without a resolution leave, the verdict
	// reports.
	for left, idle := b.unresolved(), 0; left > 0 && idle < 20; idle++ {
		if err := b.resolve(atOnce, false); err != nil {
			return err
		}
		if now := b.unresolved(); now < left {
			left, idle = now, 0
		} else {
			time.Sleep(time.Second) // another batch has asked both questions of this second
		}
	}
	return nil
}

// unresolved returns the number of uncertain sends about which their vendor has a certain response.
func (b *batch) unresolved() (left int) {
	err := b.stage.credits.VisitUncertain(context.Background(), func(project string, _ books.Entry, err error) {
		if err == nil && b.of[project].dialog {
			left++
		}
	})
	if err != nil {
		left++
	}
	return left
}

// ripen waits until the youngest reservation is old enough for the settler.
func ripen() { time.Sleep(1100 * time.Millisecond) }

// settle runs a settler once.
func (b *batch) settle(dead string, disturbed bool) error {
	return b.program("SettleFunction", map[string]string{"SETTLE_AFTER_SECONDS": dead}, disturbed)
}

// resolve runs a resolver once. Questions about all sends of a second and more are due.
func (b *batch) resolve(absent string, disturbed bool) error {
	return b.program("SmsResolveFunction",
		map[string]string{"RESOLVE_PERIOD": "24h", "RESOLVE_FIRST": "1s", "RESOLVE_ABSENT": absent + "s"}, disturbed)
}

// program runs a scheduled function in a new process once.
func (b *batch) program(function string, environment map[string]string, disturbed bool) error {
	var i *instance
	i, err := b.stage.newInstance(function, environment, func(r *faultproxy.Request) faultproxy.Fault {
		if i.dead.Load() {
			return faultproxy.DropRequest
		}
		if !disturbed {
			return faultproxy.Deliver
		}
		c := decode(r)
		sched := b.of[c.project]
		if c.step == scan { // of all projects
			sched = b.schedules[0]
		}
		if sched == nil {
			return faultproxy.Deliver
		}
		fault, killed := sched.visit(c.step, r)
		if killed {
			i.dead.Store(true)
			go i.kill()
		}
		return fault
	})
	if err != nil {
		return err
	}
	defer i.kill()
	_, err = i.host.Invoke(context.Background(), function, []byte("{}"))
	if disturbed {
		return nil // the program may have been killed or have failed
	}
	return err
}

// visit is a settler's call on this schedule's wallet or ledger. A late copy may come just before it.
func (sched *schedule) visit(s step, r *faultproxy.Request) (fault faultproxy.Fault, killed bool) {
	sched.mu.Lock()
	defer sched.mu.Unlock()
	if sched.settling[s] == nil {
		sched.settling[s] = &calls{}
	}
	call := sched.settling[s].exchange(sched.plan, "settle", s, r)
	p := &arrival{step: s, call: call, id: fmt.Sprintf("settle: %s %d", s, sched.settling[s].attempts),
		request: r, at: time.Now()}
	if len(call.attempts) < call.throttle {
		return sched.throttle(p), false
	}
	if sched.parallel && len(sched.later) > 0 && sched.chance(0.3, p.id, "first") {
		at := int(sched.uniform(p.id, "which") * float64(len(sched.later)))
		l := sched.later[at]
		sched.later = append(sched.later[:at:at], sched.later[at+1:]...)
		sched.note("%s arrives late", l.id)
		if err := l.request.Deliver(context.Background()); err != nil {
			sched.wrong = append(sched.wrong, err.Error())
		}
	}
	fault = sched.fault(p)
	killed = sched.chance(sched.crashAt(s), p.id, "crash")
	call.attempts = append(call.attempts, attempt{fault, r, p.at})
	sched.note("%s %s, killed: %t", p.id, fault, killed)
	sched.tally["settler: "+string(fault)]++
	if fault == faultproxy.DropRequest {
		sched.keepLate(p)
	}
	if killed {
		sched.tally["settler killed"]++
		if fault == faultproxy.Deliver {
			fault = faultproxy.DropResponse
		}
	}
	return fault, killed
}

// deliverLate delivers a share of the remaining late copies, and all of a step.
func (sched *schedule) deliverLate(share float64, of step) {
	sched.mu.Lock()
	var now, still []late
	for _, l := range sched.later {
		if l.step == of || share >= 1 || sched.chance(share, l.id, fmt.Sprint(share)) {
			now = append(now, l)
			sched.note("%s arrives late", l.id)
		} else {
			still = append(still, l)
		}
	}
	sched.later = still
	sched.mu.Unlock()
	for _, l := range now {
		sched.deliver(l)
	}
}

// askAgain repeats keys after all requests are dead: some at once, and some when the dead request's claim has expired.
func (sched *schedule) askAgain() {
	seen := map[*request]bool{}
	for _, r := range sched.requests {
		first := r.first
		if first.key == "" || seen[first] || !sched.chance(0.5, first.label(), "again") {
			continue
		}
		seen[first] = true
		if sched.chance(0.8, first.label(), "aged") {
			if err := sched.age(first.key); err != nil {
				sched.fail("age %s: %v", first.key, err)
			}
		}
		again := sched.repeat(first, sched.chance(0.1, first.label(), "changed"))
		again.after = true
		sched.mu.Lock()
		sched.requests = append(sched.requests, again)
		sched.mu.Unlock()
		<-sched.start(again)
	}
	sched.pool.put(sched.idle)
	sched.idle = nil
}

// age lets two minutes pass for a claim: its time of death is the function's time-out and a minute away, and its
// request is dead already.
func (sched *schedule) age(key string) error {
	_, err := sched.stage.fixture.direct.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName:                 new(sched.stage.table("transient")),
		Key:                       dynamo.Item{"pk": dynamo.Text(sched.keyID(key))},
		UpdateExpression:          new("SET dead = dead - :ms"),
		ConditionExpression:       new("attribute_exists(dead)"),
		ExpressionAttributeValues: dynamo.Item{":ms": dynamo.Number(120_000)},
	})
	if _, refused := dynamo.ConditionFailed(err); refused {
		return nil
	}
	return err
}

// operate repeats the commands that got no response, resolves uncertain charges and refunds some others, until each
// command has a response.
func (sched *schedule) operate() {
	commands := slices.Concat(sched.commands, sched.verdicts(!sched.chance(0.15, "operate")))
	for _, c := range commands {
		for try := 0; !c.done && !c.refused; try++ {
			sched.command(c, try < 3)
		}
	}
	sched.mu.Lock()
	sched.commands = commands
	sched.mu.Unlock()
}

// verdicts returns commands about the present charges, or about the uncertain ones alone.
func (sched *schedule) verdicts(uncertain bool) []*command {
	entries, err := sched.stage.entries(sched.project, sched.began)
	if err != nil {
		sched.fail("%v", err)
	}
	var list []*command
	for _, e := range entries {
		if e.State != wallet.Captured || uncertain && !e.Uncertain || len(list) == 2 {
			continue
		}
		name := sched.nameOf(e)
		c := &command{name: "refund of " + name, state: wallet.Refunded, credits: e.Credits,
			args: []string{"credit", "refund", sched.project, string(e.Key), "--reason", "test"}}
		if e.Uncertain {
			verdict := "--refund"
			if sched.chance(0.5, name, "verdict") {
				verdict, c.state = "--confirm", ""
			}
			c.name = "verdict on " + name
			c.args = []string{"sms", "uncertain", "resolve", sched.project, string(e.Key), verdict, "--reason", "test"}
		}
		if sched.chance(0.6, name, "operator") {
			list = append(list, c)
		}
	}
	return list
}

// command runs the compiled svc once.
func (sched *schedule) command(c *command, disturbed bool) {
	if err := sched.svc(c, disturbed); err != nil {
		sched.fail("%s: %v", c.name, err)
	}
}

func (sched *schedule) svc(c *command, disturbed bool) error {
	fixture := sched.stage.fixture
	client := fixture.name("svc")
	dir := filepath.Join(fixture.dir, client)
	defer os.RemoveAll(dir)
	where, err := json.Marshal(map[string]string{
		"stage": sched.stage.name, "dynamodb_url": fixture.tables.URL(client), "secrets_url": fixture.vault.URL,
		"sandbox_url": fixture.sandbox.URL,
	})
	err = errors.Join(err, os.MkdirAll(filepath.Join(dir, ".local"), 0o700),
		os.WriteFile(filepath.Join(dir, ".local", "demo.json"), where, 0o600))
	if err != nil {
		return err
	}
	sched.mu.Lock()
	sched.counts[c.name]++
	name := c.name
	if n := sched.counts[c.name]; n > 1 {
		name += ", try " + strconv.Itoa(n)
	}
	sched.mu.Unlock()
	var says bytes.Buffer
	cmd := exec.Command(fixture.svc, append(c.args, "--local", "--output", "json")...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &says, &says
	var running *process.Process
	started := make(chan struct{})
	a := sched.newActor(name, func() {
		<-started
		if running != nil {
			running.Kill()
		}
	})
	fixture.clients.Store(client, func(r *faultproxy.Request) faultproxy.Fault {
		if !disturbed {
			return faultproxy.Deliver
		}
		return sched.arrive(a, decode(r).step, r)
	})
	defer fixture.clients.Delete(client)
	running, err = process.Start(cmd)
	close(started)
	if err != nil {
		return err
	}
	<-running.Done()
	sched.mu.Lock()
	defer sched.mu.Unlock()
	sched.counts["ended "+c.name]++
	if a.killed {
		return nil
	}
	sched.gone(a)
	exit := (*exec.ExitError)(nil)
	switch err := running.Err(); {
	case err == nil:
		c.done = true
	case errors.As(err, &exit) && exit.ExitCode() == exitRefused:
		c.refused = true
	case !disturbed:
		return fmt.Errorf("undisturbed: %w: %s", err, says.String())
	}
	sched.note("%s ends: done %t, refused %t", name, c.done, c.refused)
	sched.poke()
	return nil
}

// exitRefused is svc's exit code for a refused command.
const exitRefused = 4

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
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"svcapi/local/process"
	"svcapi/shared/awsclient"
	"svcapi/shared/credit"
	"svcapi/test/faultproxy"
)

// attempts is how often a function repeats a read, or a write without a response.
const attempts = awsclient.Attempts

// Ages of a reservation at which a settler takes it up, in seconds. While requests live, dead is more than any lives. When
// all are dead and nothing is under way any more, a second is enough: that is what a longer wait would come to.
const (
	deadWhileLiving = "16"
	never           = "900"
	atOnce          = "1"
)

// pool holds the processes of functions that no schedule uses now.
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

// batch is schedules that share a set of tables and one wait for the settlers' ages. Each has a project of its own.
type batch struct {
	stage  *stage
	pool   *pool
	worlds []*world
	of     map[string]*world // by project
}

func (r *rig) newBatch(seeds []uint64) (*batch, error) {
	s, err := r.newStage()
	if err != nil {
		return nil, err
	}
	b := &batch{stage: s, pool: &pool{stage: s, free: map[string][]*instance{}}, of: map[string]*world{}}
	var group errgroup.Group
	group.SetLimit(atWork)
	for _, seed := range seeds {
		w := newWorld(newPlan(seed, s.prices), s, b.pool)
		b.worlds = append(b.worlds, w)
		b.of[w.project] = w
		group.Go(func() error { return s.create(w.project, w.plan) })
	}
	return b, group.Wait()
}

// atWork is how many schedules of a batch run at the same time.
const atWork = 12

// live runs the schedules, with a settler among them.
func (b *batch) live() error {
	ctx, cancel := context.WithCancel(context.Background())
	var settling errgroup.Group
	settling.Go(func() error {
		for ctx.Err() == nil {
			if err := b.settle(deadWhileLiving, never, true); err != nil {
				return err
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return nil
	})
	b.each(func(w *world) { w.run() })
	cancel()
	return settling.Wait()
}

func (b *batch) each(do func(*world)) {
	var group errgroup.Group
	group.SetLimit(atWork)
	for _, w := range b.worlds {
		group.Go(func() error { do(w); return nil })
	}
	_ = group.Wait() // nothing returns an error
}

// aftermath runs settlers, late copies, repeated requests and operators after all requests are dead, and ends with an
// undisturbed settler.
func (b *batch) aftermath() error {
	ripen()
	b.each(func(w *world) { w.deliverSome(0.3) })
	var group errgroup.Group // two settlers at once
	for range 2 {
		group.Go(func() error { return b.settle(atOnce, never, true) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	b.each(func(w *world) {
		w.askAgain()
		w.operate()
		w.deliverSome(0.5)
	})
	ripen()
	if err := b.settle(atOnce, never, true); err != nil {
		return err
	}
	b.each(func(w *world) { w.deliverSome(1) })
	b.pool.close()
	ripen()
	// A busy machine may be too slow for some call of the settler: the next run is the remedy, as in AWS.
	for range 5 {
		if err := b.settle(atOnce, atOnce, false); err != nil {
			return err
		}
		left := 0
		err := b.stage.credits.VisitPending(context.Background(), func(*credit.Reservation, error) error { left++; return nil }, func(credit.LowBalance) {})
		if err != nil || left == 0 {
			return err
		}
	}
	return nil // the verdict reports the rest
}

// ripen waits until the youngest reservation is old enough for the settler.
func ripen() { time.Sleep(1100 * time.Millisecond) }

// settle runs a settler of its own process once.
func (b *batch) settle(dead, captured string, disturbed bool) error {
	var i *instance
	i, err := b.stage.newInstance("SettleFunction", map[string]string{
		"SETTLE_AFTER_SECONDS": dead, "SETTLE_CAPTURED_AFTER_SECONDS": captured,
	}, func(r *faultproxy.Request) faultproxy.Fate {
		if i.dead.Load() {
			return faultproxy.DropRequest
		}
		if !disturbed {
			return faultproxy.Deliver
		}
		c := understand(r)
		w := b.of[c.project]
		if c.step == scan { // of all projects
			w = b.worlds[0]
		}
		if w == nil {
			return faultproxy.Deliver
		}
		fate, killed := w.visit(c.step, r)
		if killed {
			i.dead.Store(true)
			go i.kill()
		}
		return fate
	})
	if err != nil {
		return err
	}
	defer i.kill()
	_, err = i.host.Invoke(context.Background(), "SettleFunction", []byte("{}"))
	if disturbed {
		return nil // it may have been killed, or have failed
	}
	return err
}

// visit is a settler's call on this schedule's wallet or ledger. A late copy may come just before it.
func (w *world) visit(s step, r *faultproxy.Request) (fate faultproxy.Fate, killed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settling[s] == nil {
		w.settling[s] = &calls{}
	}
	call := w.settling[s].exchange(w.plan, "settle", s, r)
	p := &arrival{step: s, call: call, id: fmt.Sprintf("settle: %s %d", s, w.settling[s].attempts), request: r, at: time.Now()}
	if len(call.attempts) < call.throttle {
		return w.throttle(p), false
	}
	if w.parallel && len(w.later) > 0 && w.chance(0.3, p.id, "first") {
		at := int(w.uniform(p.id, "which") * float64(len(w.later)))
		l := w.later[at]
		w.later = append(w.later[:at:at], w.later[at+1:]...)
		w.note("%s arrives late", l.id)
		if err := l.request.Deliver(context.Background()); err != nil {
			w.wrong = append(w.wrong, err.Error())
		}
	}
	fate = w.fate(p)
	killed = w.chance(w.crashAt(s), p.id, "crash")
	call.attempts = append(call.attempts, attempt{fate, r, p.at})
	w.note("%s %s, killed: %t", p.id, fate, killed)
	w.tally["settler: "+string(fate)]++
	if fate == faultproxy.DropRequest {
		w.keepLate(p)
	}
	if killed {
		w.tally["settler killed"]++
		if fate == faultproxy.Deliver {
			fate = faultproxy.DropAnswer
		}
	}
	return fate, killed
}

// deliverSome delivers a share of the remaining late copies.
func (w *world) deliverSome(share float64) {
	w.mu.Lock()
	var now, still []late
	for _, l := range w.later {
		if share >= 1 || w.chance(share, l.id, fmt.Sprint(share)) {
			now = append(now, l)
			w.note("%s arrives late", l.id)
		} else {
			still = append(still, l)
		}
	}
	w.later = still
	w.mu.Unlock()
	for _, l := range now {
		w.deliver(l)
	}
}

// askAgain repeats keys after all requests are dead: some at once, and some when the dead request's claim has expired.
func (w *world) askAgain() {
	seen := map[*request]bool{}
	for _, r := range w.requests {
		first := r.first
		if first.key == "" || seen[first] || !w.chance(0.5, first.label(), "again") {
			continue
		}
		seen[first] = true
		if w.chance(0.8, first.label(), "aged") {
			if err := w.age(first.key); err != nil {
				w.fail("age %s: %v", first.key, err)
			}
		}
		again := w.repeat(first, w.chance(0.1, first.label(), "changed"))
		again.after = true
		w.mu.Lock()
		w.requests = append(w.requests, again)
		w.mu.Unlock()
		<-w.start(again)
	}
	w.pool.put(w.idle)
	w.idle = nil
}

// age lets two minutes pass for a claim: its time of death is the function's time-out and a minute away, and its request is
// dead already.
func (w *world) age(key string) error {
	_, err := w.stage.rig.direct.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName:           aws.String(w.stage.table("transient")),
		Key:                 map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: w.keyID(key)}},
		UpdateExpression:    aws.String("SET dead = dead - :ms"),
		ConditionExpression: aws.String("attribute_exists(dead)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":ms": &types.AttributeValueMemberN{Value: "120000"},
		},
	})
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		return nil
	}
	return err
}

// operate repeats the commands that got no response, refunds some charges and resolves uncertain ones, until each command
// has a response.
func (w *world) operate() {
	commands := w.commands
	if w.chance(0.15, "operate") {
		commands = append(commands, w.verdicts()...)
	}
	for _, c := range commands {
		for try := 0; !c.done && !c.refused; try++ {
			w.command(c, try < 3)
		}
	}
	w.mu.Lock()
	w.commands = commands
	w.mu.Unlock()
}

// verdicts returns commands about the present charges.
func (w *world) verdicts() []*command {
	entries, err := w.stage.entries(w.project, w.began)
	if err != nil {
		w.fail("%v", err)
	}
	var list []*command
	for _, e := range entries {
		if e.State != credit.Captured || len(list) == 2 {
			continue
		}
		name := w.nameOf(e)
		c := &command{name: "refund of " + name, state: credit.Refunded, credits: e.Credits,
			args: []string{"credit", "refund", w.project, string(e.Key), "--reason", "test"}}
		if e.Uncertain {
			verdict := "--refund"
			if w.chance(0.5, name, "verdict") {
				verdict, c.state = "--confirm", ""
			}
			c.name = "verdict on " + name
			c.args = []string{"sms", "uncertain", "resolve", w.project, string(e.Key), verdict, "--reason", "test"}
		}
		if w.chance(0.6, name, "operator") {
			list = append(list, c)
		}
	}
	return list
}

// command runs the compiled svc once.
func (w *world) command(c *command, disturbed bool) {
	if err := w.svc(c, disturbed); err != nil {
		w.fail("%s: %v", c.name, err)
	}
}

func (w *world) svc(c *command, disturbed bool) error {
	rig := w.stage.rig
	client := rig.name("svc")
	dir := filepath.Join(rig.dir, client)
	defer os.RemoveAll(dir)
	where, err := json.Marshal(map[string]string{
		"stage": w.stage.name, "dynamodb_url": rig.tables.URL(client), "secrets_url": rig.vault.URL, "sandbox_url": rig.sandbox.URL,
	})
	err = errors.Join(err, os.MkdirAll(filepath.Join(dir, ".local"), 0o700), os.WriteFile(filepath.Join(dir, ".local", "demo.json"), where, 0o600))
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.counts[c.name]++
	name := c.name
	if n := w.counts[c.name]; n > 1 {
		name += ", try " + strconv.Itoa(n)
	}
	w.mu.Unlock()
	var says bytes.Buffer
	cmd := exec.Command(rig.svc, append(c.args, "--local", "--output", "json")...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &says, &says
	var running *process.Process
	started := make(chan struct{})
	a := w.newActor(name, func() {
		<-started
		if running != nil {
			running.Kill()
		}
	})
	rig.clients.Store(client, func(r *faultproxy.Request) faultproxy.Fate {
		if !disturbed {
			return faultproxy.Deliver
		}
		return w.arrive(a, understand(r).step, r)
	})
	defer rig.clients.Delete(client)
	running, err = process.Start(cmd)
	close(started)
	if err != nil {
		return err
	}
	<-running.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts["ended "+c.name]++
	if a.killed {
		return nil
	}
	w.gone(a)
	exit := (*exec.ExitError)(nil)
	switch err := running.Err(); {
	case err == nil:
		c.done = true
	case errors.As(err, &exit) && exit.ExitCode() == exitRefused:
		c.refused = true
	case !disturbed:
		return fmt.Errorf("undisturbed: %w: %s", err, says.String())
	}
	w.note("%s ends: done %t, refused %t", name, c.done, c.refused)
	w.poke()
	return nil
}

// exitRefused is svc's exit code for a refused command.
const exitRefused = 4

// Package faults runs the compiled functions, the settler and svc at once, in random schedules, while the proxies in
// front of DynamoDB Local and of the vendor sandbox drop requests, drop or truncate responses, deliver copies of
// dropped attempts later, throttle and fail, and while processes are killed. When all of a schedule is settled, every
// wallet must add up and every response must agree with its charge, except for the anomalies that judge names.
//
// # What a seed reproduces
//
// A burst of throttles belongs to a call, not to an attempt: whether there is one, and of how many attempts, is drawn
// from the seed and the call's name (request 3, reserve, second call). A throttle changes nothing, so that the proxy
// responds at once; the pauses of the client alone use up the client's time. No anomaly is ever excused by a throttle.
//
// A schedule is its seed. The seed alone gives the plan: the wallet, the requests, who repeats which Idempotency-Key,
// the operators' commands, and the chances of each fault. The fault plan of a call (delivered, dropped, throttled,
// killed there, its copy kept for later) is drawn from the seed and the call's name: request 3, reserve, second
// attempt. It is the same in every replay, whatever else happens. While requests live, the proxy lets one waiting call
// go at a time, once all that are alive wait there or have ended; of those that wait the one with the lowest number
// goes, and that number, too, is drawn from the seed and the name.
//
// A seed does not reproduce times and what depends on times. Keys and request IDs are new in each run. A process counts
// as waiting when it has been silent for some milliseconds: on a busy machine a call can come so late that another one
// has gone before it, and only then does the order of two calls differ. Kills during a render come after a time. The
// settler that runs while requests live, two settlers at once and a batch's last phase meet in the order in which they
// come; the fault plans of their calls are drawn as all others.
package faults

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/test/enginetest"
)

const (
	// fixedSeed is the first of the seeds that make test always runs. make test-full runs more from it.
	fixedSeed = 1
	fixed     = 20
	random    = 30
	// together is the number of schedules of a batch, and overlap how many batches are at work at once: while one waits
	// for its settlers, requests of the other run.
	together = 150
	overlap  = 2
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// TestFaults runs the schedules of SEED and SCHEDULES, else its own: docs/decisions/money.md#what-is-charged,
// docs/decisions/money.md#ledger, docs/decisions/extensions.md#idempotency-repeats.
func TestFaults(t *testing.T) {
	var seeds []uint64
	if first, given := number(t, "SEED"); given {
		count, chosen := number(t, "SCHEDULES")
		if !chosen {
			count = fixed + random
		}
		seeds = sequence(first, count)
		t.Logf("%d schedules from seed %d", count, first)
	} else {
		first, given := number(t, "FAULT_SEED")
		if !given {
			first = rand.Uint64() >> 24
		}
		seeds = append(sequence(fixedSeed, fixed), sequence(first, random)...)
		t.Logf("%d schedules from seed %d, %d from seed %d", fixed, fixedSeed, random, first)
	}
	r := newFixture(t)
	run(t, r, seeds)
	t.Run("replays", func(t *testing.T) { replays(t, r) })
	t.Run("finds a planted failure", func(t *testing.T) { findsPlanted(t, r) })
}

func number(t *testing.T, name string) (n uint64, given bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 40)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n, true
}

func sequence(first, count uint64) []uint64 {
	seeds := make([]uint64, count)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds
}

// run runs schedules in batches.
func run(t *testing.T, r *fixture, seeds []uint64) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	done, all, tally, odd := 0, 0, map[string]int{}, map[string]int{}
	for chunk := range chunks(seeds) {
		all += len(chunk)
	}
	var living sync.Mutex // one batch's requests at a time
	var group errgroup.Group
	group.SetLimit(overlap)
	for chunk, kind := range chunks(seeds) {
		group.Go(func() error {
			if t.Failed() {
				return nil
			}
			b, err := r.runBatch(chunk, kind, &living)
			if err != nil {
				t.Error(err)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			for _, sched := range b.schedules {
				sched.report(t, len(seeds) == 1)
				for name, n := range sched.tally {
					tally[name] += n
				}
				for _, name := range sched.odd {
					odd[name]++
				}
			}
			done += len(b.schedules)
			t.Logf("%d of %d schedules, %.1f a second", done, all, float64(done)/time.Since(began).Seconds())
			return nil
		})
	}
	_ = group.Wait() // errors are reported
	t.Logf("%d schedules in %s", done, time.Since(began).Round(time.Millisecond))
	t.Logf("faults and outcomes:%s", list(tally))
	t.Logf("allowed anomalies:%s", list(odd))
}

// chunks are the batches of the seeds, each in virtual time and, unless VIRTUAL is set, with compiled functions.
func chunks(seeds []uint64) iter.Seq2[[]uint64, planner] {
	return func(yield func([]uint64, planner) bool) {
		for chunk := range slices.Chunk(seeds, together) {
			if os.Getenv("VIRTUAL") == "" && !yield(chunk, newPlan) || !yield(chunk, newVirtualPlan) {
				return
			}
		}
	}
}

func list(counts map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "\n  %6d %s", counts[name], name)
	}
	return b.String()
}

// runBatch is a batch from its tables to its verdicts. The requests of one batch of functions live at a time.
func (r *fixture) runBatch(seeds []uint64, kind planner, living *sync.Mutex) (*batch, error) {
	b, err := r.newBatch(seeds, kind)
	if err != nil {
		return nil, err
	}
	defer b.pool.close()
	if b.schedules[0].virtual {
		b.each(func(sched *schedule) { sched.run() })
	} else if err := b.runFunctions(living); err != nil {
		return nil, err
	}
	sent := received(r.sandbox.Calls())
	if err := b.readLogs(); err != nil {
		return nil, err
	}
	b.each(func(sched *schedule) { sched.judge(sent) })
	if err := b.verify(); err != nil {
		return nil, err
	}
	for _, sched := range b.schedules {
		r.clients.Delete(sched.project)
	}
	return b, b.stage.drop()
}

// runFunctions runs the schedules of compiled functions, and all that comes after their requests.
func (b *batch) runFunctions(living *sync.Mutex) error {
	living.Lock()
	err := b.live()
	living.Unlock()
	if err == nil {
		err = b.aftermath()
	}
	return err
}

// report fails the test with the trace of a wrong schedule, and logs the trace of a schedule that runs alone.
func (sched *schedule) report(t *testing.T, alone bool) {
	t.Helper()
	trace := sched.describe() + "\n  " + strings.Join(sched.trace, "\n  ")
	if len(sched.wrong) > 0 {
		t.Errorf("seed %d (replay: make test-faults SEED=%d SCHEDULES=1)\n%s\n%s", sched.seed, sched.seed,
			strings.Join(sched.wrong, "\n"), trace)
	} else if alone {
		t.Log(trace)
	}
}

func (p *plan) describe() string {
	return fmt.Sprintf("virtual time %t, clocks stop %t, credits %d, limit %d, %d to a number, %d a day, Manual %t, "+
		"Dialog %t, first vendor closed %t, "+
		"loss %.2f, late %.2f, refusals %.2f, bursts %.2f, throttled step %q, outages %.2f, crashes %.3f, lossy step %q",
		p.virtual, p.stops, p.credits, p.limit, p.perNumber, p.daily, p.byok, p.dialog, p.closed,
		p.loss, p.lateCopies, p.refusal, p.bursts, p.throttledStep, p.outage, p.crash, p.lossy)
}

package ratelimit

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/test/clocktest"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// noon begins a window of a minute. The window is in the future, because DynamoDB Local deletes expired items at once.
var noon = time.Date(2100, 3, 4, 12, 0, 0, 0, time.UTC)

func at(l *Limiter, now time.Time) *Limiter {
	l.clock = cache.ClockOf(func() time.Time { return now })
	l.reached.Clock = l.clock
	return l
}

func limited(id string, limit project.RateLimit) *project.Project {
	return &project.Project{ID: id, Limit: limit}
}

// TestNeverMore checks that a window has as many requests as the limit over all instances, and never more.
func TestNeverMore(t *testing.T) {
	for _, test := range []struct {
		name                       string
		instances, requests, limit int
	}{
		{"one instance, 20 at once", 1, 20, 5},
		{"several instances", 6, 60, 7},
		{"fewer than the limit", 2, 10, 20},
		{"several quotas", 6, 120, 60},
		{"fewer than there could be", 3, 60, 25},
		{"several quotas, fewer than the limit", 2, 30, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, tables := enginetest.Client(t)
			var allowed atomic.Int64
			var group errgroup.Group
			var limiters []*Limiter
			for range test.instances {
				limiters = append(limiters, at(New(client, tables.Transient), noon.Add(time.Second)))
			}
			for _, l := range limiters {
				l.large = 20
			}
			for i := range test.requests {
				group.Go(func() error {
					d, err := limiters[i%test.instances].Count(context.Background(),
						limited("p", project.RateLimit{Requests: test.limit, Window: time.Minute}), "production")
					if d.Allowed {
						allowed.Add(1)
					} else if err == nil && (d.Reset != 59*time.Second || d.Remaining != 0) {
						t.Errorf("refused: %+v", d)
					}
					return err
				})
			}
			must.Succeed(t, group.Wait())
			if want := int64(min(test.requests, test.limit)); allowed.Load() != want {
				t.Errorf("%d allowed, want %d", allowed.Load(), want)
			}
		})
	}
}

// TestWindows checks that windows, projects and environments count separately, that the rest of a window is in whole
// seconds, at least 1, and that each request learns how many are left.
func TestWindows(t *testing.T) {
	client, tables := enginetest.Client(t)
	l := New(client, tables.Transient)
	one := project.RateLimit{Requests: 1, Window: time.Minute}
	for _, step := range []struct {
		name      string
		at        time.Duration
		project   string
		env       string
		limit     project.RateLimit
		allowed   bool
		remaining int
		reset     time.Duration
	}{
		{"first", 0, "p", "production", one, true, 0, time.Minute},
		{"second", 0, "p", "production", one, false, 0, time.Minute},
		{"part of a second counts as one", 500 * time.Millisecond, "p", "production", one, false, 0, time.Minute},
		{"last moment", time.Minute - time.Millisecond, "p", "production", one, false, 0, time.Second},
		{"other environment", time.Second, "p", "development", one, true, 0, 59 * time.Second},
		{"other project", time.Second, "q", "production", one, true, 0, 59 * time.Second},
		{"limit raised within the window", 2 * time.Second, "p", "production",
			project.RateLimit{Requests: 4, Window: time.Minute}, true, 2, 58 * time.Second},
		{"lowered and used up", 2 * time.Second, "p", "production", project.RateLimit{Requests: 2, Window: time.Minute},
			false, 0, 58 * time.Second},
		{"next window", time.Minute, "p", "production", one, true, 0, time.Minute},
		{"no request allowed", 0, "z", "production", project.RateLimit{Window: time.Minute}, false, 0, time.Minute},
	} {
		got, err := at(l, noon.Add(step.at)).Count(t.Context(), limited(step.project, step.limit), step.env)
		if err != nil || got != (Decision{step.allowed, step.limit.Requests, step.remaining, step.reset}) {
			t.Errorf("%s: %+v, %v", step.name, got, err)
		}
	}
}

// TestFreeze checks that an instance which has seen a window exhausted refuses from its cache, without a call of the
// table, until the window ends by the wall clock, also over a freeze, or until the operator changes the limit.
func TestFreeze(t *testing.T) {
	client, tables := enginetest.Client(t)
	frozen := clocktest.New()
	l := New(client, tables.Transient)
	l.clock = cache.ClockOf(frozen.Now)
	l.reached.Clock = l.clock
	nowhere, cancel := context.WithCancel(t.Context())
	cancel() // a call of the table fails
	for _, step := range []struct {
		frozen              time.Duration
		limit               int
		remembered, allowed bool
	}{{0, 1, false, true}, {0, 1, false, false}, {0, 1, true, false}, {0, 2, false, true}, {time.Hour, 1, false, true}} {
		frozen.Move(step.frozen)
		p := limited("p", project.RateLimit{Requests: step.limit, Window: time.Hour})
		_, remembered := l.Exhausted(p, "production")
		d, lost := l.Count(nowhere, p, "production")
		got, err := l.Count(t.Context(), p, "production")
		if err != nil || remembered != step.remembered || got.Allowed != step.allowed ||
			(lost == nil) != step.remembered || d.Allowed {
			t.Errorf("%v: remembered %v, %+v, %v, %v", step, remembered, got, err, lost)
		}
	}
}

// TestExhaustedQuotas checks that a window is exhausted when all of its quotas are exhausted, and not before. A limit
// that is raised in a window lets no more through than the limit.
func TestExhaustedQuotas(t *testing.T) {
	client, tables := enginetest.Client(t)
	l := at(New(client, tables.Transient), noon)
	l.large = 5
	allowed := 0
	for _, requests := range []int{5, 12, 40} {
		p := limited("p", project.RateLimit{Requests: requests, Window: time.Minute})
		for range requests {
			_, exhausted := l.Exhausted(p, "production")
			d, err := l.Count(t.Context(), p, "production")
			if d.Allowed {
				allowed++
			}
			if err != nil || exhausted && (d.Allowed || allowed < requests) {
				t.Errorf("%d of %d requests: exhausted %t, %+v, %v", allowed, requests, exhausted, d, err)
			}
		}
		if _, exhausted := l.Exhausted(p, "production"); allowed != requests || requests > 5 && !exhausted {
			t.Errorf("%d of %d requests, exhausted %t", allowed, requests, exhausted)
		}
	}
	p := limited("p", project.RateLimit{Requests: 40, Window: time.Minute})
	if d, err := at(l, noon.Add(time.Minute)).Count(t.Context(), p, "production"); err != nil || !d.Allowed {
		t.Errorf("the next window: %+v, %v", d, err)
	}
}

// TestQuotas checks that the quotas add up to the limit and are above 0, and that the first one never falls where the
// limit is raised: a counter then never exceeds its quota.
func TestQuotas(t *testing.T) {
	l, first := New(nil, ""), 0
	for requests, want := range map[int]int{-1: 0, 0: 0, 1: 1, 1000: 1, 1001: 2, 1007: 8, 1015: 16, 1016: 16,
		16_000: 16, 1_000_003: 16} {
		all := l.quotas(project.RateLimit{Requests: requests})
		sum := 0
		for _, quota := range all {
			sum += quota
		}
		if len(all) != want || sum != max(requests, 0) || want > 0 && slices.Min(all) < 1 {
			t.Errorf("%d requests: %v", requests, all)
		}
	}
	for requests := 1; requests < 20_000; requests += 7 {
		if quota := l.quotas(project.RateLimit{Requests: requests})[0]; quota < first {
			t.Errorf("%d requests: the first quota falls to %d", requests, quota)
		} else {
			first = quota
		}
	}
}

// TestWindow checks that windows of at least a second follow one another without gap or overlap.
func TestWindow(t *testing.T) {
	for _, test := range []struct {
		length time.Duration
		at     int64
		start  int64
		end    int64
	}{
		{time.Minute, 120, 120, 180}, {time.Minute, 179, 120, 180}, {time.Minute, 180, 180, 240},
		{time.Second, 7, 7, 8}, {0, 7, 7, 8}, {time.Millisecond, 7, 7, 8}, {7 * time.Second, 20, 14, 21},
	} {
		start, end := window(project.RateLimit{Window: test.length}, time.Unix(test.at, 999))
		if start != test.start || end.Unix() != test.end || end.Nanosecond() != 0 {
			t.Errorf("%s at %d: %d to %s", test.length, test.at, start, fmt.Sprint(end.Unix()))
		}
	}
}

// TestQueue checks that counts which there is no time to subtract are queued and subtracted whole and once, however
// many, also where a run of the settler died before it removed them from the queue.
func TestQueue(t *testing.T) {
	all, _, _ := instances(t, 2)
	get := func(key string) dynamo.Item {
		t.Helper()
		item, err := all[0].read(t.Context(), key)
		must.Succeed(t, err)
		return item
	}
	p := limitedTo(per(1, 10*time.Minute), per(3, 24*time.Hour))
	const numbers = countsInItem + 20
	number := func(i int) string { return fmt.Sprintf("+9477%07d", i) }
	counts := make([]Count, numbers)
	var group errgroup.Group
	group.SetLimit(subtractionsAtOnce)
	for i := range numbers {
		group.Go(func() error {
			count, refusal, err := all[0].CountMessage(t.Context(), p, number(i))
			if refusal != nil {
				t.Error(refusal)
			}
			counts[i] = count
			return err
		})
	}
	must.Succeed(t, group.Wait())
	day := Daily{"p", Units, 3000}
	count, _, err := all[0].CountDaily(t.Context(), day, numbers, noon)
	must.Succeed(t, err)
	all[0].queueTime = time.Minute // no time is left to subtract at once
	short, cancel := context.WithTimeout(t.Context(), all[0].queueTime)
	defer cancel()
	count.By--
	if n, err := all[0].SubtractAll(short, slices.Concat(counts, []Count{count})); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	queue := get(queueKey)
	names, _ := queue["queued"].(*types.AttributeValueMemberSS)
	if names == nil || len(names.Value) != 2 {
		t.Fatalf("queue %v", queue)
	}
	item := get(names.Value[0])
	var queued []Count
	must.Succeed(t, json.Unmarshal(dynamo.BytesOf(item["v"]), &queued))
	if expires, _ := dynamo.NumberOf(item["expires"]); expires != noon.Add(25*time.Hour+time.Second).Unix() {
		t.Errorf("an item of the queue expires at %v", item["expires"])
	}
	must.Succeed(t, all[0].updateQueue(t.Context(), "damaged", "SET v = :v", dynamo.Item{":v": dynamo.Bytes([]byte("{"))}))
	must.Succeed(t, all[0].updateQueue(t.Context(), queueKey, "ADD queued :name", nameSet("damaged")))
	all[1].queueTime = time.Minute
	if n, err := all[1].SubtractQueued(short); n != 0 || err != nil ||
		len(get(queueKey)["queued"].(*types.AttributeValueMemberSS).Value) != 3 {
		t.Errorf("a run without time subtracted %d: %v; %v", n, err, get(queueKey))
	}
	for run, want := range []int{numbers + 1, 0, 0} {
		n, err := all[1].SubtractQueued(t.Context())
		if (err != nil) != (run == 0) || n != want || get(queueKey)["queued"] != nil {
			t.Errorf("%d subtracted, want %d, %v; queue %v", n, want, err, get(queueKey))
		}
		if expires, _ := dynamo.NumberOf(get("subtracted#" + queued[0].ID)["expires"]); expires != queued[0].Expires {
			t.Errorf("the ID of a subtraction expires at %d, not %d", expires, queued[0].Expires)
		}
		wantCounted(t, "the day", all[1], day, 1)
		for _, i := range []int{0, 1, numbers - 1} {
			if n, _ := dynamo.NumberOf(get(counterOf(p, number(i), noon))["w86400.0"]); n != 0 {
				t.Errorf("number %d: %d counted", i, n)
			}
		}
		if run == 0 { // as a run that dies before it removes the names
			must.Succeed(t, all[1].updateQueue(t.Context(), queueKey, "ADD queued :names", dynamo.Item{":names": names}))
		}
	}
}

// TestTimeToQueue checks that a subtraction without a response ends while there is time to queue the count. The proxy
// throttles for ten times as long as that takes.
func TestTimeToQueue(t *testing.T) {
	healed := time.Now().Add(10 * time.Second)
	l, _ := proxied(t, func(_ *faultproxy.Request, subtracts bool) faultproxy.Fault {
		if subtracts && time.Now().Before(healed) {
			return faultproxy.Throttles("UpdateItem")[0]
		}
		return faultproxy.Deliver
	})
	count, _, err := l.CountDaily(t.Context(), Daily{"p", Units, 10}, 1, noon)
	must.Succeed(t, err)
	l.queueTime, l.writeTime = time.Hour, time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour+time.Second)
	defer cancel()
	n, err := l.SubtractAll(ctx, []Count{count})
	if queue, failed := l.read(t.Context(), queueKey); n != 0 || err != nil || failed != nil || queue["queued"] == nil {
		t.Errorf("%d subtracted, %v; the queue is %v, %v", n, err, queue, failed)
	}
}

// TestUnanswered checks that no number stays refused whose message was rejected, and that none is subtracted twice,
// whatever becomes of the subtractions until the queue is emptied: one run of the settler gets no response, one dies
// after some subtractions, and two empty the queue at once (docs/decisions/requests.md#recipient-limit).
func TestUnanswered(t *testing.T) {
	faults := map[string]faultproxy.Fault{} // by number
	var mu sync.Mutex
	var healed bool
	left := 0 // writes of the run that dies
	run, die := context.WithCancel(t.Context())
	var late []*faultproxy.Request
	l, _ := proxied(t, func(r *faultproxy.Request, subtracts bool) faultproxy.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !subtracts || healed {
			if left--; healed && left == 0 {
				die()
			}
			return faultproxy.Deliver
		}
		number := regexp.MustCompile(`to#[^"]*`).FindString(string(r.Body))
		if faults[number] == "" {
			faults[number] = []faultproxy.Fault{faultproxy.DropRequest, faultproxy.DropResponse}[len(faults)%2]
			if len(faults)%10 == 0 {
				faults[number] = faultproxy.Throttles("UpdateItem")[0]
			}
		}
		if faults[number] == faultproxy.DropRequest {
			late = append(late, r)
		}
		return faults[number]
	})
	p := limitedTo(per(3, 24*time.Hour))
	number := func(i int) string { return fmt.Sprintf("+9477%07d", i) }
	counts := make([]Count, 60)
	for i := range counts {
		for range 3 {
			var err error
			counts[i], _, err = l.CountMessage(t.Context(), p, number(i))
			must.Succeed(t, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour*3/2)
	defer cancel()
	l.queueTime = time.Hour - time.Minute // so that each subtraction has begun
	if n, err := l.SubtractAll(ctx, counts); n != 0 || err != nil || len(faults) != len(counts) {
		t.Fatalf("%d subtracted, %v; %d numbers", n, err, len(faults))
	}
	if n, err := l.SubtractQueued(t.Context()); n != 0 || err != nil {
		t.Errorf("%d subtracted, %v", n, err)
	}
	mu.Lock()
	healed, left = true, 20
	mu.Unlock()
	if n, _ := l.SubtractQueued(run); n >= len(counts) || run.Err() == nil {
		t.Errorf("%d subtracted by the run that dies", n)
	}
	var runs errgroup.Group
	for range 2 {
		runs.Go(func() error { _, err := l.SubtractQueued(t.Context()); return err })
	}
	must.Succeed(t, runs.Wait())
	for _, r := range late {
		must.Succeed(t, r.Deliver(t.Context()))
	}
	for i := range counts {
		if _, refusal, err := l.CountMessage(t.Context(), p, number(i)); refusal != nil || err != nil {
			t.Errorf("number %d: %v, %v", i, refusal, err)
		}
		if _, refusal, err := l.CountMessage(t.Context(), p, number(i)); refusal == nil || err != nil {
			t.Errorf("number %d is counted less than once: %v", i, err)
		}
	}
}

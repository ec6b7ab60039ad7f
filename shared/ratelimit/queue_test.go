package ratelimit

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

// TestQueue checks that counts which there is no time to subtract are queued and subtracted whole and once, however
// many, also where a run of the settler died before it removed them from the queue.
func TestQueue(t *testing.T) {
	all, client, table := instances(t, 2)
	get := func(key string) dynamo.Item {
		t.Helper()
		out, err := client.GetItem(t.Context(),
			&dynamodb.GetItemInput{TableName: &table, Key: itemKey(key), ConsistentRead: new(true)})
		must.Succeed(t, err)
		return out.Item
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
	all[1].queueTime = time.Minute
	if n, err := all[1].SubtractQueued(short); n != 0 || err != nil ||
		len(get(queueKey)["queued"].(*types.AttributeValueMemberSS).Value) != 2 {
		t.Errorf("a run without time subtracted %d: %v; %v", n, err, get(queueKey))
	}
	for run, want := range []int{numbers + 1, 0, 0} {
		n, err := all[1].SubtractQueued(t.Context())
		if err != nil || n != want {
			t.Errorf("%d subtracted, want %d: %v", n, want, err)
		}
		if counted, err := all[1].Counted(t.Context(), day, noon); err != nil || counted != 1 {
			t.Errorf("%d units, %v", counted, err)
		}
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

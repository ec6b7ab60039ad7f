package ratelimit

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

// proxied returns a limiter behind a proxy that decides each attempt of a count or a subtraction.
func proxied(t *testing.T, decide func(r *faultproxy.Request,
	subtracts bool) faultproxy.Fault) (l *Limiter, url string) {
	t.Helper()
	_, tables := enginetest.Client(t)
	proxy := enginetest.Faulty(t, func(r *faultproxy.Request) faultproxy.Fault {
		if r.Operation != "UpdateItem" && r.Operation != "TransactWriteItems" {
			return faultproxy.Deliver
		}
		return decide(r, strings.Contains(string(r.Body), `":by":{"N":"-`))
	})
	return at(New(enginetest.ClientOf(proxy.URL("test")), tables.Transient), noon), proxy.URL("test")
}

// Subtract subtracts a count.
func (l *Limiter) Subtract(ctx context.Context, c Count) error {
	_, err := l.subtract(ctx, &c)
	return err
}

// wantCounted checks what the limiter has counted on the day of noon.
func wantCounted(t *testing.T, name string, l *Limiter, d Daily, want int64) {
	t.Helper()
	if n, err := l.Counted(t.Context(), d, noon); n != want || err != nil {
		t.Errorf("%s: %d counted, %v; want %d", name, n, err, want)
	}
}

// slotsOf returns the tokens of an item by their slots.
func slotsOf(item dynamo.Item) map[string]string {
	slots := map[string]string{}
	for name := range item {
		if len(name) == 2 && name[0] == 's' {
			slots[name] = dynamo.TextOf(item[name])
		}
	}
	return slots
}

// mostThrottles is the longest burst of throttles. Twenty pauses fit into the time that a request has for one write.
const mostThrottles = 20

// TestLostResponses checks that a count and its subtraction take effect once, whatever becomes of their attempts, and
// that an unconfirmed count's subtraction subtracts what was counted (docs/decisions/requests.md#counters).
func TestLostResponses(t *testing.T) {
	for _, fault := range []faultproxy.Fault{
		faultproxy.Deliver, faultproxy.DropRequest, faultproxy.DropResponse, faultproxy.CutResponse, faultproxy.Fail,
		faultproxy.FailApplied, faultproxy.Throttles("UpdateItem")[0],
	} {
		for _, faulty := range []int64{1, 2, mostThrottles, 1 << 40} {
			switch {
			case faulty == mostThrottles && !fault.Throttled():
				continue
			case faulty > mostThrottles && fault != faultproxy.DropRequest && fault != faultproxy.DropResponse:
				continue // would go on for WriteTimeout
			}
			t.Run(fmt.Sprintf("%s %d times", fault, faulty), func(t *testing.T) {
				attempts := map[bool]*atomic.Int64{false: {}, true: {}}
				var healed atomic.Bool
				l, _ := proxied(t, func(_ *faultproxy.Request, subtracts bool) faultproxy.Fault {
					if attempts[subtracts].Add(1) <= faulty && !healed.Load() {
						return fault
					}
					return faultproxy.Deliver
				})
				d := Daily{"p", Units, 20}
				count, day, err := l.CountDaily(t.Context(), d, 6, noon)
				lost := faulty > mostThrottles
				if (err != nil) != lost || !lost && day.Counted != 6 {
					t.Fatalf("%+v, %+v, %v", count, day, err)
				}
				want, left := int64(6), int64(0)
				if lost && fault == faultproxy.DropRequest {
					want = 0
				}
				wantCounted(t, "after the count", l, d, want)
				if lost { // the next write of the instance does not hide whether the count took effect
					healed.Store(true)
					if c, _, err := l.CountDaily(t.Context(), d, 7, noon); c.By != 7 || err != nil {
						t.Errorf("%+v, %v", c, err)
					}
					left = 7
				}
				if err := l.Subtract(t.Context(), count); err != nil {
					t.Error(err)
				}
				wantCounted(t, "after the subtraction", l, d, left)
			})
		}
	}
}

// TestSubtractAgain checks that a subtraction without a response is repeated to the exact count, and not repeated where
// another writer may have removed its token (docs/decisions/requests.md#recipient-limit).
func TestSubtractAgain(t *testing.T) {
	for _, test := range []struct {
		name     string
		fault    faultproxy.Fault
		slot     string        // that another writer takes meanwhile: the same, another, or none
		after    time.Duration // of the repeat
		want     int64
		repeated bool
	}{
		{"lost", faultproxy.DropRequest, "", time.Minute, 0, true},
		{"lost, late", faultproxy.DropRequest, "", time.Hour, 0, true},
		{"lost, with another count", faultproxy.DropRequest, "same", time.Minute, 7, true},
		{"lost, late, with another count", faultproxy.DropRequest, "same", time.Hour, 13, false},
		{"applied", faultproxy.DropResponse, "", time.Hour, 0, true},
		{"applied, with another count", faultproxy.DropResponse, "another", time.Hour, 7, true},
		{"applied, late, with another count", faultproxy.DropResponse, "same", time.Hour, 7, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var healed atomic.Bool
			late := make(chan *faultproxy.Request, 100)
			l, _ := proxied(t, func(r *faultproxy.Request, subtracts bool) faultproxy.Fault {
				if !subtracts || healed.Load() {
					return faultproxy.Deliver
				}
				if test.fault == faultproxy.DropRequest {
					late <- r
				}
				return test.fault
			})
			d := Daily{"p", Units, 20}
			c, _, err := l.CountDaily(t.Context(), d, 6, noon)
			must.Succeed(t, err)
			if again, err := l.subtract(t.Context(), &c); !again || err == nil {
				t.Fatalf("%t, %v", again, err)
			}
			healed.Store(true)
			at(l, noon.Add(test.after))
			if test.slot != "" {
				slot := c.Subtracting.Slot
				if test.slot == "another" {
					slot = slotName(strings.Index(slotNames, slot[1:]) + 1)
				}
				_, _, err := l.another(slot, noon.Add(test.after)).CountDaily(t.Context(), d, 7, noon)
				must.Succeed(t, err)
			}
			if again, err := l.subtract(t.Context(), &c); again || (err == nil) != test.repeated {
				t.Errorf("%t, %v", again, err)
			}
			for len(late) > 0 {
				must.Succeed(t, (<-late).Deliver(t.Context()))
			}
			wantCounted(t, "after the copies", l, d, test.want)
		})
	}
}

// another returns another instance, whose writer has the slot.
func (l *Limiter) another(slot string, now time.Time) *Limiter {
	o := at(New(l.client, l.table), now)
	o.writers = []*writer{{id: rand.Text()[:4], slot: slot, busy: map[string]bool{}}}
	return o
}

// TestLateCopies checks that a copy of a count or of its subtraction has no effect whenever it arrives: after a later
// attempt of the same write, after the writer's next write, and after another writer has taken the slot.
func TestLateCopies(t *testing.T) {
	var held *faultproxy.Request
	var hold, attempts int
	l, _ := proxied(t, func(r *faultproxy.Request, _ bool) faultproxy.Fault {
		if attempts++; attempts == hold {
			held = r
			return faultproxy.DropRequest
		}
		return faultproxy.Deliver
	})
	d := Daily{"p", Units, 100}
	var last Count
	count := func() (err error) { last, _, err = l.CountDaily(t.Context(), d, 6, noon); return err }
	subtract := func() error { return l.Subtract(t.Context(), last) }
	other := func() error {
		_, _, err := l.another(l.writers[0].slot, noon.Add(2*stampLife)).CountDaily(t.Context(), d, 1, noon)
		return err
	}
	for _, c := range []struct {
		name  string
		write func() error
		then  func() error
		want  int64
	}{
		{"a count, after its repeat", count, nil, 6},
		{"a subtraction, after its repeat", subtract, nil, 0},
		{"a count, after the writer's next write", count, count, 12},
		{"a subtraction, after the writer's next write", subtract, count, 12},
		{"a count, after its subtraction", count, subtract, 12},
		{"a count, after another writer's write", count, other, 19},
	} {
		held, hold = nil, attempts+1
		err := c.write()
		if err == nil && c.then != nil {
			err = c.then()
		}
		must.Succeed(t, err)
		wantCounted(t, c.name+", before the copy", l, d, c.want)
		must.Succeed(t, held.Deliver(t.Context()))
		wantCounted(t, c.name, l, d, c.want)
	}
}

// TestSlotTakenBetween checks a subtraction whose first attempt is lost before another writer takes the slot. Where the
// item has an empty slot, the other writer cannot have replaced a token, so that the attempt had no effect, and the
// subtraction takes effect. Where the item is full, nobody can know, and the subtraction is not repeated.
func TestSlotTakenBetween(t *testing.T) {
	for name, c := range map[string]struct {
		slots int
		want  int64
	}{"an empty slot": {len(slotNames) - 1, 0}, "full": {len(slotNames), 6}} {
		t.Run(name, func(t *testing.T) {
			d, lost := Daily{"p", Units, 100}, false
			var other *Limiter
			l, _ := proxied(t, func(_ *faultproxy.Request, subtracts bool) faultproxy.Fault {
				if !subtracts || lost {
					return faultproxy.Deliver
				}
				lost = true
				if c, _, err := other.CountDaily(t.Context(), d, 1, noon); c.By != 1 || err != nil {
					t.Errorf("%+v, %v", c, err)
				}
				return faultproxy.DropRequest
			})
			count, _, err := l.another("sA", noon).CountDaily(t.Context(), d, 6, noon)
			must.Succeed(t, err)
			for i := 1; i < c.slots-1; i++ {
				_, _, err := l.another(slotName(i), noon).CountDaily(t.Context(), d, 1, noon)
				must.Succeed(t, err)
			}
			last := slotName(c.slots - 1)
			subtracting := l.another(last, noon)
			other = l.another(last, noon.Add(time.Second))
			before := int64(c.slots - 1)
			if err := subtracting.Subtract(t.Context(), count); (err != nil) != (c.want > 0) {
				t.Error(err)
			}
			wantCounted(t, "the item", l, d, before+c.want)
		})
	}
}

// TestSlots checks that writers keep apart by their slots and need one write each, except where two meet for the first
// time, and that an item with a token in each slot is written with one write unit, and by further writers, too.
func TestSlots(t *testing.T) {
	attempts := 0
	l, _ := proxied(t, func(*faultproxy.Request, bool) faultproxy.Fault { attempts++; return faultproxy.Deliver })
	d := Daily{strings.Repeat("p", 32), Credits, 1_000_000}
	key := d.key(noon.Truncate(24 * time.Hour))
	expect := func(name string, l *Limiter, want int) {
		t.Helper()
		attempts = 0
		if c, _, err := l.CountDaily(t.Context(), d, 1, noon); c.By != 1 || err != nil || attempts != want {
			t.Errorf("%s: %+v, %v, %d attempts, want %d", name, c, err, attempts, want)
		}
	}
	slots := func(want int) []string {
		t.Helper()
		item, err := l.read(t.Context(), key)
		tokens := slices.Sorted(maps.Values(slotsOf(item)))
		if err != nil || len(tokens) != want {
			t.Fatalf("%v, %v; want %d slots", item, err, want)
		}
		return tokens
	}
	first, second := l.another("sA", noon), l.another("sA", noon)
	expect("first", first, 1)
	expect("second writer, with the first one's slot", second, 2)
	for _, l := range []*Limiter{first, second, first} {
		expect("apart", l, 1)
	}
	slots(2)
	for range len(slotNames) - 2 {
		expect("one more", l.another("sA", noon), 2)
	}
	full := slots(len(slotNames))
	out, err := l.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: itemKey(key), UpdateExpression: new("SET alerted = n"),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil || *out.ConsumedCapacity.CapacityUnits != 1 {
		t.Errorf("%+v, %v", out.ConsumedCapacity, err)
	}
	further := l.another("sA", noon.Add(time.Second))
	expect("a writer more than there are slots", further, 2)
	further.writers[0].slot = map[bool]string{true: "sB", false: "sC"}[further.writers[0].slot != "sB"]
	expect("its next write, in another writer's slot", further, 1)
	if now := slots(len(full)); slices.Contains(now, full[0]) {
		t.Errorf("the oldest token, %s, is not replaced: %v", full[0], now)
	}
	expect("a slot that is old", l.another("sA", noon.Add(2*stampLife)), 1)
	expect("a clock that is behind", l.another("sA", noon.Add(-time.Hour)), 2)
}

// TestInstances checks that 40 requests at once over 8 instances fill a limit exactly, and that the subtraction of half
// of them is exact, while two writes in three are lost, cut, failed or throttled up to three times each. The writers
// leave slots empty, also those that are renewed after a lost write. Only a subtraction without any response, which the
// faults leave to a machine that is too slow, may stay counted.
func TestInstances(t *testing.T) {
	faults := []faultproxy.Fault{
		faultproxy.DropRequest, faultproxy.DropResponse, faultproxy.CutResponse, faultproxy.FailApplied,
		faultproxy.Throttles("UpdateItem")[0],
	}
	var mu sync.Mutex // guards attempts and counted
	attempts := map[string]uint32{}
	token := regexp.MustCompile(`":token":{"S":"([^"]*)"`)
	l, url := proxied(t, func(r *faultproxy.Request, subtracts bool) faultproxy.Fault {
		name := string(token.FindSubmatch(r.Body)[1])
		mu.Lock()
		defer mu.Unlock()
		attempts[name]++
		of, most := crc32.ChecksumIEEE([]byte(name)), uint32(4)
		if subtracts {
			most-- // a subtraction without any response would stay counted
		}
		if attempts[name] > of%most {
			return faultproxy.Deliver
		}
		return faults[of/most%uint32(len(faults))]
	})
	ctx, limit := context.Background(), Daily{"p", Credits, 23}
	type request struct {
		by    *Limiter
		count Count
	}
	var counted []request
	var group errgroup.Group
	for range 8 {
		instance := at(New(enginetest.ClientOf(url), l.table), noon)
		for range 5 {
			group.Go(func() error {
				for {
					c, _, err := instance.CountDaily(ctx, limit, 1, noon)
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						if c.By > 0 {
							counted = append(counted, request{instance, c})
						}
						return nil
					}
					for again := true; again; { // no attempt got a response
						if again, err = instance.subtract(ctx, &c); err != nil && !again {
							return err
						}
					}
				}
			})
		}
	}
	must.Succeed(t, group.Wait())
	if n, err := l.Counted(t.Context(), limit, noon); len(counted) != 23 || n != 23 || err != nil {
		t.Errorf("%d requests counted, %d stored, %v; want %d", len(counted), n, err, limit.Most)
	}
	var unanswered atomic.Int64
	for _, r := range counted {
		at(r.by, noon.Add(time.Second))
	}
	half := counted[:len(counted)/2]
	for _, r := range half {
		group.Go(func() error {
			began := time.Now()
			err := r.by.Subtract(ctx, r.count)
			if _, conflict := dynamo.ConditionFailed(err); err == nil || conflict || time.Since(began) < dynamo.AttemptTimeout {
				return err // the faults alone leave an attempt that is answered at once
			}
			unanswered.Add(1)
			return nil
		})
	}
	must.Succeed(t, group.Wait())
	n, err := l.Counted(t.Context(), limit, noon)
	if more := n - int64(len(counted)-len(half)); more < 0 || more > unanswered.Load() || err != nil {
		t.Errorf("%d left of %d, %v; %d were subtracted, %d without a response", n, len(counted), err, len(half),
			unanswered.Load())
	}
}

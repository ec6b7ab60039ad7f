package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

const someone = "+94771234567"

func limitedTo(recipients ...project.RecipientLimit) *project.Project {
	return &project.Project{ID: "p", Limits: project.Limits{Recipients: recipients}}
}

func per(messages int, window time.Duration) project.RecipientLimit {
	return project.RecipientLimit{Messages: messages, Window: window}
}

// instances returns limiters at one time.
func instances(t *testing.T, n int) ([]*Limiter, *dynamodb.Client, string) {
	client, tables := enginetest.Client(t)
	all := make([]*Limiter, n)
	for i := range all {
		all[i] = at(New(client, tables.Transient), noon.Add(time.Second))
		all[i].writeTime = time.Hour // a busy machine decides nothing
	}
	return all, client, tables.Transient
}

// docs/decisions/requests.md#recipient-limit: whatever runs at once, a window has as many messages as its limit, and a
// message that one window refuses counts in no other.
func TestMessagesAtOnce(t *testing.T) {
	all, client, table := instances(t, 8)
	p := limitedTo(per(7, 10*time.Minute), per(20, 24*time.Hour))
	round := func() int64 {
		var counted atomic.Int64
		var group errgroup.Group
		for i := range 64 {
			l := all[i%len(all)]
			group.Go(func() error {
				_, refusal, err := l.CountMessage(context.Background(), p, someone)
				if refusal == nil {
					counted.Add(1)
				}
				return err
			})
		}
		must.Succeed(t, group.Wait())
		return counted.Load()
	}
	for i, want := range []int64{7, 7, 6, 0} {
		now := noon.Add(time.Duration(i) * 10 * time.Minute)
		for _, l := range all {
			at(l, now)
		}
		if n := round(); n != want {
			t.Errorf("%d messages in window %d, want %d", n, i, want)
		}
	}
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil || len(out.Items) != 1 {
		t.Fatalf("%+v, %v", out.Items, err)
	}
	used := slotsOf(out.Items[0])
	if len(out.Items[0])-len(used) != 6 { // pk, expires, three windows and the day
		t.Errorf("%+v", out.Items[0])
	}
	for name, v := range out.Items[0] {
		if text := fmt.Sprint(name, dynamo.TextOf(v)); strings.Contains(text, "771234567") {
			t.Errorf("the item holds the number: %s", text)
		}
	}
}

// TestMessageWindows checks each window's start and end, that a refusal names the window that ends last, and that
// numbers and projects count apart.
func TestMessageWindows(t *testing.T) {
	all, _, _ := instances(t, 1)
	l := all[0]
	both := limitedTo(per(2, 10*time.Minute), per(3, 24*time.Hour))
	other := limitedTo(per(1, time.Hour))
	other.ID = "other"
	ones, reversed := limitedTo(per(1, 10*time.Minute), per(1, 24*time.Hour)),
		limitedTo(per(1, 24*time.Hour), per(1, 10*time.Minute))
	for _, step := range []struct {
		name    string
		at      time.Duration
		p       *project.Project
		to      string
		refused time.Duration // the window; 0: counted
		reset   time.Duration
	}{
		{"first", 0, both, someone, 0, 0},
		{"second", 9 * time.Minute, both, someone, 0, 0},
		{"third in ten minutes", 10*time.Minute - time.Millisecond, both, someone, 10 * time.Minute, time.Second},
		{"third, in the next window", 10 * time.Minute, both, someone, 0, 0},
		{"fourth of the day", 20 * time.Minute, both, someone, 24 * time.Hour, 11*time.Hour + 40*time.Minute},
		{"fourth of the day, from memory", 20*time.Minute + time.Second, both, someone, 24 * time.Hour,
			11*time.Hour + 40*time.Minute - time.Second},
		{"another number", 20 * time.Minute, both, "+94771234568", 0, 0},
		{"another project", 20 * time.Minute, other, someone, 0, 0},
		{"limit raised", 20*time.Minute + 2*time.Second,
			limitedTo(per(2, 10*time.Minute), per(4, 24*time.Hour)), someone, 0, 0},
		{"next day", 12 * time.Hour, both, someone, 0, 0},
		{"first in windows of one", 0, ones, "+94771234569", 0, 0},
		{"second in both", 0, ones, "+94771234569", 24 * time.Hour, 12 * time.Hour},
		{"first in the same, the longest first", 0, reversed, "+94771234570", 0, 0},
		{"second in both, the longest first", 0, reversed, "+94771234570", 24 * time.Hour, 12 * time.Hour},
	} {
		at(l, noon.Add(step.at))
		refusal := l.RecipientReached(step.p, step.to)
		if cached := strings.Contains(step.name, "memory"); (refusal != nil) != cached {
			t.Errorf("%s: from memory %+v", step.name, refusal)
		}
		if refusal == nil {
			var err error
			if _, refusal, err = l.CountMessage(t.Context(), step.p, step.to); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case (refusal != nil) != (step.refused > 0):
			t.Errorf("%s: %+v", step.name, refusal)
		case refusal != nil && (refusal.Limit.Window != step.refused || refusal.Reset != step.reset):
			t.Errorf("%s: %+v, want %s for %s", step.name, refusal, step.refused, step.reset)
		}
	}
}

// TestDays checks what fits into a day, what the cache refuses, and that days, units and projects count apart.
func TestDays(t *testing.T) {
	all, _, _ := instances(t, 1)
	l := all[0]
	d := Daily{"p", Credits, 100}
	for _, step := range []struct {
		name    string
		day     Daily
		amount  int64
		at      time.Duration // of the request
		clock   time.Duration
		refused bool
		cached  bool
	}{
		{"more than a day ever has", d, 101, 0, 0, true, true},
		{"first", d, 60, 0, 0, false, false},
		{"too much", d, 41, 0, 0, true, false},
		{"too much, from memory", d, 41, 0, time.Second, true, true},
		{"after the cached refusal", d, 41, 0, 11 * time.Second, true, false},
		{"exactly", d, 40, 0, 12 * time.Second, false, false},
		{"one more", d, 1, 0, 13 * time.Second, true, false},
		{"limit raised", Daily{"p", Credits, 101}, 1, 0, 13 * time.Second, false, false},
		{"other unit", Daily{"p", Units, 1}, 1, 0, 13 * time.Second, false, false},
		{"other project", Daily{"q", Credits, 1}, 1, 0, 13 * time.Second, false, false},
		{"before midnight", d, 1, 12*time.Hour - time.Microsecond, 12 * time.Hour, true, true},
		{"next day", d, 100, 12 * time.Hour, 12 * time.Hour, false, false},
	} {
		at(l, noon.Add(step.clock))
		if step.name == "before midnight" { // its key is of the day before, although the clock has gone on
			at(l, noon.Add(14*time.Second))
		}
		day, cached := l.DailyReached(step.day, step.amount, noon.Add(step.at))
		if cached != step.cached || !day.End().Equal(noon.Add(step.at).Truncate(24*time.Hour).Add(24*time.Hour)) {
			t.Errorf("%s: from memory %t, ends %s", step.name, cached, day.End())
		}
		if cached {
			continue
		}
		count, _, err := l.CountDaily(t.Context(), step.day, step.amount, noon.Add(step.at))
		if err != nil || (count.By == 0) != step.refused {
			t.Errorf("%s: %+v, %v", step.name, count, err)
		}
	}
}

// TestNear checks when the alert of a day is due: once for each limit, by one of two instances, also where the write
// before it is throttled (docs/decisions/requests.md#daily-limit).
func TestNear(t *testing.T) {
	throttles := 0
	l, url := proxied(t, func(r *faultproxy.Request, _ bool) faultproxy.Fault {
		if throttles++; !strings.Contains(string(r.Body), "alerted = :most") || throttles%5 == 0 {
			return faultproxy.Deliver
		}
		return faultproxy.Throttle
	})
	all := []*Limiter{l, at(New(enginetest.ClientOf(url), l.table), noon)}
	for _, step := range []struct {
		limit, amount int64
		near          bool
	}{
		{10, 7, false}, {10, 1, true}, {10, 1, false}, {100, 1, false}, {12, 1, true}, {12, 1, false}, {3, 1, false},
	} {
		count, day, err := all[0].CountDaily(t.Context(), Daily{"p", Units, step.limit}, step.amount, noon)
		if err != nil || day.Near() != step.near {
			t.Errorf("%+v: %+v, %+v, %v", step, count, day, err)
		}
		if day.Near() {
			for i, want := range []bool{true, false} {
				if mine, err := all[i].FirstAlert(t.Context(), day); err != nil || mine != want {
					t.Errorf("%+v: first %t, %v", step, mine, err)
				}
			}
		}
	}
}

// TestSubtract checks that what is subtracted can be counted again, in the windows of the count alone.
func TestSubtract(t *testing.T) {
	all, client, table := instances(t, 1)
	l := all[0]
	p := limitedTo(per(1, 10*time.Minute), per(2, 24*time.Hour))
	count, _, err := l.CountMessage(t.Context(), p, someone)
	must.Succeed(t, err)
	if _, refusal, err := l.CountMessage(t.Context(), p, someone); refusal == nil || err != nil {
		t.Fatalf("%+v, %v", refusal, err)
	}
	if err := l.Subtract(t.Context(), count); err != nil || l.RecipientReached(p, someone) != nil {
		t.Fatal(err, "or refused from memory")
	}
	again, refusal, err := l.CountMessage(t.Context(), p, someone)
	if refusal != nil || err != nil {
		t.Errorf("counted again: %+v, %v", refusal, err)
	}
	// In the next window the count of the window before is subtracted from that window and the day.
	at(l, noon.Add(10*time.Minute))
	if _, refusal, err := l.CountMessage(t.Context(), p, someone); refusal != nil || err != nil {
		t.Errorf("next window: %+v, %v", refusal, err)
	}
	if err := l.Subtract(t.Context(), again); err != nil {
		t.Error(err)
	}
	if _, refusal, err := l.CountMessage(t.Context(), p, someone); refusal == nil ||
		refusal.Limit.Window != 10*time.Minute || err != nil {
		t.Errorf("the next window has one message: %+v, %v", refusal, err)
	}

	d := Daily{"p", Units, 10}
	units, _, err := l.CountDaily(t.Context(), d, 10, noon)
	must.Succeed(t, err)
	units.By = 4
	must.Succeed(t, l.Subtract(t.Context(), units))
	wantCounted(t, "a part", l, d, 6)
	// Nothing is subtracted below zero, of an item that has expired, or of no count.
	if _, err := client.DeleteItem(t.Context(),
		&dynamodb.DeleteItemInput{TableName: &table, Key: itemKey(units.Key)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Count{units, {}} {
		if err := l.Subtract(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	wantCounted(t, "an expired item", l, d, 0)
}

// TestExpires checks the keys of the items, and that an item outlives its window by an hour, for clocks that are late.
func TestExpires(t *testing.T) {
	all, _, _ := instances(t, 1)
	l := at(all[0], noon)
	_, err := l.Count(t.Context(), limited("p", project.RateLimit{Requests: 1, Window: time.Minute}), "production")
	message, _, counted := l.CountMessage(t.Context(), limitedTo(per(1, time.Second)), someone)
	daily, _, summed := l.CountDaily(t.Context(), Daily{"p", Credits, 1}, 1, noon)
	must.Succeed(t, errors.Join(err, counted, summed))
	for pk, want := range map[string]time.Time{
		"rl#p#production#4107844800": noon.Add(time.Minute + time.Hour), message.Key: noon.Add(13 * time.Hour),
		daily.Key: noon.Add(13 * time.Hour),
	} {
		item, err := l.read(t.Context(), pk)
		if expires, _ := dynamo.NumberOf(item["expires"]); err != nil || expires != want.Unix() {
			t.Errorf("%s expires at %v, want %s; %v", pk, item["expires"], want, err)
		}
	}
}

func itemKey(pk string) dynamo.Item { return dynamo.Item{"pk": dynamo.Text(pk)} }

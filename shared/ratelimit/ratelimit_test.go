package ratelimit

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"svcapi/local/enginetest"
	"svcapi/shared/project"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// noon begins a window of a minute. It lies ahead: DynamoDB Local deletes what has expired at once.
var noon = time.Date(2100, 3, 4, 12, 0, 0, 0, time.UTC)

func at(l *Limiter, now time.Time) *Limiter {
	l.now = func() time.Time { return now }
	return l
}

// TestNeverMore: never more than the limit in a window, over all running instances; the limit itself
// is reached.
func TestNeverMore(t *testing.T) {
	for _, test := range []struct {
		name                       string
		instances, requests, limit int
	}{
		{"one instance, 20 at once", 1, 20, 5},
		{"several instances", 6, 60, 7},
		{"fewer than the limit", 2, 10, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, tables := enginetest.Client(t)
			var allowed atomic.Int64
			var group errgroup.Group
			var limiters []*Limiter
			for range test.instances {
				limiters = append(limiters, at(New(client, tables.Transient), noon.Add(time.Second)))
			}
			for i := range test.requests {
				group.Go(func() error {
					d, err := limiters[i%test.instances].Count(context.Background(), "p", "production", project.RateLimit{Requests: test.limit, Window: time.Minute})
					if d.Allowed {
						allowed.Add(1)
					} else if err == nil && d.RetryAfter != 59*time.Second {
						t.Errorf("retry after %s", d.RetryAfter)
					}
					return err
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			if want := int64(min(test.requests, test.limit)); allowed.Load() != want {
				t.Errorf("%d allowed, want %d", allowed.Load(), want)
			}
		})
	}
}

// TestWindows: windows, projects and environments count apart; Retry-After is whole seconds, at
// least 1.
func TestWindows(t *testing.T) {
	client, tables := enginetest.Client(t)
	l := New(client, tables.Transient)
	one := project.RateLimit{Requests: 1, Window: time.Minute}
	for _, step := range []struct {
		name       string
		at         time.Duration
		project    string
		env        string
		limit      project.RateLimit
		allowed    bool
		retryAfter time.Duration
	}{
		{"first", 0, "p", "production", one, true, 0},
		{"second", 0, "p", "production", one, false, time.Minute},
		{"part of a second counts as one", 500 * time.Millisecond, "p", "production", one, false, time.Minute},
		{"last moment", time.Minute - time.Millisecond, "p", "production", one, false, time.Second},
		{"other environment", time.Second, "p", "development", one, true, 0},
		{"other project", time.Second, "q", "production", one, true, 0},
		{"limit raised within the window", 2 * time.Second, "p", "production", project.RateLimit{Requests: 2, Window: time.Minute}, true, 0},
		{"and used up", 2 * time.Second, "p", "production", project.RateLimit{Requests: 2, Window: time.Minute}, false, 58 * time.Second},
		{"next window", time.Minute, "p", "production", one, true, 0},
		{"no request allowed", 0, "z", "production", project.RateLimit{Window: time.Minute}, false, time.Minute},
	} {
		got, err := at(l, noon.Add(step.at)).Count(t.Context(), step.project, step.env, step.limit)
		if err != nil || got != (Decision{step.allowed, step.retryAfter}) {
			t.Errorf("%s: %+v, %v", step.name, got, err)
		}
	}
}

// TestExhaustedIsRemembered: an instance that has seen a window exhausted answers from memory until
// the window ends, and forgets windows that are over.
func TestExhaustedIsRemembered(t *testing.T) {
	client, tables := enginetest.Client(t)
	l := at(New(client, tables.Transient), noon)
	limit := project.RateLimit{Requests: 1, Window: time.Minute}
	for range 2 {
		if _, err := l.Count(t.Context(), "p", "production", limit); err != nil {
			t.Fatal(err)
		}
	}
	nowhere, cancel := context.WithCancel(t.Context())
	cancel() // a call to the table would fail
	if d, err := l.Count(nowhere, "p", "production", limit); err != nil || d.Allowed {
		t.Errorf("within the window: %+v, %v", d, err)
	}
	if _, err := at(l, noon.Add(time.Minute)).Count(nowhere, "p", "production", limit); err == nil {
		t.Error("the next window was answered from memory")
	}
	for range 2 {
		if _, err := l.Count(t.Context(), "q", "production", limit); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.exhausted) != 1 {
		t.Errorf("remembers %d windows", len(l.exhausted))
	}
}

// TestExpires: the item is deleted by time to live, after its window.
func TestExpires(t *testing.T) {
	client, tables := enginetest.Client(t)
	if _, err := at(New(client, tables.Transient), noon).Count(t.Context(), "p", "production", project.RateLimit{Requests: 1, Window: time.Minute}); err != nil {
		t.Fatal(err)
	}
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tables.Transient})
	if err != nil || len(out.Items) != 1 {
		t.Fatalf("%d items, %v", len(out.Items), err)
	}
	item := out.Items[0]
	pk, _ := item["pk"].(*types.AttributeValueMemberS)
	expires, _ := item["expires"].(*types.AttributeValueMemberN)
	if pk == nil || pk.Value != "rl#p#production#4107844800" || expires == nil || expires.Value != "4107848460" {
		t.Errorf("item %v", item)
	}
}

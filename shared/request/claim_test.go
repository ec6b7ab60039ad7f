package request

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/shared/dynamo"
	"svcapi/test/enginetest"
	"svcapi/test/faultproxy"
	"svcapi/test/must"
	"svcapi/test/wallettest"
)

var (
	body, doneOutcome = []byte(`{"to":"x"}`), []byte("done")
	died, _           = encodeOutcome(nil, errDied)
)

// keepDone and freeKey end a request with its key.
func keepDone(c *claim) error { return c.keep(context.Background(), doneOutcome) }
func freeKey(c *claim) error  { return c.free(context.Background()) }

// testStore returns a store with a clock that the test moves.
func testStore(t *testing.T) (*keyStore, *time.Time) {
	t.Helper()
	client, tables := enginetest.Client(t)
	clock := time.Now()
	return &keyStore{client, tables.Transient, func() time.Time { return clock }}, &clock
}

func claimKey(t *testing.T, s *keyStore, key string, body []byte) (*claim, []byte, error) {
	t.Helper()
	return s.claim(t.Context(), "acme", "development", key, body, s.now().Add(28*time.Second))
}

func win(t *testing.T, s *keyStore, key string) *claim {
	t.Helper()
	c, _, err := claimKey(t, s, key, body)
	if err != nil || c == nil {
		t.Fatalf("claim %v, %v", c, err)
	}
	return c
}

// TestRepeat checks which outcome a repeat of a key gets (docs/decisions/extensions.md#idempotency-repeats).
func TestRepeat(t *testing.T) {
	s, clock := testStore(t)
	start := *clock
	big := make([]byte, maxPacked-1000) // random bytes do not compress, and need some more when packed
	_, _ = rand.Read(big)
	tooLarge := func(c *claim) error {
		if err := c.keep(context.Background(), slices.Concat(big, big[:1000])); !errors.Is(err, errOutcomeTooLarge) {
			return fmt.Errorf("too large an outcome: %w", err)
		}
		return nil
	}
	for i, c := range []struct {
		name  string
		first func(*claim) error
		after time.Duration
		body  []byte
		want  []byte // the outcome
		err   error
		wins  bool
	}{
		{"while the first runs", nil, 0, body, nil, errRunning, false},
		{"until it must be dead", nil, 87 * time.Second, body, nil, errRunning, false},
		{"the moment that it must be dead", nil, 88 * time.Second, body, died, nil, false},
		{"once it must be dead", nil, 89 * time.Second, body, died, nil, false},
		{"with another body, while the first runs", nil, 0, []byte("other"), nil, errOtherBody, false},
		{"with another body, afterwards", keepDone, 0, []byte("other"), nil, errOtherBody, false},
		{"of what was kept", keepDone, 0, body, doneOutcome, nil, false},
		{"of what was kept, a day later", keepDone, 24*time.Hour - 2*time.Second, body, doneOutcome, nil, false},
		{"of the most that is kept", func(c *claim) error { return c.keep(context.Background(), big) }, time.Hour,
			body, big, nil, false},
		{"of too much, which is not kept", tooLarge, 0, body, nil, errRunning, false},
		{"of nothing", func(c *claim) error { return c.keep(context.Background(), nil) }, 0, body, []byte{}, nil, false},
		{"after it was freed", freeKey, 0, body, nil, nil, true},
		{"after it was freed, with another body", freeKey, 0, []byte("other"), nil, nil, true},
		{"the second of its expiry", keepDone, 24 * time.Hour, body, nil, nil, true},
		{"after its expiry, whether the table has deleted it or not", keepDone,
			24*time.Hour + time.Second, body, nil, nil, true},
		{"after the expiry of a dead one", nil, 24*time.Hour + time.Second, body, nil, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			*clock = start
			key := fmt.Sprintf("key-%d", i)
			first := win(t, s, key)
			if c.first != nil {
				must.Succeed(t, c.first(first))
			}
			*clock = start.Add(c.after)
			won, outcome, err := claimKey(t, s, key, c.body)
			if (won != nil) != c.wins || !errors.Is(err, c.err) || !bytes.Equal(outcome, c.want) {
				t.Errorf("won %v, %d bytes, %v; want %v, %d bytes, %v", won != nil, len(outcome), err, c.wins, len(c.want), c.err)
			}
		})
	}
}

// TestLateEnds checks that a claim which counts as dead, or has lost its key to a later claim, changes nothing more.
func TestLateEnds(t *testing.T) {
	for _, test := range []struct {
		after   time.Duration
		wins    bool // a later claim
		outcome []byte
	}{{2 * time.Minute, false, died}, {25 * time.Hour, true, doneOutcome}} {
		s, clock := testStore(t)
		first := win(t, s, "k")
		*clock = clock.Add(test.after)
		second, _, err := claimKey(t, s, "k", body)
		must.Succeed(t, err)
		err = first.keep(t.Context(), []byte("late"))
		if errors.Is(err, errNotOwned) != test.wins || (second != nil) != test.wins {
			t.Errorf("after %s: %v; the later claim is %+v", test.after, err, second)
		}
		must.Succeed(t, first.free(t.Context()))
		if second != nil {
			if _, _, err := claimKey(t, s, "k", body); !errors.Is(err, errRunning) {
				t.Errorf("the second's key is gone: %v", err)
			}
			must.Succeed(t, keepDone(second))
		}
		if _, outcome, err := claimKey(t, s, "k", body); err != nil || !bytes.Equal(outcome, test.outcome) {
			t.Errorf("after %s: %q, %v", test.after, outcome, err)
		}
	}
}

// behind returns the store behind a proxy with the faults.
func (s *keyStore) behind(t *testing.T, faults *wallettest.Faults) *keyStore {
	return &keyStore{faults.Client(t), s.table, s.now}
}

// TestLostResponses checks that an attempt whose response is lost is recognised, that a claim without a response leaves
// the key free, and that throttles change nothing.
func TestLostResponses(t *testing.T) {
	throttles := strings.Repeat("t", 20)
	for _, test := range []struct {
		name       string
		of, list   string // the operation, and the faults of its calls
		then       func(*claim) error
		claimFails bool
		thenFails  bool
		want       string // what a repeat finds: an outcome, "free" or "running"
	}{
		{"a claim's", "PutItem", "d", keepDone, false, false, "done"},
		{"all of a claim's", "PutItem", "ddd", nil, true, false, "free"},
		{"an outcome's", "UpdateItem", "d", keepDone, false, false, "done"},
		{"all of an outcome's", "UpdateItem", "ddd", keepDone, false, true, "done"},
		{"a release's", "PutItem", ".d", freeKey, false, false, "free"},
		{"all of a release's", "PutItem", ".ddd", freeKey, false, true, "free"},
		{"throttles of a claim", "PutItem", throttles, keepDone, false, false, "done"},
		{"throttles of an outcome", "UpdateItem", throttles, keepDone, false, false, "done"},
		{"throttles of a release", "PutItem", "." + throttles, freeKey, false, false, "free"},
	} {
		t.Run(test.name, func(t *testing.T) {
			direct, _ := testStore(t)
			c, _, err := claimKey(t, direct.behind(t, &wallettest.Faults{Of: test.of, List: test.list}), "k", body)
			if (err != nil) != test.claimFails || (c == nil) != test.claimFails {
				t.Fatalf("claim %v, %v", c, err)
			}
			if test.then != nil {
				if err := test.then(c); (err != nil) != test.thenFails {
					t.Errorf("then %v", err)
				}
			}
			again, outcome, err := claimKey(t, direct, "k", body)
			if err != nil || (again != nil) != (test.want == "free") || again == nil && string(outcome) != test.want {
				t.Errorf("a repeat: won %t, %q, %v; want %s", again != nil, outcome, err, test.want)
			}
		})
	}
}

// TestLateClaims checks that a copy of a claim which arrives after the claim was freed, or after the request gave the
// claim up, does not claim the key again (docs/decisions/extensions.md#idempotency-outcomes).
func TestLateClaims(t *testing.T) {
	ahead := func() time.Time { return time.Now().Add(time.Minute) } // the clock of another instance
	for _, test := range []struct{ delivered, dropped int }{{0, 1}, {0, 3}, {1, 1}} {
		client, tables := enginetest.Client(t)
		if test.delivered > 0 { // the first write of a claim is refused, and the second write is late
			must.Succeed(t, win(t, &keyStore{client, tables.Transient, ahead}, "k").free(t.Context()))
		}
		late := &wallettest.Faults{List: strings.Repeat(".", test.delivered) + strings.Repeat("x", test.dropped)}
		c, _, err := claimKey(t, &keyStore{late.Client(t), tables.Transient, time.Now}, "k", body)
		if lost := test.dropped == 3; (err != nil) != lost || (c == nil) != lost {
			t.Fatalf("claim %v, %v", c, err)
		}
		if c != nil {
			must.Succeed(t, c.free(t.Context()))
		}
		between := win(t, &keyStore{client, tables.Transient, time.Now}, "k") // frees the key, too
		must.Succeed(t, between.free(t.Context()))
		late.DeliverLate(t)
		behind := func() time.Time { return time.Now().Add(-time.Second) } // the clock of another instance
		next := win(t, &keyStore{client, tables.Transient, behind}, "k")
		if err := keepDone(next); err != nil {
			t.Error(err)
		}
	}
}

// TestLateLoser checks that a late copy of a claim which lost to another request does not claim the key once that
// request has freed the key, although the write that frees the key began before the claim.
func TestLateLoser(t *testing.T) {
	s, clock := testStore(t)
	holder := win(t, s, "k")
	late := &wallettest.Faults{List: "x"}
	loser := &keyStore{late.Client(t), s.table,
		func() time.Time { return clock.Add(dynamo.WriteTimeout - time.Second) }}
	if _, _, err := claimKey(t, loser, "k", body); !errors.Is(err, errRunning) {
		t.Fatal(err)
	}
	must.Succeed(t, holder.free(t.Context()))
	late.DeliverLate(t)
	win(t, s, "k")
}

// TestDeadClaimChanges checks the result of a repeat that finds a dead claim while that claim, or another, changes.
func TestDeadClaimChanges(t *testing.T) {
	for _, test := range []struct {
		name      string
		meanwhile func(*claim) error
		outcome   string
		err       error
	}{
		{"it ends after all", keepDone, "done", nil},
		{"it is freed", freeKey, "", errRunning},
	} {
		t.Run(test.name, func(t *testing.T) {
			var first *claim
			direct, clock := testStore(t)
			s := direct.behind(t, &wallettest.Faults{Before: func(operation string) {
				if operation == "UpdateItem" {
					if err := test.meanwhile(first); err != nil {
						t.Error(err)
					}
				}
			}})
			first = win(t, direct, "k")
			*clock = clock.Add(2 * time.Minute)
			if _, outcome, err := claimKey(t, s, "k", body); !errors.Is(err, test.err) || string(outcome) != test.outcome {
				t.Errorf("%q, %v; want %q, %v", outcome, err, test.outcome, test.err)
			}
		})
	}
}

// TestScope checks that projects and environments have separate keys.
func TestScope(t *testing.T) {
	s, _ := testStore(t)
	until := time.Now().Add(time.Minute)
	for _, scope := range [][2]string{{"acme", "development"}, {"acme", "production"}, {"other", "development"}} {
		if c, _, err := s.claim(t.Context(), scope[0], scope[1], "k", body, until); c == nil || err != nil {
			t.Errorf("%v: %v, %v", scope, c, err)
		}
	}
}

// TestOneWins checks that one of many requests wins, also with lost requests and responses and with late copies
// (docs/decisions/extensions.md#idempotency-repeats).
func TestOneWins(t *testing.T) {
	_, tables := enginetest.Client(t)
	rng := mathrand.New(mathrand.NewPCG(4, 36))
	var mu sync.Mutex
	var late []*faultproxy.Request
	proxy := enginetest.Faulty(t, func(r *faultproxy.Request) faultproxy.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch rng.IntN(10) {
		case 0:
			return faultproxy.DropRequest
		case 1:
			return faultproxy.DropResponse
		case 2:
			late = append(late, r)
			return faultproxy.DropRequest
		}
		return faultproxy.Deliver
	})
	workers := make([]*keyStore, 8)
	for i := range workers {
		once := func(o *dynamodb.Options) { o.Retryer = dynamo.Retryer(0) }
		workers[i] = &keyStore{enginetest.ClientOf(proxy.URL(fmt.Sprintf("w%d", i)), once), tables.Transient, time.Now}
	}
	for round := range 40 {
		key := fmt.Sprintf("round-%d", round)
		var winners atomic.Int32
		var all sync.WaitGroup
		for _, s := range workers {
			all.Go(func() {
				c, _, err := s.claim(context.Background(), "acme", "development", key, body, time.Now().Add(time.Minute))
				if err == nil && c != nil {
					winners.Add(1)
				}
			})
		}
		all.Wait()
		mu.Lock()
		copies := late
		late = nil
		mu.Unlock()
		for _, r := range copies {
			_ = r.Deliver(context.Background())
		}
		if n := winners.Load(); n > 1 {
			t.Fatalf("round %d: %d winners", round, n)
		}
	}
}

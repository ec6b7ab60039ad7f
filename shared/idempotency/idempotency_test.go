package idempotency

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/local/enginetest"
	"svcapi/local/faultproxy"
	"svcapi/shared/awsclient"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

var (
	body = []byte(`{"to":"x"}`)
	died = []byte("died")
)

// testStore is a store with a clock that the test moves.
func testStore(t *testing.T) (*Store, *time.Time) {
	t.Helper()
	client, tables := enginetest.Client(t)
	s := New(client, tables.Transient)
	clock := time.Now()
	s.now = func() time.Time { return clock }
	return s, &clock
}

func claim(t *testing.T, s *Store, key string, body []byte) (*Claim, []byte, error) {
	t.Helper()
	return s.Claim(t.Context(), "acme", "development", key, body, s.now().Add(28*time.Second), died)
}

func win(t *testing.T, s *Store, key string) *Claim {
	t.Helper()
	c, _, err := claim(t, s, key, body)
	if err != nil || c == nil {
		t.Fatalf("claim %v, %v", c, err)
	}
	return c
}

// decisions on Idempotency-Key: what a repeat finds.
func TestRepeat(t *testing.T) {
	s, clock := testStore(t)
	start := *clock
	big := make([]byte, 1_200_000) // does not compress: four parts
	_, _ = rand.Read(big)
	cases := []struct {
		name  string
		first func(*Claim) error
		after time.Duration
		body  []byte
		want  []byte // the outcome
		err   error
		wins  bool
	}{
		{"while the first runs", nil, 0, body, nil, ErrRunning, false},
		{"until it must be dead", nil, 87 * time.Second, body, nil, ErrRunning, false},
		{"once it must be dead", nil, 89 * time.Second, body, died, nil, false},
		{"with another body, while the first runs", nil, 0, []byte("other"), nil, ErrOtherBody, false},
		{"with another body, afterwards", func(c *Claim) error { return c.Keep(context.Background(), []byte("done")) }, 0, []byte("other"), nil, ErrOtherBody, false},
		{"of what was kept", func(c *Claim) error { return c.Keep(context.Background(), []byte("done")) }, 0, body, []byte("done"), nil, false},
		{"of what was kept, a day later", func(c *Claim) error { return c.Keep(context.Background(), []byte("done")) }, 24*time.Hour - 2*time.Second, body, []byte("done"), nil, false},
		{"of more than an item holds", func(c *Claim) error { return c.Keep(context.Background(), big) }, time.Hour, body, big, nil, false},
		{"of nothing", func(c *Claim) error { return c.Keep(context.Background(), nil) }, 0, body, []byte{}, nil, false},
		{"after it was freed", func(c *Claim) error { return c.Free(context.Background()) }, 0, body, nil, nil, true},
		{"after it was freed, with another body", func(c *Claim) error { return c.Free(context.Background()) }, 0, []byte("other"), nil, nil, true},
		{"after its expiry, whether the table has deleted it or not", func(c *Claim) error { return c.Keep(context.Background(), []byte("done")) }, 24*time.Hour + time.Second, body, nil, nil, true},
		{"after the expiry of a dead one", nil, 24*time.Hour + time.Second, body, nil, nil, true},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			*clock = start
			key := fmt.Sprintf("key-%d", i)
			first := win(t, s, key)
			if c.first != nil {
				if err := c.first(first); err != nil {
					t.Fatal(err)
				}
			}
			*clock = start.Add(c.after)
			won, outcome, err := claim(t, s, key, c.body)
			if (won != nil) != c.wins || !errors.Is(err, c.err) || !bytes.Equal(outcome, c.want) {
				t.Errorf("won %v, %d bytes, %v; want %v, %d bytes, %v", won != nil, len(outcome), err, c.wins, len(c.want), c.err)
			}
		})
	}
}

// A claim that was taken for dead and lives on changes nothing any more.
func TestDeadClaimsAreFinal(t *testing.T) {
	s, clock := testStore(t)
	first := win(t, s, "k")
	*clock = clock.Add(2 * time.Minute)
	if _, outcome, err := claim(t, s, "k", body); err != nil || !bytes.Equal(outcome, died) {
		t.Fatalf("%q, %v", outcome, err)
	}
	if err := first.Keep(t.Context(), []byte("late")); !errors.Is(err, errNotMine) && err != nil {
		t.Fatal(err)
	}
	if err := first.Free(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, outcome, err := claim(t, s, "k", body); err != nil || !bytes.Equal(outcome, died) {
		t.Errorf("then %q, %v", outcome, err)
	}
}

// Keys are apart by project and environment.
func TestScope(t *testing.T) {
	s, _ := testStore(t)
	until := time.Now().Add(time.Minute)
	for _, scope := range [][2]string{{"acme", "development"}, {"acme", "production"}, {"other", "development"}} {
		if c, _, err := s.Claim(t.Context(), scope[0], scope[1], "k", body, until, died); c == nil || err != nil {
			t.Errorf("%v: %v, %v", scope, c, err)
		}
	}
}

// One of many wins, whatever gets lost on the way: requests, answers, and
// copies that arrive late.
func TestOneWins(t *testing.T) {
	_, tables := enginetest.Client(t)
	rng := mathrand.New(mathrand.NewPCG(4, 36))
	var mu sync.Mutex
	var late []*faultproxy.Request
	proxy, err := faultproxy.Start(enginetest.URL(t), func(r *faultproxy.Request) faultproxy.Fate {
		mu.Lock()
		defer mu.Unlock()
		switch rng.IntN(10) {
		case 0:
			return faultproxy.DropRequest
		case 1:
			return faultproxy.DropAnswer
		case 2:
			late = append(late, r)
			return faultproxy.DropRequest
		}
		return faultproxy.Deliver
	})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	cfg := aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")}
	workers := make([]*Store, 8)
	for i := range workers {
		workers[i] = New(awsclient.DynamoDB(cfg, func(o *dynamodb.Options) {
			o.BaseEndpoint = aws.String(proxy.URL(fmt.Sprintf("w%d", i)))
			o.Retryer = awsclient.Retryer(0)
		}), tables.Transient)
	}
	for round := range 40 {
		key := fmt.Sprintf("round-%d", round)
		var winners atomic.Int32
		var all sync.WaitGroup
		for _, s := range workers {
			all.Go(func() {
				c, _, err := s.Claim(context.Background(), "acme", "development", key, body, time.Now().Add(time.Minute), died)
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

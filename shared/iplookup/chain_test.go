package iplookup

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/shared/api"
	"svcapi/shared/clock"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/test/clocktest"
)

// played is a vendor whose answers a test sets.
type played struct {
	err   error
	asked int
	given []time.Duration // time that each call had
	waits bool            // for the end of its time
}

func (p *played) ask(ctx context.Context, _ Caller, _ netip.Addr) (string, error) {
	p.asked++
	if deadline, ok := ctx.Deadline(); ok {
		p.given = append(p.given, time.Until(deadline).Round(time.Millisecond))
	}
	if p.waits {
		<-ctx.Done()
		return "", &upstream.Error{Class: upstream.NoAnswer, Detail: ctx.Err().Error()}
	}
	return "answer", p.err
}

// bench is a chain over three played vendors, the last one uncached.
type bench struct {
	*Chain[string]
	a, b, c  *played
	accounts []upstream.Account
}

func newBench(goOn bool, seconds int) *bench {
	t := &bench{a: &played{}, b: &played{}, c: &played{}}
	var table []Vendor[string]
	for i, p := range []*played{t.a, t.b, t.c} {
		name := string(rune('a' + i))
		table = append(table, Vendor[string]{Spec: upstream.Spec{Name: name, Endpoint: "https://" + name}, Ask: p.ask, Uncached: name == "c"})
		t.accounts = append(t.accounts, upstream.Account{Project: "p", Integration: project.Integration{ID: name, Vendor: name}})
	}
	t.Chain = NewChain(Config{CacheSeconds: seconds}, table, goOn, upstream.New(upstream.Config{}), nil)
	return t
}

var (
	address = netip.MustParseAddr("112.134.0.1")
	refused = &upstream.Error{Class: upstream.NotSent, Detail: "refused"}
)

// Several active integrations are a fail-over chain by priority.
func TestChain(t *testing.T) {
	broken := &upstream.Error{Class: upstream.Unusable, Detail: "page"}
	for _, c := range []struct {
		name    string
		goOn    bool
		a, b, c error
		vendor  string // that answered, or was asked last
		failed  string
		err     error // that the answer's error wraps; nil: there is an answer
	}{
		{"the first answers", true, nil, nil, nil, "a", "", nil},
		{"the second answers", true, refused, nil, nil, "b", "a:not_sent", nil},
		{"the third answers", true, refused, broken, nil, "c", "a:not_sent b:unusable_answer", nil},
		{"none answers", true, refused, broken, refused, "c", "a:not_sent b:unusable_answer c:not_sent", broken},
		{"unknown to the first, asked on", true, ErrUnknown, nil, nil, "b", "a:unknown", nil},
		{"unknown to all", true, ErrUnknown, ErrUnknown, ErrUnknown, "c", "a:unknown b:unknown c:unknown", ErrUnknown},
		{"unknown to the first, not asked on", false, ErrUnknown, nil, nil, "a", "", ErrUnknown},
		{"unknown to the second", false, refused, ErrUnknown, nil, "b", "a:not_sent", ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(c.goOn, 0)
			b.a.err, b.b.err, b.c.err = c.a, c.b, c.c
			answer, err := b.Ask(t.Context(), b.accounts, address)
			if answer.Vendor != c.vendor || strings.Join(answer.Failed, " ") != c.failed || (err == nil) != (c.err == nil) || !errors.Is(err, c.err) {
				t.Errorf("%+v, %v", answer, err)
			}
			if err == nil && answer.Value != "answer" {
				t.Errorf("the value is %q", answer.Value)
			}
		})
	}
}

// A breaker spares the wait for a vendor that fails again and again; it never
// leaves nobody to ask.
func TestBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(true, 0)
		b.a.err = refused
		look := func(addr string) (Answer[string], error) {
			return b.Ask(t.Context(), b.accounts[:2], netip.MustParseAddr(addr))
		}
		for range 10 {
			if answer, err := look("1.1.1.1"); err != nil || answer.Vendor != "b" {
				t.Fatalf("%+v, %v", answer, err)
			}
		}
		if b.a.asked == 10 || b.b.asked != 10 {
			t.Errorf("the broken vendor was asked %d times, the good one %d times", b.a.asked, b.b.asked)
		}
		asked := b.a.asked
		b.b.err = refused
		if _, err := look("1.1.1.1"); err == nil || b.a.asked != asked+1 {
			t.Errorf("%v; the broken vendor was asked %d times more", err, b.a.asked-asked)
		}
		b.a.err = nil
		if answer, err := look("1.1.1.1"); err != nil || answer.Vendor != "a" || answer.Value != "answer" {
			t.Errorf("with both broken, the one that works again: %+v, %v", answer, err)
		}
		b.b.err = nil
		time.Sleep(time.Minute)
		for range 2 {
			if answer, err := look("1.1.1.1"); err != nil || answer.Vendor != "a" {
				t.Errorf("after a while the first comes first again: %+v, %v", answer, err)
			}
		}

		b.a.err, b.b.asked = ErrUnknown, 0
		for range 20 {
			_, _ = look("1.1.1.2")
		}
		b.a.err = nil
		if answer, _ := look("1.1.1.3"); answer.Vendor != "a" {
			t.Errorf("an unknown address counts as the vendor's failure: %+v", answer)
		}
	})
}

// A freeze counts: what was kept before it is as old as the wall time says.
func TestFreeze(t *testing.T) {
	frozen := clocktest.New()
	b := newBench(true, 60)
	b.cache.clock = clock.Of(frozen.Now)
	for _, step := range []struct {
		frozen time.Duration
		cached bool
	}{{0, false}, {0, true}, {time.Hour, false}} {
		frozen.Move(step.frozen)
		if answer, err := b.Ask(t.Context(), b.accounts[:1], address); err != nil || answer.Cached != step.cached {
			t.Errorf("%v: %+v, %v", step, answer, err)
		}
	}
}

// A hanging vendor leaves the others their share of the time.
func TestTimeIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(true, 0)
		b.a.waits, b.b.waits = true, true
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		answer, err := b.Ask(ctx, b.accounts, address)
		if err != nil || answer.Vendor != "c" {
			t.Errorf("%+v, %v", answer, err)
		}
		for _, p := range []*played{b.a, b.b, b.c} {
			if !slices.Equal(p.given, []time.Duration{3 * time.Second}) {
				t.Errorf("a vendor was given %v", p.given)
			}
		}
	})
}

// The cache: short, for one project, never of an integration as it was before.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(true, 60)
		first, third := b.accounts[:1], b.accounts[2:]
		ask := func(accounts []upstream.Account, addr netip.Addr) bool {
			answer, err := b.Ask(t.Context(), accounts, addr)
			if err != nil || answer.Value != "answer" || answer.Vendor != accounts[0].Integration.Vendor {
				t.Fatalf("%+v, %v", answer, err)
			}
			return answer.Cached
		}
		other := slices.Clone(first)
		other[0].Project = "other"
		changed := slices.Clone(first)
		changed[0].Integration.Updated = time.Now()
		for i, c := range []struct {
			accounts []upstream.Account
			addr     netip.Addr
			cached   bool
		}{
			{first, address, false},
			{first, address, true},
			{first, address.Next(), false},
			{other, address, false},
			{changed, address, false},
			{third, address, false},
			{third, address, false}, // uncached
		} {
			if cached := ask(c.accounts, c.addr); cached != c.cached {
				t.Errorf("look-up %d: cached is %v", i, cached)
			}
		}
		time.Sleep(59 * time.Second)
		if !ask(first, address) {
			t.Error("forgotten early")
		}
		time.Sleep(2 * time.Second)
		if ask(first, address) {
			t.Error("kept too long")
		}
		addr := netip.MustParseAddr("20.0.0.0")
		for range 3 * maxAnswers {
			addr = addr.Next()
			ask(first, addr)
		}
		if !ask(first, addr) {
			t.Error("the newest answer is gone")
		}
	})
}

func TestAccounts(t *testing.T) {
	b := newBench(true, 0)
	for _, in := range [][]project.Integration{nil, {{Vendor: "nobody"}}, {{Vendor: "a", Settings: map[string]string{"endpoint": "http://a"}}}} {
		_, err := b.Accounts(t.Context(), "p", in)
		var e *api.Error
		if !errors.As(err, &e) || e.Code != api.CodeProviderSelection {
			t.Errorf("%v: %v", in, err)
		}
	}
	accounts, err := b.Accounts(t.Context(), "p", []project.Integration{{Vendor: "nobody"}, {Vendor: "b"}})
	if err != nil || len(accounts) != 1 || accounts[0].Integration.Vendor != "b" {
		t.Errorf("%v, %v", accounts, err)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		Config
		good bool
	}{
		{Config{CacheSeconds: 60, SecretCacheSeconds: 300}, true},
		{Config{}, true},
		{Config{CacheSeconds: -1}, false},
		{Config{CacheSeconds: 3601}, false},
		{Config{SecretCacheSeconds: -1}, false},
		{Config{SecretCacheSeconds: 3601}, false},
	} {
		if err := c.Validate(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.Config, err)
		}
	}
}

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

	"svcapi/shared/cache"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/test/clocktest"
)

// fakeVendor is a vendor whose results a test sets.
type fakeVendor struct {
	err   error
	asked int
	given []time.Duration // time that each call had
	waits bool            // for the end of its time
}

func (p *fakeVendor) ask(ctx context.Context, _ vendors.Caller, _ netip.Addr) (string, error) {
	p.asked++
	if deadline, ok := ctx.Deadline(); ok {
		p.given = append(p.given, time.Until(deadline).Round(time.Millisecond))
	}
	if p.waits {
		<-ctx.Done()
		return "", &upstream.Error{Class: upstream.NoResponse, Detail: ctx.Err().Error()}
	}
	return "value", p.err
}

// fixture is a chain over three fake vendors, the last one uncached.
type fixture struct {
	*Chain[string]
	a, b, c  *fakeVendor
	accounts []upstream.Account
}

func newFixture(continues bool, seconds int) *fixture {
	t := &fixture{a: &fakeVendor{}, b: &fakeVendor{}, c: &fakeVendor{}}
	var table []vendors.Vendor[string]
	for i, p := range []*fakeVendor{t.a, t.b, t.c} {
		name := string(rune('a' + i))
		table = append(table, vendors.Vendor[string]{Spec: upstream.Spec{Name: name, Endpoint: "https://" + name}, Ask: p.ask,
			Uncached: name == "c"})
		t.accounts = append(t.accounts,
			upstream.Account{Project: "p", Integration: project.Integration{ID: name, Vendor: name}})
	}
	t.Chain = NewChain(Config{CacheSeconds: seconds}, func() []vendors.Vendor[string] { return table }, nil)
	t.ContinueOnUnknown = continues
	return t
}

var (
	address = netip.MustParseAddr("112.134.0.1")
	refused = &upstream.Error{Class: upstream.NotSent, Detail: "refused"}
)

// Several active integrations are a fail-over chain by priority (docs/decisions/look-ups.md#unknown-address).
func TestChain(t *testing.T) {
	broken := &upstream.Error{Class: upstream.Unusable, Detail: "page"}
	for _, c := range []struct {
		name      string
		continues bool
		a, b, c   error
		vendor    string // that returned the result, or was called last
		failed    string
		err       error // that the error wraps; nil for a result
	}{
		{"the first has a result", true, nil, nil, nil, "a", "", nil},
		{"the second has a result", true, refused, nil, nil, "b", "a:not_sent", nil},
		{"the third has a result", true, refused, broken, nil, "c", "a:not_sent b:unusable_response", nil},
		{"none has a result", true, refused, broken, refused, "c", "a:not_sent b:unusable_response c:not_sent", broken},
		{"unknown to the first, asked on", true, vendors.ErrUnknown, nil, nil, "b", "a:unknown", nil},
		{"unknown to all", true, vendors.ErrUnknown, vendors.ErrUnknown, vendors.ErrUnknown, "c",
			"a:unknown b:unknown c:unknown", vendors.ErrUnknown},
		{"unknown to the first, not asked on", false, vendors.ErrUnknown, nil, nil, "a", "", vendors.ErrUnknown},
		{"unknown to the second", false, refused, vendors.ErrUnknown, nil, "b", "a:not_sent", vendors.ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newFixture(c.continues, 0)
			b.a.err, b.b.err, b.c.err = c.a, c.b, c.c
			result, err := b.Ask(t.Context(), b.accounts, address)
			if result.Vendor != c.vendor || strings.Join(result.Failed, " ") != c.failed || (err == nil) != (c.err == nil) ||
				!errors.Is(err, c.err) {
				t.Errorf("%+v, %v", result, err)
			}
			if err == nil && result.Value != "value" {
				t.Errorf("the value is %q", result.Value)
			}
		})
	}
}

// TestBreakers: the chain calls a vendor that fails again and again last, and never skips it.
func TestBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(true, 0)
		b.a.err = refused
		look := func(addr string) (Result[string], error) {
			return b.Ask(t.Context(), b.accounts[:2], netip.MustParseAddr(addr))
		}
		for range 10 {
			if result, err := look("1.1.1.1"); err != nil || result.Vendor != "b" {
				t.Fatalf("%+v, %v", result, err)
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
		if result, err := look("1.1.1.1"); err != nil || result.Vendor != "a" || result.Value != "value" {
			t.Errorf("with both broken, the one that works again: %+v, %v", result, err)
		}
		b.b.err = nil
		time.Sleep(time.Minute)
		for range 2 {
			if result, err := look("1.1.1.1"); err != nil || result.Vendor != "a" {
				t.Errorf("after a while the first comes first again: %+v, %v", result, err)
			}
		}

		b.a.err, b.b.asked = vendors.ErrUnknown, 0
		for range 20 {
			_, _ = look("1.1.1.2")
		}
		b.a.err = nil
		if result, _ := look("1.1.1.3"); result.Vendor != "a" {
			t.Errorf("an unknown address counts as the vendor's failure: %+v", result)
		}
	})
}

// With all circuits open and no time left, the look-up fails and names a vendor.
func TestNoTimeLeft(t *testing.T) {
	b := newFixture(true, 0)
	b.a.err = refused
	for range 10 {
		_, _ = b.Ask(t.Context(), b.accounts[:1], address)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if result, err := b.Ask(ended, b.accounts[:1], address); err == nil || result.Vendor != "a" {
		t.Errorf("%+v, %v", result, err)
	}
}

// A freeze counts: cached results age by the wall time.
func TestFreeze(t *testing.T) {
	frozen := clocktest.New()
	b := newFixture(true, 60)
	b.cache.Clock = cache.ClockOf(frozen.Now)
	for _, step := range []struct {
		frozen time.Duration
		cached bool
	}{{0, false}, {0, true}, {time.Hour, false}} {
		frozen.Move(step.frozen)
		if result, err := b.Ask(t.Context(), b.accounts[:1], address); err != nil || result.Cached != step.cached {
			t.Errorf("%v: %+v, %v", step, result, err)
		}
	}
}

// A vendor that hangs leaves the other vendors their share of the time.
func TestTimeIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(true, 0)
		b.a.waits, b.b.waits = true, true
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		result, err := b.Ask(ctx, b.accounts, address)
		if err != nil || result.Vendor != "c" {
			t.Errorf("%+v, %v", result, err)
		}
		for _, p := range []*fakeVendor{b.a, b.b, b.c} {
			if !slices.Equal(p.given, []time.Duration{3 * time.Second}) {
				t.Errorf("a vendor was given %v", p.given)
			}
		}
	})
}

// TestCache: the cache is short, for one project and its unchanged integration
// (docs/decisions/look-ups.md#lookup-cache).
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(true, 60)
		first, third := b.accounts[:1], b.accounts[2:]
		ask := func(accounts []upstream.Account, addr netip.Addr) bool {
			result, err := b.Ask(t.Context(), accounts, addr)
			if err != nil || result.Value != "value" || result.Vendor != accounts[0].Integration.Vendor {
				t.Fatalf("%+v, %v", result, err)
			}
			return result.Cached
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
			t.Error("removed from the cache early")
		}
		time.Sleep(2 * time.Second)
		if ask(first, address) {
			t.Error("kept too long")
		}
		addr := netip.MustParseAddr("20.0.0.0")
		for range 3 * maxResults {
			addr = addr.Next()
			ask(first, addr)
		}
		if !ask(first, addr) {
			t.Error("the newest result is gone")
		}
	})
}

func TestAccounts(t *testing.T) {
	b, call := newFixture(true, 0), &request.Call{Project: &project.Project{ID: "p"}}
	for _, in := range [][]project.Integration{nil, {{Vendor: "nobody"}},
		{{Vendor: "a", Settings: map[string]string{"endpoint": "http://a"}}}} {
		_, err := b.Accounts(t.Context(), call, in)
		if e, ok := errors.AsType[*request.Error](err); !ok || e.Code != request.CodeProviderSelection {
			t.Errorf("%v: %v", in, err)
		}
	}
	accounts, err := b.Accounts(t.Context(), call, []project.Integration{{Vendor: "nobody"}, {Vendor: "b"}})
	if err != nil || len(accounts) != 1 || accounts[0].Integration.Vendor != "b" {
		t.Errorf("%v, %v", accounts, err)
	}
}

func TestConfig(t *testing.T) {
	for seconds, good := range map[int]bool{60: true, 0: true, -1: false, 3601: false} {
		c := Config{Upstream: upstream.Config{TimeoutSeconds: 10}, CacheSeconds: seconds}
		if err := c.Validate(); (err == nil) != good {
			t.Errorf("%d: %v", seconds, err)
		}
	}
}

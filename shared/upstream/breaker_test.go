package upstream

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/shared/cache"
	"svcapi/shared/project"
	"svcapi/test/clocktest"
)

// A circuit opens after consecutive failures and stays open for a while. Then the circuit is half-open: it permits one
// call at a time, and a success closes it.
func TestBreakers(t *testing.T) {
	const open, almost = openFor + time.Nanosecond, openFor - time.Nanosecond
	type step struct {
		after  time.Duration
		class  Class // of the call's error; empty for a success
		made   bool  // the call, as the circuit lets it through
		closed bool  // the circuit, before the call
	}
	failed := []step{{0, NotSent, true, true}, {0, NotSent, true, true}, {0, NotSent, true, true}}
	for _, c := range []struct {
		name  string
		steps []step // after those of failed
	}{
		{"left alone", []step{{0, "", false, false}, {almost, "", false, false}}},
		{"up again", []step{{open, "", true, false}, {0, NotSent, true, true},
			{0, NotSent, true, true}, {0, "", true, true}}},
		{"a response closes", []step{{open, Rejected, true, false}, {0, "", true, true}}},
		{"an uncertain outcome closes", []step{{open, NoResponse, true, false}, {0, "", true, true}}},
		{"still down", []step{{open, NotSent, true, false}, {almost, "", false, false},
			{open, "", true, false}, {0, "", true, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, account := NewBreakers(), Account{Project: "p", Integration: project.Integration{ID: "i", Vendor: "v"}}
				for i, s := range append(failed[:3:3], c.steps...) {
					time.Sleep(s.after)
					if got := b.Closed(account); got != s.closed {
						t.Errorf("step %d: closed %t", i, got)
					}
					made := false
					_, err := Call(t.Context(), b, nil, account, func(Account) (int, error) {
						made = true
						if s.class != "" {
							return 0, &Error{Class: s.class, Vendor: "v"}
						}
						return 1, nil
					})
					if made != s.made || errors.Is(err, ErrOpen) == s.made || !s.made && ClassOf(err) != NotSent {
						t.Errorf("step %d: made %t, %v", i, made, err)
					}
				}
				other, moved, region := account, account, account
				other.Owner, moved.Endpoint, region.Settings = "q", "https://other.example",
					map[string]string{"region": "eu-west-1"}
				for _, a := range []Account{other, moved, region} {
					if !b.Closed(a) {
						t.Errorf("the circuit of %s at %q %v has another one's failures", a.Owner, a.Endpoint, a.Settings)
					}
				}
			})
		})
	}
}

// docs/decisions/sms.md#pace: a refusal for pace opens the circuit for the named pause, or for a doubled one.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, account := NewBreakers(), Account{Project: "p", Integration: project.Integration{ID: "i", Vendor: "v"}}
		began := time.Now()
		for i, step := range []struct {
			named, want time.Duration // the pause; 0: the call succeeds
		}{{0, time.Second}, {0, 2 * time.Second}, {0, 4 * time.Second}, {7 * time.Second, 7 * time.Second}, {0,
			16 * time.Second}, {0, 16 * time.Second}, {}, {0, time.Second}, {time.Hour, openFor}} {
			var failed error
			if step.want > 0 {
				failed = &Error{Class: TooFast, Vendor: "v", Pause: step.named}
			}
			var calls sync.WaitGroup
			for range 2 { // of a burst the first refusal alone counts
				calls.Go(func() {
					_, err := Call(t.Context(), b, nil, account,
						func(Account) (int, error) { time.Sleep(time.Millisecond); return 0, failed })
					if !errors.Is(err, failed) {
						t.Errorf("step %d after %v: %v", i, time.Since(began), err)
					}
				})
			}
			calls.Wait()
			_, err := Call(t.Context(), b, nil, account, func(Account) (int, error) { return 0, failed })
			if left := b.Pause(account, nil); left != step.want || errors.Is(err, ErrPaused) != (step.want > 0) ||
				step.want > 0 && ClassOf(err) != NotSent {
				t.Errorf("step %d: paused for %v, %v", i, left, err)
			}
			time.Sleep(step.want)
		}
	})
}

// A half-open circuit permits one call and forbids another one at the same time.
func TestOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, account := NewBreakers(), Account{Project: "p", Integration: project.Integration{ID: "i", Vendor: "v"}}
		call := func(err error) error {
			_, err = Call(t.Context(), b, nil, account, func(Account) (int, error) {
				time.Sleep(time.Second)
				return 0, err
			})
			return err
		}
		for range tripAfter {
			_ = call(&Error{Class: NotSent})
		}
		time.Sleep(openFor + time.Nanosecond)
		probe := make(chan error)
		go func() { probe <- call(nil) }()
		synctest.Wait()
		if err := call(nil); !errors.Is(err, ErrOpen) || b.Closed(account) {
			t.Errorf("beside the probe: %v, closed %t", err, b.Closed(account))
		}
		if err := <-probe; err != nil || !b.Closed(account) || call(nil) != nil {
			t.Errorf("the probe: %v, closed %t", err, b.Closed(account))
		}
	})
}

// A circuit stays open for its time by the wall clock: a vendor that failed before a freeze is called after the freeze.
func TestBreakersFreeze(t *testing.T) {
	frozen := clocktest.New()
	b := NewBreakers()
	b.clock = cache.ClockOf(frozen.Now)
	refused := &Error{Class: NotSent}
	asked := func(err error) bool {
		made := false
		_, _ = Call(t.Context(), b, nil, Account{Project: "p"}, func(Account) (int, error) {
			made = true
			return 0, err
		})
		return made
	}
	for range tripAfter {
		if !asked(refused) {
			t.Fatal("the circuit opens too soon")
		}
	}
	for _, step := range []struct {
		frozen time.Duration
		result error
		asked  bool
		closed bool // afterwards
	}{
		{0, nil, false, false}, {openFor - time.Second, nil, false, false},
		{time.Hour, refused, true, false}, {0, nil, false, false}, // one call, which opens it again
		{time.Hour, nil, true, true},
	} {
		frozen.Move(step.frozen)
		if made := asked(step.result); made != step.asked || b.Closed(Account{Project: "p"}) != step.closed {
			t.Errorf("%v: a call was made: %v, closed: %v", step, made, !step.closed)
		}
	}
	// A clock that is set back does not keep the circuit open.
	for range tripAfter {
		asked(refused)
	}
	frozen.Move(-time.Hour)
	if !asked(nil) {
		t.Error("a clock that was set back keeps the circuit open")
	}
}

// A call that began before a change of the circuit has no effect, and a panic is an error without a class.
func TestBreakersLate(t *testing.T) {
	b, account := NewBreakers(), Account{Project: "p"}
	fail := func(Account) (int, error) { return 0, &Error{Class: NotSent} }
	// a success that ends after the circuit has opened
	_, _ = Call(t.Context(), b, nil, account, func(Account) (int, error) {
		for range tripAfter {
			_, _ = Call(t.Context(), b, nil, account, fail)
		}
		return 1, nil
	})
	if b.Closed(account) {
		t.Error("a call from before closes an open circuit")
	}
	// A failure that ends after the circuit has closed again opens no circuit of later calls.
	clock := clocktest.New()
	b = NewBreakers()
	b.clock = cache.ClockOf(clock.Now)
	succeed := func(Account) (int, error) { return 1, nil }
	_, _ = Call(t.Context(), b, nil, account, func(Account) (int, error) {
		for range tripAfter {
			_, _ = Call(t.Context(), b, nil, account, fail)
		}
		clock.Move(openFor + time.Second)
		_, _ = Call(t.Context(), b, nil, account, succeed)
		for range tripAfter - 1 {
			_, _ = Call(t.Context(), b, nil, account, fail)
		}
		return 0, &Error{Class: NotSent}
	})
	if !b.Closed(account) {
		t.Error("a call from before opens a closed circuit")
	}
	for breakers, closed := range map[*Breakers]bool{
		NewBreakers(): true, NewBreakersOn(func(error) bool { return true }): false,
	} {
		for range tripAfter {
			func() {
				defer func() { _ = recover() }()
				_, _ = Call(t.Context(), breakers, nil, account, func(Account) (int, error) { panic("broken") })
			}()
		}
		if breakers.Closed(account) != closed || !breakers.Closed(Account{Project: "q"}) {
			t.Errorf("after panics: closed %v, for another project %v", !closed, breakers.Closed(Account{Project: "q"}))
		}
	}
}

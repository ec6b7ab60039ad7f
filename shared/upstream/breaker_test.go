package upstream

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/shared/project"
)

// A circuit opens after failures in a row and stays open for a while. Then it takes one call at a time, and closes when
// that has succeeded.
func TestBreakers(t *testing.T) {
	const open, almost = openFor + time.Nanosecond, openFor - time.Nanosecond
	type step struct {
		after  time.Duration
		answer Class // of the call; empty: a success
		made   bool  // the call, as the circuit lets it through
		closed bool  // the circuit, before the call
	}
	failed := []step{{0, NotSent, true, true}, {0, NotSent, true, true}, {0, NotSent, true, true}}
	for _, c := range []struct {
		name  string
		steps []step // after those of failed
	}{
		{"left alone", []step{{0, "", false, false}, {almost, "", false, false}}},
		{"up again", []step{{open, "", true, false}, {0, NotSent, true, true}, {0, NotSent, true, true}, {0, "", true, true}}},
		{"an answer closes", []step{{open, Rejected, true, false}, {0, "", true, true}}},
		{"an uncertain outcome closes", []step{{open, NoAnswer, true, false}, {0, "", true, true}}},
		{"still down", []step{{open, NotSent, true, false}, {almost, "", false, false}, {open, "", true, false}, {0, "", true, true}}},
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
					_, err := Through(b, account, func() (int, error) {
						made = true
						if s.answer != "" {
							return 0, &Error{Class: s.answer, Vendor: "v"}
						}
						return 1, nil
					})
					if made != s.made || errors.Is(err, ErrOpen) == s.made || !s.made && ClassOf(err) != NotSent {
						t.Errorf("step %d: made %t, %v", i, made, err)
					}
				}
				other, moved := account, account
				other.Project, moved.Endpoint = "q", "https://other.example"
				for _, a := range []Account{other, moved} {
					if !b.Closed(a) {
						t.Errorf("the circuit of %s at %q has another one's failures", a.Project, a.Endpoint)
					}
				}
			})
		})
	}
}

// A circuit that is about to close takes one call; another one at the same time is not made.
func TestOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, account := NewBreakers(), Account{Project: "p", Integration: project.Integration{ID: "i", Vendor: "v"}}
		call := func(err error) error {
			_, err = Through(b, account, func() (int, error) {
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

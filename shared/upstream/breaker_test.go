package upstream

import (
	"errors"
	"testing"
	"time"

	"svcapi/local/clocktest"
	"svcapi/shared/clock"
)

// A circuit stays open for its time by the wall clock: a vendor that failed before a freeze is asked after it.
func TestBreakersFreeze(t *testing.T) {
	frozen := clocktest.New()
	b := NewBreakers()
	b.clock = clock.Of(frozen.Now)
	refused := &Error{Class: NotSent}
	asked := func(err error) bool {
		made := false
		_, _ = Through(b, Account{Project: "p"}, func() (int, error) {
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
		asked  bool
	}{{0, false}, {openFor - time.Second, false}, {time.Hour, true}} {
		frozen.Move(step.frozen)
		if made := asked(nil); made != step.asked {
			t.Errorf("%v: a call was made: %v", step, made)
		}
	}
	// It opens again, for its time.
	for range tripAfter {
		asked(refused)
	}
	if _, err := Through(b, Account{Project: "p"}, func() (int, error) { return 0, nil }); !errors.Is(err, ErrOpen) {
		t.Errorf("%v", err)
	}
}

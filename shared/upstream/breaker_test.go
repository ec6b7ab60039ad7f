package upstream

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/shared/project"
)

var errBroken = errors.New("broken")

// A vendor that fails again and again is left alone for a while, then tried with one call.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreakers()
		in := project.Integration{ID: "development/security/ipinfo", Updated: time.Now()}
		call := func(failure error) bool {
			done, ok := b.Allow("p", in)
			if ok {
				done(failure)
			}
			return ok
		}
		for i := range tripAfter - 1 {
			if !call(errBroken) {
				t.Fatalf("open after %d failures", i)
			}
		}
		if !call(nil) {
			t.Fatal("open too early")
		}
		for range tripAfter { // a success starts the count anew
			if !call(errBroken) {
				t.Fatal("open too early")
			}
		}
		if call(nil) {
			t.Error("closed after a row of failures")
		}
		if done, ok := b.Allow("other", in); !ok {
			t.Error("open for another project too")
		} else {
			done(nil)
		}
		changed := in
		changed.Updated = in.Updated.Add(time.Second)
		if done, ok := b.Allow("p", changed); !ok {
			t.Error("open for the changed integration too")
		} else {
			done(nil)
		}

		time.Sleep(openFor + time.Millisecond)
		done, ok := b.Allow("p", in)
		if !ok {
			t.Fatal("no trial call after the pause")
		}
		if call(nil) {
			t.Error("a second call beside the trial call")
		}
		done(errBroken)
		if call(nil) {
			t.Error("closed after a failed trial call")
		}
		time.Sleep(openFor + time.Millisecond)
		if !call(nil) || !call(nil) {
			t.Error("open after a good trial call")
		}
	})
}

func TestBreakersAreBounded(t *testing.T) {
	b := NewBreakers()
	for i := range 3 * maxBreakers {
		if done, ok := b.Allow("p", project.Integration{Updated: time.Unix(int64(i), 0)}); ok {
			done(nil)
		}
	}
	if n := len(b.breakers); n > maxBreakers {
		t.Errorf("%d breakers are kept", n)
	}
}

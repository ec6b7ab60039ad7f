package cache_test

import (
	"testing"
	"time"

	"svcapi/shared/cache"
	"svcapi/test/clocktest"
)

// A Clock's age follows the wall time, that by time.Now the monotonic clock (docs/decisions/operating.md#wall-clock).
func TestNow(t *testing.T) {
	var machine cache.Clock
	if before, now, after := time.Now(), machine.Now(), time.Now(); now.Before(before.Round(0)) ||
		now.After(after.Round(0)) {
		t.Errorf("%s is not between %s and %s", now, before, after)
	}
	if now := machine.Now(); now != now.Round(0) {
		t.Errorf("%s has a monotonic reading", now)
	}

	frozen := clocktest.New()
	c := cache.ClockOf(frozen.Now)
	raw, wall := frozen.Now(), c.Now()
	frozen.Move(time.Hour)
	if age := frozen.Now().Sub(raw); age != 0 {
		t.Errorf("the monotonic clock has moved by %s", age)
	}
	if age := c.Now().Sub(wall); age != time.Hour {
		t.Errorf("the age is %s", age)
	}
}

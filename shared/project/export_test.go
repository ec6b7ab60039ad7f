package project

import (
	"time"

	"svcapi/shared/cache"
)

// SetClock sets the clock of a cache.
func (c *Cache) SetClock(now func() time.Time) { c.clock = cache.ClockOf(now) }

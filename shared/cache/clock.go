package cache

import "time"

// Clock returns wall times without a monotonic reading, for the age of cached state. The monotonic clock may stop while
// Lambda keeps an execution environment frozen, so that a record from before the freeze would seem too young. The zero
// Clock is the machine's clock.
type Clock struct{ source func() time.Time }

// ClockOf returns a clock with another source, such as a test's.
func ClockOf(source func() time.Time) Clock { return Clock{source} }

// Fresh reports that the state of a time is younger than life. State of the future, which remains after the clock was
// set back, is not fresh.
func (c Clock) Fresh(at time.Time, life time.Duration) bool {
	age := c.Now().Sub(at)
	return 0 <= age && age < life
}

// Now returns the current time without a monotonic reading.
func (c Clock) Now() time.Time {
	if c.source == nil {
		return time.Now().Round(0)
	}
	return c.source().Round(0)
}

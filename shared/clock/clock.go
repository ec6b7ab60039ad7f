// Package clock gives the time by which cached state ages.
//
// A time.Time of time.Now holds two readings, and the difference of two such times uses the monotonic one. That clock
// may stop while Lambda keeps an execution environment frozen: by it, a record that was read an hour ago is as young as
// before the freeze. The times of this package hold the wall time alone.
package clock

import "time"

// Clock gives the present wall time. The zero Clock is the machine's.
type Clock struct{ source func() time.Time }

// Of returns a clock that reads a source, such as a test's.
func Of(source func() time.Time) Clock { return Clock{source} }

// Now returns the present time without a monotonic reading.
func (c Clock) Now() time.Time {
	if c.source == nil {
		return time.Now().Round(0)
	}
	return c.source().Round(0)
}

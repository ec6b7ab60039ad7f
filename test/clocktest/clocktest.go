// Package clocktest simulates the clock of an execution environment that Lambda has frozen: the wall time moves, the
// monotonic clock stops. AwayFromWindowEnd keeps a test that counts requests out of the last minute of a window,
// and Beside measures how late a machine's clocks ring.
package clocktest

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// Clock is a clock whose wall time a test moves.
type Clock struct {
	start time.Time
	moved atomic.Int64 // nanoseconds
}

// New returns a clock that shows the present time.
func New() *Clock { return &Clock{start: time.Now()} }

// Move moves the wall time.
func (c *Clock) Move(by time.Duration) { c.moved.Add(int64(by)) }

// Now returns the moved wall time with the monotonic reading of the start.
//
// Package time cannot construct such a value. Its first word holds the wall time: 30 bits of nanoseconds, and above
// them 33 bits of seconds. The top bit marks a monotonic reading.
func (c *Clock) Now() time.Time {
	now, moved := c.start, time.Duration(c.moved.Load())
	seconds := uint64(now.Round(0).Add(moved).Unix() - now.Unix())
	word := (*uint64)(unsafe.Pointer(&now))
	*word = (*word>>30+seconds)<<30 | uint64(now.Round(0).Add(moved).Nanosecond())
	if now.Sub(c.start) != 0 || now.Round(0).Sub(c.start.Round(0)) != moved {
		panic("package time keeps its readings in another way than this test knows")
	}
	return now
}

// AwayFromWindowEnd waits while a window of 12 or 24 hours ends within a minute: the windows begin at 00:00 and 12:00
// UTC, and a test that counts in one window must not end in the next.
func AwayFromWindowEnd(t testing.TB) {
	t.Helper()
	const window = 12 * time.Hour
	<-time.After(time.Until(time.Now().Add(time.Minute).Truncate(window)))
}

// Beside starts pauses, one after another, and returns a function that waits for them and returns how long they took. A
// test compares a time limit with it: a busy machine ends both late.
func Beside(pauses ...time.Duration) func() time.Duration {
	took := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		for _, d := range pauses {
			<-time.After(d)
		}
		took <- time.Since(began)
	}()
	return func() time.Duration { return <-took }
}

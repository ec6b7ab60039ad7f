// Package clocktest plays the clock of an execution environment that Lambda has frozen: the wall time moves, the
// monotonic clock stands still.
package clocktest

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Clock is a clock whose wall time a test moves.
type Clock struct {
	start time.Time
	moved atomic.Int64 // whole seconds
}

// New returns a clock that shows the present time.
func New() *Clock { return &Clock{start: time.Now()} }

// Move moves the wall time by whole seconds.
func (c *Clock) Move(by time.Duration) { c.moved.Add(int64(by / time.Second)) }

// Now returns the moved wall time with the monotonic reading of the start.
//
// Package time offers no way to make such a value. Its first word holds the seconds of the wall time in the bits from 30
// on, while the top bit says that there is a monotonic reading.
func (c *Clock) Now() time.Time {
	now := c.start
	*(*uint64)(unsafe.Pointer(&now)) += uint64(c.moved.Load()) << 30
	if now.Sub(c.start) != 0 || now.Unix()-c.start.Unix() != c.moved.Load() {
		panic("package time keeps its readings in another way than this test knows")
	}
	return now
}

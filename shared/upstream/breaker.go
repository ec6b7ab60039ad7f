package upstream

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"svcapi/shared/bounded"
	"svcapi/shared/clock"
)

const (
	tripAfter   = 3                // connection failures in a row
	openFor     = 30 * time.Second // a vendor that cannot be reached is skipped
	maxCircuits = 10_000           // integrations that an instance remembers
)

// ErrOpen says that a call was not made because its circuit is open.
var ErrOpen = errors.New("circuit open")

// errPanicked is the outcome of a call that panics.
var errPanicked = errors.New("panic")

// Breakers hold a circuit for each integration, so that one project's trouble
// closes nothing for another. A circuit opens when calls fail again and again.
type Breakers struct {
	fails func(error) bool
	clock clock.Clock

	mu       sync.Mutex // of what the circuits hold
	circuits *bounded.Map[string, *circuit]
}

// circuit is closed, or open for a while. Then it takes one call, which closes it or opens it again.
type circuit struct {
	turn     int       // counts the changes of state: the outcome of a call that began before one says nothing
	failures int       // in a row, while it is closed
	until    time.Time // zero: it is closed
	probing  bool      // the one call is under way
}

// change closes the circuit, or opens it until a time.
func (c *circuit) change(until time.Time) { *c = circuit{turn: c.turn + 1, until: until} }

// NewBreakers returns closed circuits for sends: they open when connecting
// fails; whatever a vendor answers keeps them closed.
func NewBreakers() *Breakers {
	return NewBreakersOn(func(err error) bool { return ClassOf(err) == NotSent })
}

// NewBreakersOn returns closed circuits that count the errors for which fails
// says yes.
func NewBreakersOn(fails func(error) bool) *Breakers {
	return &Breakers{fails: fails, circuits: bounded.New[string, *circuit](maxCircuits)}
}

// Through makes a call unless the account's circuit is open. The error of an
// open one wraps ErrOpen and an *Error of class NotSent.
func Through[T any](b *Breakers, account Account, call func() (T, error)) (result T, err error) {
	c, turn := b.begin(account)
	if c == nil {
		return result, fmt.Errorf("%w: %w", ErrOpen, &Error{Class: NotSent, Vendor: account.Integration.Vendor, Detail: "left alone after failures in a row"})
	}
	outcome := errPanicked
	defer func() { b.end(c, turn, outcome != nil && b.fails(outcome)) }()
	result, err = call()
	outcome = err
	return result, err
}

// Closed reports whether the account's circuit lets every call through. A caller
// with many calls makes one call first while the circuit is not closed: after its
// time the circuit takes one call alone, and closes when that call succeeds.
func (b *Breakers) Closed(account Account) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit(account).until.IsZero()
}

// begin takes a call in. The circuit is nil where the call is not to be made.
func (b *Breakers) begin(account Account) (c *circuit, turn int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c = b.circuit(account)
	if !c.until.IsZero() {
		// A wall clock that was set back keeps no circuit open for longer.
		if left := c.until.Sub(b.clock.Now()); c.probing || 0 < left && left <= openFor {
			return nil, 0
		}
		c.probing = true
	}
	return c, c.turn
}

// end counts the outcome of a call.
func (b *Breakers) end(c *circuit, turn int, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.turn != turn {
		return
	}
	switch {
	case !failed && c.probing:
		c.change(time.Time{})
	case !failed:
		c.failures = 0
	default:
		if c.failures++; c.probing || c.failures >= tripAfter {
			c.change(b.clock.Now().Add(openFor))
		}
	}
}

// circuit returns the account's.
func (b *Breakers) circuit(account Account) *circuit {
	// An endpoint that an operator corrects starts anew.
	key := account.Project + "/" + account.Integration.ID + " " + account.Endpoint
	return b.circuits.GetOrPut(key, &circuit{})
}

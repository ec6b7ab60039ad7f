package upstream

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"svcapi/shared/cache"
)

const (
	tripAfter   = 3 // consecutive failures
	openFor     = 30 * time.Second
	maxCircuits = 10_000 // in one instance
)

// ErrOpen reports that a call was not made because its circuit is open.
var ErrOpen = errors.New("circuit open")

// errPanicked is the outcome of a call that panics.
var errPanicked = errors.New("panic")

// Breakers hold one circuit for each integration, so that a project's failures open no circuit of another project.
type Breakers struct {
	fails func(error) bool
	clock cache.Clock

	mu       sync.Mutex // guards the fields of the circuits
	circuits *cache.Map[string, *circuit]
}

// circuit is closed, open or half-open. A half-open circuit permits one call, which closes or reopens the circuit.
type circuit struct {
	epoch    int       // counts the changes of state, so that calls of an earlier epoch have no effect
	failures int       // consecutive failures of the closed circuit
	until    time.Time // the end of the open state; zero for a closed circuit
	probing  bool      // the call of the half-open circuit is running
}

// change closes the circuit, or opens the circuit until a time.
func (c *circuit) change(until time.Time) { *c = circuit{epoch: c.epoch + 1, until: until} }

// NewBreakers returns closed circuits for sends. A circuit opens when connections fail; a response of any kind closes it.
func NewBreakers() *Breakers {
	return NewBreakersOn(func(err error) bool { return ClassOf(err) == NotSent })
}

// NewBreakersOn returns closed circuits that count the errors for which fails returns true.
func NewBreakersOn(fails func(error) bool) *Breakers {
	return &Breakers{fails: fails, circuits: cache.New[string, *circuit](maxCircuits)}
}

// Call makes a call, or returns ErrOpen joined with an *Error of class NotSent where the account's circuit is open.
func Call[T any](b *Breakers, account Account, call func() (T, error)) (result T, err error) {
	c, epoch := b.begin(account)
	if c == nil {
		return result, fmt.Errorf("%w: %w", ErrOpen, &Error{Class: NotSent, Vendor: account.Integration.Vendor, Detail: "not called after consecutive failures"})
	}
	err = errPanicked // until the call returns
	defer func() { b.end(c, epoch, err != nil && b.fails(err)) }()
	return call()
}

// Closed reports whether the account's circuit is closed. A caller with many calls makes one call first while the circuit is
// not closed, because a half-open circuit permits only one call.
func (b *Breakers) Closed(account Account) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit(account).until.IsZero()
}

// begin returns the circuit for a call, or nil where the circuit forbids the call.
func (b *Breakers) begin(account Account) (c *circuit, epoch int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c = b.circuit(account)
	if !c.until.IsZero() {
		// The second condition limits the time after the wall clock was set back.
		if left := c.until.Sub(b.clock.Now()); c.probing || 0 < left && left <= openFor {
			return nil, 0
		}
		c.probing = true
	}
	return c, c.epoch
}

// end records the outcome of a call.
func (b *Breakers) end(c *circuit, epoch int, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.epoch != epoch {
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

func (b *Breakers) circuit(account Account) *circuit {
	// A corrected endpoint has a new circuit.
	key := account.Project + "/" + account.Integration.ID + " " + account.Endpoint
	return b.circuits.GetOrPut(key, &circuit{})
}

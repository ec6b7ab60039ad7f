package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"svcapi/shared/cache"
)

const (
	tripAfter   = 3 // consecutive failures
	openFor     = 30 * time.Second
	shortPause  = time.Second // after a refusal for pace that names none; each further refusal doubles the pause
	maxCircuits = 10_000      // in one instance
)

var (
	// ErrOpen reports that a call was not made because its circuit is open.
	ErrOpen = errors.New("circuit open")
	// ErrPaused reports that a call was not made because the vendor has refused the account's pace.
	ErrPaused = errors.New("too fast")
)

var errPanicked = errors.New("panic")

// Breakers hold one circuit for each integration, so that a project's failures open no circuit of another project. For
// sends the projects share the circuit of a Managed account, because they share the account's pace.
type Breakers struct {
	fails func(error) bool
	owner func(Account) string // of a circuit
	clock cache.Clock

	mu       sync.Mutex // guards the fields of the circuits
	circuits *cache.Map[string, *circuit]
}

// circuit is closed, open or half-open. A half-open circuit permits one call, which closes or reopens the circuit.
// After a refusal for pace the circuit is open for the pause, and then permits all calls (docs/decisions/sms.md#pace).
type circuit struct {
	epoch    int       // counts the changes of state, so that calls of an earlier epoch have no effect
	failures int       // consecutive failures of the closed circuit
	until    time.Time // the end of the open state; zero for a closed circuit
	probing  bool      // the call of the half-open circuit is running
	pauses   int       // consecutive refusals for pace that have opened the circuit; 0: the circuit has no pause
}

// change closes the circuit, or opens the circuit until a time.
func (c *circuit) change(until time.Time) { *c = circuit{epoch: c.epoch + 1, until: until} }

// NewBreakers returns closed circuits for sends. A circuit opens when connections fail; a response of any kind closes
// it.
func NewBreakers() *Breakers {
	b := NewBreakersOn(func(err error) bool { return ClassOf(err) == NotSent })
	b.owner = func(a Account) string { return a.Owner }
	return b
}

// NewBreakersOn returns closed circuits that count the errors for which fails returns true.
func NewBreakersOn(fails func(error) bool) *Breakers {
	project := func(a Account) string { return a.Project }
	return &Breakers{fails: fails, owner: project, circuits: cache.New[string, *circuit](maxCircuits)}
}

// Closed reports whether the account's circuit is closed. A caller with many calls makes one call first while the
// circuit is not closed, because a half-open circuit permits only one call.
func (b *Breakers) Closed(account Account) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit(account).until.IsZero()
}

// Pause returns the pause before the next call of an account after the error of a call: the rest of the circuit's
// pause, and after a refusal for pace at least that of the refusal, which may have come too late for the circuit.
func (b *Breakers) Pause(account Account, err error) (pause time.Duration) {
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Class == TooFast {
		pause = max(refusal.Pause, shortPause)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.circuit(account); c.pauses > 0 {
		pause = max(pause, b.left(c))
	}
	return pause
}

// left returns the rest of the circuit's open state. The bound limits the time after the wall clock was set back.
func (b *Breakers) left(c *circuit) time.Duration {
	if left := c.until.Sub(b.clock.Now()); 0 < left && left <= openFor {
		return left
	}
	return 0
}

// begin returns the circuit for a call. The error wraps ErrOpen or ErrPaused where the circuit forbids the call.
func (b *Breakers) begin(account Account) (c *circuit, epoch int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c = b.circuit(account)
	if !c.until.IsZero() {
		if c.probing || b.left(c) > 0 {
			err = ErrOpen
			if c.pauses > 0 {
				err = ErrPaused
			}
			refusal := &Error{Class: NotSent, Vendor: account.Integration.Vendor, Detail: "not called: " + err.Error()}
			return nil, 0, fmt.Errorf("%w: %w", err, refusal)
		}
		c.probing = c.pauses == 0
	}
	return c, c.epoch, nil
}

func (b *Breakers) end(c *circuit, epoch int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.epoch != epoch {
		return
	}
	refusal, _ := errors.AsType[*Error](err)
	failed := err != nil && b.fails(err)
	switch {
	case refusal != nil && refusal.Class == TooFast:
		pauses := c.pauses + 1
		c.change(b.clock.Now().Add(min(openFor, cmp.Or(refusal.Pause, shortPause<<min(pauses-1, 4)))))
		c.pauses = pauses
	case !failed && !c.until.IsZero():
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
	// A corrected endpoint has a new circuit. AWS' regions have a circuit each, as they have a pace each.
	key := b.owner(account) + "/" + account.Integration.ID + " " + cmp.Or(account.Endpoint, account.Settings["region"])
	return b.circuits.GetOrPut(key, &circuit{})
}

// Call makes a call with an account, through the circuit of the account. Where the circuit is open, the error wraps an
// *Error of class NotSent, and ErrPaused after a refusal for pace, else ErrOpen. Where the vendor refuses a secret
// that has changed since it was read, because of a rotation, Call repeats the call once with the new secret. Call
// ignores the circuit where breakers is nil.
func Call[T any](
	ctx context.Context, breakers *Breakers, secrets *SecretCache, account Account, call func(Account) (T, error),
) (result T, err error) {
	if breakers != nil {
		c, epoch, open := breakers.begin(account)
		if open != nil {
			return result, open
		}
		err = errPanicked // until the call returns
		defer func() { breakers.end(c, epoch, err) }()
	}
	result, err = call(account)
	if err == nil || ClassOf(err) != CredentialsRefused || len(account.Secrets) == 0 {
		return result, err
	}
	in := account.Integration
	fresh, changed, readErr := secrets.Refresh(ctx, in.Kind, account.Owner, in.Environment, in.Vendor, account.Secrets)
	if readErr != nil || !changed {
		return result, err
	}
	account.Secrets = fresh
	return call(account)
}

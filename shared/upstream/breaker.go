package upstream

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"svcapi/shared/clock"
)

const (
	tripAfter   = 3                // connection failures in a row
	openFor     = 30 * time.Second // a vendor that cannot be reached is skipped
	maxCircuits = 10_000           // integrations that an instance remembers
)

// ErrOpen says that a call was not made because its circuit is open.
var ErrOpen = errors.New("circuit open")

// Breakers hold a circuit for each integration, so that one project's trouble
// closes nothing for another. A circuit opens when calls fail again and again.
type Breakers struct {
	fails func(error) bool
	clock clock.Clock

	mu       sync.Mutex
	circuits map[string]*circuit
}

// circuit is a breaker and the wall time in milliseconds at which it opened. The breaker counts the time for which it
// is open by the monotonic clock, which may stand still while the environment is frozen.
type circuit struct {
	*gobreaker.CircuitBreaker[struct{}]
	opened atomic.Int64
}

// over tells that a circuit that is open to its own clock has been open long enough by the wall time.
func (c *circuit) over(now time.Time) bool {
	return c.State() == gobreaker.StateOpen && now.Sub(time.UnixMilli(c.opened.Load())) > openFor
}

// NewBreakers returns closed circuits for sends: they open when connecting
// fails; whatever a vendor answers keeps them closed.
func NewBreakers() *Breakers {
	return NewBreakersOn(func(err error) bool { return ClassOf(err) == NotSent })
}

// NewBreakersOn returns closed circuits that count the errors for which fails
// says yes.
func NewBreakersOn(fails func(error) bool) *Breakers {
	return &Breakers{fails: fails, circuits: map[string]*circuit{}}
}

// Through makes a call unless the account's circuit is open. The error of an
// open one wraps ErrOpen and an *Error of class NotSent.
func Through[T any](b *Breakers, account Account, call func() (T, error)) (result T, err error) {
	_, err = b.circuit(account).Execute(func() (struct{}, error) {
		result, err = call()
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = fmt.Errorf("%w: %w", ErrOpen, &Error{Class: NotSent, Vendor: account.Integration.Vendor, Detail: "left alone after failures in a row"})
	}
	return result, err
}

func (b *Breakers) circuit(account Account) *circuit {
	// An endpoint that an operator corrects starts anew.
	key := account.Project + "/" + account.Integration.ID + " " + account.Endpoint
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[key]
	if c == nil || c.over(b.clock.Now()) {
		if len(b.circuits) >= maxCircuits {
			clear(b.circuits)
		}
		c = &circuit{}
		c.CircuitBreaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
			Timeout:      openFor,
			ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
			IsSuccessful: func(err error) bool { return err == nil || !b.fails(err) },
			OnStateChange: func(_ string, _, to gobreaker.State) {
				if to == gobreaker.StateOpen {
					c.opened.Store(b.clock.Now().UnixMilli())
				}
			},
		})
		b.circuits[key] = c
	}
	return c
}

package upstream

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
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

	mu       sync.Mutex
	circuits map[string]*gobreaker.CircuitBreaker[struct{}]
}

// NewBreakers returns closed circuits for sends: they open when connecting
// fails; whatever a vendor answers keeps them closed.
func NewBreakers() *Breakers {
	return NewBreakersOn(func(err error) bool { return ClassOf(err) == NotSent })
}

// NewBreakersOn returns closed circuits that count the errors for which fails
// says yes.
func NewBreakersOn(fails func(error) bool) *Breakers {
	return &Breakers{fails: fails, circuits: map[string]*gobreaker.CircuitBreaker[struct{}]{}}
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

// Closed reports whether the account's circuit lets every call through. A caller
// with many calls makes one call first while the circuit is not closed: after its
// time the circuit takes one call alone, and closes when that call succeeds.
func (b *Breakers) Closed(account Account) bool {
	return b.circuit(account).State() == gobreaker.StateClosed
}

func (b *Breakers) circuit(account Account) *gobreaker.CircuitBreaker[struct{}] {
	// An endpoint that an operator corrects starts anew.
	key := account.Project + "/" + account.Integration.ID + " " + account.Endpoint
	b.mu.Lock()
	defer b.mu.Unlock()
	circuit := b.circuits[key]
	if circuit == nil {
		if len(b.circuits) >= maxCircuits {
			clear(b.circuits)
		}
		circuit = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
			Timeout:      openFor,
			ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
			IsSuccessful: func(err error) bool { return err == nil || !b.fails(err) },
		})
		b.circuits[key] = circuit
	}
	return circuit
}

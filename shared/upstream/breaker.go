package upstream

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	tripAfter   = 3                // connection failures in a row
	openFor     = 30 * time.Second // a vendor that cannot be reached is skipped
	maxCircuits = 10_000           // integrations that an instance remembers
)

// Breakers hold a circuit for each integration, so that one project's trouble
// closes nothing for another. A circuit opens when connecting fails again and
// again; whatever a vendor answers keeps it closed.
type Breakers struct {
	mu       sync.Mutex
	circuits map[string]*gobreaker.CircuitBreaker[struct{}]
}

// NewBreakers returns closed circuits.
func NewBreakers() *Breakers {
	return &Breakers{circuits: map[string]*gobreaker.CircuitBreaker[struct{}]{}}
}

// Through makes a call unless the account's circuit is open. An open one is an
// *Error of class NotSent.
func Through[T any](b *Breakers, account Account, call func() (T, error)) (result T, err error) {
	_, err = b.circuit(account).Execute(func() (struct{}, error) {
		result, err = call()
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = &Error{Class: NotSent, Vendor: account.Integration.Vendor, Detail: "circuit open after failures to connect"}
	}
	return result, err
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
			IsSuccessful: func(err error) bool { return err == nil || ClassOf(err) != NotSent },
		})
		b.circuits[key] = circuit
	}
	return circuit
}

package upstream

import (
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"svcapi/shared/project"
)

const (
	// tripAfter is how many calls in a row must fail before an integration is left alone.
	tripAfter = 5
	// openFor is how long it is left alone; then one call is let through to try it.
	openFor = 15 * time.Second
	// maxBreakers bounds the breakers that an instance remembers.
	maxBreakers = 4096
)

// Breakers holds a circuit breaker for each integration of each project, so
// that a chain does not wait for a vendor that has just failed again and again.
// An integration that was changed has a new one.
type Breakers struct {
	mu       sync.Mutex
	breakers map[breakerKey]*gobreaker.TwoStepCircuitBreaker[any]
}

type breakerKey struct {
	project, integration string
	updated              int64 // Unix seconds
}

// NewBreakers makes breakers that all are closed.
func NewBreakers() *Breakers {
	return &Breakers{breakers: map[breakerKey]*gobreaker.TwoStepCircuitBreaker[any]{}}
}

// Allow tells whether a call may be made now. After a yes, done must be called
// once with what became of it: nil where the vendor did its part.
func (b *Breakers) Allow(projectID string, in project.Integration) (done func(failure error), ok bool) {
	done, err := b.of(breakerKey{projectID, in.ID, in.Updated.Unix()}).Allow()
	return done, err == nil
}

func (b *Breakers) of(key breakerKey) *gobreaker.TwoStepCircuitBreaker[any] {
	b.mu.Lock()
	defer b.mu.Unlock()
	breaker := b.breakers[key]
	if breaker == nil {
		if len(b.breakers) >= maxBreakers {
			clear(b.breakers) // all closed again: at worst a dead vendor is asked tripAfter times more
		}
		breaker = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
			Timeout:     openFor,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		})
		b.breakers[key] = breaker
	}
	return breaker
}

// Package cache holds the bounded map of an instance's caches, and the clock for the age of cached state.
package cache

import (
	"sync"
	"time"
)

// Map stores a bounded number of values by key. A new value of a full Map replaces any other value. The caller checks
// the age of a value. A Map is safe for concurrent use. hashicorp/golang-lru would add 230 KB to a function, a Map 40.
type Map[K comparable, V any] struct {
	limit int

	mu     sync.Mutex
	values map[K]V
}

// New returns an empty Map with a limit of at least one value.
func New[K comparable, V any](limit int) *Map[K, V] {
	return &Map[K, V]{limit: limit, values: map[K]V{}}
}

// Get returns the value of a key, and whether the Map has a value.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok = m.values[key]
	return value, ok
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, value)
}

// GetOrPut returns the value of a key. Where the Map has no value, GetOrPut sets and returns the given value.
func (m *Map[K, V]) GetOrPut(key K, value V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if existing, ok := m.values[key]; ok {
		return existing
	}
	m.put(key, value)
	return value
}

// put sets the value of a key. The caller holds the lock.
func (m *Map[K, V]) put(key K, value V) {
	if _, ok := m.values[key]; !ok && len(m.values) >= m.limit {
		for other := range m.values {
			delete(m.values, other)
			break
		}
	}
	m.values[key] = value
}

// DeleteFunc deletes the value of a key for which the function returns true.
func (m *Map[K, V]) DeleteFunc(key K, del func(V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.values[key]; ok && del(value) {
		delete(m.values, key)
	}
}

// Expiring is a Map whose values have a limited life, by the wall time of the Clock. An Expiring is safe for concurrent
// use.
type Expiring[K comparable, V any] struct {
	Clock  Clock
	values *Map[K, expiring[V]]
}

type expiring[V any] struct {
	value     V
	expiresAt time.Time
}

// NewExpiring returns an empty Expiring with a limit of at least one value.
func NewExpiring[K comparable, V any](limit int) *Expiring[K, V] {
	return &Expiring[K, V]{values: New[K, expiring[V]](limit)}
}

// Get returns the value of a key, and false for a key without a value or with one that has expired.
func (e *Expiring[K, V]) Get(key K) (value V, ok bool) {
	entry, ok := e.values.Get(key)
	if !ok || !e.Clock.Now().Before(entry.expiresAt) {
		return value, false
	}
	return entry.value, true
}

// Put sets the value of a key for a time. A value without a positive life is not stored.
func (e *Expiring[K, V]) Put(key K, value V, life time.Duration) {
	if life > 0 {
		e.values.Put(key, expiring[V]{value, e.Clock.Now().Add(life)})
	}
}

// DeleteFunc deletes the value of a key for which the function returns true.
func (e *Expiring[K, V]) DeleteFunc(key K, del func(V) bool) {
	e.values.DeleteFunc(key, func(entry expiring[V]) bool { return del(entry.value) })
}

// Clock returns wall times without a monotonic reading, for the age of cached state. The monotonic clock may stop while
// Lambda keeps an execution environment frozen, so that a record from before the freeze would seem too young. The zero
// Clock is the machine's clock.
type Clock struct{ source func() time.Time }

// ClockOf returns a clock with another source, such as a test's.
func ClockOf(source func() time.Time) Clock { return Clock{source} }

// Fresh reports that the state of a time is younger than life. State of the future, which remains after the clock was
// set back, is not fresh.
func (c Clock) Fresh(at time.Time, life time.Duration) bool {
	age := c.Now().Sub(at)
	return 0 <= age && age < life
}

// Now returns the current time without a monotonic reading.
func (c Clock) Now() time.Time {
	if c.source == nil {
		return time.Now().Round(0)
	}
	return c.source().Round(0)
}

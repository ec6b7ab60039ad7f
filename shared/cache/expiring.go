package cache

import "time"

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

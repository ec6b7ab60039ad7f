// Package cache holds the bounded map of an instance's caches, and the clock for the age of cached state.
package cache

import "sync"

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

// Package bounded keeps what an instance remembers within a number of values.
//
// It is no library of LRU caches: hashicorp/golang-lru adds 230 KB to a function, and this package 40.
package bounded

import "sync"

// Map keeps values by key, at most a number of them: where a Map is full, any other value gives way to a new one. The
// age of a value is the caller's. Several goroutines may use a Map.
type Map[K comparable, V any] struct {
	limit int

	mu   sync.Mutex
	kept map[K]V
}

// New returns an empty Map for so many values, at least one.
func New[K comparable, V any](limit int) *Map[K, V] {
	return &Map[K, V]{limit: limit, kept: map[K]V{}}
}

// Get returns the value of a key, and whether the Map has it.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok = m.kept[key]
	return value, ok
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, value)
}

// GetOrPut returns the value of a key. Where the Map has none, GetOrPut sets the given one and returns it.
func (m *Map[K, V]) GetOrPut(key K, value V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, ok := m.kept[key]; ok {
		return kept
	}
	m.put(key, value)
	return value
}

// put sets the value of a key. The caller holds the lock.
func (m *Map[K, V]) put(key K, value V) {
	if _, ok := m.kept[key]; !ok && len(m.kept) >= m.limit {
		for other := range m.kept {
			delete(m.kept, other)
			break
		}
	}
	m.kept[key] = value
}

// DeleteFunc deletes the value of a key where the function returns true for it.
func (m *Map[K, V]) DeleteFunc(key K, del func(V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.kept[key]; ok && del(value) {
		delete(m.kept, key)
	}
}

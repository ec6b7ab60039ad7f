package iplookup

import (
	"net/netip"
	"time"

	"svcapi/shared/cache"
)

// maxResults bounds the results in an instance's cache.
const maxResults = 4096

// cacheKey identifies a result. Projects share no results, and a changed integration has new keys.
type cacheKey struct {
	project, integration string
	updated              int64 // Unix seconds
	addr                 netip.Addr
}

// results stores results for a short time.
type results[T any] struct {
	life  time.Duration
	clock cache.Clock
	byKey *cache.Map[cacheKey, cached[T]]
}

type cached[T any] struct {
	value     T
	expiresAt time.Time
}

func newResults[T any](life time.Duration) *results[T] {
	return &results[T]{life: life, byKey: cache.New[cacheKey, cached[T]](maxResults)}
}

func (c *results[T]) get(key cacheKey) (value T, ok bool) {
	entry, ok := c.byKey.Get(key)
	if !ok || !c.clock.Now().Before(entry.expiresAt) {
		return value, false
	}
	return entry.value, true
}

func (c *results[T]) put(key cacheKey, value T) {
	if c.life > 0 {
		c.byKey.Put(key, cached[T]{value, c.clock.Now().Add(c.life)})
	}
}

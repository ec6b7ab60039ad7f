package iplookup

import (
	"net/netip"
	"time"

	"svcapi/shared/bounded"
	"svcapi/shared/clock"
)

// maxResults bounds the results in an instance's cache.
const maxResults = 4096

// cacheKey identifies a result. Projects share no results, and a changed integration has new keys.
type cacheKey struct {
	project, integration string
	updated              int64 // Unix seconds
	addr                 netip.Addr
}

// cache stores results for a short time.
type cache[T any] struct {
	life  time.Duration
	clock clock.Clock
	byKey *bounded.Map[cacheKey, cached[T]]
}

type cached[T any] struct {
	value     T
	expiresAt time.Time
}

func newCache[T any](life time.Duration) *cache[T] {
	return &cache[T]{life: life, byKey: bounded.New[cacheKey, cached[T]](maxResults)}
}

func (c *cache[T]) get(key cacheKey) (value T, ok bool) {
	entry, ok := c.byKey.Get(key)
	if !ok || !c.clock.Now().Before(entry.expiresAt) {
		return value, false
	}
	return entry.value, true
}

func (c *cache[T]) put(key cacheKey, value T) {
	if c.life > 0 {
		c.byKey.Put(key, cached[T]{value, c.clock.Now().Add(c.life)})
	}
}

package iplookup

import (
	"net/netip"
	"time"

	"svcapi/shared/bounded"
	"svcapi/shared/clock"
)

// maxAnswers bounds the answers that an instance keeps.
const maxAnswers = 4096

// cacheKey names an answer. Projects share none, Managed or not; an integration
// that was changed begins anew.
type cacheKey struct {
	project, integration string
	updated              int64 // Unix seconds
	addr                 netip.Addr
}

// cache keeps answers for a short while.
type cache[T any] struct {
	life  time.Duration
	clock clock.Clock
	kept  *bounded.Map[cacheKey, kept[T]]
}

type kept[T any] struct {
	value T
	until time.Time
}

func newCache[T any](life time.Duration) *cache[T] {
	return &cache[T]{life: life, kept: bounded.New[cacheKey, kept[T]](maxAnswers)}
}

func (c *cache[T]) get(key cacheKey) (value T, ok bool) {
	k, ok := c.kept.Get(key)
	if !ok || !c.clock.Now().Before(k.until) {
		return value, false
	}
	return k.value, true
}

func (c *cache[T]) put(key cacheKey, value T) {
	if c.life > 0 {
		c.kept.Put(key, kept[T]{value, c.clock.Now().Add(c.life)})
	}
}

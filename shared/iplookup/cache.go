package iplookup

import (
	"net/netip"
	"sync"
	"time"

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

// cache keeps answers for a short while, the oldest giving way to new ones.
type cache[T any] struct {
	life  time.Duration
	clock clock.Clock

	mu    sync.Mutex
	kept  map[cacheKey]kept[T]
	order []cacheKey // a ring of at most maxAnswers
	next  int
}

type kept[T any] struct {
	value T
	until time.Time
}

func newCache[T any](life time.Duration) *cache[T] {
	return &cache[T]{life: life, kept: map[cacheKey]kept[T]{}}
}

func (c *cache[T]) get(key cacheKey) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[key]
	if !ok || !c.clock.Now().Before(k.until) {
		return value, false
	}
	return k.value, true
}

func (c *cache[T]) put(key cacheKey, value T) {
	if c.life <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.kept[key]; !ok {
		if len(c.order) < maxAnswers {
			c.order = append(c.order, key)
		} else {
			delete(c.kept, c.order[c.next])
			c.order[c.next] = key
			c.next = (c.next + 1) % maxAnswers
		}
	}
	c.kept[key] = kept[T]{value, c.clock.Now().Add(c.life)}
}

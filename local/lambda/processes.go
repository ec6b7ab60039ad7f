package lambda

import (
	"context"
	"time"
)

// pool returns a function's processes; nil for a function that the host does not have.
func (h *Host) pool(function string) *pool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pools[function]
}

// Processes are the IDs of a function's processes at this moment, by its logical ID: busy, frozen and starting ones.
func (h *Host) Processes(function string) []int {
	p := h.pool(function)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]int, 0, len(p.instances))
	for i := range p.instances {
		if id := i.process.ID(); id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// AwaitIdle waits until the function has no event left, and each of its processes is frozen or has ended. The response of
// an event comes before that where an extension works after the response.
func (h *Host) AwaitIdle(ctx context.Context, function string) error {
	for p := h.pool(function); p != nil && !p.isIdle(); {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *pool) isIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) == 0 && len(p.idle) == len(p.instances)
}

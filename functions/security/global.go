package main

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svcapi/functions/security/disposable"
	"svcapi/shared/burner"
	"svcapi/shared/cache"
)

const (
	// globalLife is how long an instance uses what it has read: a change is in force within ten minutes, with the reading.
	globalLife = 9 * time.Minute
	// globalPause is the time after a failed read.
	globalPause = time.Minute
	// globalRead bounds one read.
	globalRead = 3 * time.Second
)

// globalList is the list of all projects: the table of package disposable without the domains that are allowed for the
// stage. An instance reads them in the background; until then, and where a read fails, the list is as it was before.
type globalList struct {
	store *burner.Store
	clock cache.Clock

	mu      sync.Mutex
	read    time.Time // when the last read began; zero: never
	allowed atomic.Pointer[map[string]bool]
}

// has reports whether the list has a domain or one of its parents, and no domain among them is allowed.
func (g *globalList) has(domain string) bool {
	if _, listed := disposable.Find(domain); !listed {
		return false
	}
	if allowed := g.allowed.Load(); allowed != nil && len(*allowed) > 0 {
		for d := domain; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
			if (*allowed)[d] {
				return false
			}
		}
	}
	return true
}

// refresh begins a read in the background where the last one is older than globalLife, and returns a function that waits for
// the end of the read, or nil where none is due.
func (g *globalList) refresh(ctx context.Context) (wait func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clock.Fresh(g.read, globalLife) {
		return nil
	}
	g.read = g.clock.Now()
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), globalRead)
		defer cancel()
		err := g.load(ctx)
		if err != nil {
			g.mu.Lock()
			g.read = g.clock.Now().Add(globalPause - globalLife)
			g.mu.Unlock()
		}
		ended <- err
	}()
	return func(ctx context.Context) error {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (g *globalList) load(ctx context.Context) error {
	judged, err := g.store.List(ctx, burner.Stage)
	if err != nil {
		return err
	}
	allowed := make(map[string]bool, len(judged.Allowed))
	for _, domain := range judged.Allowed {
		allowed[domain] = true
	}
	g.allowed.Store(&allowed)
	return nil
}

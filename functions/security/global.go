package main

import (
	"bytes"
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

// globalList is the list of all projects: the table of package disposable with the difference of the published lists,
// and without the domains that are allowed for the stage. An instance reads both in the background; until then, and
// where a read fails, the list is as it was before.
type globalList struct {
	store *burner.Store
	clock cache.Clock

	mu      sync.Mutex
	read    time.Time // when the last read began; zero: never
	changes atomic.Pointer[changes]
}

// changes are those of the stage to the compiled table.
type changes struct {
	allowed    map[string]bool
	difference *disposable.Difference
	packed     []byte
}

func newGlobalList(store *burner.Store, clock cache.Clock) *globalList {
	g := &globalList{store: store, clock: clock}
	g.changes.Store(&changes{})
	return g
}

// has reports whether the list has a domain or one of its parents, and no domain among them is allowed.
func (g *globalList) has(domain string) bool {
	c := g.changes.Load()
	if _, listed := c.difference.Find(domain); !listed {
		return false
	}
	for d := domain; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
		if c.allowed[d] {
			return false
		}
	}
	return true
}

// refresh begins a read in the background where the last one is older than globalLife, and returns a function that
// waits for the end of the read, or nil where none is due.
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
	before := g.changes.Load()
	after := &changes{map[string]bool{}, before.difference, before.packed}
	for _, domain := range judged.Allowed {
		after.allowed[domain] = true
	}
	if packed := judged.Difference.Packed; !bytes.Equal(before.packed, packed) {
		var difference *disposable.Difference
		if difference, err = disposable.Read(packed); err == nil { // otherwise the difference before stays in force
			after.difference, after.packed = difference, packed
		}
	}
	g.changes.Store(after)
	return err
}

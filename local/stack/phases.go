package stack

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// remind is the time after which a line names the phases that are not at their end.
const remind = 10 * time.Second

// phases reports the phases of a start, of which several run at the same time: each at its end with its seconds, and
// every ten seconds those that still run.
type phases struct {
	report func(string)

	mu      sync.Mutex
	running map[string]bool
}

// run runs one phase. The phase returns what it has made, for the line of its end.
func (p *phases) run(name string, phase func() (made string, err error)) error {
	began := time.Now()
	p.mu.Lock()
	p.running[name] = true
	p.mu.Unlock()
	made, err := phase()
	p.mu.Lock()
	delete(p.running, name)
	p.mu.Unlock()
	if err == nil {
		p.report(fmt.Sprintf("%s: %s, %.1f s", name, made, time.Since(began).Seconds()))
	}
	return err
}

// watch names the phases that run, every ten seconds until ctx ends.
func (p *phases) watch(ctx context.Context) {
	ticks := time.NewTicker(remind)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			p.mu.Lock()
			names := slices.Sorted(maps.Keys(p.running))
			p.mu.Unlock()
			if len(names) > 0 {
				p.report("still at work: " + strings.Join(names, ", "))
			}
		case <-ctx.Done():
			return
		}
	}
}

// megabytes returns the size of files and of all files below folders, such as "48 MB".
func megabytes(paths ...string) string {
	var bytes int64
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error { // a file without a size counts 0
			if err == nil && entry.Type().IsRegular() {
				if info, err := entry.Info(); err == nil {
					bytes += info.Size()
				}
			}
			return nil
		})
	}
	return fmt.Sprintf("%d MB", bytes/1_000_000)
}

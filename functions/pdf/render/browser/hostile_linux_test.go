package browser

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-rod/rod/lib/proto"

	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// isLong leaves a test to make test-hostile: the test takes minutes, and compiles everywhere.
func isLong(t *testing.T) {
	t.Helper()
	if !pdftest.Everything {
		t.Skip("make test-hostile runs this test")
	}
}

// Without the containment most vectors reach the canary, at every listener.
func TestEgressUnlocked(t *testing.T) {
	isLong(t)
	c := listen(t)
	options := limitsOf(t)
	options.Path = c.launcher(t, "--host-resolver-rules*|--proxy-*|*webrtc-ip-handling*")
	options.Time, options.scripts = 3*time.Second, true
	r := New(options)
	defer r.Close()
	documents, names := c.batches(t, 0, "")
	for _, document := range documents {
		must.Succeed(t, (proto.FetchDisable{}).Call(next(t, r).session.in(t.Context(), "")))
		_, _ = linger(t, r, a4(document), 200*time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	singing, channels := 0, []string{}
	for _, what := range c.all() {
		if names[what] != "" {
			singing++
		} else {
			channels = append(channels, strings.ToValidUTF8(what, "?"))
		}
	}
	t.Logf("%d of %d vectors arrived; also %.200q", singing, len(names), channels)
	// most of these name no canary
	maps.DeleteFunc(names, func(_, name string) bool { return strings.Contains(name, "secret") })
	if singing < len(names)/2 {
		t.Errorf("only %d of %d vectors arrive without containment: the canary does not hear", singing, len(names))
	}
}

// bytesIn returns the bytes of all files in a folder.
func bytesIn(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a browser's own files come and go
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	must.Succeed(t, err)
	return sum
}

// Neither the temporary folder nor the browser grows over 500 documents.
func TestFiveHundred(t *testing.T) {
	isLong(t)
	o := limitsOf(t)
	o.RecycleAfter = 200
	r := run(t, o)
	var early, late int64
	for i := range 500 {
		pdf := render(t, r, fmt.Sprintf("<!DOCTYPE html><h1>Document %d</h1><p>%s", i, strings.Repeat("some text ", 200)))
		if i%100 == 99 {
			if got := pdftest.Text(t, pdf); !strings.Contains(got, fmt.Sprintf("Document %d", i)) {
				t.Error(got)
			}
			next(t, r)
			groups, dead := browsers(), zombies()
			held := bytesIn(t, o.Dir)
			t.Logf("after %d: %d bytes in %d folders, browser %d MiB", i+1, held, len(folders(t, o.Dir)),
				memory(groupMembers(groups[0]))>>20)
			if len(folders(t, o.Dir)) != 1 || len(groups) != 1 || dead != 0 {
				t.Errorf("%v, %v, %d zombies", folders(t, o.Dir), groups, dead)
			}
			if i == 99 {
				early = held
			}
			late = held
		}
	}
	if late > 2*early+1<<20 {
		t.Errorf("grew from %d to %d bytes", early, late)
	}
}

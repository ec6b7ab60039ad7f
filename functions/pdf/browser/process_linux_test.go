package browser

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"svcapi/local/pdftest"
)

// browsers lists this process's browsers, as heads of process groups, and what is left of dead ones.
func browsers(t testing.TB) (groups []int, zombies int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tasks {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		switch {
		case fields[0] == "Z":
			zombies++
		case bytes.Contains(stat, []byte("(headless")):
			groups = append(groups, pid)
		}
	}
	return groups, zombies
}

// The memory of the whole process tree is watched: a document that takes too much ends the browser, and nothing else.
func TestMemory(t *testing.T) {
	o := limitsOf(t)
	o.Memory = 300 << 20
	r := run(t, o)
	began := time.Now()
	_, err := r.Render(t.Context(), Document{HTML: "<table>" + strings.Repeat("<tr><td>x<td>y", 20_000), Geometry: a4})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != "memory" || !strings.Contains(refused.Message, "300 MiB") {
		t.Errorf("got %v after %v", err, time.Since(began))
	}
	render(t, r, "next")
}

// A browser is replaced after so many documents, and when it has grown.
func TestRecycle(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"documents": func(o *Options) { o.RecycleAfter = 2 },
		"growth":    func(o *Options) { o.RecycleMemory = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			o := limitsOf(t)
			change(&o)
			r := run(t, o)
			seen := map[int]bool{}
			for range 4 {
				render(t, r, "x")
				if err := r.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				groups, zombies := browsers(t)
				if len(groups) != 1 || zombies != 0 {
					t.Fatalf("%d browsers, %d zombies", len(groups), zombies)
				}
				seen[groups[0]] = true
			}
			if len(seen) < 2 {
				t.Error("the browser was kept")
			}
		})
	}
}

// Close leaves nothing behind, and a request that is given up leaves a renderer that works.
func TestClose(t *testing.T) {
	o := limitsOf(t)
	r := run(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := r.Render(ctx, Document{HTML: strings.Repeat("<p>x", 20_000), Geometry: a4}); err == nil {
		t.Error("rendered within 30 ms")
	}
	render(t, r, "next")
	r.Close()
	groups, zombies := browsers(t)
	if left := folders(t, o.Dir); len(left)+len(groups)+zombies != 0 {
		t.Errorf("left: %v, %v, %d zombies", left, groups, zombies)
	}
	if _, err := r.Render(t.Context(), Document{HTML: "x", Geometry: a4}); err == nil {
		t.Error("rendered after Close")
	}
	r.Close() // again, harmless
}

// storm renders n documents from two sides while browsers are killed at random moments, and tells what went wrong.
func storm(t *testing.T, n int, between time.Duration) {
	t.Helper()
	o := limitsOf(t)
	o.Time = 5 * time.Second
	r := run(t, o)
	random := rand.New(rand.NewPCG(1, 2))
	stop := make(chan struct{})
	var killer, work sync.WaitGroup
	kills := 0
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(random.Int64N(int64(between)))):
			}
			// Any process of the browser, not only the first.
			groups, _ := browsers(t)
			for _, group := range groups {
				if pids := members(group); len(pids) > 0 && syscall.Kill(pids[random.IntN(len(pids))], syscall.SIGKILL) == nil {
					kills++
				}
			}
		}
	})
	var mu sync.Mutex
	outcomes := map[string]int{}
	for range 2 {
		work.Go(func() {
			for range n / 2 {
				began := time.Now()
				_, err := r.Render(t.Context(), Document{HTML: strings.Repeat("<p>x", 500), Geometry: a4})
				// Twice the limit: a render waits for the other side's, which may have been tried twice.
				if took := time.Since(began); took > 4*o.Time {
					t.Errorf("a render took %v", took)
				}
				outcome := "rendered"
				if err != nil {
					outcome = err.Error()
				}
				mu.Lock()
				outcomes[outcome]++
				mu.Unlock()
			}
		})
	}
	work.Wait()
	close(stop)
	killer.Wait()
	t.Logf("%d kills: %v", kills, outcomes)
	if outcomes["rendered"] == 0 || kills == 0 {
		t.Error("nothing was tried")
	}
	render(t, r, "after the storm")
	r.Close()
	groups, zombies := browsers(t)
	if left := folders(t, o.Dir); len(left)+len(groups)+zombies != 0 {
		t.Errorf("left: %v, %v, %d zombies", left, groups, zombies)
	}
}

// Killing the browser at random moments under load: no request hangs beyond its limit, no zombie and no folder is left.
func TestKilled(t *testing.T) {
	if everything {
		storm(t, 60, 500*time.Millisecond)
		return
	}
	storm(t, 12, time.Second)
}

// The environment and the memory of this process are closed to a child of the same user.
func TestSeclude(t *testing.T) {
	if os.Getenv("SECLUDE_CHILD") != "" {
		secludeChild()
		return
	}
	dir, err := os.MkdirTemp("", "seclude") //nolint:usetesting // another user enters it: no folder above may be closed
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	write(t, program, string(self), 0o755)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{"open": "SECRET_OF_PARENT", "secluded": "Permission denied"} {
		cmd := exec.Command(program, "-test.run=^TestSeclude$")
		cmd.Dir, cmd.Env = "/", []string{"SECLUDE_CHILD=" + mode, "SECRET_OF_PARENT=1", "CHROMIUM=" + pdftest.Browser()}
		if os.Getuid() == 0 { // root may read everything
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || mode == "secluded" && strings.Contains(string(out), "SECRET_OF_PARENT") {
			t.Errorf("%s: %s", mode, out)
		}
	}
}

func secludeChild() {
	if os.Getenv("SECLUDE_CHILD") == "open" {
		_ = unseclude()
	}
	cmd := exec.Command("/bin/sh", "-c", "cat /proc/$PPID/environ | tr '\\0' '\\n'; head -c 1 /proc/$PPID/mem")
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	out, _ := cmd.CombinedOutput()
	_, _ = os.Stdout.Write(out)
}

// unseclude opens this process again.
func unseclude() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }

package browser

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svcapi/test/pdftest"
)

// served is a process with a renderer.
type served struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	dir string
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{cmd: exec.Command("/proc/self/exe"), dir: t.TempDir()}
	s.cmd.Env = append(os.Environ(), servedDir+"="+s.dir)
	s.cmd.Stderr = os.Stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.in.Close()
		_ = s.cmd.Wait()
	})
	return s
}

// render returns the number of started browsers after a render, and the error of the render.
func (s *served) render(t *testing.T, html string) (starts int, end string) {
	t.Helper()
	if _, err := io.WriteString(s.in, html+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	first, end, _ := strings.Cut(strings.TrimSpace(line), " ")
	if _, err := fmt.Sscan(first, &starts); err != nil {
		t.Fatal(err)
	}
	return starts, end
}

// tree returns a process with its descendants.
func tree(root int) []int {
	pids := []int{root}
	all := tasks()
	for i := 0; i < len(pids); i++ {
		for _, task := range all {
			if task.parent == pids[i] {
				pids = append(pids, task.pid)
			}
		}
	}
	return pids
}

// freeze stops a process with its descendants for a while.
func (s *served) freeze(t *testing.T, d time.Duration) {
	t.Helper()
	var stopped []int
	for {
		before := len(stopped)
		for _, pid := range tree(s.cmd.Process.Pid) {
			if !slices.Contains(stopped, pid) && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped = append(stopped, pid)
			}
		}
		if len(stopped) == before {
			break
		}
	}
	<-time.After(d)
	for _, pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// A freeze of the whole process tree between two documents, longer than any limit, ends no browser, neither during the
// replacement of the page nor during the start of a new browser.
func TestFreeze(t *testing.T) {
	t.Parallel()
	const frozen = 12 * time.Second
	if frozen <= startTime {
		t.Fatal("the freeze is too short to show anything")
	}
	moments, freezes := []time.Duration{0, 25 * time.Millisecond}, 1
	if pdftest.Everything {
		moments, freezes = nil, 3
		for _, ms := range []int{0, 1, 2, 4, 7, 10, 15, 20, 30, 45, 70, 100} {
			moments = append(moments, time.Duration(ms)*time.Millisecond)
		}
	}
	var running sync.WaitGroup // instead of t.Parallel, because the cases mostly wait
	places := make(chan struct{}, 6)
	for name, test := range map[string]struct{ html, end string }{
		"page":    {"<p>x", "<nil>"},
		"browser": {"LONG", "rendering took longer than 2s"},
	} {
		for _, moment := range moments {
			running.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				t.Run(fmt.Sprintf("%s after %v", name, moment), func(t *testing.T) {
					s := serve(t)
					started, _ := s.render(t, "<p>first")
					for range freezes {
						if _, end := s.render(t, test.html); end != test.end {
							t.Fatal(end)
						}
						if name == "browser" {
							started++ // by the document, not by the freeze
						}
						<-time.After(moment)
						s.freeze(t, frozen)
						if starts, end := s.render(t, "<p>next"); starts != started || end != "<nil>" {
							t.Fatalf("%d browsers started instead of %d, %s", starts, started, end)
						}
					}
				})
			})
		}
	}
	running.Wait()
}

// A limit on running time excludes only the time in which the process was stopped.
func TestRunningTime(t *testing.T) {
	began := time.Now()
	ctx, cancel := withRunningTime(t.Context(), 100*time.Millisecond, errSlowStart)
	defer cancel()
	<-ctx.Done()
	if took := time.Since(began); took < 100*time.Millisecond || !errors.Is(context.Cause(ctx), errSlowStart) {
		t.Errorf("ended after %v: %v", took, context.Cause(ctx))
	}
	ctx, cancel = withRunningTime(t.Context(), time.Hour, errSlowStart)
	cancel()
	if <-ctx.Done(); !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Error(context.Cause(ctx))
	}
}

// The browser of a killed process ends, also a busy one, and the next process removes the profile folder. No signal of
// the system at the end of the parent (Pdeathsig) is needed.
func TestParentKilled(t *testing.T) {
	for name, html := range map[string]string{"at rest": "", "at work": "LONG"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.render(t, "<p>first")
			if html != "" {
				_, _ = io.WriteString(s.in, html+"\n")
				<-time.After(300 * time.Millisecond)
			}
			if living := below(t, s.dir); len(living) < 2 || zombies(os.Getpid()) != 0 {
				t.Fatalf("before: processes %v, %d zombies", living, zombies(os.Getpid()))
			}
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = s.cmd.Wait()
			for range 500 {
				if len(below(t, s.dir)) == 0 {
					break
				}
				<-time.After(10 * time.Millisecond)
			}
			if left := below(t, s.dir); len(left) > 0 {
				t.Errorf("left after five seconds: %v", left)
			}
			for { // a subreaper inherits the children
				if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, syscall.ECHILD) {
					break
				}
			}
			if err := RemoveStale(s.dir); err != nil || len(folders(t, s.dir)) > 0 {
				t.Errorf("left: %v, %v", folders(t, s.dir), err)
			}
		})
	}
}

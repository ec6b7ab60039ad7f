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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svcapi/test/must"
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
	s.in, err = s.cmd.StdinPipe()
	must.Succeed(t, err)
	out, err := s.cmd.StdoutPipe()
	must.Succeed(t, err)
	s.out = bufio.NewReader(out)
	must.Succeed(t, s.cmd.Start())
	t.Cleanup(func() {
		s.in.Close()
		_ = s.cmd.Wait()
	})
	return s
}

// render returns the number of started browsers after a render, and the error of the render.
func (s *served) render(t *testing.T, html string) (starts int, end string) {
	t.Helper()
	_, err := io.WriteString(s.in, html+"\n")
	must.Succeed(t, err)
	line, err := s.out.ReadString('\n')
	must.Succeed(t, err)
	first, end, _ := strings.Cut(strings.TrimSpace(line), " ")
	starts, err = strconv.Atoi(first)
	must.Succeed(t, err)
	return starts, end
}

// freeze stops a process with its descendants for a while.
func (s *served) freeze(d time.Duration) {
	stopped := []int{s.cmd.Process.Pid}
	_ = syscall.Kill(stopped[0], syscall.SIGSTOP)
	for before := 0; before < len(stopped); {
		before = len(stopped)
		for _, task := range tasks() {
			if slices.Contains(stopped, task.parent) && !slices.Contains(stopped, task.pid) &&
				syscall.Kill(task.pid, syscall.SIGSTOP) == nil {
				stopped = append(stopped, task.pid)
			}
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
	moments, freezes := []int{0, 25}, 1 // in milliseconds
	if pdftest.Everything {
		moments, freezes = []int{0, 1, 2, 4, 7, 10, 15, 20, 30, 45, 70, 100}, 3
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
				t.Run(fmt.Sprintf("%s after %d ms", name, moment), func(t *testing.T) {
					s := serve(t)
					started, _ := s.render(t, "<p>first")
					for range freezes {
						if _, end := s.render(t, test.html); end != test.end {
							t.Fatal(end)
						}
						if name == "browser" {
							started++ // by the document, not by the freeze
						}
						<-time.After(time.Duration(moment) * time.Millisecond)
						s.freeze(frozen)
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
	for _, atWork := range []bool{false, true} {
		t.Run(fmt.Sprintf("at work %v", atWork), func(t *testing.T) {
			s := serve(t)
			s.render(t, "<p>first")
			if atWork {
				_, _ = io.WriteString(s.in, "LONG\n")
				<-time.After(300 * time.Millisecond)
			}
			if living := below(s.dir); len(living) < 2 || zombies() != 0 {
				t.Fatalf("before: processes %v, %d zombies", living, zombies())
			}
			must.Succeed(t, s.cmd.Process.Kill())
			_ = s.cmd.Wait()
			for i := 0; i < 500 && len(below(s.dir)) > 0; i++ {
				<-time.After(10 * time.Millisecond)
			}
			if left := below(s.dir); len(left) > 0 {
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

package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// task is a process in /proc.
type task struct {
	pid, parent, group int
	zombie             bool
	name               string
}

// stated matches process, name, state, parent and group in /proc/PID/stat. The name may contain spaces and brackets.
var stated = regexp.MustCompile(`(?s)^(\d+) \((.*)\) (\S) (\d+) (\d+) `)

func tasks() (all []task) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, _ := os.ReadFile(name) // empty where the process has ended
		if f := stated.FindStringSubmatch(string(stat)); f != nil {
			t := task{name: f[2], zombie: f[3] == "Z" || f[3] == "X"}
			t.pid, _ = strconv.Atoi(f[1])
			t.parent, _ = strconv.Atoi(f[4])
			t.group, _ = strconv.Atoi(f[5])
			all = append(all, t)
		}
	}
	return all
}

// browsers returns the process groups of this process's browsers.
func browsers() (groups []int) {
	for _, task := range tasks() {
		if task.parent == os.Getpid() && !task.zombie && task.group == task.pid && strings.HasPrefix(task.name, "headless") {
			groups = append(groups, task.pid)
		}
	}
	return groups
}

// zombies returns the number of dead processes that this process has not reaped yet.
func zombies() (n int) {
	for _, task := range tasks() {
		if task.zombie && task.parent == os.Getpid() {
			n++
		}
	}
	return n
}

// below returns the living processes whose working folder is a folder or below it, also a removed one.
func below(dir string) (pids []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir+"/") {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}

// A browser is replaced after a number of documents, and when its memory has grown.
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
				next(t, r)
				groups := browsers()
				if dead := zombies(); len(groups) != 1 || dead != 0 {
					t.Fatalf("%d browsers, %d zombies", len(groups), dead)
				}
				seen[groups[0]] = true
			}
			if len(seen) < 2 {
				t.Error("the browser was kept")
			}
		})
	}
}

// Close ends all processes and removes all files, and the renderer works after a request that was cancelled.
func TestClose(t *testing.T) {
	o := limitsOf(t)
	r := run(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, _, err := r.Render(ctx, a4(strings.Repeat("<p>x", 20_000))); err == nil {
		t.Error("rendered within 30 ms")
	}
	render(t, r, "next")
	r.Close()
	gone(t, o.Dir)
}

// After kills of browser processes at random moments under load from two goroutines, of which every second one ends a
// renderer process, no request exceeds its limit, and no zombie and no folder remains.
func TestKilled(t *testing.T) {
	kills, between := 2, 200*time.Millisecond
	if pdftest.Everything {
		kills, between = 60, 500*time.Millisecond
	}
	o := limitsOf(t)
	o.Time = 5 * time.Second
	r := run(t, o)
	random := rand.New(rand.NewPCG(1, 2))
	enough := make(chan struct{})
	var work sync.WaitGroup
	killed := map[string]int{}
	work.Go(func() {
		defer close(enough)
		for deadline := time.Now().Add(10 * time.Minute); killed["renderer"]+killed["other"] < kills &&
			time.Now().Before(deadline); {
			<-time.After(time.Duration(random.Int64N(int64(between))))
			kind := map[bool]string{true: "renderer", false: "other"}[killed["renderer"] <= killed["other"]]
			if pids := processes(kind == "renderer"); len(pids) > 0 &&
				syscall.Kill(pids[random.IntN(len(pids))], syscall.SIGKILL) == nil {
				killed[kind]++
			}
		}
	})
	var mu sync.Mutex
	outcomes := map[string]int{}
	for range 2 {
		work.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
				}
				began := time.Now()
				_, _, err := r.Render(t.Context(), a4(strings.Repeat("<p>x", 500)))
				// Twice the limit, because a render waits for that of the other goroutine, which may have two attempts.
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
	t.Logf("killed %v: %v", killed, outcomes)
	if outcomes["rendered"] == 0 || killed["renderer"] < kills/2 || killed["other"] < kills/2 {
		t.Errorf("too little was tried: killed %v", killed)
	}
	render(t, r, "after the storm")
	r.Close()
	gone(t, o.Dir)
}

// processes returns the processes of this process's browsers that are renderers by their arguments, or the others. A
// renderer of the zygote begins as a copy and has its own arguments soon after its start.
func processes(renderers bool) (pids []int) {
	for _, group := range browsers() {
		for _, pid := range groupMembers(group) {
			arguments, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			if bytes.Contains(arguments, []byte("--type=renderer")) == renderers {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// gone fails the test if the browsers of a folder have left a file, a living process or a zombie.
func gone(t testing.TB, dir string) {
	t.Helper()
	if left, living, dead := folders(t, dir), below(dir), zombies(); len(left)+len(living)+dead != 0 {
		t.Errorf("left: %v, %v, %d zombies", left, living, dead)
	}
}

// A browser reaps its children before its end. Without a subreaper the first process of the system inherits the
// remaining children and may not reap them; a browser that is killed first leaves three children.
func TestOrphans(t *testing.T) {
	if strings.Contains(fmt.Sprint(Isolate()), "not permitted") {
		return // this process does not inherit orphans, because the test also runs outside the jail
	}
	const rounds = 6
	orphans := 0
	for i := range rounds {
		o := limitsOf(t)
		r := run(t, o)
		p := next(t, r)
		if i%2 == 0 { // during a render
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if _, _, err := r.Render(ctx, a4(strings.Repeat("x", 300_000))); err == nil {
				t.Error("rendered within 200 ms")
			}
			cancel()
		}
		r.Close()
		p.session.end() // waits for the end
		orphans += p.session.orphans
		gone(t, o.Dir)
	}
	t.Logf("%d browsers left %d orphans", rounds, orphans)
	if orphans >= 2*rounds {
		t.Errorf("%d browsers left %d orphans", rounds, orphans)
	}
}

// The end of a renderer process between two documents fails no document: the next one has another renderer process.
func TestIdleRendererKilled(t *testing.T) {
	r := run(t, limitsOf(t))
	render(t, r, "first")
	p := next(t, r)
	renderers := processes(true)
	for _, pid := range renderers {
		must.Succeed(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	if len(renderers) == 0 {
		t.Fatal("no renderer was found")
	}
	select {
	case <-p.page.crashed.Done():
	case <-time.After(time.Minute):
		t.Fatal("the browser does not report the end of the renderer process")
	}
	if got := pdftest.Text(t, render(t, r, "next")); got != "next" {
		t.Error(got)
	}
}

// RemoveStale ends all processes that work in the folder of a dead process, in any group, and removes this folder and
// no folder of a living process.
func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	dead := exec.Command("/bin/true")
	must.Succeed(t, dead.Run())
	profile := filepath.Join(dir, profilePrefix)
	stale := profile + strconv.Itoa(dead.Process.Pid) + "-1"
	kept := []string{profile + strconv.Itoa(os.Getppid()) + "-3", profile + "x-4", filepath.Join(dir, "other")}
	// A dead process may have had the ID of this process, because RemoveStale runs before the first browser.
	for _, name := range append(kept, stale, profile+strconv.Itoa(os.Getpid())+"-2") {
		must.Succeed(t, os.MkdirAll(filepath.Join(name, "Default"), 0o700))
	}
	left := exec.Command("/bin/sleep", "600")
	left.Dir, left.SysProcAttr = stale, &syscall.SysProcAttr{Setpgid: true}
	must.Succeed(t, left.Start())
	must.Succeed(t, RemoveStale(dir))
	_ = left.Wait()
	for _, name := range kept {
		must.Succeed(t, errors.Join(os.Remove(filepath.Join(name, "Default")), os.Remove(name)))
	}
	gone(t, dir)
}

// A child of the same user can read neither the environment nor the memory of this process, unless the system denies
// the protection, which Isolate then reports.
func TestIsolate(t *testing.T) {
	if os.Getenv("SECLUDE_CHILD") != "" {
		secludeChild()
		return
	}
	if pdftest.Jailed() {
		if got := fmt.Sprint(Isolate()); got != "[undumpable=operation not permitted subreaper=operation not permitted]" {
			t.Errorf("in the jail: %s", got)
		}
		return
	}
	dir, err := os.MkdirTemp("", "isolate") //nolint:usetesting // another user must be able to enter every parent folder
	must.Succeed(t, err)
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	must.Succeed(t, err)
	program := filepath.Join(dir, "program")
	write(t, program, string(self), 0o755)
	must.Succeed(t, os.Chmod(dir, 0o755))
	for mode, want := range map[string]string{"open": "SECRET_OF_PARENT", "secluded": "Permission denied"} {
		cmd := exec.Command(program, "-test.run=^TestIsolate$")
		cmd.Dir, cmd.Env = "/", []string{"SECLUDE_CHILD=" + mode, "SECRET_OF_PARENT=1", "JAIL=off",
			"CHROMIUM=" + pdftest.Browser()}
		if os.Getuid() == 0 { // root may read everything
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || mode == "secluded" &&
			(strings.Contains(string(out), "SECRET_OF_PARENT") || strings.Count(string(out), "=in force") != 2) {
			t.Errorf("%s: %s", mode, out)
		}
	}
}

func secludeChild() {
	if os.Getenv("SECLUDE_CHILD") == "secluded" {
		fmt.Println(Isolate())
	}
	cmd := exec.Command("/bin/sh", "-c", "cat /proc/$PPID/environ | tr '\\0' '\\n'; head -c 1 /proc/$PPID/mem")
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	out, _ := cmd.CombinedOutput()
	_, _ = os.Stdout.Write(out)
}

// The browser takes the cache of its fonts from the layer. One that it rejects it writes anew, with a tag beside it.
func TestFontCache(t *testing.T) {
	hasFonts(t)
	o := limitsOf(t)
	run(t, o)
	files, err := filepath.Glob(filepath.Join(o.Dir, profilePrefix+"*", "fontconfig", "*"))
	if err != nil || len(files) != 1 || !strings.Contains(files[0], ".cache-") {
		t.Errorf("%v, %v", files, err)
	}
}

package jail_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"svcapi/local/jail"
	"svcapi/local/jail/spec"
	"svcapi/test/must"
)

// mode is the variable that makes this test binary a function of a test.
const mode = "JAIL_TEST_MODE"

// hold makes this test binary a host that starts a function and waits, so that a test can kill the host.
const hold = "JAIL_TEST_HOST"

var jailed string

func TestMain(m *testing.M) {
	if os.Getenv(mode) != "" {
		end(function(os.Getenv(mode)))
	}
	if binary := os.Getenv(hold); binary != "" {
		end(host(binary))
	}
	dir, err := os.MkdirTemp("", "jailed") // only this user may enter the folder
	if err != nil {
		end(err)
	}
	jailed = filepath.Join(dir, "jailed")
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(jailed, program, 0o755)
	}
	if err != nil {
		end(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// end ends this process.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// family are a process and two that have lost their parent, one of these in a session of its own. Each starts a process
// for each of its lines: a shell within the shell, which does not hold its parent up as vfork does.
const family = `
loop='while :; do echo $0; (:); done'
(sh -c "$loop" orphan &)
(setsid sh -c "$loop" stranger &)
exec sh -c "$loop" father`

// function reports its rights, or starts processes that count.
func function(mode string) error {
	switch mode {
	case "inspect":
		return printInspection()
	case "exit":
		os.Exit(7)
	case "family":
		cmd := exec.Command("/bin/sh", "-c", family)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}
	return nil
}

// host stops the function when it gets a byte, and waits for the function's end.
func host(binary string) error {
	j, err := jail.New(context.Background(), func(string) {})
	if err != nil {
		return err
	}
	env := []string{mode + "=family", "PATH=/usr/bin:/bin", "FAMILY=" + os.Getenv("HOST_OF")}
	p, err := j.Start(jail.Command{Binary: binary, Env: env, Output: os.Stdout, Scratch: 1 << 20})
	if err != nil {
		return err
	}
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	p.Stop()
	<-p.Done()
	return p.Err()
}

// jails are the jail of this machine, and none. What the kernel refuses is in the test's log.
func jails(t *testing.T) map[string]*jail.Jail {
	t.Helper()
	all := map[string]*jail.Jail{}
	for _, value := range []string{"on", "off"} {
		t.Setenv(jail.Variable, value)
		all[value] = must.Get(jail.New(t.Context(), func(line string) { t.Log(line) })).Or(t)
	}
	return all
}

func start(t *testing.T, j *jail.Jail, output *os.File, readable []string, env ...string) *jail.Process {
	t.Helper()
	p := must.Get(j.Start(jail.Command{
		Binary: jailed, Env: append([]string{"PATH=/usr/bin:/bin"}, env...), Output: output, Scratch: 8 << 20,
		Readable: readable,
	})).Or(t)
	t.Cleanup(func() { p.Kill(); <-p.Done() })
	return p
}

func output(t *testing.T) *os.File {
	t.Helper()
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "output"))).Or(t)
	t.Cleanup(func() { file.Close() })
	return file
}

// printInspection prints the rights that a function finds: what /proc/self/status says, the error of each system call
// of a list, and what the other names say.
func printInspection() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	found := map[string]string{"environment": strings.Join(os.Environ(), " ")}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		found[name] = strings.TrimSpace(value)
	}
	for name, number := range map[string]uintptr{
		"prctl": unix.SYS_PRCTL, "ptrace": unix.SYS_PTRACE, "personality": unix.SYS_PERSONALITY, "unshare": unix.SYS_UNSHARE,
		"fallocate": unix.SYS_FALLOCATE, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "setns": unix.SYS_SETNS,
		"process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
		"kcmp": unix.SYS_KCMP, "bpf": unix.SYS_BPF, "clone3": unix.SYS_CLONE3,
	} {
		// No argument makes sense: where the call is permitted, its error is another one, or none.
		_, _, errno := unix.RawSyscall6(number, ^uintptr(0), 0, 0, 0, 0, 0)
		found[name] = errno.Error()
	}
	for _, dir := range []string{"/", "/dev", "/dev/shm", "/etc", "/home", "/mnt", "/opt", "/root", "/run", "/sys",
		"/tmp", "/usr", "/usr/lib",
		"/var", "/var/log", "/var/run", "/var/runtime", "/var/task", "/var/tmp", "/proc/sys/kernel", os.Getenv("OUTSIDE")} {
		if file, err := os.CreateTemp(dir, "jailed"); err == nil {
			found["writable"] += dir
			_ = os.Remove(file.Name())
		} else if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	for path := range strings.SplitSeq(os.Getenv("SEE"), ":") {
		if _, err := os.ReadFile(path); err == nil {
			found["readable"] += path
		}
	}
	for name, resource := range map[string]int{"processes": unix.RLIMIT_NPROC, "files": unix.RLIMIT_NOFILE} {
		var limit unix.Rlimit
		err = errors.Join(err, unix.Getrlimit(resource, &limit))
		found[name] = strconv.FormatUint(limit.Max, 10)
	}
	dir, failed := os.Getwd()
	processes, _ := filepath.Glob("/proc/[0-9]*")
	found["folder"], found["seen processes"] = dir, strconv.Itoa(len(processes))
	_, unread := os.ReadFile("/proc/1/environ")
	_, missing := os.Stat("/dev/shm")
	found["the first process is read"] = strconv.FormatBool(unread == nil)
	found["shared memory"] = strconv.FormatBool(missing == nil)
	if os.Getenv("FILL") != "" {
		found["threads"] = strconv.Itoa(sleepers())
	}
	return errors.Join(err, failed, json.NewEncoder(os.Stdout).Encode(found))
}

// sleepers starts processes until the kernel refuses one, and returns how many processes and threads there are then.
func sleepers() int {
	var all []*exec.Cmd
	defer func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	for range 1200 {
		cmd := exec.Command("/bin/sleep", "60")
		if cmd.Start() != nil {
			break
		}
		all = append(all, cmd)
	}
	own, _ := os.ReadDir("/proc/self/task")
	return len(all) + len(own)
}

func inspect(t *testing.T, j *jail.Jail, readable []string, env ...string) (found map[string]string) {
	t.Helper()
	file := output(t)
	p := start(t, j, file, readable, append(env, mode+"=inspect")...)
	<-p.Done()
	text := must.Get(os.ReadFile(file.Name())).Or(t)
	if err := json.Unmarshal(text, &found); err != nil || p.Err() != nil {
		t.Fatalf("%v, %v: %s", err, p.Err(), text)
	}
	return found
}

// TestJail checks each part of the jail that this machine's kernel permits.
func TestJail(t *testing.T) {
	dir := filepath.Dir(jailed)
	readable, hidden := filepath.Join(dir, "readable"), filepath.Join(dir, "hidden")
	for _, path := range []string{readable, hidden} {
		must.Succeed(t, os.WriteFile(path, []byte("x"), 0o644))
	}
	open := t.TempDir() // folders of other programs that any user can write to
	must.Succeed(t, os.Chmod(open, 0o777))
	t.Setenv("SECRET_OF_THE_HOST", "x")
	env := []string{"SEE=" + strings.Join([]string{readable, hidden, "/etc/passwd"}, ":"), "OUTSIDE=" + open, "FILL=1"}
	j := jails(t)["on"]
	found := inspect(t, j, []string{readable}, env...)
	denied, id := syscall.EPERM.Error(), `((6118[4-9]|6119\d|61[2-9]\d\d|6[2-5]\d{3})\s*){4}` // from 61184 on
	// by part: patterns of what the function finds
	wants := map[string]map[string]string{
		"": {"environment": "PATH=/usr/bin:/bin " + regexp.QuoteMeta(strings.Join(env, " ")) + " " + mode + "=inspect",
			"the first process is read": "false"},
		// Where clone3 is denied, threads of glibc abort.
		spec.Filter: {"Seccomp": "2", "NoNewPrivs": "1", "clone3": "[^o].*", "prctl": denied, "ptrace": denied,
			"personality": denied, "unshare": denied, "fallocate": denied, "perf_event_open": denied, "setns": denied,
			"process_vm_readv": denied, "process_vm_writev": denied, "kcmp": denied, "bpf": denied},
		spec.User:   {"Uid": id, "Gid": id, "Groups": ""},
		spec.Limits: {"files": "1024"},
		spec.Namespaces: {"folder": "/var/task", "writable": "/tmp", "readable": readable + "/etc/passwd",
			"seen processes": "2", "shared memory": "false"},
	}
	if j.Has(spec.User) {
		wants[spec.Limits]["processes"], wants[spec.Limits]["threads"] = "1024", `10([01]\d|2[0-4])`
	} else if os.Getuid() == 0 {
		t.Log("functions run as root here") // reported above, with the reason
	}
	if os.Getuid() != 0 || j.Has(spec.User) {
		wants[""]["CapEff"], wants[""]["CapPrm"] = "0{16}", "0{16}"
	}
	for part, want := range wants {
		for name, pattern := range want {
			if got := found[name]; (part == "" || j.Has(part)) && !regexp.MustCompile("^("+pattern+")$").MatchString(got) {
				t.Errorf("%s: %s is %q, want %q", part, name, got, pattern)
			}
		}
	}
}

// TestOff checks that JAIL=off leaves nothing of the jail, and that JAIL accepts no other value.
func TestOff(t *testing.T) {
	found := inspect(t, jails(t)["off"], nil)
	own := must.Get(os.ReadFile("/proc/self/status")).Or(t) // this process itself may have a filter of system calls
	if found["Seccomp"] == "2" && !strings.Contains(string(own), "Seccomp:\t2") || found["folder"] != filepath.Dir(jailed) {
		t.Errorf("Seccomp %s, folder %s", found["Seccomp"], found["folder"])
	}
	t.Setenv(jail.Variable, "none")
	if _, err := jail.New(t.Context(), func(string) {}); err == nil {
		t.Error("JAIL=none is taken")
	}
}

// TestEnd checks that the supervisor passes on how a function ends, and why it cannot start.
func TestEnd(t *testing.T) {
	for name, j := range jails(t) {
		for _, c := range []struct{ binary, mode, want string }{
			{jailed, "exit", "exit status 7"},
			{jailed, "none", "<nil>"},
			{"/nonexistent", "", "open /nonexistent: no such file or directory"},
		} {
			p := must.Get(j.Start(jail.Command{Binary: c.binary, Env: []string{mode + "=" + c.mode}, Scratch: 1 << 20})).Or(t)
			if <-p.Done(); fmt.Sprint(p.Err()) != c.want {
				t.Errorf("jail %s, %s %s: %v, want %s", name, c.binary, c.mode, p.Err(), c.want)
			}
			p.Stop() // neither does harm any more
			p.Kill()
		}
		p := start(t, j, output(t), nil, mode+"=family")
		for p.ID() == 0 {
			time.Sleep(time.Millisecond)
		}
		must.Succeed(t, syscall.Kill(p.ID(), syscall.SIGKILL))
		if <-p.Done(); p.Err() == nil || p.Err().Error() != "signal: killed" {
			t.Errorf("jail %s, killed: %v", name, p.Err())
		}
	}
}

// members are the processes of the family, by what each of them prints.
var members = []string{"father", "orphan", "stranger"}

// lines counts what each member of the family has printed.
func lines(t *testing.T, file string) map[string]int {
	t.Helper()
	text := must.Get(os.ReadFile(file)).Or(t)
	counts := map[string]int{}
	for line := range strings.FieldsSeq(string(text)) {
		counts[line]++
	}
	return counts
}

// grow waits until each member has printed more.
func grow(t *testing.T, file string) {
	t.Helper()
	before := lines(t, file)
	for deadline := time.Now().Add(time.Hour); ; time.Sleep(time.Millisecond) {
		now := lines(t, file)
		if !slices.ContainsFunc(members, func(m string) bool { return now[m] <= before[m] }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a member of the family does not run: %v, then %v", before, now)
		}
	}
}

// tree are the processes of this machine with a variable in their environment, as their owner and root see them.
func tree(t *testing.T, variable string) (pids []int) {
	t.Helper()
	for _, path := range must.Get(filepath.Glob("/proc/[0-9]*/environ")).Or(t) {
		if env, err := os.ReadFile(path); err == nil && slices.Contains(strings.Split(string(env), "\x00"), variable) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// state is a process's state of /proc/<pid>/stat; empty when the process is gone.
func state(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}

// stopped waits until no process of the family runs.
func stopped(t *testing.T, mark string) {
	t.Helper()
	var running []string
	for range 500 {
		running = nil
		pids := tree(t, mark)
		for _, pid := range pids {
			if s := state(pid); s != "T" && s != "" {
				running = append(running, fmt.Sprint(pid, s))
			}
		}
		if len(running) == 0 {
			if len(pids) < len(members) {
				t.Fatalf("processes %v, want at least %d", pids, len(members))
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("processes run on: %v", running)
}

// TestStop checks that Stop stops a function with its orphans, whatever they are starting, that Continue lets all of
// them run again, and that Kill leaves none.
func TestStop(t *testing.T) {
	for name, j := range jails(t) {
		t.Run(name, func(t *testing.T) {
			file, mark := output(t), "FAMILY="+t.TempDir()
			p := start(t, j, file, nil, mode+"=family", mark)
			for round := range 20 {
				grow(t, file.Name())
				p.Stop()
				stopped(t, mark)
				before := lines(t, file.Name())
				time.Sleep(30 * time.Millisecond)
				if now := lines(t, file.Name()); !maps.Equal(before, now) {
					t.Fatalf("round %d: %v, after 30 ms %v", round, before, now)
				}
				p.Continue()
			}
			grow(t, file.Name())
			p.Stop()
			p.Kill()
			<-p.Done()
			if left := tree(t, mark); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// TestHostDies checks that nothing outlives a host that is killed, be it at work or frozen.
func TestHostDies(t *testing.T) {
	for name := range jails(t) {
		for _, frozen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, frozen %t", name, frozen), func(t *testing.T) {
				file, family := output(t), t.TempDir()
				mark := "FAMILY=" + family
				host := exec.Command(os.Args[0])
				host.Env = append(os.Environ(), hold+"="+jailed, jail.Variable+"="+name, "HOST_OF="+family)
				host.Stdout, host.Stderr = file, file
				orders := must.Get(host.StdinPipe()).Or(t)
				must.Succeed(t, host.Start())
				t.Cleanup(func() { _ = host.Process.Kill() }) // where the test has failed before
				grow(t, file.Name())
				if frozen {
					must.Get(orders.Write([]byte("\n"))).Or(t)
					stopped(t, mark)
				}
				must.Succeed(t, host.Process.Kill())
				if err := host.Wait(); err == nil {
					t.Error("the host ended by itself")
				}
				var left []int
				for range 1000 {
					if left = tree(t, mark); len(left) == 0 {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
				t.Errorf("processes %v outlive the host", left)
			})
		}
	}
}

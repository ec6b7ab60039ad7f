// Command jailed is a function for the tests of the jail. The function reports its rights, or starts processes that count.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// family are a process and two that have lost their parent, one of these in a session of its own. Each starts a process
// for each of its lines: a shell within the shell, which does not hold its parent up as vfork does.
const family = `
loop='while :; do echo $0; (:); done'
(sh -c "$loop" orphan &)
(setsid sh -c "$loop" stranger &)
exec sh -c "$loop" father`

func main() {
	var err error
	switch os.Getenv("MODE") {
	case "inspect":
		err = inspect()
	case "exit":
		os.Exit(7)
	case "family":
		cmd := exec.Command("/bin/sh", "-c", family)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// Inspection holds the rights that a function finds.
type Inspection struct {
	Status    map[string]string // of /proc/self/status
	Calls     map[string]string // errors of system calls, by name
	Written   []string          // folders in which a file could be made
	Seen      []string          // paths, of those in SEE, that can be read
	Dir       string
	Files     uint64 // limits
	Processes uint64
	Threads   int // of a process that starts threads until the kernel refuses one
	PIDs      []string
	Init      string // why the environment of the first process cannot be read
	Env       []string
	Groups    []int
}

func inspect() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	found := Inspection{Status: map[string]string{}, Calls: map[string]string{}, Env: os.Environ()}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		found.Status[name] = strings.TrimSpace(value)
	}
	for name, number := range map[string]uintptr{
		"prctl": unix.SYS_PRCTL, "ptrace": unix.SYS_PTRACE, "personality": unix.SYS_PERSONALITY, "unshare": unix.SYS_UNSHARE,
		"fallocate": unix.SYS_FALLOCATE, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "setns": unix.SYS_SETNS,
		"process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
		"kcmp": unix.SYS_KCMP, "bpf": unix.SYS_BPF, "clone3": unix.SYS_CLONE3,
	} {
		// No argument makes sense: where the call is permitted, its error is another one, or none.
		_, _, errno := unix.RawSyscall6(number, ^uintptr(0), 0, 0, 0, 0, 0)
		found.Calls[name] = errno.Error()
	}
	for _, dir := range []string{"/", "/dev", "/dev/shm", "/etc", "/home", "/mnt", "/opt", "/root", "/run", "/sys", "/tmp", "/usr", "/usr/lib",
		"/var", "/var/log", "/var/run", "/var/runtime", "/var/task", "/var/tmp", "/proc/sys/kernel", os.Getenv("OUTSIDE")} {
		if file, err := os.CreateTemp(dir, "jailed"); err == nil {
			found.Written = append(found.Written, dir)
			_ = os.Remove(file.Name())
		} else if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	for path := range strings.SplitSeq(os.Getenv("SEE"), ":") {
		if _, err := os.ReadFile(path); err == nil {
			found.Seen = append(found.Seen, path)
		}
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return err
	}
	found.Processes = limit.Max
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	found.Files = limit.Max
	if found.Dir, err = os.Getwd(); err != nil {
		return err
	}
	found.PIDs, _ = filepath.Glob("/proc/[0-9]*")
	if _, err := os.ReadFile("/proc/1/environ"); err != nil {
		found.Init = err.Error()
	}
	if found.Groups, err = os.Getgroups(); err != nil {
		return err
	}
	found.Threads = sleepers()
	return json.NewEncoder(os.Stdout).Encode(found)
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

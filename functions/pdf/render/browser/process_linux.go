package browser

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Isolate asks the kernel for two protections, and must be called first thing. Undumpable (PR_SET_DUMPABLE 0) keeps the
// browser from reading this process: without a sandbox, a child of the same user could read the memory and the
// environment of its parent under /proc, credentials included. Subreaper lets this process reap the children of a
// killed browser. Lambda denies both, so no other code relies on them. The attributes say which of them are in force.
func Isolate() []slog.Attr {
	state := func(denied error) string {
		if denied != nil {
			return denied.Error()
		}
		return "in force"
	}
	return []slog.Attr{
		slog.String("undumpable", state(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))),
		slog.String("subreaper", state(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))),
	}
}

// denied returns the names of the system calls that fail with "operation not permitted", of those that a browser may
// use, and /dev/shm where there is no shared memory. Each probe is a call without effect.
func denied() (names []string) {
	const none = ^uintptr(0) // no descriptor
	own := uintptr(os.Getpid())
	for _, probe := range []struct {
		name string
		call [3]uintptr // the number and the first arguments; the others are zero
	}{
		{"prctl", [3]uintptr{unix.SYS_PRCTL, unix.PR_GET_DUMPABLE}},
		{"ptrace", [3]uintptr{unix.SYS_PTRACE, unix.PTRACE_CONT}},
		{"personality", [3]uintptr{unix.SYS_PERSONALITY, 0xffffffff}},
		{"unshare", [3]uintptr{unix.SYS_UNSHARE}},
		{"setns", [3]uintptr{unix.SYS_SETNS, none}},
		{"fallocate", [3]uintptr{unix.SYS_FALLOCATE, none}},
		{"clone3", [3]uintptr{unix.SYS_CLONE3}},
		{"process_vm_readv", [3]uintptr{unix.SYS_PROCESS_VM_READV, own}},
		{"kcmp", [3]uintptr{unix.SYS_KCMP, own, own}},
	} {
		if _, _, errno := unix.RawSyscall(probe.call[0], probe.call[1], probe.call[2], 0); errno == unix.EPERM {
			names = append(names, probe.name)
		}
	}
	if unix.Access("/dev/shm", unix.W_OK) != nil {
		names = append(names, "/dev/shm")
	}
	return names
}

// reap kills the remaining processes of a browser until none is alive, reaps those that are children of this process,
// and returns their number. A remaining process is in the browser's group, or has left the group and still works in the
// profile folder. A dead process that another process has to reap does no harm.
func reap(group int, profile string) (reaped int) {
	remaining := map[int]bool{}
	for range 1000 { // two seconds
		running := workingIn(profile)
		if group != 0 {
			running = append(running, groupMembers(group)...)
		}
		for _, pid := range running {
			remaining[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for pid := range remaining {
			if ended, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); ended > 0 {
				reaped++
			}
		}
		childless := group == 0
		for !childless {
			ended, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
			if ended == 0 { // a process looks dead while its last threads end
				break
			} else if ended > 0 {
				reaped++
			}
			childless = err == syscall.ECHILD
		}
		if len(running) == 0 && childless {
			break
		}
		<-time.After(2 * time.Millisecond)
	}
	return reaped
}

// groupMembers returns the living processes of a group.
func groupMembers(group int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, _ := os.ReadFile(name) //nolint:gosec // a name below /proc; empty where the process has ended
		// "pid (name) state ppid pgrp …"; the name may contain spaces and brackets.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || bytes.ContainsAny(fields[0], "ZX") || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		pids = append(pids, pid)
	}
	return pids
}

// workingIn returns the processes whose working folder is dir. The processes of a browser inherit the working folder,
// and do not overwrite it, as they overwrite their environment.
func workingIn(dir string) []int {
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var pids []int
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == dir {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// memory returns the bytes of anonymous and shared memory of processes. Mapped files, mostly the browser's code, do not
// count: the kernel shares them and can drop them.
func memory(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		for line := range bytes.Lines(status) {
			if bytes.HasPrefix(line, []byte("RssAnon:")) || bytes.HasPrefix(line, []byte("RssShmem:")) {
				kib, _ := strconv.ParseInt(string(bytes.Fields(line)[1]), 10, 64)
				sum += kib << 10
			}
		}
	}
	return sum
}

package browser

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Seclude asks the kernel for two protections. Undumpable closes this process to the browser that it will start:
// without a sandbox, a child of the same user could read the memory and the environment of its parent under /proc,
// credentials included. Subreaper makes this process the one that inherits, and can reap, what a killed browser leaves
// behind. Lambda denies both, so nothing may need them. Call Seclude first thing.
func Seclude() []Protection {
	return []Protection{
		{"undumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)},
		{"subreaper", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)},
	}
}

// denied names the system calls that answer "operation not permitted" here, of those that a browser may want, and
// shared memory if there is none. Each call asks for nothing.
func denied(dir string) []string {
	var names []string
	for _, probe := range []struct {
		name string
		call func() error
	}{
		{"prctl", prctlAnswers},
		{"ptrace", func() error { return raw(unix.SYS_PTRACE, unix.PTRACE_CONT, 0, 0) }},
		{"personality", func() error { return raw(unix.SYS_PERSONALITY, 0xffffffff) }},
		{"unshare", func() error { return unix.Unshare(0) }},
		{"setns", func() error { return unix.Setns(-1, 0) }},
		{"fallocate", func() error { return fallocate(dir) }},
		{"clone3", func() error { return raw(unix.SYS_CLONE3, 0, 0) }},
		{"process_vm_readv", func() error { return raw(unix.SYS_PROCESS_VM_READV, uintptr(os.Getpid())) }},
		{"kcmp", func() error { return raw(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid())) }},
		{"/dev/shm", func() error { return unix.Access("/dev/shm", unix.W_OK) }},
	} {
		if err := probe.call(); errors.Is(err, unix.EPERM) || strings.HasPrefix(probe.name, "/") && err != nil {
			names = append(names, probe.name)
		}
	}
	return names
}

func raw(call uintptr, arguments ...uintptr) error {
	var a [6]uintptr
	copy(a[:], arguments)
	if _, _, errno := unix.RawSyscall6(call, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func prctlAnswers() error {
	_, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return err
}

func fallocate(dir string) error {
	file, err := os.CreateTemp(dir, "fallocate")
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, 1)
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

func alive(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

// killChildren kills every process of a group but the one that leads it.
func killChildren(group int) {
	for _, pid := range members(group) {
		if pid != group {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// reap kills what is left of a browser, until nothing of it is alive, and collects what has become this process's child.
// What is left is in the browser's group, or works in its profile folder, also if it has left the group. A dead process
// that another one has to collect takes part in nothing any more. The number of the collected ones is returned.
func reap(group int, profile string) (collected int) {
	left := map[int]bool{}
	for range 1000 { // two seconds
		running := inside(profile)
		if group != 0 {
			running = append(running, members(group)...)
		}
		for _, pid := range running {
			left[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for pid := range left {
			if ended, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); ended > 0 {
				collected++
			}
		}
		childless := group == 0
		for !childless {
			ended, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
			if ended == 0 { // one looks dead while its last threads end
				break
			} else if ended > 0 {
				collected++
			}
			childless = err == syscall.ECHILD
		}
		if len(running) == 0 && childless {
			break
		}
		<-time.After(2 * time.Millisecond)
	}
	return collected
}

// task is a process as /proc shows it.
type task struct {
	pid, parent, group int
	zombie             bool
	name               string
}

func tasks() []task {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []task
	for _, name := range stats {
		stat, err := os.ReadFile(name) //nolint:gosec // a name below /proc
		if err != nil {
			continue
		}
		// "pid (name) state ppid pgrp …"; the name may hold anything.
		open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if open < 0 || shut < open {
			continue
		}
		fields := bytes.Fields(stat[shut+1:])
		if len(fields) < 3 {
			continue
		}
		t := task{zombie: fields[0][0] == 'Z' || fields[0][0] == 'X', name: string(stat[open+1 : shut])}
		t.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(name)))
		t.parent, _ = strconv.Atoi(string(fields[1]))
		t.group, _ = strconv.Atoi(string(fields[2]))
		all = append(all, t)
	}
	return all
}

// members lists the living processes of a group.
func members(group int) []int {
	var pids []int
	for _, t := range tasks() {
		if t.group == group && !t.zombie {
			pids = append(pids, t.pid)
		}
	}
	return pids
}

// inside lists the processes that work in a folder. A browser's processes inherit its working folder, and do not
// overwrite it as they do their environment.
func inside(dir string) []int {
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

// memory is what processes hold of their own, in bytes. Mapped files, the browser's code above all,
// are left out: they are shared and can be dropped.
func memory(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		for _, field := range []string{"RssAnon:", "RssShmem:"} {
			_, rest, found := bytes.Cut(status, []byte(field))
			if !found {
				continue
			}
			if words := bytes.Fields(rest[:min(len(rest), 40)]); len(words) > 0 {
				kib, _ := strconv.ParseInt(string(words[0]), 10, 64)
				sum += kib << 10
			}
		}
	}
	return sum
}

package browser

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Seclude closes this process to the browser that it will start: without a sandbox, a child of the same user could
// read the memory and the environment of its parent under /proc, credentials included. It also makes this process
// the one that inherits, and can reap, what a killed browser leaves behind. Call it first thing.
func Seclude() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

func alive(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

// reapGroup collects what is left of a killed group. Its members become children of this process one by one,
// as their own parents go.
func reapGroup(group int) {
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		switch {
		case pid > 0:
			continue
		case err == syscall.ECHILD && len(members(group)) == 0:
			return
		}
		<-time.After(2 * time.Millisecond)
	}
}

// members lists the processes of a group, zombies included.
func members(group int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, name := range stats {
		stat, err := os.ReadFile(name) //nolint:gosec // a name below /proc
		if err != nil {
			continue
		}
		// "pid (name) state ppid pgrp …"; the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		pids = append(pids, pid)
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

package main

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"svcapi/local/jail/spec"
	"svcapi/local/process"
)

// everyone names every process of the namespace but its first, which is the supervisor. The kernel signals them in one
// step: a process that forks meanwhile forks after the signal.
const everyone = -1

// stop stops every process of the function.
func (s *supervisor) stop() {
	if s.has(spec.Namespaces) {
		_ = syscall.Kill(everyone, syscall.SIGSTOP) // where none is left, there is nothing to stop
		return
	}
	// A process that was signalled starts no more, so that a look at the processes that finds no new one is the last.
	for {
		found := descendants()
		more := slices.DeleteFunc(found, func(pid int) bool { return slices.Contains(s.stopped, pid) })
		if len(more) == 0 {
			return
		}
		signalAll(more, syscall.SIGSTOP)
		s.stopped = append(s.stopped, more...)
	}
}

// proceed lets every process of the function run again.
func (s *supervisor) proceed() {
	if s.has(spec.Namespaces) {
		_ = syscall.Kill(everyone, syscall.SIGCONT)
		return
	}
	signalAll(s.stopped, syscall.SIGCONT)
	s.stopped = nil
}

// end ends every process of the function, and the supervisor. The list of a process's children can lack some while
// others end (proc_tid_children(5)): only the kernel's ECHILD says that none is left.
func (s *supervisor) end() {
	for !s.has(spec.Namespaces) { // else the kernel ends the namespace with its first process
		signalAll(descendants(), syscall.SIGKILL)
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.ECHILD) {
			break
		}
		if pid == 0 {
			<-time.After(time.Millisecond) // the kernel is ending them
		}
	}
	os.Exit(0)
}

func signalAll(pids []int, signal syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal) // it may have ended
	}
}

// descendants are the processes below the supervisor, which adopts those that have lost their parent.
func descendants() []int {
	found := []int{os.Getpid()}
	for i := 0; i < len(found); i++ {
		for _, child := range process.Children(found[i]) {
			if !slices.Contains(found, child) {
				found = append(found, child)
			}
		}
	}
	return found[1:]
}

// Command supervisor starts one function of the local stack in its jail and stays its parent: the supervisor stops and
// continues all processes that the function has started, reaps orphans, and ends every process when the host ends.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"svcapi/local/jail/spec"
	"svcapi/local/process"
)

func main() {
	if slices.Equal(os.Args[1:], []string{spec.Probe}) {
		return
	}
	runtime.LockOSThread() // the function inherits the reduced rights of this thread
	unix.CloseOnExec(spec.ControlFD)
	unix.CloseOnExec(spec.ReportFD)
	control := bufio.NewReader(os.NewFile(spec.ControlFD, "control"))
	reports := json.NewEncoder(os.NewFile(spec.ReportFD, "reports"))
	line, err := control.ReadBytes('\n')
	if err != nil {
		os.Exit(1) // the host has ended
	}
	var setup spec.Setup
	if err := json.Unmarshal(line, &setup); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := &supervisor{setup: setup}
	function, err := s.start()
	if err != nil {
		refused, _ := errors.AsType[*spec.RefusedError](err)
		// a host that has ended reads no report
		_ = reports.Encode(spec.Report{Ended: true, Error: err.Error(), Refused: refused})
		os.Exit(1)
	}
	_ = reports.Encode(spec.Report{PID: function})
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		s.end()
	}()
	go s.obey(control)
	_ = reports.Encode(spec.Report{PID: function, Ended: true, Error: s.wait(function)})
	s.end()
}

// supervisor holds one function.
type supervisor struct {
	setup   spec.Setup
	stopped []int // by Stop, where there is no process namespace
}

func (s *supervisor) has(part string) bool { return slices.Contains(s.setup.Parts, part) }

// start builds the jail around this thread and starts the function in it.
func (s *supervisor) start() (int, error) {
	attributes := &syscall.ProcAttr{
		Dir: filepath.Dir(s.setup.Binary), Env: s.setup.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	// The binary is opened here: its path may lead through a folder that only this user can enter.
	binary, err := unix.Open(s.setup.Binary, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", s.setup.Binary, err)
	}
	program := fmt.Sprintf("/proc/self/fd/%d", binary)
	if !s.has(spec.Namespaces) { // a namespace gives its orphans to its first process by itself
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return 0, err
		}
	}
	for _, part := range []struct {
		name  string
		build func() error
	}{ // the filter is the last: it denies calls that the other parts need
		{spec.Namespaces, func() error {
			attributes.Dir, program = spec.TaskRoot, filepath.Join(spec.TaskRoot, "bootstrap")
			return fileSystem(s.setup)
		}},
		{spec.User, func() error {
			id := uint32(s.setup.ID)
			attributes.Sys.Credential = &syscall.Credential{Uid: id, Gid: id}
			if !s.has(spec.Namespaces) {
				attributes.Dir = "/"
			}
			return nil
		}},
		{spec.Limits, func() error { return limit(s.has(spec.User)) }},
		{spec.Filter, installFilter},
	} {
		if !s.has(part.name) {
			continue
		}
		if err := part.build(); err != nil {
			return 0, &spec.RefusedError{Part: part.name, Reason: err.Error()}
		}
	}
	pid, err := syscall.ForkExec(program, append([]string{s.setup.Binary}, s.setup.Args...), attributes)
	if err != nil {
		err = fmt.Errorf("start %s: %w", s.setup.Binary, err)
		if s.has(spec.User) {
			err = &spec.RefusedError{Part: spec.User, Reason: err.Error()}
		}
	}
	return pid, err
}

// Lambda's limits of an execution environment.
const (
	openFiles = 1024
	processes = 1024
)

// limit sets the limits of open files and, for a user of its own, of that user's processes and threads.
func limit(user bool) error {
	// Package syscall notes that the limit of open files was set, and leaves it to the function as it is.
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: openFiles, Max: openFiles})
	if err == nil && user {
		err = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: processes, Max: processes})
	}
	return err
}

// obey executes the host's commands until the host ends.
func (s *supervisor) obey(control *bufio.Reader) {
	for {
		command, err := control.ReadByte()
		switch {
		case err != nil:
			s.end()
		case control.Buffered() > 0: // a later command replaces this one
		case command == spec.Stop:
			s.stop()
		case command == spec.Continue:
			s.proceed()
		}
	}
}

// wait reaps processes until the function has ended, and returns how the function ended; empty for exit status 0.
func (s *supervisor) wait(function int) string {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD): // another thread ends everything
			select {}
		case err != nil || pid != function:
		case status.Signaled():
			return fmt.Sprintf("signal: %s", status.Signal())
		case status.ExitStatus() != 0:
			return fmt.Sprintf("exit status %d", status.ExitStatus())
		default:
			return ""
		}
	}
}

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

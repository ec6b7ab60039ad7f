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

	"golang.org/x/sys/unix"

	"svcapi/local/jail/spec"
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

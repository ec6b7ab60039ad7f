//go:build !linux

package jail

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"svcapi/local/process"
)

func open(_ context.Context, wanted bool, report func(string)) (*Jail, error) {
	if wanted {
		report("no jail for functions on " + runtime.GOOS + ": it needs Linux")
	}
	return &Jail{}, nil
}

// TaskRoot is the folder of a binary as the function sees it.
func (*Jail) TaskRoot(binary string) string { return filepath.Dir(binary) }

// Process is a running function.
type Process struct{ child *process.Process }

// Start starts a function in a new process group.
func (*Jail) Start(c Command) (*Process, error) {
	cmd := exec.Command(c.Binary, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Dir(c.Binary), c.Env, c.Output, c.Output
	child, err := process.Start(cmd)
	return &Process{child}, err
}

// ID is the function's process id.
func (p *Process) ID() int { return p.child.ID }

// Stop stops the processes of the function's group.
func (p *Process) Stop() { p.child.Signal(syscall.SIGSTOP) }

// Continue lets the processes of the function's group run again.
func (p *Process) Continue() { p.child.Signal(syscall.SIGCONT) }

// Kill ends the processes of the function's group.
func (p *Process) Kill() { p.child.Signal(syscall.SIGKILL) }

// Done is closed when the function has ended.
func (p *Process) Done() <-chan struct{} { return p.child.Done() }

// Err returns how the function ended: nil for exit status 0. The result is valid once Done is closed.
func (p *Process) Err() error { return p.child.Err() }

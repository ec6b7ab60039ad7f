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
type Process struct{ *process.Process }

// Start starts a function in a new process group.
func (*Jail) Start(c Command) (*Process, error) {
	cmd := exec.Command(c.Binary, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Dir(c.Binary), c.Env, c.Output, c.Output
	child, err := process.Start(cmd)
	return &Process{child}, err
}

// ID is the function's process id.
func (p *Process) ID() int { return p.Process.ID }

// Stop stops the processes of the function's group.
func (p *Process) Stop() { p.Signal(syscall.SIGSTOP) }

// Continue lets the processes of the function's group run again.
func (p *Process) Continue() { p.Signal(syscall.SIGCONT) }

// Kill ends the processes of the function's group.
func (p *Process) Kill() { p.Signal(syscall.SIGKILL) }

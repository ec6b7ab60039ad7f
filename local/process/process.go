// Package process starts children that never outlive this process. Each child leads a process group of its own.
// On Linux the kernel also ends the child when this process dies.
package process

import (
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Process is a running child.
type Process struct {
	// ID is the child's process id, and its group's.
	ID int

	done chan struct{}
	err  error

	mu    sync.Mutex // keeps a signal from reaching a later process with the same id
	ended bool
}

// Start runs cmd in a process group of its own. A signal that cmd names for this process's death stays.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	endWithParent(cmd.SysProcAttr)
	cmd.WaitDelay = time.Second // a grandchild may hold the output open
	p := &Process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel's parent-death signal follows the thread that started the child: hold it until the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.ID = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		p.mu.Lock()
		_ = syscall.Kill(-p.ID, syscall.SIGKILL) // what the child left in its group
		p.ended = true
		p.mu.Unlock()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended: nil for exit status 0. Err is valid once Done is closed.
func (p *Process) Err() error { return p.err }

// Signal sends a signal to the child's group. After the child's end it does nothing.
func (p *Process) Signal(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = syscall.Kill(-p.ID, signal)
	}
}

// Kill ends the child and its group at once and waits for the end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// FreePort returns a free port of the loopback interface for a child: the preferred port, or another where it is taken.
func FreePort(preferred int) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(preferred)))
	if err != nil && preferred != 0 {
		return FreePort(0)
	}
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

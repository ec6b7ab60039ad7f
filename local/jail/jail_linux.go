package jail

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"svcapi/local/build"
	"svcapi/local/jail/spec"
	"svcapi/local/process"
	"svcapi/local/workdir"
)

// The functions' users are in systemd's range for dynamic users: no person has an id there.
const (
	firstID = 61184
	ids     = 65519 - firstID + 1
)

func open(ctx context.Context, wanted bool, report func(string)) (*Jail, error) {
	supervisor, err := workdir.Local("jail", "supervisor")
	if err == nil {
		err = build.Packages(ctx, supervisor, "./local/jail/supervisor")
	}
	if err != nil {
		return nil, err
	}
	j := &Jail{supervisor: supervisor}
	if !wanted {
		report("no jail for functions: " + Variable + "=off")
		return j, j.probe()
	}
	j.parts = []string{spec.Namespaces, spec.User, spec.Limits, spec.Filter}
	if os.Getuid() != 0 {
		j.drop(spec.User)
		report("jail: no user for each function, nor a limit of its processes: that needs root")
	}
	for {
		err := j.probe()
		refused, ok := errors.AsType[*spec.RefusedError](err)
		if !ok {
			return j, err
		}
		j.drop(refused.Part)
		report("jail: the kernel refuses the " + refused.Error())
	}
}

func (j *Jail) drop(part string) {
	j.parts = slices.DeleteFunc(j.parts, func(p string) bool { return p == part })
}

// probe starts a function that ends at once.
func (j *Jail) probe() error {
	p, err := j.Start(Command{Binary: j.supervisor, Args: []string{spec.Probe}, Scratch: 1 << 20})
	if err != nil {
		return err
	}
	<-p.Done()
	return p.Err()
}

// TaskRoot is the folder of a binary as the function sees it.
func (j *Jail) TaskRoot(binary string) string {
	if j.Has(spec.Namespaces) {
		return spec.TaskRoot
	}
	return filepath.Dir(binary)
}

// Process is a running function, below its supervisor.
type Process struct {
	supervisor *process.Process
	kernel     bool // the kernel ends all processes with the supervisor
	done       chan struct{}

	mu      sync.Mutex
	control *os.File
	pid     int // in the supervisor's process namespace
	err     error
}

// Start starts a function. An error before the function runs is the error that the function ends with.
func (j *Jail) Start(c Command) (*Process, error) {
	p := &Process{kernel: j.Has(spec.Namespaces), done: make(chan struct{})}
	orders, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer orders.Close()
	reports, reporting, err := os.Pipe()
	if err != nil {
		control.Close()
		return nil, err
	}
	defer reporting.Close()
	cmd := exec.Command(j.supervisor)
	cmd.Env = []string{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", c.Output, c.Output
	cmd.ExtraFiles = []*os.File{orders, reporting} // spec.ControlFD and spec.ReportFD
	cmd.SysProcAttr = j.attributes()
	if p.supervisor, err = process.Start(cmd); err != nil {
		control.Close()
		reports.Close()
		if errno := syscall.Errno(0); j.Has(spec.Namespaces) && errors.As(err, &errno) {
			err = &spec.RefusedError{Part: spec.Namespaces, Reason: errno.Error()}
		}
		return nil, err
	}
	p.control = control
	setup := spec.Setup{Command: c, Parts: j.parts, ID: os.Getuid()}
	if j.Has(spec.User) {
		setup.ID = firstID + p.supervisor.ID%ids // ids of processes are unique on this machine, so these nearly are
	}
	// The supervisor's end reports a supervisor that has ended already.
	_ = json.NewEncoder(control).Encode(setup)
	go p.listen(reports)
	return p, nil
}

// attributes returns the attributes of the supervisor's process.
func (j *Jail) attributes() *syscall.SysProcAttr {
	if !j.Has(spec.Namespaces) {
		// The supervisor ends what it has started when this process dies; a signal that it cannot catch would not let it.
		return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	}
	a := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID}
	if user, group := os.Getuid(), os.Getgid(); user != 0 {
		// A user who is not root may mount in a new user namespace, as the same user.
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: user, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: group, HostID: group, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return a
}

// listen reads the supervisor's reports until its end.
func (p *Process) listen(reports *os.File) {
	defer reports.Close()
	var last spec.Report
	for lines := json.NewDecoder(reports); lines.Decode(&last) == nil; { // until the supervisor has ended
		p.mu.Lock()
		p.pid = last.PID
		p.mu.Unlock()
	}
	<-p.supervisor.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.control.Close()
	switch {
	case last.Refused != nil:
		p.err = last.Refused
	case last.Error != "":
		p.err = errors.New(last.Error)
	case !last.Ended:
		p.err = p.supervisor.Err()
	}
	close(p.done)
}

// ID is the function's process id on this machine; 0 where the function does not run yet, or no more.
func (p *Process) ID() int {
	p.mu.Lock()
	pid := p.pid
	p.mu.Unlock()
	if !p.kernel || pid == 0 {
		return pid
	}
	// The kernel lists the ids of a process from the outermost namespace to the innermost.
	for _, id := range process.Children(p.supervisor.ID) {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/status")
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(status)) {
			if inner, ok := strings.CutPrefix(line, "NSpid:"); ok &&
				slices.Equal(strings.Fields(inner)[1:], []string{strconv.Itoa(pid)}) {
				return id
			}
		}
	}
	return 0
}

// Stop stops every process of the function, as Lambda freezes them.
func (p *Process) Stop() { p.order(spec.Stop) }

// Continue lets every process of the function run again.
func (p *Process) Continue() { p.order(spec.Continue) }

func (p *Process) order(command byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.control.Write([]byte{command}) // the supervisor's end reports a supervisor that has ended
}

// Kill ends every process of the function. Done is closed when no process is left.
func (p *Process) Kill() {
	if p.kernel {
		p.supervisor.Signal(syscall.SIGKILL)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.control.Close()
}

// Done is closed when the function and all that it has started have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the function ended: nil for exit status 0. The result is valid once Done is closed.
func (p *Process) Err() error { return p.err }

package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// flags returns the flags of flags.txt, which start a browser that can only print.
//
// The network of the browser is closed twice (no name resolves, no proxy responds, loopback included), and interception
// sees each request before that. The browser never gets --disable-web-security, and never --single-process: with the
// latter one endless document blocks the whole browser.
func flags() []string {
	text, _ := files.ReadFile("flags.txt") // a part of this program
	comment := func(line string) bool { return strings.HasPrefix(line, "#") }
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), comment)
}

// profilePrefix begins the name of every profile folder, followed by the process ID of its owner.
const profilePrefix = "svc-pdf-"

// process is one running browser: a process group and a profile folder, which end together.
type process struct {
	group     int // process group, also the browser's process ID
	profile   string
	transport *pipe

	toBrowser, fromBrowser *os.File
	stderr                 tail             // of the browser, until its self-test has passed
	exited                 chan struct{}    // closed when the browser itself has been reaped and its standard error read
	state                  *os.ProcessState // valid once exited is closed
	ending                 sync.Once
	orphans                int // children of the browser that this process had to reap; valid after end
}

// launch starts the browser at path with a new profile folder in dir.
func launch(path, dir string) (*process, error) {
	profile, err := os.MkdirTemp(dir, profilePrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, fmt.Errorf("browser: profile folder: %w", err)
	}
	p := &process{profile: profile, exited: make(chan struct{})}
	if err := p.start(path); err != nil {
		p.toBrowser.Close()
		p.fromBrowser.Close()
		removeProfile(profile)
		return nil, fmt.Errorf("browser: start: %w", err)
	}
	return p, nil
}

func (p *process) start(path string) (err error) {
	if err := copyFontCache(filepath.Dir(path), p.profile); err != nil {
		return err
	}
	var commands, responses *os.File // the browser's ends of the two pipes
	if commands, p.toBrowser, err = os.Pipe(); err != nil {
		return err
	}
	defer commands.Close()
	if p.fromBrowser, responses, err = os.Pipe(); err != nil {
		return err
	}
	defer responses.Close()

	arguments := append([]string{"--user-data-dir=" + p.profile}, flags()...)
	cmd := exec.Command(path, arguments...) //nolint:gosec,noctx // the browser of the layer outlives requests
	cmd.Dir = p.profile
	cmd.Env = environment(path, p.profile)
	cmd.ExtraFiles = []*os.File{commands, responses} // descriptors 3 and 4
	cmd.Stderr = &p.stderr
	cmd.WaitDelay = collectTime // children may outlive the browser with its standard error
	// A new group is the only attribute: a signal at the end of the parent (Pdeathsig) is a prctl in the child, which
	// Lambda denies. The browser ends by itself when this process ends, because the pipe of its commands is closed then.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait() // the error is a signal or an exit code, which explain reports
		p.state = cmd.ProcessState
		close(p.exited)
	}()
	p.group = cmd.Process.Pid
	p.transport = newPipe(p.fromBrowser, p.toBrowser)
	return nil
}

const (
	// collectTime is how long a browser may take to reap its killed children and to end.
	collectTime = 200 * time.Millisecond
	// exitTime is how long a killed browser may take to end. A browser that takes longer hangs in the kernel.
	exitTime = 5 * time.Second
)

// end ends the browser with all its processes, removes the profile folder, and returns when both are done. Several
// calls are allowed.
//
// The children are killed first, because the memory is theirs, while the browser itself may reap them and then end with
// the pipe of its commands. A browser that is killed before its children leaves them to this process (where this
// process is a subreaper) or to the first process of the system, which may never reap them. A browser that hangs is
// killed.
func (p *process) end() {
	p.ending.Do(func() {
		p.toBrowser.Close()
		for _, pid := range groupMembers(p.group) {
			if pid != p.group {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		waitFor(p.exited, collectTime)
		_ = syscall.Kill(-p.group, syscall.SIGKILL)
		waitFor(p.exited, exitTime)
		p.orphans = reap(p.group, p.profile)
		p.fromBrowser.Close()
		removeProfile(p.profile)
	})
}

// explain adds to an error of the start the browser's standard error, and the exit status of a browser that ended.
func (p *process) explain(err error) error {
	if errors.Is(err, errEnded) { // the browser closes its pipe a moment before its end
		waitFor(p.exited, 2*collectTime)
	}
	select {
	case <-p.exited:
		err = fmt.Errorf("%w (%s)", err, p.state)
	default:
	}
	if text := p.stderr.String(); text != "" {
		err = fmt.Errorf("%w; the browser wrote: %s", err, text)
	}
	return err
}

// environment returns the whole environment of the browser, which has no credentials and no addresses.
func environment(path, profile string) []string {
	env := []string{
		"HOME=" + profile, "TMPDIR=" + profile,
		"XDG_CONFIG_HOME=" + profile, "XDG_CACHE_HOME=" + profile, "XDG_RUNTIME_DIR=" + profile,
		"LANG=C.UTF-8", "TZ=UTC",
	}
	// The browser of the layer has its libraries and fonts beside it; another browser uses those of the system.
	for variable, name := range map[string]string{"FONTCONFIG_FILE": "fonts.conf", "LD_LIBRARY_PATH": "lib"} {
		beside := filepath.Join(filepath.Dir(path), name)
		if _, err := os.Stat(beside); err == nil {
			env = append(env, variable+"="+beside)
		}
	}
	return env
}

// copyFontCache gives the browser the cache of its fonts, which the build of the layer wrote. Without the cache the
// browser reads all fonts at its start. fontconfig accepts a cache that contains the time of the fonts' folder
// (FcCacheTimeValid in its fccache.c). A deployment changes that time, so the time of this machine's folder replaces
// the one of the build.
func copyFontCache(layer, profile string) error {
	const seconds, nanoseconds, header = 48, 56, 64 // offsets in struct _FcCache, and its size
	caches, err := filepath.Glob(filepath.Join(layer, "fontconfig", "*"))
	if err != nil || len(caches) == 0 { // not the browser of the layer, or built where that one does not run
		return err
	}
	fonts, err := os.Stat(filepath.Join(layer, "fonts"))
	if err != nil {
		return err
	}
	cache, err := os.ReadFile(caches[0])
	if err != nil || len(cache) < header {
		return fmt.Errorf("%s: %d bytes: %w", caches[0], len(cache), err)
	}
	changed := fonts.ModTime()
	binary.LittleEndian.PutUint32(cache[seconds:],
		uint32(changed.Unix())) //nolint:gosec // as fontconfig shortens it
	binary.LittleEndian.PutUint64(cache[nanoseconds:], uint64(changed.Nanosecond())) //nolint:gosec // not negative
	copied := filepath.Join(profile, "fontconfig", filepath.Base(caches[0]))
	err = os.Mkdir(filepath.Dir(copied), 0o700)
	return errors.Join(err, os.WriteFile(copied, cache, 0o600)) //nolint:gosec // the layer names the file
}

// removeProfile removes a profile folder, with retries: a dying process may still write to the folder.
func removeProfile(profile string) {
	for range 20 {
		if err := os.RemoveAll(profile); err == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// RemoveStale ends the browsers of dead processes and removes the profile folders that those processes left in dir. A
// function that is killed at its time-out removes nothing, and its temporary files outlive the function.
func RemoveStale(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("browser: remove stale folders: %w", err)
	}
	var failed []error
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), profilePrefix)
		if !ok {
			continue
		}
		owner, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || (pid != os.Getpid() && syscall.Kill(pid, 0) != syscall.ESRCH) {
			continue
		}
		profile := filepath.Join(dir, entry.Name())
		reap(0, profile)
		failed = append(failed, os.RemoveAll(profile))
	}
	return errors.Join(failed...)
}

// tailSize is the number of bytes of the browser's standard error that a tail keeps.
const tailSize = 4 << 10

// tail keeps the end of a text until it is closed, because later messages may contain text of documents.
type tail struct {
	mu     sync.Mutex
	text   []byte
	closed bool
}

// Write implements io.Writer.
func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.text = append(t.text, text...)
		t.text = t.text[max(0, len(t.text)-tailSize):]
	}
	return len(text), nil
}

func (t *tail) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// String returns the kept text on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.text), "?")), " ")
}

// maxMessage bounds one message, so that a faulty browser cannot fill the memory. Regular messages have up to 1 MiB.
const maxMessage = 16 << 20

var errMessage = errors.New("browser: message is malformed or too long")

// pipe carries the DevTools protocol over two file descriptors. A message is one JSON text with a NUL byte at its end
// (Chromium's --remote-debugging-pipe). No port listens.
type pipe struct {
	in  *bufio.Reader
	out io.Writer
	mu  sync.Mutex
}

func newPipe(in io.Reader, out io.Writer) *pipe {
	return &pipe{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// Send writes one message.
func (p *pipe) Send(data []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.out.Write(append(data, 0))
	return err
}

// Read returns the next message, and an error for a message that is no JSON object: the client would panic on it.
func (p *pipe) Read() ([]byte, error) {
	var message []byte
	for {
		part, err := p.in.ReadSlice(0)
		message = append(message, part...)
		switch {
		case len(message) > maxMessage:
			return nil, errMessage
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		message = bytes.TrimSuffix(message, []byte{0})
		if !json.Valid(message) || message[0] != '{' {
			return nil, errMessage
		}
		return message, nil
	}
}

const (
	// clockStep is the interval at which withRunningTime adds up the running time.
	clockStep = 20 * time.Millisecond
	// longestStep is the most that one step counts. Lambda freezes the process and the browser between two events, for
	// hours, and neither of them works in such a gap. Waiting for the processor takes less.
	longestStep = 10 * clockStep
)

// withRunningTime returns a context that ends with cause after the process has run for d. The time of a freeze does not
// count, whereas a timer of the runtime would fire at the thaw.
func withRunningTime(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(clockStep)
		defer ticker.Stop()
		last := time.Now()
		for ran := time.Duration(0); ran < d; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			now := time.Now()
			ran += min(now.Sub(last), longestStep)
			last = now
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// waitFor waits until a channel is closed, for at most d of running time.
func waitFor(closed <-chan struct{}, d time.Duration) {
	ctx, cancel := withRunningTime(context.Background(), d, context.DeadlineExceeded)
	defer cancel()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

package browser

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Protection is something that Seclude asked the kernel for.
type Protection struct {
	Name   string
	Denied error // nil: it is in force
}

// flags start a browser that prints and can do nothing else.
//
// Its own network is closed twice (no name resolves, no proxy answers, loopback included), and interception
// sees what it asks for before that. It never gets --disable-web-security, and never --single-process: there one
// endless document takes the whole browser down.
var flags = []string{
	"--headless",
	"--remote-debugging-pipe",
	"--no-sandbox", // Lambda offers no user namespaces
	"--no-zygote",
	"--disable-gpu",
	"--disable-webgl",
	"--disable-dev-shm-usage",
	"--disable-pdf-tagging",
	"--host-resolver-rules=MAP * ~NOTFOUND",
	"--proxy-server=http://127.0.0.1:9",
	"--proxy-bypass-list=<-loopback>",
	"--webrtc-ip-handling-policy=disable_non_proxied_udp",
	"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
	"--js-flags=--jitless",
	"--no-first-run",
	"--no-default-browser-check",
	"--no-pings",
	"--disable-background-networking",
	"--disable-component-update",
	"--disable-default-apps",
	"--disable-domain-reliability",
	"--disable-extensions",
	"--disable-sync",
	"--disable-breakpad",
	"--metrics-recording-only",
	"--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider",
	"--disk-cache-size=1",
	"--mute-audio",
	"--hide-scrollbars",
	"--font-render-hinting=none",
}

// profilePrefix begins the name of every profile folder, followed by the process ID of its owner.
const profilePrefix = "svc-pdf-"

// process is one running browser: a process group of its own and a folder of its own, which end together.
type process struct {
	group     int // process group, also the browser's process ID
	profile   string
	transport *pipe

	toBrowser, fromBrowser *os.File
	said                   *tail            // what the browser writes to standard error until it has passed its self-test
	exited                 chan struct{}    // closed when the browser itself has been reaped
	state                  *os.ProcessState // valid once exited is closed
	kill                   sync.Once
	killed                 chan struct{} // closed when nothing of it is left
	orphans                int           // how many of its children this process had to collect; valid once killed is closed
}

// launch starts the browser at path with a new profile folder in dir.
func launch(path, dir string) (*process, error) {
	profile, err := os.MkdirTemp(dir, profilePrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, fmt.Errorf("browser: profile folder: %w", err)
	}
	p := &process{profile: profile, exited: make(chan struct{}), killed: make(chan struct{})}
	if err := p.start(path); err != nil {
		removeProfile(profile)
		return nil, err
	}
	return p, nil
}

func (p *process) start(path string) error {
	commandsIn, commands, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("browser: pipe: %w", err)
	}
	defer commandsIn.Close()
	answers, answersOut, err := os.Pipe()
	if err != nil {
		commands.Close()
		return fmt.Errorf("browser: pipe: %w", err)
	}
	defer answersOut.Close()

	messages, messagesOut, err := os.Pipe()
	if err != nil {
		commands.Close()
		answers.Close()
		return fmt.Errorf("browser: pipe: %w", err)
	}
	defer messagesOut.Close()

	arguments := append([]string{"--user-data-dir=" + p.profile}, flags...)
	cmd := exec.Command(path, arguments...) //nolint:gosec,noctx // the operator names the browser, and it outlives requests
	cmd.Dir = p.profile
	cmd.Env = environment(path, p.profile)
	cmd.ExtraFiles = []*os.File{commandsIn, answersOut} // descriptors 3 and 4
	cmd.Stderr = messagesOut
	// A group of its own, and no more: a signal at the parent's end (Pdeathsig) is a prctl in the child, which Lambda
	// denies. The browser ends by itself when the pipe of its commands is closed, by whatever end of this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	if err := cmd.Start(); err != nil {
		commands.Close()
		answers.Close()
		messages.Close()
		return fmt.Errorf("browser: start: %w", err)
	}
	go func() {
		_ = cmd.Wait() // killed, in the end, always
		p.state = cmd.ProcessState
		close(p.exited)
	}()
	p.said = keepTail(messages)
	p.group = cmd.Process.Pid
	p.toBrowser, p.fromBrowser = commands, answers
	p.transport = newPipe(answers, commands)
	return nil
}

const (
	// collectTime is how long a browser may take to collect its killed children and to end.
	collectTime = 200 * time.Millisecond
	// exitTime is how long a killed browser may take to be gone. One that takes longer is stuck in the kernel.
	exitTime = 5 * time.Second
)

// end ends the browser with all its processes and removes the profile folder. It may be called any number of times and
// returns when all is gone.
//
// The children are killed first, as the memory is theirs, while the browser itself may collect them and then end with
// the pipe of its commands: a browser that is killed before its children leaves them to be collected by this process
// (where it is a subreaper) or by the first process of the system, which may never do so. A browser that hangs is killed.
func (p *process) end() {
	p.kill.Do(func() {
		defer close(p.killed)
		p.toBrowser.Close()
		killChildren(p.group)
		within(collectTime, p.exited)
		killGroup(p.group)
		within(exitTime, p.exited)
		p.orphans = reap(p.group, p.profile)
		p.fromBrowser.Close()
		removeProfile(p.profile)
	})
	<-p.killed
}

// explain adds to an error of the start what the browser wrote, and how it ended where it ended by itself.
func (p *process) explain(err error) error {
	if errors.Is(err, errGone) { // it closes its pipe a moment before its end
		within(collectTime, p.exited)
		within(collectTime, p.said.ended)
	}
	select {
	case <-p.exited:
		err = fmt.Errorf("%w (%s)", err, p.state)
	default:
	}
	if said := p.said.String(); said != "" {
		err = fmt.Errorf("%w; the browser wrote: %s", err, said)
	}
	return err
}

// environment is all that the browser sees of the outside: no credentials, no addresses.
func environment(path, profile string) []string {
	env := []string{
		"HOME=" + profile, "TMPDIR=" + profile,
		"XDG_CONFIG_HOME=" + profile, "XDG_CACHE_HOME=" + profile, "XDG_RUNTIME_DIR=" + profile,
		"LANG=C.UTF-8", "TZ=UTC",
	}
	// Beside the browser of the layer stand its libraries and fonts; another browser uses the system's.
	dir := filepath.Dir(path)
	if conf := filepath.Join(dir, "fonts.conf"); exists(conf) {
		env = append(env, "FONTCONFIG_FILE="+conf)
	}
	if lib := filepath.Join(dir, "lib"); exists(lib) {
		env = append(env, "LD_LIBRARY_PATH="+lib)
	}
	return env
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// removeProfile removes a folder that a dying process may still write to.
func removeProfile(profile string) {
	for range 20 {
		if err := os.RemoveAll(profile); err == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Sweep ends the browsers of dead processes and removes the profile folders that they left in dir: a function that is
// killed at its time-out removes nothing, and its folder for temporary files outlives it.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("browser: sweep: %w", err)
	}
	var failed []error
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), profilePrefix)
		if !ok {
			continue
		}
		owner, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || (pid != os.Getpid() && alive(pid)) {
			continue
		}
		profile := filepath.Join(dir, entry.Name())
		reap(0, profile)
		failed = append(failed, os.RemoveAll(profile))
	}
	return errors.Join(failed...)
}

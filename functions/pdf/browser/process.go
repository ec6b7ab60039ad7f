package browser

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

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
	exited                 chan struct{} // closed when the browser itself has been reaped
	kill                   sync.Once
	killed                 chan struct{} // closed when nothing of it is left
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

	arguments := append([]string{"--user-data-dir=" + p.profile}, flags...)
	cmd := exec.Command(path, arguments...) //nolint:gosec,noctx // the operator names the browser, and it outlives requests
	cmd.Dir = p.profile
	cmd.Env = environment(path, p.profile)
	cmd.ExtraFiles = []*os.File{commandsIn, answersOut} // descriptors 3 and 4
	cmd.SysProcAttr = ownGroup()

	started := make(chan error)
	go func() {
		// The kernel ends the browser when the thread that started it ends: this one stays as long as the browser.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // killed, in the end, always
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		commands.Close()
		answers.Close()
		return fmt.Errorf("browser: start: %w", err)
	}
	p.group = cmd.Process.Pid
	p.toBrowser, p.fromBrowser = commands, answers
	p.transport = newPipe(answers, commands)
	return nil
}

// end kills the whole process group, reaps it and removes the profile folder. Nothing is closed politely: a
// browser that hangs does not listen. It may be called any number of times and returns when all is gone.
func (p *process) end() {
	p.kill.Do(func() {
		defer close(p.killed)
		killGroup(p.group)
		p.toBrowser.Close()
		select {
		case <-p.exited:
		case <-time.After(5 * time.Second): // stuck in the kernel: nothing more can be done from here
		}
		reapGroup(p.group)
		p.fromBrowser.Close()
		removeProfile(p.profile)
	})
	<-p.killed
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

// Sweep removes the profile folders that dead processes left in dir: a function that is killed at its time-out
// removes nothing, and its folder for temporary files outlives it.
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
		failed = append(failed, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return errors.Join(failed...)
}

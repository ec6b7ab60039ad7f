package pdftest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"svcapi/local/jail/filter"
	"svcapi/local/workdir"
)

const (
	canJail   = true
	jailStage = "PDFTEST_JAIL" // of this process: "enter" or "within"
	nobody    = 65534
	mostFiles = 1024 // Lambda's
)

// jail runs this program again with the same arguments in a jail, and returns its exit code. Where this process is root,
// the tests run as a user without privileges, see no shared memory, and have a first process above them that collects no
// orphans.
func jail(browser string) (int, error) {
	root, err := workdir.Root()
	if err != nil {
		return 0, err
	}
	temporary, err := os.MkdirTemp("", "jail")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temporary)
	if err := os.Chmod(temporary, 0o777|os.ModeSticky); err != nil {
		return 0, err
	}
	cmd := exec.Command("/proc/self/exe", jailArguments()...)
	cmd.Env = append(os.Environ(), jailStage+"=enter", "TMPDIR="+temporary, "JAIL_OPEN="+root+":"+filepath.Dir(browser))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	runtime.LockOSThread() // the signal follows the thread
	defer runtime.UnlockOSThread()
	return exit(cmd.Run())
}

// jailArguments are those of this process but for files that it writes: the jail cannot.
func jailArguments() []string {
	var kept []string
	for _, argument := range os.Args[1:] {
		name, _, _ := strings.Cut(argument, "=")
		switch {
		case name == "-test.testlogfile", name == "-test.outputdir", name == "-test.gocoverdir", name == "-test.trace", strings.HasSuffix(name, "profile"):
		default:
			kept = append(kept, argument)
		}
	}
	return kept
}

func exit(err error) (int, error) {
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() > 0 {
		return ended.ExitCode(), nil
	}
	return 0, err
}

// enterJail closes the jail around this process and runs the tests in a child.
func enterJail() (int, error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), jailStage+"=within")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if os.Getpid() == 1 {
		if err := hide(filepath.SplitList(os.Getenv("JAIL_OPEN"))); err != nil {
			return 0, err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: mostFiles, Max: mostFiles}); err != nil {
		return 0, fmt.Errorf("jail: open files: %w", err)
	}
	if err := filter.Install(); err != nil {
		return 0, err
	}
	return exit(cmd.Run())
}

// hide takes shared memory away, gives the jail's processes a /proc of their own, and makes folders reachable that are
// below one that is closed to other users.
func hide(open []string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	folders := map[string]int{}
	for _, path := range open {
		if folders[path], err = unix.Open(path, unix.O_PATH, 0); err != nil {
			return fmt.Errorf("jail: %s: %w", path, err)
		}
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"tmpfs", "/dev/shm", "tmpfs", unix.MS_RDONLY, "mode=0"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("jail: mount %s: %w", m.target, err)
		}
	}
	for path, folder := range folders {
		closed, err := closedAbove(path)
		if err != nil {
			return err
		}
		if closed != "" {
			if err := unix.Mount("tmpfs", closed, "tmpfs", 0, "mode=755"); err != nil {
				return fmt.Errorf("jail: cover %s: %w", closed, err)
			}
		}
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", folder), path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("jail: open %s: %w", path, err)
		}
	}
	return os.Chdir(here)
}

// closedAbove is the first folder on the way to a path that other users cannot enter.
func closedAbove(path string) (string, error) {
	for i, c := range path + "/" {
		if c != '/' || i == 0 || i == len(path) {
			continue
		}
		info, err := os.Stat(path[:i])
		if errors.Is(err, os.ErrNotExist) {
			break // covered already
		}
		if err != nil {
			return "", err
		}
		if info.Mode().Perm()&1 == 0 {
			return path[:i], nil
		}
	}
	return "", nil
}

// Package workdir finds the repository and its .local folder of caches, logs and builds, and fills the folder: one
// process at a time, and never with an incomplete file.
package workdir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Root returns the repository's folder: the nearest folder with template.yaml, from the current folder upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "template.yaml")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no template.yaml in this folder or above it: run from within the repository")
		}
		dir = parent
	}
}

// Local returns the path of a name in the repository's .local folder. Local creates the folder, not the name.
func Local(name ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(append([]string{root, ".local"}, name...)...)
	return path, os.MkdirAll(filepath.Dir(path), 0o755)
}

// Locked calls f while this process holds an exclusive lock on a file.
func Locked(path string, f func() error) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return f()
}

// Once lets create make a folder, unless the folder exists. Concurrent processes wait for the first one. create gets
// another path, which Once renames when the folder is complete.
func Once(path string, create func(partial string) error) error {
	return Locked(filepath.Join(filepath.Dir(path), "lock"), func() error {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		partial := path + ".partial"
		err := os.RemoveAll(partial)
		if err == nil {
			err = create(partial)
		}
		if err == nil {
			err = os.Rename(partial, path)
		}
		return err
	})
}

// Run runs a command and returns its output. The error names the step that failed and has the output, too.
func Run(cmd *exec.Cmd, step string) (output string, err error) {
	text, err := cmd.CombinedOutput()
	output = strings.TrimSpace(string(text))
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", step, err, output)
	}
	return output, err
}

// LogsVariable names a folder that keeps every log of a test run, so that one search goes through all of them.
const LogsVariable = "TEST_LOGS"

// OpenLog opens a log for appending. Where LogsVariable names a folder, OpenLog makes path a link to a file in that
// folder under a name of its own: removing path removes only the link.
func OpenLog(path string) (*os.File, error) {
	const flags = os.O_CREATE | os.O_APPEND | os.O_WRONLY
	kept := os.Getenv(LogsVariable)
	if kept == "" {
		return os.OpenFile(path, flags, 0o644)
	}
	err := os.Symlink(filepath.Join(kept, rand.Text()+"-"+filepath.Base(path)), path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // it may be there already
		return nil, err
	}
	return os.OpenFile(path, flags, 0o600)
}

// Installed lets make update .local/<name>, one process at a time, and returns the path of a file within: node_modules
// of npm has the packages of tools/npm, bin/schemathesis of schemathesis is the program of tools/schemathesis.txt.
func Installed(ctx context.Context, name, within string) (string, error) {
	lock, err := Local(name + ".lock")
	if err != nil {
		return "", err
	}
	root := filepath.Dir(filepath.Dir(lock))
	return filepath.Join(root, ".local", name, within), Locked(lock, func() error {
		ready := filepath.Join(".local", name, ".ready")
		_, err := Run(exec.CommandContext(ctx, "make", "--silent", "--directory", root, ready), "installing "+name)
		return err
	})
}

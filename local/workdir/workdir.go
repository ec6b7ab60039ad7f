// Package workdir finds the module and its .local folder of caches, logs and builds.
package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Root returns the module's folder: the nearest folder with go.mod, from the current folder upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in this folder or above it: run from within the repository")
		}
		dir = parent
	}
}

// Local returns the path of a name in the module's .local folder. Local creates the folder, not the name.
func Local(name ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(append([]string{root, ".local"}, name...)...)
	return path, os.MkdirAll(filepath.Dir(path), 0o755)
}

// Lock waits for an exclusive lock on a file and holds the lock until the returned function is called or this process ends.
func Lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { file.Close() }, nil
}

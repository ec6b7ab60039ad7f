// Package logfile opens the logs of the local stack's components.
package logfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Variable names a folder that keeps every log of a test run, so that one search goes through all of them.
const Variable = "TEST_LOGS"

// Open opens a log for appending. Where Variable names a folder, Open creates the file in that folder, under a name of
// its own, and makes path a link to the file: removing path removes only the link.
func Open(path string) (*os.File, error) {
	const flags = os.O_CREATE | os.O_APPEND | os.O_WRONLY
	kept := os.Getenv(Variable)
	if _, err := os.Lstat(path); kept == "" || !errors.Is(err, fs.ErrNotExist) {
		return os.OpenFile(path, flags, 0o644)
	}
	file, err := os.CreateTemp(kept, "*-"+filepath.Base(path)) // mode 0600, by its documentation
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	err = os.Symlink(file.Name(), path)
	if errors.Is(err, fs.ErrExist) { // another process of the same function was first
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(path, flags, 0o600)
}

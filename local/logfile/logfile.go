// Package logfile opens the logs of the local stack's parts.
package logfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Variable names a folder that keeps every log of a test run, so that one search goes through all of them.
const Variable = "TEST_LOGS"

// Open opens a log for appending. Where Variable names a folder the file itself lies there, under a name of its own, and
// path is a link to it: whoever removes path removes the link.
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
	err = os.Symlink(file.Name(), path)
	if closed := file.Close(); err != nil || closed != nil {
		return nil, errors.Join(err, closed)
	}
	return os.OpenFile(path, flags, 0o600)
}

// Package logfile opens the logs of the local stack's components.
package logfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Variable names a folder that keeps every log of a test run, so that one search goes through all of them.
const Variable = "TEST_LOGS"

// Open opens a log for appending. Where Variable names a folder, Open makes path a link to a file in that folder
// under a name of its own: removing path removes only the link.
func Open(path string) (*os.File, error) {
	const flags = os.O_CREATE | os.O_APPEND | os.O_WRONLY
	kept := os.Getenv(Variable)
	if kept == "" {
		return os.OpenFile(path, flags, 0o644)
	}
	err := os.Symlink(filepath.Join(kept, rand.Text()+"-"+filepath.Base(path)), path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // it may be there already
		return nil, err
	}
	return os.OpenFile(path, flags, 0o600)
}

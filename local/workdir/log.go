package workdir

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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

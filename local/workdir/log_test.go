package workdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"svcapi/local/workdir"
	"svcapi/test/must"
)

// TestOpenLog checks that a log which several processes open at the same time has the lines of all, and that the log
// stays in the folder of all logs when its own folder is gone; without such a folder the log is a plain file.
func TestOpenLog(t *testing.T) {
	want := strings.Repeat("line\n", 64)
	for _, kept := range []string{"", t.TempDir()} {
		t.Setenv(workdir.LogsVariable, kept)
		path := filepath.Join(t.TempDir(), "sms.log")
		var group errgroup.Group
		for range 64 {
			group.Go(func() error {
				file, err := workdir.OpenLog(path)
				if err != nil {
					return err
				}
				_, err = file.WriteString("line\n")
				return errors.Join(err, file.Close())
			})
		}
		must.Succeed(t, group.Wait())
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%q, %v", text, err)
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil || kept == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(kept, "*"))
		if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], "-sms.log") {
			t.Fatalf("%v, %v", files, err)
		}
		if text, err := os.ReadFile(files[0]); err != nil || string(text) != want {
			t.Errorf("%q, %v", text, err)
		}
	}
}

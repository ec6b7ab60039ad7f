package logfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"svcapi/local/logfile"
)

// A log stays where all are kept, also when its own folder is gone; without such a folder it is a plain file.
func TestOpen(t *testing.T) {
	for _, kept := range []string{"", t.TempDir()} {
		t.Setenv(logfile.Variable, kept)
		dir := filepath.Join(t.TempDir(), "a")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "sms.log")
		for _, line := range []string{"one\n", "two\n"} { // opened again, it goes on
			file, err := logfile.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteString(line); err != nil || file.Close() != nil {
				t.Fatal(err)
			}
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "one\ntwo\n" {
			t.Errorf("%q, %v", text, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if kept == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(kept, "*-sms.log"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		if text, err := os.ReadFile(files[0]); err != nil || string(text) != "one\ntwo\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// Several processes of one function open the same log at the same time.
func TestOpenTogether(t *testing.T) {
	t.Setenv(logfile.Variable, t.TempDir())
	path := filepath.Join(t.TempDir(), "sms.log")
	var group errgroup.Group
	for range 64 {
		group.Go(func() error {
			file, err := logfile.Open(path)
			if err != nil {
				return err
			}
			_, err = file.WriteString("line\n")
			return errors.Join(err, file.Close())
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != strings.Repeat("line\n", 64) {
		t.Errorf("%q, %v", text, err)
	}
	if files, err := filepath.Glob(filepath.Join(os.Getenv(logfile.Variable), "*")); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

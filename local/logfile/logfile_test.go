package logfile_test

import (
	"os"
	"path/filepath"
	"testing"

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

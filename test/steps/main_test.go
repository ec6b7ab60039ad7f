package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"svcapi/test/must"
)

// TestRun checks that a share's failure is the command's, that the output of failed and of unfinished tests is shown,
// that of passed tests is only in the log, and that the times of the top-level tests are kept.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TEST_LOGS", ".")
	for name, text := range map[string]string{"go.mod": "module svcapi\n", "a/a_test.go": `package a

import "testing"

func TestPasses(t *testing.T)  { t.Run("sub", func(t *testing.T) { t.Log("quiet") }) }
func TestFails(t *testing.T)   { t.Error("loud") }
func TestCrashes(t *testing.T) { t.Log("last words"); panic("crash") }
`, "b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) {}\n"} {
		must.Succeed(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)))
	}
	var out strings.Builder
	err := run("units", []string{"go", "test", "-json", "-vet=off", "./..."}, &out)
	if _, failed := errors.AsType[*exec.ExitError](err); !failed {
		t.Errorf("the share failed with %v", err)
	}
	for text, shown := range map[string]bool{"loud": true, "last words": true, "panic: crash": true, "quiet": false,
		"ok  \tsvcapi/b": true, "FAIL\tsvcapi/a": true, "\nunits: ": true} {
		if strings.Contains(out.String(), text) != shown {
			t.Errorf("%q is shown: %t\n%s", text, !shown, out.String())
		}
	}
	if log, err := os.ReadFile("units.log"); err != nil || !strings.Contains(string(log), "quiet") {
		t.Errorf("the log: %v\n%s", err, log)
	}
	shares, err := lastRuns()
	if err != nil || len(shares) != 1 || shares[0].Wall <= 0 || len(shares[0].Tests) != 4 {
		t.Errorf("%+v, %v", shares, err)
	}
	if err := run("nothing", []string{"false"}, &out); err == nil {
		t.Error("a command that fails has succeeded")
	}
}

// TestRows checks that a slow test and each share need a sentence, and that a quick test needs none.
func TestRows(t *testing.T) {
	shares := []share{{"units", 100, 180, map[string]float64{"a.TestSlow": 90, "a.TestQuick": 1}}}
	rows, problems := rowsOf(shares, map[string]string{"units": "all", "a.TestSlow": "much"})
	if len(rows) != 2 || rows[0].name != "units" || rows[1].proves != "much" || problems != nil {
		t.Errorf("%v, %v", rows, problems)
	}
	if _, problems := rowsOf(shares, nil); len(problems) != 2 {
		t.Errorf("without sentences: %v", problems)
	}
}

// Command mutation changes the code in small ways, one at a time, and runs the tests that ought to notice.
//
// gremlins makes the changes to Go's operators; this command adds those to DynamoDB's expressions, which Go's tools see
// as text. A change that no test notices must be explained in survivors.txt, and an explanation of a change that is
// noticed must go: both fail the run.
//
// Usage: go run ./test/mutation [-workers N] [-files NAME,NAME] [FOLDER ...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"svcapi/local/engine"
	"svcapi/local/workdir"
)

// memory bounds each process: a changed loop may never end, and allocate.
const memory = 8 << 30

func main() {
	workers := flag.Int("workers", 2, "mutants tested at once")
	files := flag.String("files", "", "change only these files of the folders, with commas between them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *workers, *files, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, workers int, files string, folders []string) error {
	chosen, err := choose(folders, files)
	if err != nil {
		return err
	}
	root, err := workdir.Root()
	if err != nil {
		return err
	}
	known, err := readSurvivors(filepath.Join(root, "test", "mutation", "survivors.txt"))
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return err
	}

	var rows []row
	var trouble []string
	for _, t := range chosen {
		began := time.Now()
		mutants, err := t.test(ctx, out, root, workers)
		if err != nil {
			return fmt.Errorf("%s: %w", t.folder, err)
		}
		r, wrong := judge(t, mutants, known)
		r.took = time.Since(began)
		rows, trouble = append(rows, r), append(trouble, wrong...)
	}
	printRows(out, rows)
	if len(trouble) > 0 {
		return fmt.Errorf("\n%s\n%d to kill with a test, to explain in test/mutation/survivors.txt, or to remove there", strings.Join(trouble, "\n"), len(trouble))
	}
	return nil
}

func choose(folders []string, files string) ([]target, error) {
	switch {
	case len(folders) == 0 && files == "":
		return targets, nil
	case len(folders) == 0:
		return nil, errors.New("name the folder of the files")
	}
	var chosen []target
	for _, folder := range folders {
		i := slices.IndexFunc(targets, func(t target) bool { return t.folder == filepath.Clean(folder) })
		if i < 0 {
			return nil, fmt.Errorf("%s is not among the folders of test/mutation/targets.go", folder)
		}
		one := targets[i]
		if files != "" {
			one.files = strings.Split(files, ",")
		}
		chosen = append(chosen, one)
	}
	return chosen, nil
}

// test makes a copy of the module for one target and tests every mutant in it.
func (t target) test(ctx context.Context, out io.Writer, root string, workers int) ([]mutant, error) {
	scratch, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, err
	}
	found, err := t.testIn(ctx, out, root, scratch, workers)
	return found, errors.Join(err, os.RemoveAll(scratch))
}

func (t target) testIn(ctx context.Context, out io.Writer, root, scratch string, workers int) ([]mutant, error) {
	if err := t.copyTo(ctx, root, scratch); err != nil {
		return nil, err
	}
	var texts, found []mutant
	err := withEngine(ctx, func() (err error) {
		texts, err = t.expressions(ctx, out, scratch, workers)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = withEngine(ctx, func() (err error) {
		found, err = t.gremlins(ctx, out, root, scratch, workers)
		return err
	})
	return append(found, texts...), err
}

// withEngine lends the tests that work runs an engine of its own: one that has made thousands of tables is slow.
func withEngine(ctx context.Context, work func() error) error {
	database, err := engine.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer database.Close()
	// Without the variable the next one starts an engine, and does not take this one for it.
	return errors.Join(os.Setenv(engine.EndpointVariable, database.URL), work(), os.Unsetenv(engine.EndpointVariable))
}

// copyTo makes a module of the files that the target's tests need, and of no other test, so that ./... names them all.
func (t target) copyTo(ctx context.Context, root, scratch string) error {
	listed, err := output(ctx, root, "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	if err != nil {
		return err
	}
	needed, err := output(ctx, root, "go", append([]string{"list", "-deps", "-test", "-f", "{{.Dir}}"}, t.tested()...)...)
	if err != nil {
		return err
	}
	folders := map[string]bool{}
	for dir := range strings.Lines(needed) {
		if rel, err := filepath.Rel(root, strings.TrimSpace(dir)); err == nil {
			folders[rel] = true
		}
	}
	for name := range strings.SplitSeq(strings.Trim(listed, "\x00"), "\x00") {
		folder := filepath.Dir(name)
		isTest := strings.HasSuffix(name, "_test.go")
		switch {
		case strings.HasSuffix(name, ".go") && !folders[folder],
			isTest && !slices.Contains(t.tested(), "./"+folder):
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // deleted, and not committed yet
			continue
		}
		if err != nil {
			return err
		}
		to := filepath.Join(scratch, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s: %w\n%s", name, err, failed.Stderr)
	}
	return string(out), err
}

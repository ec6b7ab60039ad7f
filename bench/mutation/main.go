// Command mutation changes the code in small ways, one at a time, and runs the tests that must notice the change.
//
// The command makes its changes itself: of shared/wallet and shared/books it makes 463, about 130 of them in
// expressions of DynamoDB, which hold the rules of money. Gremlins 0.6.0 makes 297, none in an expression, and runs no
// tests of a package main.
//
// A change that no test notices must be explained in survivors.txt, and an explanation without such a change must go:
// both fail the run. The tests run in the working tree, which stays unchanged, so do not edit the package meanwhile.
//
// Usage: go run -C bench ./mutation [-workers N] [-files NAME,NAME] [FOLDER ...]
package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"svcapi/local/engine"
	"svcapi/local/workdir"
)

const (
	memory          = 8 << 30 // of each process: a changed loop may never end, and allocate
	timeLimitFactor = 10      // mutants may take so many times as long as the unchanged code
	leastWait       = time.Minute
	engineTrial     = 100 // mutants that share one engine: an engine is slow after thousands of tables
)

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
	known, err := readSurvivors(filepath.Join(root, "bench", "mutation", "survivors.txt"))
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return err
	}
	var wrong []string
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\npackage\tmutants\tkilled\ttimed out\tlived\texplained\tefficacy\tdo not compile\ttime")
	for _, t := range chosen {
		began := time.Now()
		mutants, err := t.test(ctx, out, root, workers)
		if err != nil {
			return fmt.Errorf("%s: %w", t.folder, err)
		}
		count := map[status]int{}
		for _, m := range mutants {
			count[m.status]++
		}
		explained, more := t.judge(mutants, known)
		wrong = append(wrong, more...)
		viable := len(mutants) - count[notViable]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t%d\t%s\n", t.folder, viable, count[killed], count[timedOut],
			count[lived], explained,
			100*float64(viable-count[lived])/float64(max(viable, 1)), count[notViable], time.Since(began).Round(time.Second))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("\n%s\n%d to kill with a test, to explain in bench/mutation/survivors.txt, or to remove there",
			strings.Join(wrong, "\n"), len(wrong))
	}
	return nil
}

func choose(folders []string, files string) ([]target, error) {
	if len(folders) == 0 {
		if files != "" {
			return nil, errors.New("name the folder of the files")
		}
		return targets, nil
	}
	var chosen []target
	for _, folder := range folders {
		i := slices.IndexFunc(targets, func(t target) bool { return t.folder == filepath.Clean(folder) })
		if i < 0 {
			return nil, fmt.Errorf("%s is not among the folders of bench/mutation/targets.go", folder)
		}
		t := targets[i]
		if files != "" {
			t.files = strings.Split(files, ",")
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// test runs the target's tests once unchanged and once for each mutant.
func (t target) test(ctx context.Context, out io.Writer, root string, workers int) ([]mutant, error) {
	names, err := t.sources(root)
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, name := range names {
		more, err := t.mutants(root, name)
		if err != nil {
			return nil, err
		}
		mutants = append(mutants, more...)
	}
	limit := time.Hour
	err = withEngine(ctx, func() error {
		began := time.Now()
		result, report, err := t.goTest(ctx, root, limit)
		if err == nil && result != lived {
			err = fmt.Errorf("the tests fail without any mutant\n%s", report)
		}
		limit = max(leastWait, timeLimitFactor*time.Since(began))
		return err
	})
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(mutants, engineTrial) {
		if err := withEngine(ctx, func() error { return t.tryAll(ctx, out, root, limit, workers, some) }); err != nil {
			return nil, err
		}
	}
	return mutants, nil
}

// withEngine starts DynamoDB Local for the tests that work runs.
func withEngine(ctx context.Context, work func() error) error {
	database, err := engine.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer database.Close()
	// Without the variable the next call starts an engine again.
	return errors.Join(os.Setenv(engine.EndpointVariable, database.URL), work(), os.Unsetenv(engine.EndpointVariable))
}

// tryAll sets the status of the mutants.
func (t target) tryAll(ctx context.Context, out io.Writer, root string, limit time.Duration, workers int,
	mutants []mutant) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var printing sync.Mutex
	for i := range mutants {
		m := &mutants[i]
		group.Go(func() (err error) {
			if m.status, err = t.try(ctx, root, limit, *m); err != nil {
				return err
			}
			printing.Lock()
			defer printing.Unlock()
			fmt.Fprintf(out, "%s %s: %s\n", m.status, m.place, m.line)
			return nil
		})
	}
	return group.Wait()
}

// try runs the target's tests with the mutant's text in place of the file's.
func (t target) try(ctx context.Context, root string, limit time.Duration, m mutant) (result status, err error) {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {m.path: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, []byte(m.text), 0o600),
		os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", err
	}
	result, _, err = t.goTest(ctx, root, limit, "-failfast", "-overlay", overlay)
	return result, err
}

// goTest runs the target's tests. The findings of vet do not count as a test's.
func (t target) goTest(ctx context.Context, root string, limit time.Duration, flags ...string) (status, []byte, error) {
	args := slices.Concat([]string{"test", "-count=1", "-vet=off", "-timeout=" + limit.String(), "-skip=" + t.skip}, flags,
		[]string{"./" + t.folder})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	report, err := cmd.CombinedOutput()
	_, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return "", report, ctx.Err()
	case err == nil:
		return lived, report, nil
	case !failed:
		return "", report, err
	case bytes.Contains(report, []byte("[build failed]")):
		return notViable, report, nil
	case bytes.Contains(report, []byte("panic: test timed out after")):
		return timedOut, report, nil
	}
	return killed, report, nil
}

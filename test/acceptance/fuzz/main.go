// Command fuzz runs every fuzz target of the module, which it finds by itself, with so many inputs in all. Each target
// is tried with a few of them; the others are shared so that all take about the same time. It prints the inputs of each target
// and their sum, and fails on any finding. What Go's fuzzing finds interesting stays in its own cache; an input that
// fails is moved from the package's folder to .local/fuzz, so that none gets into the repository unseen.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"svcapi/local/workdir"
)

func main() {
	inputs := flag.Int64("inputs", 1_000_000, "of all targets together")
	only := flag.String("only", "", "targets whose package and name match, such as shared/rates.FuzzParse")
	list := flag.Bool("list", false, "print the targets and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *inputs, *only, *list)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// leastTried and mostTried are the inputs that a target is tried with. Go counts what it has in its cache among them,
// which can be hundreds.
const (
	leastTried = 1000
	mostTried  = 5000
)

// target is one fuzz target and what came of it.
type target struct {
	pkg, dir, name string
	inputs         int64
	took           time.Duration
	rate           float64 // inputs a second, the last time
}

func (t *target) String() string { return strings.TrimPrefix(t.pkg, "svcapi/") + "." + t.name }

func run(ctx context.Context, out io.Writer, inputs int64, only string, list bool) error {
	root, err := workdir.Root()
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	targets, err := find(ctx, root)
	if err != nil {
		return err
	}
	targets = slices.DeleteFunc(targets, func(t *target) bool { return !wanted.MatchString(t.String()) })
	if list || len(targets) == 0 {
		for _, t := range targets {
			fmt.Fprintln(out, t)
		}
		return nil
	}
	if least := int64(leastTried * len(targets)); inputs < least {
		return fmt.Errorf("%d inputs are too few for %d targets: at least %d", inputs, len(targets), least)
	}
	trial := min(mostTried, max(leastTried, inputs/int64(20*len(targets))))
	fmt.Fprintf(out, "%d targets, each tried with %d inputs\n", len(targets), trial)
	var failed []error
	var done int64
	var rates float64
	for _, t := range targets {
		if err := t.fuzz(ctx, out, root, trial); err != nil {
			failed = append(failed, err)
			continue
		}
		done += t.inputs
		rates += t.rate
	}
	left := float64(max(0, inputs-done))
	fmt.Fprintf(out, "%d inputs tried, %.0f to go\n", done, left)
	for _, t := range targets {
		if t.rate > 0 && left > 0 && ctx.Err() == nil {
			if err := t.fuzz(ctx, out, root, int64(left*t.rate/rates)+1); err != nil {
				failed = append(failed, err)
			}
		}
	}
	var sum int64
	for _, t := range targets {
		sum += t.inputs
		fmt.Fprintf(out, "%12d inputs %7.0f s  %s\n", t.inputs, t.took.Seconds(), t)
	}
	fmt.Fprintf(out, "%12d inputs in all, %d targets, %d findings\n", sum, len(targets), len(failed))
	if sum < inputs && len(failed) == 0 {
		failed = append(failed, fmt.Errorf("only %d of %d inputs were run", sum, inputs))
	}
	return errors.Join(append(failed, ctx.Err())...)
}

// declared matches the declaration of a target.
var declared = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// find lists the targets of all packages.
func find(ctx context.Context, root string) ([]*target, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var targets []*target
	for d := json.NewDecoder(bytes.NewReader(output)); d.More(); {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			for _, m := range declared.FindAllSubmatch(text, -1) {
				targets = append(targets, &target{pkg: p.ImportPath, dir: p.Dir, name: string(m[1])})
			}
		}
	}
	return targets, nil
}

// execs matches the number of inputs that Go's fuzzing reports.
var execs = regexp.MustCompile(`elapsed: (\S+), execs: (\d+) `)

// fuzz runs the target with so many inputs, and adds what was run.
func (t *target) fuzz(ctx context.Context, out io.Writer, root string, inputs int64) error {
	before := t.crashers()
	began := time.Now()
	cmd := exec.CommandContext(ctx, "go", "test", t.pkg, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", strconv.FormatInt(inputs, 10)+"x")
	cmd.Dir = root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its workers itself
	cmd.WaitDelay = 20 * time.Second
	output, err := cmd.CombinedOutput()
	t.took += time.Since(began)
	var ran int64
	var elapsed time.Duration // in whole seconds
	for _, m := range execs.FindAllSubmatch(output, -1) {
		ran, _ = strconv.ParseInt(string(m[2]), 10, 64) // digits
		elapsed, _ = time.ParseDuration(string(m[1]))   // as Go prints it
	}
	t.inputs += ran
	t.rate = float64(ran) / max(elapsed, time.Second/2).Seconds()
	fmt.Fprintf(out, "%-60s %10d inputs  %s\n", t, ran, time.Since(began).Round(time.Second/10))
	if err == nil {
		return nil
	}
	moved, moveErr := t.moveCrashers(root, before)
	tail := output[max(0, len(output)-4096):]
	return errors.Join(fmt.Errorf("%s: %w\n%s%s", t, err, tail, moved), moveErr)
}

func (t *target) folder() string { return filepath.Join(t.dir, "testdata", "fuzz", t.name) }

// crashers are the inputs that the package keeps of the target.
func (t *target) crashers() []string {
	files, _ := filepath.Glob(filepath.Join(t.folder(), "*")) // none, where there is no such folder
	return files
}

// moveCrashers moves the new inputs to .local/fuzz and returns their names.
func (t *target) moveCrashers(root string, before []string) (string, error) {
	var said strings.Builder
	var errs []error
	to := filepath.Join(root, ".local", "fuzz", strings.ReplaceAll(t.String(), "/", "."))
	for _, file := range t.crashers() {
		if slices.Contains(before, file) {
			continue
		}
		content, err := os.ReadFile(file)
		if err == nil {
			err = errors.Join(os.MkdirAll(to, 0o755), os.Rename(file, filepath.Join(to, filepath.Base(file))))
		}
		errs = append(errs, err)
		fmt.Fprintf(&said, "%s, to be put into the target's seeds:\n%.4096s\n", filepath.Join(to, filepath.Base(file)), content)
	}
	for _, folder := range []string{t.folder(), filepath.Dir(t.folder())} {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // it holds others
		}
	}
	return said.String(), errors.Join(errs...)
}

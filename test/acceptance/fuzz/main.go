// Command fuzz runs every fuzz target of the module, which the command finds by itself, with so many inputs in all. Each
// target is tried with a few of them; the others are shared so that all take about the same time. The command prints the inputs
// of each target and fails on any finding. Go keeps a failing input in the package's folder testdata/fuzz.
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
	"regexp"
	"strconv"
	"syscall"
	"time"

	"svcapi/local/workdir"
)

func main() {
	inputs := flag.Int64("inputs", 1_000_000, "of all targets together")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *inputs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The inputs that a target is tried with. Go counts what it has in its cache among them, which can be hundreds.
const leastTried, mostTried = 1000, 5000

// target is one fuzz target and what came of it.
type target struct {
	dir, name string // of the package's folder below the module's; of the function
	inputs    int64
	took      time.Duration
	rate      float64 // inputs a second, the last time
}

func run(ctx context.Context, out io.Writer, inputs int64) error {
	targets, err := find(ctx)
	if err != nil {
		return err
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
		failed = append(failed, t.fuzz(ctx, out, trial))
		done += t.inputs
		rates += t.rate
	}
	left := float64(max(0, inputs-done))
	fmt.Fprintf(out, "%d inputs tried, %.0f to go\n", done, left)
	for _, t := range targets {
		if t.rate > 0 && left > 0 && ctx.Err() == nil {
			failed = append(failed, t.fuzz(ctx, out, int64(left*t.rate/rates)+1))
		}
	}
	var sum int64
	for _, t := range targets {
		sum += t.inputs
		fmt.Fprintf(out, "%12d inputs %7.0f s  %s %s\n", t.inputs, t.took.Seconds(), t.dir, t.name)
	}
	fmt.Fprintf(out, "%12d inputs in all, %d targets\n", sum, len(targets))
	if err = errors.Join(append(failed, ctx.Err())...); err == nil && sum < inputs {
		err = fmt.Errorf("only %d of %d inputs were run", sum, inputs)
	}
	return err
}

// declared matches the declaration of a target, with the folder of its file.
var declared = regexp.MustCompile(`(?m)^(?:(.*)/)?[^/]+_test\.go:func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// find lists the targets of all packages.
func find(ctx context.Context) (targets []*target, err error) {
	root, err := workdir.Root()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(root); err != nil {
		return nil, err
	}
	output, err := exec.CommandContext(ctx, "git", "grep", "--untracked", "^func Fuzz", "*_test.go").Output()
	for _, m := range declared.FindAllSubmatch(output, -1) {
		targets = append(targets, &target{dir: "./" + string(m[1]), name: string(m[2])})
	}
	return targets, err
}

// execs matches the number of inputs that Go's fuzzing reports.
var execs = regexp.MustCompile(`elapsed: (\S+), execs: (\d+) `)

// fuzz runs the target with so many inputs, and adds what was run.
func (t *target) fuzz(ctx context.Context, out io.Writer, inputs int64) error {
	began := time.Now()
	cmd := exec.CommandContext(ctx, "go", "test", t.dir, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", strconv.FormatInt(inputs, 10)+"x")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its workers itself
	cmd.WaitDelay = 20 * time.Second
	output, err := cmd.CombinedOutput()
	t.took += time.Since(began)
	var ran int64
	var elapsed time.Duration // in whole seconds
	for _, m := range execs.FindAllStringSubmatch(string(output), -1) {
		ran, _ = strconv.ParseInt(m[2], 10, 64) // digits
		elapsed, _ = time.ParseDuration(m[1])   // as Go prints it
	}
	t.inputs += ran
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", t.dir, t.name, err, output[max(0, len(output)-4096):])
	}
	t.rate = float64(ran) / max(elapsed, time.Second/2).Seconds()
	fmt.Fprintf(out, "%-60s %10d inputs  %s\n", t.dir+" "+t.name, ran, time.Since(began).Round(time.Second/10))
	return nil
}

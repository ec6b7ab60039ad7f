// Command load puts the whole local stack under load with k6: each operation beside a hello function, all operations at
// once, for long, and ten times more than the stack can do. Scenarios, thresholds and tables are k6's, in scripts.
//
// The command does what k6 cannot: it starts the stack, compares the ledger with the successes that k6 has counted,
// watches the memory of every process, and finds the causes of refusals in the logs. Status 1 means that a response is
// outside the contract, a threshold is crossed, a process grows, or a wallet is wrong.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	processes  = 8 // most processes of a function: what two CPUs keep busy
	mixClients = 6 // beside the one client of the slow operations
)

// mode is a load of some length on a stack that has room for all requests.
type mode struct {
	script, variable, length string // length: where the variable is not set
	watched                  bool   // the memory of every process is compared
}

var modes = map[string]mode{
	"each": {script: "each.js", variable: "EACH", length: "8s"},
	"mix":  {script: "mix.js", variable: "MIX", length: "1m"},
	"soak": {script: "mix.js", variable: "SOAK", length: "20m", watched: true},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	name := strings.Join(args, " ")
	m, known := modes[name]
	if !known && name != "overload" {
		return errors.New("usage: load each | mix | soak | overload")
	}
	fmt.Fprintf(out, "%s: %s/%s, %d CPUs, for the stack and k6 together\n", name, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if !known {
		return overload(ctx, out)
	}
	length, err := time.ParseDuration(cmp.Or(os.Getenv(m.variable), m.length))
	if err != nil || length <= 0 {
		return fmt.Errorf("%s=%s is no duration, such as 90s or 20m", m.variable, os.Getenv(m.variable))
	}
	return within(ctx, out, settings{processes: processes, limit: wide}, func(s *system) ([]string, error) { return s.measure(ctx, m, length) })
}

// measure runs a mode and returns the failed checks.
func (s *system) measure(ctx context.Context, m mode, length time.Duration) ([]string, error) {
	memory := func() []string { return nil }
	if m.watched {
		// The sandbox's list of calls is for tests. The list is emptied here, so that growth is a leak.
		memory = watchMemory(ctx, s.out, s.parts(), max(length/400, 500*time.Millisecond), s.stack.Sandbox.Forget)
	}
	r, err := s.k6(ctx, m.script, map[string]string{"SECONDS": fmt.Sprint(length.Seconds()), "VUS": strconv.Itoa(mixClients)})
	wrong := memory()
	if err != nil {
		return nil, err
	}
	if r.count("refused") > 0 {
		if err := s.causes(); err != nil {
			return nil, err
		}
	}
	more, err := s.money(ctx, r)
	return append(append(r.Failed, wrong...), more...), err
}

// within runs a load on a stack of its own.
func within(ctx context.Context, out io.Writer, with settings, run func(*system) ([]string, error)) error {
	s := &system{out: out, began: time.Now()}
	var wrong []string
	err := s.start(ctx, with)
	if err == nil {
		wrong, err = run(s)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("\nfailed:\n  %s", strings.Join(wrong, "\n  "))
	}
	fmt.Fprintln(out, "passed")
	return nil
}

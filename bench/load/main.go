// Command load puts the whole local stack under load with k6: each operation beside a hello function, all operations at
// once, for long, and ten times more than the stack can do. Scenarios, thresholds and tables are k6's, in scripts.
//
// The command does what k6 cannot: it starts the stack, compares the wallets with the successes that k6 has counted and
// with their ledgers, and watches the memory of every process. Status 1 means that one of these or a threshold has
// failed.
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
	err := command(ctx, os.Stdout, strings.Join(os.Args[1:], " "))
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nfailed:\n%v\n", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, "passed")
}

func command(ctx context.Context, out io.Writer, name string) error {
	m, known := modes[name]
	if !known && name != "overload" {
		return errors.New("usage: load each | mix | soak | overload")
	}
	fmt.Fprintf(out, "%s: %s/%s, %d CPUs, for the stack and k6 together\n", name, runtime.GOOS,
		runtime.GOARCH, runtime.NumCPU())
	if !known {
		return overload(ctx, out)
	}
	length, err := time.ParseDuration(cmp.Or(os.Getenv(m.variable), m.length))
	if err != nil || length <= 0 {
		return fmt.Errorf("%s=%s is no duration, such as 90s or 20m", m.variable, os.Getenv(m.variable))
	}
	return within(ctx, out, settings{processes: processes, limit: wide}, func(s *system) error {
		memory := func() error { return nil }
		if m.watched {
			// The sandbox's list of calls is for tests. The list is emptied here, so that growth is a leak.
			memory = watchMemory(ctx, out, s.parts(), max(length/400, 500*time.Millisecond), s.stack.Sandbox.Forget)
		}
		_, err := s.k6(ctx, m.script, map[string]any{"SECONDS": length.Seconds(), "VUS": mixClients})
		return errors.Join(err, memory())
	})
}

// Command load puts the whole local stack under load with k6 and says what came of it: each operation beside a hello
// function, all at once, for long, and ten times more than the stack can do. It ends with status 1 where an answer is
// outside the contract, a threshold does not hold, a process grows, or a wallet is not what the clients were told.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// processes is how many processes a function may have: what two CPUs keep busy.
const processes = 8

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
	commands := map[string]func(context.Context, io.Writer) error{"each": each, "mix": mix, "soak": soak, "overload": overload}
	if len(args) != 1 || commands[args[0]] == nil {
		return errors.New("usage: load each | mix | soak | overload")
	}
	fmt.Fprintf(out, "%s: %s/%s, %d CPUs, for the stack and k6 together\n", args[0], runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	return commands[args[0]](ctx, out)
}

// each measures the operations one after the other.
func each(ctx context.Context, out io.Writer) error {
	length, err := setting("EACH", 8*time.Second)
	if err != nil {
		return err
	}
	return within(ctx, out, settings{processes: processes, limit: wide}, func(s *system) ([]string, error) {
		r, err := s.run(ctx, "each.js", map[string]string{"SECONDS": fmt.Sprint(length.Seconds())})
		if err != nil {
			return nil, err
		}
		if err := s.table(r, length, func(o operation) int { return o.VUs }); err != nil {
			return nil, err
		}
		return s.verdict(ctx, r)
	})
}

// mix measures all operations at once.
func mix(ctx context.Context, out io.Writer) error {
	length, err := setting("MIX", time.Minute)
	if err != nil {
		return err
	}
	return within(ctx, out, settings{processes: processes, limit: wide}, func(s *system) ([]string, error) {
		r, err := s.run(ctx, "mix.js", map[string]string{"DURATION": length.String(), "VUS": decimal(mixClients)})
		if err != nil {
			return nil, err
		}
		if err := s.table(r, length, nil); err != nil {
			return nil, err
		}
		return s.verdict(ctx, r)
	})
}

// mixClients are the clients of the mix, beside the one of what is slow.
const mixClients = 6

// soak is the mix for long, with an eye on every process.
func soak(ctx context.Context, out io.Writer) error {
	length, err := setting("SOAK", 20*time.Minute)
	if err != nil {
		return err
	}
	return within(ctx, out, settings{processes: processes, limit: wide}, func(s *system) ([]string, error) {
		k6, err := s.load(ctx, "mix.js", map[string]string{"DURATION": length.String(), "VUS": decimal(mixClients)})
		if err != nil {
			return nil, err
		}
		watching, stop := context.WithCancel(ctx)
		defer stop()
		// The sandbox's list of calls is for tests: here it is emptied, so that what grows is a leak.
		w := watchMemory(watching, s.parts(func() int { return k6.process.ID }), max(length/400, 500*time.Millisecond), s.stack.Sandbox.Forget)
		r, err := k6.wait(ctx)
		stop()
		if err != nil {
			return nil, err
		}
		if err := s.table(r, length, nil); err != nil {
			return nil, err
		}
		wrong := w.report(s)
		more, err := s.verdict(ctx, r)
		return append(wrong, more...), err
	})
}

// within runs a load on a stack of its own.
func within(ctx context.Context, out io.Writer, with settings, run func(*system) ([]string, error)) error {
	s, err := start(ctx, out, with)
	if err != nil {
		return err
	}
	wrong, err := run(s)
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("\nfailed:\n  %s", strings.Join(wrong, "\n  "))
	}
	fmt.Fprintln(out, "passed")
	return nil
}

// verdict is what the thresholds and the ledger say of a run.
func (s *system) verdict(ctx context.Context, r *report) ([]string, error) {
	if r.count("refused") > 0 {
		fmt.Fprintln(s.out, "\nWhy, by the logs:")
		if err := s.causes(); err != nil {
			return nil, err
		}
	}
	wrong := r.failures()
	more, err := s.money(ctx, r)
	return append(wrong, more...), err
}

// table prints the figures of each operation beside the anchor's. clients says how many asked for it, where it was
// measured alone; nil: all were asked for at once.
func (s *system) table(r *report, length time.Duration, clients func(operation) int) error {
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\noperation\tclients\tanswers\ta second\tmedian\tp95\tp99\t× hello, median\tp95\t\n")
	row := func(title, metric, at string, n int) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f ms\t%.1f ms\t%.1f ms\t", title, at, n, float64(n)/length.Seconds(),
			r.value("took_"+metric, "med"), r.value("took_"+metric, "p(95)"), r.value("took_"+metric, "p(99)"))
	}
	if clients == nil {
		row("hello", "anchor", "", r.count("took_anchor"))
	} else { // it was asked beside every operation: a sum would say nothing
		fmt.Fprintf(t, "hello\t\t\t\t%.1f ms\t%.1f ms\t%.1f ms\t", r.value("took_anchor", "med"), r.value("took_anchor", "p(95)"), r.value("took_anchor", "p(99)"))
	}
	fmt.Fprint(t, "1.0\t\t\n")
	for _, o := range s.operations {
		at := ""
		if clients != nil {
			at = decimal(clients(o))
		}
		row(o.Title, o.Name, at, r.count("took_"+o.Name))
		fmt.Fprintf(t, "%.1f\t%.1f\t\n", r.value("times_"+o.Name, "med"), r.value("times_"+o.Name, "p(95)"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n%d answers, %d outside the contract, %d refused.\n",
		r.count("http_reqs"), r.count("breaches"), r.count("refused"))
	return nil
}

// Command local runs the API on this machine, without an AWS account and without containers:
//
//	go run ./local run       the whole stack, until Ctrl-C
//	go run ./local invoke    one event through one compiled function
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"text/tabwriter"
	"text/template"
	"time"

	"svcapi/local/demo"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/shared/project"
)

func main() {
	commands := map[string]func(args []string) error{"run": run, "invoke": invoke}
	command := commands[append(os.Args, "")[1]]
	if command == nil {
		fmt.Fprintln(os.Stderr, "usage: local run [FOLDER] | local invoke FUNCTION EVENT")
		os.Exit(2)
	}
	if err := command(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the stack on the port that PORT names until a signal. The demo file and the logs go to .local, or to the
// folder that the only argument names.
func run(args []string) error {
	port, err := strconv.Atoi(cmp.Or(os.Getenv("PORT"), "8080"))
	if err != nil || port < 0 || port > 65535 {
		return fmt.Errorf("PORT=%s is no port", os.Getenv("PORT"))
	}
	dir, err := workdir.Local()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		dir = args[0]
	}
	// The signals stay caught to the end: a second Ctrl-C must not leave anything behind.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()

	began := time.Now()
	s, err := stack.Start(ctx, stack.Options{
		Port: port, DemoFile: filepath.Join(dir, "demo.json"), LogDir: filepath.Join(dir, "logs"),
		Progress: func(step string) { fmt.Printf("%5.1f s  %s\n", time.Since(began).Seconds(), step) },
	})
	if ctx.Err() != nil {
		if s != nil {
			err = s.Close()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		fmt.Println("stopped")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Printf("%5.1f s  ready\n\n", time.Since(began).Seconds())
	err = greet(os.Stdout, s)
	<-ctx.Done()
	fmt.Println("\nstopping")
	return errors.Join(err, s.Close())
}

//go:embed greeting.txt
var greeting string

// greet says where everything is and how to use it.
func greet(out io.Writer, s *stack.Stack) error {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	err := template.Must(template.New("").Parse(greeting)).Execute(columns, struct {
		*stack.Stack
		Managed demo.Credential
	}{s, demo.CredentialOf("managed", project.Development)})
	return errors.Join(err, columns.Flush())
}

// Command local runs the API on this machine, without an AWS account and without containers:
//
//	go run ./local run       the whole stack, until Ctrl-C
//	go run ./local invoke    one event through one compiled function
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"svcapi/local/demo"
	"svcapi/local/stack"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
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
	greet(os.Stdout, s)
	<-ctx.Done()
	fmt.Println("\nstopping")
	return s.Close()
}

// greet says where everything is and how to use it.
func greet(out io.Writer, s *stack.Stack) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, place := range [][2]string{
		{"API", s.BaseURL},
		{"Documentation", s.DocsURL},
		{"Sent to vendors", s.SandboxURL + "/_sandbox/calls"},
		{"DynamoDB", s.DynamoDBURL},
		{"Secrets Manager", s.SecretsURL},
		{"Lambda", s.LambdaURL},
		{"Logs", s.LogDir},
	} {
		fmt.Fprintf(t, "%s\t%s\n", place[0], place[1])
	}
	_ = t.Flush()

	fmt.Fprintln(out, "\nDemo projects, also in .local/demo.json")
	fmt.Fprintln(t, "project\tX-ENV\tX-API-KEY\tX-API-SECRET\twhat it is")
	for _, p := range s.Projects {
		about := "\t" + p.About
		for _, env := range admin.Environments() {
			c := p.Credentials[env]
			fmt.Fprintf(t, "%s\t%s\t%s\t%s%s\n", p.ID, env, c.ClientID, c.ClientSecret, about)
			about = ""
		}
	}
	_ = t.Flush()

	c := demo.CredentialOf("managed", project.Development)
	fmt.Fprintf(out, "\nSend an SMS\n  curl -sS %s/sms/send -H 'X-API-KEY: %s' -H 'X-API-SECRET: %s' \\\n    -d '%s'\n",
		s.BaseURL, c.ClientID, c.ClientSecret, `{"send_method":"single","to":"0771234567","message":"Hello"}`)
	fmt.Fprintf(out, "\nRun one event in Lambda's container, with a container engine and after `make sam-build`\n  %s\n",
		samLine(s.Parameters))
	fmt.Fprintln(out, "\nCtrl-C ends everything.")
}

// samLine is the command that runs a function against this stack's DynamoDB and secrets.
func samLine(parameters map[string]string) string {
	words := []string{"sam local invoke SmsFunction --event events/sms-send-managed.json --docker-network host " +
		"--parameter-overrides"}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		words = append(words, name+"="+parameters[name])
	}
	return strings.Join(words, " ")
}

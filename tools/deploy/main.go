// Command deploy runs what sam deploy has no flag for: the deployment of a stage whose tables a former stack left, and
// a rehearsal of the life of a stack on an AWS account. The program calls the AWS CLI and the SAM CLI.
//
// Neither was ever run on AWS: the tests replay the calls of testdata, with responses that this project wrote.
//
// Usage:
//
//	go run ./tools/deploy redeploy STAGE REGION   # docs/uninstall.md, Deploy again
//	go run ./tools/deploy smoke REGION [FOLDER]   # docs/deploy.md, A rehearsal; the report goes into FOLDER
//	go run ./tools/deploy page FILE [HEADING]     # the commands of a page's blocks
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 3 && args[0] == "redeploy":
		p, err := readStage("samconfig.toml", args[1])
		if err != nil {
			return err
		}
		return (&terminal{run: execute, region: args[2]}).redeploy(ctx, p)
	case (len(args) == 2 || len(args) == 3) && args[0] == "smoke":
		return smoke(ctx, &terminal{run: execute, region: args[1]}, cmp.Or(strings.Join(args[2:], ""), "."), time.Now)
	case (len(args) == 2 || len(args) == 3) && args[0] == "page":
		text, err := script(args[1], strings.Join(args[2:], ""))
		_, printErr := os.Stdout.WriteString(text)
		return errors.Join(err, printErr)
	}
	return fmt.Errorf("usage: redeploy STAGE REGION, smoke REGION [FOLDER], or page FILE [HEADING]")
}

// command is one call of a program.
type command struct {
	name string
	args []string
	env  []string
}

// String returns the command as a shell takes it, for the report.
func (c command) String() string {
	words := append([]string{}, c.env...)
	for _, word := range append([]string{c.name}, c.args...) {
		if strings.ContainsAny(word, " '\"[]{}?*$&;|<>()`\\") || word == "" {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// terminal runs commands. The tests replace run by recorded calls.
type terminal struct {
	run    func(ctx context.Context, c command) (output string, err error)
	region string
	log    []logged
	err    error // the first failure, after which call runs no command
}

// logged is a command that was run.
type logged struct {
	command command
	output  string
	err     error
	took    time.Duration
}

// fail keeps the first error.
func (t *terminal) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// call runs a program and returns its standard output. After a failure call runs nothing and returns an empty text.
func (t *terminal) call(ctx context.Context, name string, args ...string) (output string) {
	if t.err == nil {
		output, t.err = t.do(ctx, command{name: name, args: args})
	}
	return output
}

// aws calls the AWS CLI with the words of a text.
func (t *terminal) aws(ctx context.Context, format string, names ...any) string {
	return t.call(ctx, "aws", t.words(format, names...)...)
}

// words returns the words of a text and the region.
func (t *terminal) words(format string, names ...any) []string {
	return append(strings.Fields(fmt.Sprintf(format, names...)), "--region", t.region)
}

// do runs a command and returns its standard output, without the space around it.
func (t *terminal) do(ctx context.Context, c command) (string, error) {
	began := time.Now()
	output, err := t.run(ctx, c)
	output = strings.TrimSpace(output)
	t.log = append(t.log, logged{c, output, err, time.Since(began)})
	if err != nil {
		return output, fmt.Errorf("%s: %w", c, err)
	}
	return output, nil
}

// execute runs a command with its progress on standard error.
func execute(ctx context.Context, c command) (string, error) {
	fmt.Fprintln(os.Stderr, "+", c)
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), c.env...), os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

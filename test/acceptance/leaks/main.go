// Command leaks searches the logs of a test run for secrets: those of the run, the sandbox and the demo projects, what
// looks like a secret, and the payload of requests that asked for privacy. test/leaks TestProve proves the search.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"svcapi/local/demo"
	"svcapi/local/sandbox"
	"svcapi/test/leaks"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: leaks FOLDER")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir string) error {
	r, err := leaks.Search(dir, append(sandbox.Secrets(), demo.Secrets()...))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d lines of %d logs searched for %d secrets in all their forms: %d found\n", r.Lines, r.Files,
		r.Secrets, len(r.Found))
	if r.Files == 0 {
		return errors.New("there is no log in " + dir)
	}
	for _, found := range r.Found[:min(20, len(r.Found))] {
		fmt.Fprintln(out, found)
	}
	if len(r.Found) > 0 {
		return errors.New("secrets are logged")
	}
	return nil
}

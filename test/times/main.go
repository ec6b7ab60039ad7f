// Command times measures the shares of make test and make test-full, and prints what is slow:
//
//	times run NAME COMMAND [ARGUMENT ...]   runs a share; of go test it shows packages and failures, and keeps the log
//	times table                             the slow shares and tests of the last runs, with what each of them proves
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// dir has a file NAME.json for the last run of each share.
var dir = filepath.Join(".local", "times")

// share is one share's last run. Times are in seconds.
type share struct {
	Name string
	// Wall and Processor are the time of the command, and the processor time of it and of all that it waited for.
	Wall, Processor float64
	// Tests are the times of the top-level tests by "package.Test", without waiting for other parallel tests.
	Tests map[string]float64 `json:",omitempty"`
}

func main() {
	if err := command(os.Args[1:]); err != nil {
		if _, failed := errors.AsType[*exec.ExitError](err); !failed { // the share has reported its failure
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) > 2 && args[0] == "run":
		return run(args[1], args[2:], os.Stdout)
	case len(args) == 1 && args[0] == "table":
		return table(os.Stdout)
	}
	return errors.New("usage: times run NAME COMMAND [ARGUMENT ...], or times table")
}

// run runs a share's command, shows its output, and writes its times. Of go test -json it shows what a reader needs,
// and the folder TEST_LOGS gets the rest as NAME.log.
func run(name string, args []string, out io.Writer) error {
	s := share{Name: name}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	began := time.Now()
	failed := s.runAll(cmd, out)
	s.Wall = time.Since(began).Seconds()
	if state := cmd.ProcessState; state != nil {
		s.Processor = (state.UserTime() + state.SystemTime()).Seconds()
	}
	fmt.Fprintf(out, "%s: %.0f s, %.0f s of processor time\n", name, s.Wall, s.Processor)
	return errors.Join(failed, s.write())
}

func (s *share) runAll(cmd *exec.Cmd, out io.Writer) error {
	if !slices.Contains(cmd.Args, "-json") {
		return cmd.Run()
	}
	log, err := logFile(s.Name)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout = nil
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.Tests, err = report(events, out, log)
	return errors.Join(err, cmd.Wait())
}

func logFile(name string) (*os.File, error) {
	folder := os.Getenv("TEST_LOGS")
	if folder == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return os.Create(filepath.Join(folder, name+".log"))
}

func (s *share) write() error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, s.Name+".json"), text, 0o600)
}

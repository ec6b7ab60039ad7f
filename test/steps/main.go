// Command steps runs the steps of make test and make test-full, and prints what is slow:
//
//	steps run NAME COMMAND [ARGUMENT ...]   runs a share; of go test it shows packages and failures, and keeps the log
//	steps engine COMMAND [ARGUMENT ...]     runs a command whose tests share one DynamoDB Local, not one for each package
//	steps table                             the slow shares and tests of the last runs, with what each of them proves
package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"svcapi/local/engine"
	"svcapi/test/enginetest"
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
		if _, failed := errors.AsType[*exec.ExitError](err); !failed { // the command has reported its failure
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) > 2 && args[0] == "run":
		return run(args[1], args[2:], os.Stdout)
	case len(args) > 1 && args[0] == "engine":
		return withEngine(exec.Command(args[1], args[2:]...))
	case len(args) == 1 && args[0] == "table":
		return table(os.Stdout)
	}
	return errors.New("usage: steps run NAME COMMAND [ARGUMENT ...], steps engine COMMAND [ARGUMENT ...], or steps table")
}

// The engine has one of these ports, which systems give to no outgoing connection (RFC 6335 calls them user ports).
const firstPort, ports = 20_000, 10_000

// withEngine runs a command with the variable that names an engine, unless it runs within another such command.
func withEngine(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if os.Getenv(enginetest.Variable) != "" {
		return cmd.Run()
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	// The same port in each run from a folder: a test that reads another address runs again, although nothing changed.
	port := firstPort + int(crc32.ChecksumIEEE([]byte(dir))%ports)
	e, err := engine.Start(context.Background(), engine.Options{Port: port})
	if err != nil {
		return err
	}
	defer e.Close()
	cmd.Env = append(os.Environ(), enginetest.Variable+"="+e.URL)
	return cmd.Run()
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
	path := os.DevNull
	if folder := os.Getenv("TEST_LOGS"); folder != "" {
		path = filepath.Join(folder, s.Name+".log")
	}
	log, err := os.Create(path)
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

func (s *share) write() error {
	text, _ := json.MarshalIndent(s, "", "\t") // texts and numbers always marshal
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, s.Name+".json"), text, 0o600))
}

// event is a line of go test -json (go doc cmd/test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// reporter shows the result of each package, and the output of each test that failed or did not end.
type reporter struct {
	out   io.Writer
	open  map[string]string  // the output so far by package and test
	times map[string]float64 // of the top-level tests that have ended
}

// report reads the lines of go test -json, writes their output to a log, and returns the times of the top-level tests.
func report(events io.Reader, out, log io.Writer) (map[string]float64, error) {
	r := reporter{out: out, open: map[string]string{}, times: map[string]float64{}}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<30) // bytes; a test may write all its output as one line
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil { // a line of go itself, such as an unknown package
			e = event{Action: "build-output", Output: lines.Text() + "\n"}
		}
		if _, err := io.WriteString(log, e.Output); err != nil {
			return nil, err
		}
		r.show(e)
	}
	return r.times, lines.Err()
}

func (r *reporter) show(e event) {
	key := e.Package + "." + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.open[key] += e.Output
	case "fail":
		keys := []string{key}
		if e.Test == "" { // with the tests that a crash or the time limit has ended
			keys = slices.DeleteFunc(slices.Sorted(maps.Keys(r.open)), func(key string) bool {
				return !strings.HasPrefix(key, e.Package+".")
			})
		}
		for _, key := range keys {
			fmt.Fprint(r.out, r.open[key])
			delete(r.open, key)
		}
	case "pass", "skip":
		for line := range strings.Lines(r.open[key]) {
			if e.Test == "" && strings.HasPrefix(line, "ok ") {
				fmt.Fprint(r.out, line)
			}
		}
		delete(r.open, key)
	}
	if e.Test != "" && !strings.Contains(e.Test, "/") && (e.Action == "pass" || e.Action == "fail") {
		r.times[strings.TrimPrefix(key, "svcapi/")] = e.Elapsed
	}
}

//go:embed proves.yaml
var proves []byte

// slow is the share of the time of all tests above which a test is slow.
const slow = 0.02

// row is a line of the table. Seconds are those of the last run.
type row struct {
	name               string
	seconds, processor float64
	proves             string
}

// table prints the shares and the slow tests. One of these without a sentence is an error.
func table(out io.Writer) error {
	shares, err := lastRuns()
	if err != nil {
		return err
	}
	sentences := map[string]string{}
	if err := yaml.Unmarshal(proves, &sentences); err != nil {
		return fmt.Errorf("proves.yaml: %w", err)
	}
	rows, problems := rowsOf(shares, sentences)
	fmt.Fprintln(out, "| Seconds | Of the processor | Share or test | What nothing else proves |\n|--:|--:|---|---|")
	for _, r := range rows {
		processor := ""
		if r.processor > 0 {
			processor = fmt.Sprintf("%.0f", r.processor)
		}
		fmt.Fprintf(out, "| %.0f | %s | %s | %s |\n", r.seconds, processor, r.name, r.proves)
	}
	return errors.Join(problems...)
}

func lastRuns() ([]share, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	shares := make([]share, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &shares[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if len(shares) == 0 {
		return nil, errors.New("no share has run: make test, make test-full")
	}
	return shares, nil
}

// rowsOf returns the shares and the slow tests, the slowest first.
func rowsOf(shares []share, sentences map[string]string) (rows []row, problems []error) {
	sum := 0.0
	for _, s := range shares {
		for _, seconds := range s.Tests {
			sum += seconds
		}
	}
	for _, s := range shares {
		rows = append(rows, row{s.Name, s.Wall, s.Processor, sentences[s.Name]})
		for test, seconds := range s.Tests {
			if _, named := sentences[test]; named || seconds > slow*sum {
				rows = append(rows, row{test, seconds, 0, sentences[test]})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.name, b.name))
	})
	for _, r := range rows {
		if r.proves == "" {
			problems = append(problems, fmt.Errorf("test/steps/proves.yaml lacks what %s proves", r.name))
		}
	}
	return rows, problems
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

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
	for lines := bufio.NewReader(events); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil { // a line of go itself, such as an unknown package
				e = event{Action: "build-output", Output: string(line)}
			}
			if _, err := io.WriteString(log, e.Output); err != nil {
				return nil, err
			}
			r.show(e)
		}
		switch {
		case errors.Is(err, io.EOF):
			return r.times, nil
		case err != nil:
			return nil, err
		}
	}
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

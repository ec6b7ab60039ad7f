package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
		if a.seconds != b.seconds {
			return int(b.seconds*1000) - int(a.seconds*1000)
		}
		return strings.Compare(a.name, b.name)
	})
	for _, r := range rows {
		if r.proves == "" {
			problems = append(problems, fmt.Errorf("test/times/proves.yaml lacks what %s proves", r.name))
		}
	}
	return rows, problems
}

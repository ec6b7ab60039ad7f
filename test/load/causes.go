package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

const (
	mostCauses = 8
	causeChars = 200
)

// causes prints the most frequent errors that the functions and the gateway have logged for refused requests.
func (s *system) causes() error {
	logs, err := filepath.Glob(filepath.Join(s.stack.LogDir, "*.log"))
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, path := range logs {
		if err := count(path, counts); err != nil {
			return err
		}
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	fmt.Fprintln(s.out, "\nWhy requests were refused, by the logs:")
	for _, cause := range order[:min(len(order), mostCauses)] {
		fmt.Fprintf(s.out, "%8d × %s\n", counts[cause], cause)
	}
	return nil
}

func count(path string, counts map[string]int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, mib)
	for lines.Scan() {
		var line struct {
			Operation string `json:"operation"`
			Error     string `json:"error"`
			Failure   string `json:"failure"` // the gateway's
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // not the line of a request
		}
		if text := []rune(cmp.Or(line.Error, line.Failure)); len(text) > 0 {
			counts[cmp.Or(line.Operation, "gateway")+": "+string(text[:min(len(text), causeChars)])]++
		}
	}
	return lines.Err()
}

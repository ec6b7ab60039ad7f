package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// readSurvivors reads the explained mutants and their reasons. Below a place, a line with a tab is a mutant, and a line
// with two tabs is why no test notices the mutant. # begins a comment.
func readSurvivors(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	var place, key string
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "", strings.HasPrefix(trimmed, "#"):
		case strings.HasPrefix(line, "\t\t"):
			known[key] = trimmed
		case strings.HasPrefix(line, "\t"):
			key = place + "\n" + trimmed
			known[key] = ""
		default:
			place = trimmed
		}
	}
	for key, reason := range known {
		if reason == "" {
			return nil, fmt.Errorf("%s: no reason is given for\n%s", path, key)
		}
	}
	return known, nil
}

// judge counts the explained survivors and returns what fails the run: survivors without an explanation and
// explanations without a survivor.
func (t target) judge(mutants []mutant, known map[string]string) (explained int, wrong []string) {
	survived := map[string]bool{}
	for _, m := range mutants {
		switch {
		case m.status != lived:
		case known[m.key()] != "":
			explained++
			survived[m.key()] = true
		default:
			wrong = append(wrong, fmt.Sprintf("%s\n%s\n\t%s", m.status, m.place, m.line))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		place, line, _ := strings.Cut(key, "\n")
		file, _, _ := strings.Cut(place, " ")
		if path.Dir(file) == t.folder && t.mutates(path.Base(file)) && !survived[key] {
			wrong = append(wrong, fmt.Sprintf("explained, but gone or noticed by a test\n%s\n\t%s", place, line))
		}
	}
	return explained, wrong
}

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// status is what became of a mutant, in gremlins' words.
type status string

const (
	killed     status = "KILLED"    // a test failed
	timedOut   status = "TIMED OUT" // the tests did not end: noticed, too
	lived      status = "LIVED"
	notCovered status = "NOT COVERED" // no test runs the line
	notViable  status = "NOT VIABLE"  // it does not compile
)

// mutant is one change and what became of it.
type mutant struct {
	file, function, kind string
	line                 string // without indentation, with the change marked
	status               status
}

// place is the file and the function.
func (m mutant) place() string { return strings.TrimSpace(m.file + " " + m.function) }

func (m mutant) key() string { return m.place() + "\n" + m.line }

// readSurvivors reads what is explained: a file's name and a function's, and below them, indented, each line with its change marked and
// below that, indented further, why no test can notice or need notice it. # begins a comment.
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
	for key, why := range known {
		if why == "" {
			return nil, fmt.Errorf("%s: no reason is given for\n%s", path, key)
		}
	}
	return known, nil
}

// row is what became of one target's mutants.
type row struct {
	folder    string
	count     map[status]int
	explained int // of those that lived or that no test runs
	took      time.Duration
}

// judge counts, and tells what is not explained, or explained and not so.
func judge(t target, mutants []mutant, known map[string]string) (row, []string) {
	r := row{folder: t.folder, count: map[status]int{}}
	var trouble []string
	survived := map[string]bool{}
	for _, m := range mutants {
		r.count[m.status]++
		if m.status != lived && m.status != notCovered {
			continue
		}
		survived[m.key()] = true
		if known[m.key()] != "" {
			r.explained++
			continue
		}
		trouble = append(trouble, fmt.Sprintf("%s %s\n%s\n\t%s", m.status, m.kind, m.place(), m.line))
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		place, line, _ := strings.Cut(key, "\n")
		file, _, _ := strings.Cut(place, " ")
		if folder, name := splitLast(file); folder == t.folder && t.mutates(name) && !survived[key] {
			trouble = append(trouble, fmt.Sprintf("explained, but gone or noticed by a test\n%s\n\t%s", place, line))
		}
	}
	return r, trouble
}

func splitLast(path string) (folder, name string) {
	i := strings.LastIndex(path, "/")
	return path[:max(i, 0)], path[i+1:]
}

func printRows(out io.Writer, rows []row) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\npackage\tmutants\tkilled\ttimed out\tlived\tnot covered\texplained\tefficacy\tdo not compile\ttime")
	for _, r := range rows {
		noticed := r.count[killed] + r.count[timedOut]
		survived := r.count[lived] + r.count[notCovered]
		efficacy := "-"
		if noticed+survived > 0 {
			efficacy = fmt.Sprintf("%.1f %%", 100*float64(noticed)/float64(noticed+survived))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t%s\n", r.folder, noticed+survived, r.count[killed], r.count[timedOut],
			r.count[lived], r.count[notCovered], r.explained, efficacy, r.count[notViable], r.took.Round(time.Second))
	}
	_ = w.Flush() // a terminal
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// expressionKind names the changes to DynamoDB's expressions among gremlins' mutators.
const expressionKind = "EXPRESSION"

// endless is how long the tests of a changed expression may run.
const endless = 5 * time.Minute

var (
	updateForm    = regexp.MustCompile(`^(SET|REMOVE|ADD|DELETE) `)
	conditionForm = regexp.MustCompile(`attribute_(not_)?exists\(|begins_with\(|\w (=|<>|<|<=|>|>=) $|(=|<>|<|<=|>|>=) :\w|BETWEEN :|^ (AND|OR) $`)
)

// change is one change to an expression.
type change struct {
	at, end int
	to      string
}

// rule makes changes of each place that its form matches. $0 and $1 stand for what it matched, true for a condition
// that always holds and uses the same names and values, so that DynamoDB takes it.
type rule struct {
	form *regexp.Regexp
	to   []string
}

const always = "attribute_not_exists(nowhere)"

// operand is a path, a name or a value.
const operand = `[\w.#:]+`

var conditionRules = []rule{
	{regexp.MustCompile(`<>`), []string{"="}},
	{regexp.MustCompile(`>=`), []string{">"}},
	{regexp.MustCompile(`<=`), []string{"<"}},
	{regexp.MustCompile(` < `), []string{" <= "}},
	{regexp.MustCompile(` > `), []string{" >= "}},
	{regexp.MustCompile(` = `), []string{" <> "}},
	{regexp.MustCompile(`attribute_exists`), []string{"attribute_not_exists"}},
	{regexp.MustCompile(`attribute_not_exists`), []string{"attribute_exists"}},
	{regexp.MustCompile(` OR `), []string{" AND "}},
	// Each part of a condition always true, as if it were left out.
	{regexp.MustCompile(operand + ` (=|<>|<=|<|>=|>) ` + operand + `|attribute_(not_)?exists\(` + operand + `\)|begins_with\([^)]*\)`), []string{"($0 OR " + always + ")"}},
	{regexp.MustCompile(`(` + operand + `) BETWEEN (:\w+) AND (:\w+)`), []string{
		"($0 OR " + always + ")", "($0 OR $1 < $2)", "($0 OR $1 > $3)", "($0 AND $1 > $2)", "($0 AND $1 < $3)",
	}},
}

var updateRules = []rule{
	{regexp.MustCompile(` \+ `), []string{" - "}},
	{regexp.MustCompile(` - `), []string{" + "}},
	// Each change made to another attribute, as if it were left out.
	{regexp.MustCompile(`(` + operand + `)( = )`), []string{"nowhere$2"}},
	{regexp.MustCompile(`((?:ADD|REMOVE|DELETE) )(` + operand + `)`), []string{"${1}nowhere"}},
	{regexp.MustCompile(`if_not_exists\((` + operand + `), (` + operand + `)\)`), []string{"$1", "$2"}},
}

// between hides the AND of BETWEEN from the rule for AND.
var between = regexp.MustCompile(`BETWEEN (:\w+) AND`)

// changes are all changes to one expression.
func changes(expression string) []change {
	rules := conditionRules
	if updateForm.MatchString(expression) {
		rules = updateRules
	} else if !conditionForm.MatchString(expression) {
		return nil
	}
	var all []change
	for _, r := range rules {
		for _, match := range r.form.FindAllStringSubmatchIndex(expression, -1) {
			for _, to := range r.to {
				all = append(all, change{match[0], match[1], string(r.form.ExpandString(nil, to, expression, match))})
			}
		}
	}
	if len(rules) == len(conditionRules) {
		hidden := between.ReplaceAllStringFunc(expression, func(s string) string { return strings.Repeat("-", len(s)) })
		for at := 0; ; at++ {
			next := strings.Index(hidden[at:], " AND ")
			if next < 0 {
				break
			}
			at += next
			all = append(all, change{at, at + len(" AND "), " OR "})
		}
	}
	return all
}

// expressions tests the changes to the expressions in the target's files.
func (t target) expressions(ctx context.Context, out io.Writer, scratch string, workers int) ([]mutant, error) {
	names, err := sources(filepath.Join(scratch, t.folder))
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	var trials []trial
	for _, name := range names {
		if !t.mutates(name) {
			continue
		}
		path := filepath.Join(scratch, t.folder, name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		literals, err := literalsOf(path)
		if err != nil {
			return nil, err
		}
		for _, literal := range literals {
			for _, c := range changes(literal.text) {
				changed := string(source[:literal.at]) + strconv.Quote(literal.text[:c.at]+c.to+literal.text[c.end:]) + string(source[literal.end:])
				trials = append(trials, trial{len(mutants), path, changed})
				mutants = append(mutants, mutant{
					file: t.folder + "/" + name, function: literal.function, kind: expressionKind,
					line: strings.TrimSpace(literal.text[:c.at] + "«" + literal.text[c.at:c.end] + " → " + c.to + "»" + literal.text[c.end:]),
				})
			}
		}
	}
	return mutants, t.tryAll(ctx, out, scratch, workers, mutants, trials)
}

type literal struct {
	text, function string
	at, end        int // in the file
}

func literalsOf(path string) ([]literal, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []literal
	ast.Inspect(parsed, func(node ast.Node) bool {
		if l, ok := node.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				found = append(found, literal{text, functionAt(parsed, l.Pos()), files.Position(l.Pos()).Offset, files.Position(l.End()).Offset})
			}
		}
		return true
	})
	return found, nil
}

// trial is another text of a file, which makes one of the mutants.
type trial struct {
	mutant     int
	path, text string
}

// tryAll gives the mutants of the trials their status.
func (t target) tryAll(ctx context.Context, out io.Writer, scratch string, workers int, mutants []mutant, trials []trial) error {
	var group errgroup.Group
	group.SetLimit(workers)
	var mu sync.Mutex
	for _, try := range trials {
		group.Go(func() error {
			status, err := t.try(ctx, scratch, try)
			mu.Lock()
			defer mu.Unlock()
			m := &mutants[try.mutant]
			m.status = status
			fmt.Fprintf(out, "%s %s %s: %s\n", m.status, m.kind, m.place(), m.line)
			return err
		})
	}
	return group.Wait()
}

// try runs the target's tests with another text of one file.
func (t target) try(ctx context.Context, scratch string, other trial) (status, error) {
	dir, err := os.MkdirTemp(scratch, "trial-") // no Go file: go takes its text by the overlay
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "changed.go.txt"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {other.path: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, []byte(other.text), 0o644), os.WriteFile(overlay, replace, 0o644)); err != nil {
		return "", err
	}
	err = t.goTest(ctx, scratch, "-failfast", "-timeout", endless.String(), "-overlay", overlay).Run()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &failed):
		return killed, nil
	case err != nil:
		return "", err
	}
	return lived, nil
}

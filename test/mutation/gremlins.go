package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A mutant whose tests run this many times longer than without it never ends; where they are quick, the machine's other
// work counts for more.
const (
	patience      = 10
	patienceQuick = 60
	quick         = 5 * time.Second
)

// mutators are gremlins' own names for those that it leaves out unless told. Those of bits stay out: no target works on
// bits, and gremlins takes the & of an address for one of them.
var mutators = []string{
	"invert-assignments", "invert-logical", "invert-loopctrl", "remove-self-assignments",
}

// becomes is what each mutator makes of a token.
var becomes = map[string]map[string]string{
	"ARITHMETIC_BASE":         {"+": "-", "*": "/", "/": "*", "%": "*", "-": "+"},
	"CONDITIONALS_BOUNDARY":   {">=": ">", ">": ">=", "<=": "<", "<": "<="},
	"CONDITIONALS_NEGATION":   {"==": "!=", ">=": "<", ">": "<=", "<=": ">", "<": ">=", "!=": "=="},
	"INCREMENT_DECREMENT":     {"--": "++", "++": "--"},
	"INVERT_ASSIGNMENTS":      {"+=": "-=", "*=": "/=", "/=": "*=", "-=": "+="},
	"INVERT_LOGICAL":          {"&&": "||", "||": "&&"},
	"INVERT_LOOPCTRL":         {"break": "continue", "continue": "break"},
	"INVERT_NEGATIVES":        {"-": "+"},
	"REMOVE_SELF_ASSIGNMENTS": {"+=": "=", "-=": "=", "*=": "=", "/=": "=", "%=": "="},
}

// operator is a token that a mutator changes.
var operator = regexp.MustCompile(`^(break|continue|&&|\|\||\+\+|--|[=!<>+\-*/%]=|[+\-*/%<>])`)

// gremlins runs gremlins over the target.
func (t target) gremlins(ctx context.Context, out io.Writer, root, scratch string, workers int) ([]mutant, error) {
	report := filepath.Join(scratch, "gremlins.json")
	coefficient, err := t.patience(ctx, scratch)
	if err != nil {
		return nil, err
	}
	// The tests of ./... are the target's, here. Only this mode tests a package main.
	args := []string{"unleash", "--integration", "--coverpkg", "./" + t.folder, "--output", report,
		"--workers", strconv.Itoa(2 * workers), // it takes half of them where it runs ./...
		"--timeout-coefficient", strconv.Itoa(coefficient)}
	for _, name := range mutators {
		args = append(args, "--"+name)
	}
	names, err := sources(filepath.Join(scratch, t.folder))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !t.mutates(name) {
			args = append(args, "--exclude-files", "^"+regexp.QuoteMeta(name)+"$")
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, ".local", "bin", "gremlins"), append(args, filepath.Join(scratch, t.folder))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = scratch, out, os.Stderr
	cmd.Env = append(os.Environ(), "GOFLAGS="+t.goFlags())
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("gremlins: %w", err)
	}
	return t.readReport(ctx, out, scratch, report, workers)
}

// patience tries the tests without a mutant, compiled before the time is taken.
func (t target) patience(ctx context.Context, scratch string) (int, error) {
	for _, which := range []string{"^$", "."} {
		began := time.Now()
		cmd := t.goTest(ctx, scratch, "-cover", "-coverpkg", "./"+t.folder, "-run", which)
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("the tests fail without any mutant: %w\n%s", err, out)
		}
		if which == "." && time.Since(began) > quick {
			return patience, nil
		}
	}
	return patienceQuick, nil
}

func (t target) goTest(ctx context.Context, scratch string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test"}, args, t.tested())...)
	cmd.Dir = scratch
	cmd.Env = append(os.Environ(), "GOFLAGS="+t.goFlags())
	return cmd
}

// goFlags keep go from answering from its cache, whose speed gremlins would take for the tests'. What vet finds is no
// test's merit.
func (t target) goFlags() string {
	flags := "-count=1 -vet=off"
	if t.skip != "" {
		flags += " -skip=" + t.skip
	}
	return flags
}

// sources are the names of a folder's Go files, tests left out.
func sources(folder string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(folder, "*.go"))
	var names []string
	for _, path := range all {
		if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return names, err
}

func (t target) readReport(ctx context.Context, out io.Writer, scratch, path string, workers int) ([]mutant, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) { // nothing to change
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var report struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	check, err := t.checker(ctx, scratch)
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	var trials []trial
	for _, file := range report.Files {
		if strings.Contains(file.Name, "/") { // a package of its own
			continue
		}
		source, err := os.ReadFile(filepath.Join(scratch, t.folder, file.Name))
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		lines := strings.SplitAfter(string(source), "\n")
		for _, m := range file.Mutations {
			line := lines[m.Line-1]
			before, rest := line[:m.Column-1], line[m.Column-1:]
			old := operator.FindString(rest)
			changed, known := becomes[m.Type][old]
			if !known {
				return nil, fmt.Errorf("%s:%d:%d: no %s of %q", file.Name, m.Line, m.Column, m.Type, old)
			}
			start := strings.Join(lines[:m.Line-1], "") + before
			function := functionAt(parsed, token.Pos(len(start)+1))
			found := mutant{
				file: t.folder + "/" + file.Name, function: function, kind: m.Type, status: status(m.Status),
				line: strings.TrimSpace(before + "«" + old + " → " + changed + "»" + rest[len(old):]),
			}
			text := start + changed + string(source)[len(start)+len(old):]
			switch {
			case found.status != killed && found.status != notCovered:
			case !check(file.Name, text):
				// go test fails on it as on a test that noticed, and gremlins makes no difference.
				found.status = notViable
			case found.status == notCovered && !counted(parsed, token.Pos(len(start)+1)):
				// Here "not covered" says nothing, and gremlins has not tried it.
				trials = append(trials, trial{len(mutants), filepath.Join(scratch, t.folder, file.Name), text})
			}
			mutants = append(mutants, found)
		}
	}
	return mutants, t.tryAll(ctx, out, scratch, workers, mutants, trials)
}

// functionAt names the function or method that a place in the one file of a set is in; "" where it is in none.
func functionAt(file *ast.File, at token.Pos) string {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || at < f.Pos() || at >= f.End() {
			continue
		}
		if f.Recv == nil {
			return f.Name.Name
		}
		of := f.Recv.List[0].Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		if generic, ok := of.(*ast.IndexExpr); ok {
			of = generic.X
		}
		return fmt.Sprint(of, ".", f.Name.Name)
	}
	return ""
}

// counted tells whether Go's coverage counts a place of the one file of a set: in a function, and not a switch's case.
func counted(file *ast.File, at token.Pos) bool {
	inside := functionAt(file, at) != ""
	ast.Inspect(file, func(node ast.Node) bool {
		if clause, ok := node.(*ast.CaseClause); ok && clause.Case <= at && at < clause.Colon {
			inside = false
		}
		return true
	})
	return inside
}

// checker gives a function that tells whether the target compiles with another text of one of its files.
func (t target) checker(ctx context.Context, scratch string) (func(name, text string) bool, error) {
	listed, err := output(ctx, scratch, "go", "list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}", "./"+t.folder)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for line := range strings.Lines(listed) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	names, err := sources(filepath.Join(scratch, t.folder))
	return func(name, text string) bool {
		var parsed []*ast.File
		for _, other := range names {
			var source any
			if other == name {
				source = text
			}
			file, err := parser.ParseFile(files, filepath.Join(scratch, t.folder, other), source, parser.SkipObjectResolution)
			if err != nil {
				return false
			}
			parsed = append(parsed, file)
		}
		_, err := (&types.Config{Importer: imports}).Check("svcapi/"+t.folder, files, parsed, nil)
		return err == nil
	}, err
}

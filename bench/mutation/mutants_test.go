package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svcapi/local/workdir"
)

// TestMutants checks the changes to each kind of statement and expression.
func TestMutants(t *testing.T) {
	for code, want := range map[string][]string{
		"x := a - 1":  {"x := a «- → +» 1"},
		"x := -a * 2": {"x := «- → +»a * 2", "x := -a «* → /» 2"},
		"x += a":      {"x «+= → -=» a", "x «+= → =» a"},
		"a++":         {"a«++ → --»"},
		"for a < 3 && b { continue }": {
			"for a «< → <=» 3 && b { continue }", "for a «< → >=» 3 && b { continue }",
			"for a < 3 «&& → ||» b { continue }", "for a < 3 && b { «continue → break» }",
		},
		"x := &a &^ b":     nil,
		`s = "plain text"`: nil,
		`s = "SET n = :n"`: {"SET «n =  → nowhere = »:n"},
		`s = "ADD n :one"`: {"«ADD n → ADD nowhere» :one"},
		`s = "n > :least"`: {"n« >  →  >= »:least", "«n > :least → (n > :least OR attribute_not_exists(nowhere))»"},
		"s = ` AND `":      {"« AND  →  OR »"},
		`s = "a BETWEEN :x AND :y"`: {
			"«a BETWEEN :x AND :y → (a BETWEEN :x AND :y OR attribute_not_exists(nowhere))»",
			"«a BETWEEN :x AND :y → (a BETWEEN :x AND :y OR a < :x)»", "«a BETWEEN :x AND :y → (a BETWEEN :x AND :y OR a > :y)»",
			"«a BETWEEN :x AND :y → (a BETWEEN :x AND :y AND a > :x)»", "«a BETWEEN :x AND :y → (a BETWEEN :x AND :y AND a < " +
				":y)»",
		},
	} {
		root := t.TempDir()
		source := "package p\n\nfunc (t *Type[T]) method() {\n\t" + code + "\n}\n"
		if err := os.WriteFile(filepath.Join(root, "p.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := target{folder: "."}.mutants(root, "p.go")
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, m := range found {
			lines = append(lines, m.line)
			if m.place != "./p.go Type.method" || m.text == source {
				t.Errorf("%s: %+v", code, m)
			}
			// The change in the file is the marked change.
			if before, rest, ok := strings.Cut(m.line, "«"); !strings.Contains(code, `"`) && ok {
				_, rest, _ = strings.Cut(rest, " → ")
				if want := before + strings.Replace(rest, "»", "", 1); !strings.Contains(m.text, "\t"+want+"\n") &&
					!strings.Contains(code, "`") {
					t.Errorf("%s: the file has no %s", code, want)
				}
			}
		}
		slices.Sort(lines)
		slices.Sort(want)
		if !slices.Equal(lines, want) {
			t.Errorf("%s:\n%s\nwant\n%s", code, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestSurvivorsExist checks that the targets name existing files, and that the code still has every explained mutant.
func TestSurvivorsExist(t *testing.T) {
	root, err := workdir.Root()
	if err != nil {
		t.Fatal(err)
	}
	known, err := readSurvivors("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		names, err := target.sources(root)
		if err != nil || len(names) < max(len(target.files), 1) {
			t.Errorf("%s: files %v, found %v, %v", target.folder, target.files, names, err)
		}
		for _, name := range names {
			mutants, err := target.mutants(root, name)
			if err != nil {
				t.Error(err)
			}
			for _, m := range mutants {
				delete(known, m.key())
			}
		}
	}
	for key := range known {
		t.Errorf("survivors.txt explains what the code does not have:\n%s", key)
	}
}

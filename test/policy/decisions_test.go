package policy

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	anchorForm   = regexp.MustCompile(`(?m)^<a id="([^"]*)"></a>$`)
	entryForm    = regexp.MustCompile(`(?m)^### (.+)$`)
	slugForm     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	citedForm    = regexp.MustCompile(`decisions\.md#([A-Za-z0-9_-]*)`)
	contractForm = regexp.MustCompile(`openapi\.yaml#([A-Za-z0-9_-]*)`)
	testedForm   = regexp.MustCompile(`(?ms)^- \*\*Tested:\*\* (.*?)\.$`)
	testsForm    = regexp.MustCompile(`^([a-z0-9/]+) (` + "`Test[A-Za-z0-9_]+`(, `Test[A-Za-z0-9_]+`)*)$")
	rowForm      = regexp.MustCompile(`(?m)^\| ([^|]+) \|.*\| ?([^|]*?) ?\|$`)
	testForm     = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9_]*)\(`)
)

// decisions returns the anchors of docs/decisions.md, and the faults of its entries. tests are the repository's test
// functions by folder.
func decisions(text string, tests map[string][]string) (anchors map[string]bool, f findings) {
	anchors = map[string]bool{}
	entries := strings.Split(text, "\n<a id=")[1:]
	if len(entryForm.FindAllString(text, -1)) != len(entries) {
		f.add("%d anchors for %d entries", len(entries), len(entryForm.FindAllString(text, -1)))
	}
	group, number := 0, 0
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "## "):
			group, number = group+1, 0
			if !strings.HasPrefix(line, fmt.Sprintf("## %d. ", group)) {
				f.add("the group %q is not number %d", strings.TrimSpace(line), group)
			}
		case strings.HasPrefix(line, "### "):
			number++
			if !strings.HasPrefix(line, fmt.Sprintf("### %d.%d. ", group, number)) {
				f.add("the entry %q is not number %d.%d", strings.TrimSpace(line), group, number)
			}
		}
	}
	for _, entry := range entries {
		entry = "<a id=" + entry
		match := anchorForm.FindStringSubmatch(entry)
		if match == nil || !slugForm.MatchString(match[1]) {
			line, _, _ := strings.Cut(entry, "\n")
			f.add("%s is no anchor of lower-case words", line)
			continue
		}
		slug := match[1]
		if anchors[slug] {
			f.add("the anchor %s is not unique", slug)
		}
		anchors[slug] = true
		for _, part := range []string{"- **What:** ", "- **Why:** "} {
			if strings.Count(entry, "\n"+part) != 1 {
				f.add("%s has not one part %q", slug, part)
			}
		}
		part := testedForm.FindStringSubmatch(entry)
		if part == nil {
			f.add("%s names no test", slug)
			continue
		}
		f = append(f, tested(slug, part[1], tests)...)
	}
	return anchors, f
}

// threats returns the faults of the rows of docs/threat-model.md, whose last cell names the tests.
func threats(text string, tests map[string][]string) (f findings) {
	rows := rowForm.FindAllStringSubmatch(text, -1)
	if len(rows) < 2 { // the heads of the columns are a row
		f.add("there are no rows")
		return f
	}
	for _, row := range rows[1:] {
		f = append(f, tested(row[1], row[2], tests)...)
	}
	return f
}

// tested checks the tests that the entry of that name has: a package, by as much of the end of its folder's path as is
// unique, then functions.
func tested(slug, names string, tests map[string][]string) (f findings) {
	for list := range strings.SplitSeq(strings.Join(strings.Fields(names), " "), "; ") {
		match := testsForm.FindStringSubmatch(list)
		if match == nil {
			f.add("%s: %q is not a package and its tests", slug, list)
			continue
		}
		var folders []string
		for folder := range tests {
			if strings.HasSuffix("/"+folder, "/"+match[1]) {
				folders = append(folders, folder)
			}
		}
		if len(folders) != 1 {
			f.add("%s: %d packages %s with tests", slug, len(folders), match[1])
			continue
		}
		for name := range strings.SplitSeq(match[2], ", ") {
			if name = strings.Trim(name, "`"); !slices.Contains(tests[folders[0]], name) {
				f.add("%s: no %s in the package %s", slug, name, match[1])
			}
		}
	}
	return f
}

// sources calls visit for every file below the repository's root with one of the extensions. Hidden folders and those of
// packages are left out.
func sources(t *testing.T, visit func(file, text string), extensions ...string) {
	t.Helper()
	skipped := []string{"node_modules", "dist"}
	err := filepath.WalkDir(root(), func(file string, entry fs.DirEntry, err error) error {
		skip := strings.HasPrefix(entry.Name(), ".") || slices.Contains(skipped, entry.Name())
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skip && file != root():
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains(extensions, filepath.Ext(file)):
			return nil
		}
		text, err := os.ReadFile(file)
		below, _ := filepath.Rel(root(), file)
		visit(filepath.ToSlash(below), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDecisions checks that every entry of docs/decisions.md has an anchor of its own and names tests that exist, and
// that every row of docs/threat-model.md names such tests, too, and that every citation of an entry, and of an operation or a component of the contract, has its target.
func TestDecisions(t *testing.T) {
	tests := map[string][]string{}
	sources(t, func(file, text string) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, match := range testForm.FindAllStringSubmatch(text, -1) {
			tests[path.Dir(file)] = append(tests[path.Dir(file)], match[1])
		}
	}, ".go")
	text, err := os.ReadFile(root("docs", "decisions.md"))
	if err != nil {
		t.Fatal(err)
	}
	anchors, found := decisions(string(text), tests)
	for _, finding := range found {
		t.Errorf("docs/decisions.md: %s", finding)
	}
	if text, err = os.ReadFile(root("docs", "threat-model.md")); err != nil {
		t.Fatal(err)
	}
	for _, finding := range threats(string(text), tests) {
		t.Errorf("docs/threat-model.md: %s", finding)
	}
	named := contractNames(t)
	sources(t, func(file, text string) {
		for _, match := range citedForm.FindAllStringSubmatch(text, -1) {
			if match[1] != "" && !anchors[match[1]] {
				t.Errorf("%s cites %s, which is no entry", file, match[0])
			}
		}
		for _, match := range contractForm.FindAllStringSubmatch(text, -1) {
			if match[1] != "" && !named[match[1]] {
				t.Errorf("%s cites %s, which is no operation or component", file, match[0])
			}
		}
	}, ".go", ".md", ".yaml", ".yml", ".mk", ".js")
}

// contractNames are the operations and the components of openapi.yaml.
func contractNames(t *testing.T) map[string]bool {
	doc := document(t)
	names := map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			names[operation.OperationID] = true
		}
	}
	c := doc.Components
	for _, keys := range [][]string{
		slices.Collect(maps.Keys(c.Schemas)), slices.Collect(maps.Keys(c.Parameters)),
		slices.Collect(maps.Keys(c.Headers)), slices.Collect(maps.Keys(c.Responses)), slices.Collect(maps.Keys(c.SecuritySchemes)),
	} {
		for _, key := range keys {
			names[key] = true
		}
	}
	return names
}

// TestDecisionsFindings checks that each fault of an entry is found.
func TestDecisionsFindings(t *testing.T) {
	const good = "# D\n\n## 1. G\n\n<a id=\"a-b\"></a>\n\n### 1.1. E\n\n- **What:** w.\n- **Why:** y.\n- **Tested:** shared/api `TestA`,\n  `TestB`; acceptance `TestC`.\n"
	tests := map[string][]string{"shared/api": {"TestA", "TestB"}, "test/acceptance": {"TestC"}, "a/twice": nil, "b/twice": nil}
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""},
		{`"a-b"`, `"A b"`, "no anchor of lower-case words"},
		{"<a id=\"a-b\"></a>\n\n", "", "0 anchors for 1 entries"},
		{"### 1.1. E", "### 1.2. E", "is not number 1.1"},
		{"## 1. G", "## 2. G", "is not number 1"},
		{"- **Why:** y.\n", "", "not one part"},
		{"- **Tested:**", "- Tested:", "names no test"},
		{"`TestB`", "`TestX`", "no TestX in the package shared/api"},
		{"acceptance `TestC`", "acceptance", "is not a package and its tests"},
		{"shared/api", "shared/none", "0 packages shared/none with tests"},
		{"shared/api", "api", ""},
		{"shared/api", "twice", "2 packages twice with tests"},
		{"# D\n", "# D\n\n<a id=\"a-b\"></a>\n", "is not unique"},
	} {
		_, found := decisions(strings.Replace(good, c.from, c.to, 1), tests)
		all := strings.Join(found, "\n")
		if c.want == "" && all != "" || !strings.Contains(all, c.want) {
			t.Errorf("%q for %q: found %q, want %q", c.to, c.from, all, c.want)
		}
	}
	const rows = "| Threat | Protection | Tested |\n|---|---|---|\n| Theft | Locks | shared/api `TestA` |\n"
	for from, want := range map[string]string{"": "", "`TestA`": "is not a package", "TestA": "no TestX"} {
		found := threats(strings.Replace(rows, from, map[string]string{"TestA": "TestX"}[from], min(len(from), 1)), tests)
		if all := strings.Join(found, "\n"); want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("threats without %q: found %q, want %q", from, all, want)
		}
	}
}

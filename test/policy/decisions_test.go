package policy

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	entryForm = regexp.MustCompile(`^<a id="([a-z0-9]+(?:-[a-z0-9]+)*)"></a>\n\n## (.+)\n\n(?s:- \*\*What:\*\* ` +
		`(.+?)\n- \*\*Why:\*\* (.+))$`)
	citedForm    = regexp.MustCompile(`decisions(?:/([a-z-]+))?\.md#([A-Za-z0-9_-]+)`)
	contractForm = regexp.MustCompile(`openapi\.yaml#([A-Za-z0-9_-]*)`)
	testsForm    = regexp.MustCompile(`^([a-z0-9/]+) (` + "`Test[A-Za-z0-9_]+`(, `Test[A-Za-z0-9_]+`)*)$")
	rowForm      = regexp.MustCompile(`(?m)^\| ([^|]+) \|.*\| ?([^|]*?) ?\|$`)
	testForm     = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9_]*)\(`)
)

// decisions returns the page of each decision of docs/decisions by its anchor, the index of the pages, and the faults
// of the decisions. cited has the anchors that tests cite.
func decisions(pages map[string]string, cited map[string]bool) (where map[string]string, index string, f findings) {
	where = map[string]string{}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		head, entries, _ := strings.Cut(pages[page], "\n<a id=")
		title, ok := strings.CutPrefix(strings.TrimSpace(head), "# Decisions: ")
		if !ok || strings.Contains(title, "\n") {
			f.add("%s has no title, or text above its first anchor", page)
		}
		for entry := range strings.SplitSeq(entries, "\n<a id=") {
			match := entryForm.FindStringSubmatch("<a id=" + entry)
			if match == nil || strings.Contains(match[3]+match[4], "\n#") || strings.Contains(match[3]+match[4], "**Wh") {
				f.add("%s: %.30q is no anchor of lower-case words, heading, What and Why", page, entry)
				continue
			}
			slug, exempt := match[1], strings.Contains(match[4], "\n- **No test:** ")
			if where[slug] != "" {
				f.add("the anchor %s is not unique", slug)
			}
			if cited[slug] == exempt {
				f.add("%s: cited by a test is %v, with a reason for no test is %v", slug, cited[slug], exempt)
			}
			where[slug] = page
		}
		index += fmt.Sprintf("- [%s](decisions/%s.md)\n", title, page)
	}
	return where, index, f
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

// TestDecisions checks that each decision of docs/decisions has an anchor of its own, a test that cites the anchor and
// a line of the index, that each row of docs/threat-model.md names tests that exist, and that each citation of a
// decision, and of an operation or a component of the contract, has its target.
func TestDecisions(t *testing.T) {
	pages, tests, cited := map[string]string{}, map[string][]string{}, map[string]bool{}
	for file, text := range files() {
		if page, ok := strings.CutPrefix(file, "docs/decisions/"); ok {
			pages[strings.TrimSuffix(page, ".md")] = text
		}
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range testForm.FindAllStringSubmatch(text, -1) {
			tests[path.Dir(file)] = append(tests[path.Dir(file)], match[1])
		}
		for _, match := range citedForm.FindAllStringSubmatch(text, -1) {
			cited[match[2]] = true
		}
	}
	where, index, found := decisions(pages, cited)
	for _, finding := range append(found, threats(files()["docs/threat-model.md"], tests)...) {
		t.Error(finding)
	}
	computed(t, "docs/decisions.md", map[string]string{"index": index})
	named := contractNames()
	for file, text := range files() {
		for _, match := range citedForm.FindAllStringSubmatch(text, -1) {
			if page := where[match[2]]; page == "" || page != match[1] {
				t.Errorf("%s cites %s, which is no decision; a page with that anchor is %q", file, match[0], page)
			}
		}
		for _, match := range contractForm.FindAllStringSubmatch(text, -1) {
			if match[1] != "" && !named[match[1]] {
				t.Errorf("%s cites %s, which is no operation or component", file, match[0])
			}
		}
	}
}

// contractNames are the operations and the components of openapi.yaml.
func contractNames() map[string]bool {
	doc := document()
	names := map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			names[operation.OperationID] = true
		}
	}
	c := doc.Components
	for _, keys := range [][]string{
		slices.Collect(maps.Keys(c.Schemas)), slices.Collect(maps.Keys(c.Parameters)),
		slices.Collect(maps.Keys(c.Headers)), slices.Collect(maps.Keys(c.Responses)),
		slices.Collect(maps.Keys(c.SecuritySchemes)),
	} {
		for _, key := range keys {
			names[key] = true
		}
	}
	return names
}

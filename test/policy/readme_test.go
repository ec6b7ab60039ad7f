package policy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"svcapi/shared/testvalue"
)

// TestMakeTargets checks that each target that a page names exists.
func TestMakeTargets(t *testing.T) {
	database := tool(t, root(), "make", "--print-data-base", "--no-builtin-rules", "--dry-run", "help")
	named := regexp.MustCompile("(?m)(?:`|^)(?:[A-Z_]+=[^\\s`]+ )*make((?: [a-zA-Z][\\w=./-]*)+)")
	found := 0
	for page, text := range files() {
		if !strings.HasSuffix(page, ".md") {
			continue
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			for target := range strings.FieldsSeq(match[1]) {
				if found++; !strings.Contains(target, "=") && !strings.Contains(database, "\n"+target+":") {
					t.Errorf("%s names make %s, which is no target", page, target)
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("%d targets are named: is the pattern right?", found)
	}
}

// TestReadme: README.md calls every operation of the contract, lists the numbers with a meaning, and each figure of a
// line that links to the benchmarks is a figure of BENCHMARKS.md.
func TestReadme(t *testing.T) {
	text, benchmarks := read("README.md"), read("BENCHMARKS.md")
	for path := range document().Paths.Map() {
		call := regexp.MustCompile(`curl -sS \$API` + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, `[^/ ]+`) + " ")
		if !call.MatchString(text) {
			t.Errorf("README.md has no call of %s", path)
		}
	}
	for _, v := range testvalue.All() {
		row := fmt.Sprintf("\n| `%s` | %s | %d |\n", v.Number, v.Meaning, v.Status)
		if v.Number != "" && !strings.Contains(text, row) {
			t.Errorf("README.md lacks the row %s", row)
		}
	}
	figures := 0
	for item := range strings.SplitSeq(text, "\n- ") {
		item, ok := strings.CutSuffix(strings.SplitN(item, "\n\n", 2)[0], "([benchmarks](BENCHMARKS.md)).")
		if !ok {
			continue
		}
		for _, figure := range regexp.MustCompile(`\d[\d,.]*`).FindAllString(item, -1) {
			figures++
			if !regexp.MustCompile(`(^|[^\d.,])` + regexp.QuoteMeta(figure) + `($|[^\d])`).MatchString(benchmarks) {
				t.Errorf("README.md: %s is no figure of BENCHMARKS.md", figure)
			}
		}
	}
	if figures < 3 {
		t.Errorf("README.md has %d figures of BENCHMARKS.md, want at least 3", figures)
	}
}

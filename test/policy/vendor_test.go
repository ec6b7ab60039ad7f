package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"svcapi/test/must"
)

// TestAddVendor follows docs/add-an-sms-vendor.md as printed, in a copy of the tree: the page's files and changes
// compile, and the tests of the vendors, of their sandbox and of the documents pass with the new vendor.
func TestAddVendor(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(tree, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Succeed(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for name := range strings.SplitSeq(tool(t, root(), "git", "ls-files", "--cached", "--others", "--exclude-standard"),
		"\n") {
		if text, err := os.ReadFile(root(name)); err == nil { // no file that the working tree lacks
			write(name, string(text))
		}
	}
	page := read("docs", "add-an-sms-vendor.md")
	created := regexp.MustCompile("(?ms)^## [^\n]*: `([^`\n]+)`$.*?^```go\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	changes := regexp.MustCompile("(?ms)^```diff\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if len(created) != 2 || len(changes) != 5 {
		t.Fatalf("the page has %d files and %d changes", len(created), len(changes))
	}
	for _, file := range created {
		write(file[1], file[2])
	}
	for _, change := range changes {
		write("change.diff", change[1])
		tool(t, tree, "git", "apply", "change.diff")
	}
	// Without vet, which analyses every dependency, the tests need what make test has compiled.
	tool(t, tree, "go", "build", "./local/demo")
	out := tool(t, tree, "go", "test", "-vet=off", "-v", "./functions/sms/vendors", "./local/sandbox") +
		tool(t, tree, "go", "test", "-vet=off", "-v", "-run",
			"^(TestDocumentedCodes|TestCeilings)$/^(example.*)?$", "./functions/sms")
	for _, passed := range []string{"TestExample/queued", "TestCommonResponses/example",
		"TestDocumentedCodes/example_queued", "TestCeilings"} {
		if !strings.Contains(out, "--- PASS: "+passed+" ") {
			t.Errorf("%s did not run", passed)
		}
	}
}

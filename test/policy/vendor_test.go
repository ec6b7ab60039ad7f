package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAddVendor follows docs/add-an-sms-vendor.md as printed, in a copy of the tree: the page's files and changes compile, and
// the tests of the vendors, of their sandbox and of the documents pass with the new vendor.
func TestAddVendor(t *testing.T) {
	tree := t.TempDir()
	run := func(stdin string, command ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir, cmd.Stdin = tree, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := filepath.Abs(root())
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(run("", "git", "-C", source, "ls-files", "--cached", "--others", "--exclude-standard"), "\n") {
		if text, err := os.ReadFile(root(name)); err == nil { // no file that the working tree lacks
			write(name, string(text))
		}
	}
	page, err := os.ReadFile(root("docs/add-an-sms-vendor.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile("(?ms)^## [^\n]*: `([^`\n]+)`$.*?^```go\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	changes := regexp.MustCompile("(?ms)^```diff\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(files) != 2 || len(changes) != 5 {
		t.Fatalf("the page has %d files and %d changes", len(files), len(changes))
	}
	for _, file := range files {
		write(file[1], file[2])
	}
	for _, change := range changes {
		run(change[1], "git", "apply", "-")
	}
	run("", "go", "vet", "./local/demo", "./test/acceptance")
	out := run("", "go", "test", "-v", "./functions/sms/vendors", "./local/sandbox") +
		run("", "go", "test", "-v", "-run", "^(TestDocumentedCodes|TestCeilings)$/^(example.*)?$", "./functions/sms")
	for _, passed := range []string{"TestExample/queued", "TestCommonResponses/example", "TestDocumentedCodes/example_queued", "TestCeilings"} {
		if !strings.Contains(out, "--- PASS: "+passed+" ") {
			t.Errorf("%s did not run", passed)
		}
	}
}

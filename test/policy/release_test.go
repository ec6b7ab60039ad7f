package policy

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svcapi/local/template"
	"svcapi/shared/testvalue"
	"svcapi/test/must"
)

// Each function is built for its architecture, the same wherever it is built (docs/decisions/operating.md#builds).
func TestBuildTargets(t *testing.T) {
	architectures := map[any]string{"arm64": "GOARCH=arm64", "x86_64": "GOARCH=amd64"}
	for _, function := range current().functions() {
		output := tool(t, root(), "make", "--dry-run", "--silent", "build-"+function.id, "ARTIFACTS_DIR=out")
		for _, want := range []string{
			architectures[function.properties.list("Architectures")[0]], "CGO_ENABLED=0", "GOOS=linux", "-trimpath",
			"-buildvcs=false",
			"-tags lambda.norpc", "-o out/bootstrap ./functions/" + template.Package(function.id) + "\n",
		} {
			if !strings.Contains(output, want) {
				t.Errorf("%s is built without %s:\n%s", function.id, want, output)
			}
		}
	}
}

var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// The newest released version of the changelog is the version of the application's metadata.
func TestVersion(t *testing.T) {
	_, title, _ := strings.Cut(read("CHANGELOG.md"), "\n## ")
	version := strings.Fields(title)[0]
	application := current().doc.object("Metadata", "AWS::ServerlessRepo::Application")
	if !semantic.MatchString(version) || application.text("SemanticVersion") != version {
		t.Errorf("the changelog's newest version is %q, the application's %q", version, application.text("SemanticVersion"))
	}
	for _, name := range []string{"Name", "Description", "Author", "ReadmeUrl", "LicenseUrl"} {
		if application.text(name) == "" {
			t.Errorf("the application's metadata has no %s", name)
		}
	}
	if !strings.Contains(read("README.md"), "\nVersion "+version+" · "+application.text("SpdxLicenseId")+" · ") {
		t.Errorf("README.md does not name version %s and the licence", version)
	}
}

// TestThrottleGuide: the guide adds the throttles of the routes up as they are.
func TestThrottleGuide(t *testing.T) {
	s := current()
	each, err := strconv.Atoi(s.doc.text("Parameters", "ApiRequestsPerSecond", "Default"))
	must.Succeed(t, err)
	sum, text := each*len(s.routes()), strings.Join(strings.Fields(read("docs", "deploy.md")), " ")
	for _, want := range []string{fmt.Sprintf("has %d routes", len(s.routes())),
		fmt.Sprintf("%d,%03d requests a second into", sum/1000, sum%1000)} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/deploy.md does not say %q", want)
		}
	}
}

var (
	isGuide  = regexp.MustCompile(`^(docs/.*|[^/]*)\.md$`)
	link     = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	nameless = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Guides link to files and headings that exist.
func TestGuides(t *testing.T) {
	for guide, text := range files() {
		if !isGuide.MatchString(guide) {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target := text
			if match[1] == "../../releases" { // a page of GitHub's, from README.md
				continue
			}
			if match[1] != "" {
				file := path.Join(path.Dir(guide), match[1])
				if _, err := os.Stat(root(file)); err != nil {
					t.Errorf("%s links to %s: %v", guide, match[1], err)
				}
				target = files()[file]
			}
			titles := heading.FindAllStringSubmatch(target, -1)
			if match[2] != "" && !strings.Contains(target, `<a id="`+match[2]+`">`) &&
				!slices.ContainsFunc(titles, func(title []string) bool {
					return strings.ReplaceAll(nameless.ReplaceAllString(strings.ToLower(title[1]), ""), " ", "-") == match[2]
				}) {
				t.Errorf("%s links to %s#%s, which is no heading", guide, match[1], match[2])
			}
		}
	}
}

var (
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inline = regexp.MustCompile("`(?:\\./)?(?:aws|svc|sam|make)(?: [^`]*)? (?:--|[A-Z]{2,})[^`]*`")
	notRun = regexp.MustCompile("(?m)^ *```sh not run: (.+)\n *(\\S+ \\S+ \\S+)")
)

// TestCommandsAreInBlocks: the commands of the pages of operations are in their blocks, which make emulator runs, and
// docs/deploy.md lists those that it does not run.
func TestCommandsAreInBlocks(t *testing.T) {
	_, list, _ := strings.Cut(read("docs", "deploy.md"), "\n## What was run\n")
	list = strings.Join(strings.Fields(list), " ")
	for _, name := range []string{"restore", "uninstall", "upgrade", "key-compromise", "deploy"} {
		page := read("docs", name+".md")
		// Commands with options or names that no block has: make emulator cannot run them.
		if found := inline.FindAllString(fence.ReplaceAllString(page, ""), -1); len(found) > 0 {
			t.Errorf("docs/%s.md has commands outside of blocks: %v", name, found)
		}
		for _, skipped := range notRun.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(list, "`"+skipped[2]+"`") || !strings.Contains(list, skipped[1]) {
				t.Errorf("docs/deploy.md does not list %q of docs/%s.md with %q", skipped[2], name, skipped[1])
			}
		}
	}
}

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

// TestAddVendor follows docs/add-an-sms-vendor.md as printed, in a copy of the tree: the page's files and changes
// compile, and the tests of the vendors, of their sandbox and of the documents pass with the new vendor.
func TestAddVendor(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	for name := range strings.SplitSeq(tool(t, root(), "git", "ls-files", "--cached", "--others", "--exclude-standard"),
		"\n") {
		if text, err := os.ReadFile(root(name)); err == nil { // no file that the working tree lacks
			write(t, tree, map[string]string{name: string(text)})
		}
	}
	page := read("docs", "add-an-sms-vendor.md")
	created := regexp.MustCompile("(?ms)^## [^\n]*: `([^`\n]+)`$.*?^```go\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	changes := regexp.MustCompile("(?ms)^```diff\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if len(created) != 2 || len(changes) != 5 {
		t.Fatalf("the page has %d files and %d changes", len(created), len(changes))
	}
	for _, file := range created {
		write(t, tree, map[string]string{file[1]: file[2]})
	}
	for _, change := range changes {
		write(t, tree, map[string]string{"change.diff": change[1]})
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

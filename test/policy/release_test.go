package policy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svcapi/local/template"
)

// Each function is built for its architecture, the same wherever it is built (docs/decisions/operating.md#builds).
func TestBuildTargets(t *testing.T) {
	architectures := map[any]string{"arm64": "GOARCH=arm64", "x86_64": "GOARCH=amd64"}
	for _, function := range current(t).functions() {
		cmd := exec.CommandContext(t.Context(), "make", "--dry-run", "--silent", "build-"+function.id, "ARTIFACTS_DIR=out")
		cmd.Dir = root()
		output, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", function.id, err)
			continue
		}
		for _, want := range []string{
			architectures[function.properties.list("Architectures")[0]], "CGO_ENABLED=0", "GOOS=linux", "-trimpath", "-buildvcs=false",
			"-tags lambda.norpc", "-o out/bootstrap ./functions/" + template.Package(function.id) + "\n",
		} {
			if !strings.Contains(string(output), want) {
				t.Errorf("%s is built without %s:\n%s", function.id, want, output)
			}
		}
	}
}

var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// The newest released version of the changelog is the version of the application's metadata.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile(root("CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	version := ""
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			version, _, _ = strings.Cut(title, " ")
			break
		}
	}
	application := current(t).doc.object("Metadata", "AWS::ServerlessRepo::Application")
	if !semantic.MatchString(version) || application.text("SemanticVersion") != version {
		t.Errorf("the changelog's newest version is %q, the application's %q", version, application.text("SemanticVersion"))
	}
	for _, name := range []string{"Name", "Description", "Author", "ReadmeUrl", "LicenseUrl"} {
		if application.text(name) == "" {
			t.Errorf("the application's metadata has no %s", name)
		}
	}
	for _, name := range []string{"ReadmeUrl", "LicenseUrl"} {
		if _, err := os.Stat(root(application.text(name))); err != nil {
			t.Error(err)
		}
	}
	readme, err := os.ReadFile(root("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "\nVersion "+version+" · "+application.text("SpdxLicenseId")+" · ") {
		t.Errorf("README.md does not name version %s and the licence", version)
	}
}

// TestThrottleGuide: the guide adds the throttles of the routes up as they are.
func TestThrottleGuide(t *testing.T) {
	s := current(t)
	text, err := os.ReadFile(root("docs", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	each, err := strconv.Atoi(s.doc.text("Parameters", "ApiRequestsPerSecond", "Default"))
	if err != nil {
		t.Fatal(err)
	}
	sum := each * len(s.routes())
	for _, want := range []string{fmt.Sprintf("has %d routes", len(s.routes())), fmt.Sprintf("%d,%03d requests a second into", sum/1000, sum%1000)} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("docs/deploy.md does not say %q", want)
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	nameless = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Guides link to files and headings that exist.
func TestGuides(t *testing.T) {
	var guides []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(root(pattern))
		if err != nil {
			t.Fatal(err)
		}
		guides = append(guides, found...)
	}
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			target := text
			if match[1] != "" {
				file := filepath.Join(filepath.Dir(guide), match[1])
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s links to %s: %v", guide, match[1], err)
				}
				target, _ = os.ReadFile(file)
			}
			titles := heading.FindAllStringSubmatch(string(target), -1)
			if match[2] != "" && !strings.Contains(string(target), `<a id="`+match[2]+`">`) && !slices.ContainsFunc(titles, func(title []string) bool {
				return strings.ReplaceAll(nameless.ReplaceAllString(strings.ToLower(title[1]), ""), " ", "-") == match[2]
			}) {
				t.Errorf("%s links to %s#%s, which is no heading", guide, match[1], match[2])
			}
		}
	}
	for _, name := range []string{"deploy", "upgrade", "runbook", "restore", "uninstall", "key-compromise", "costs", "threat-model", "decisions"} {
		if _, err := os.Stat(root("docs", name+".md")); err != nil {
			t.Errorf("no guide: %v", err)
		}
	}
}

var (
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inline = regexp.MustCompile("`(?:\\./)?(?:aws|svc|sam|make)(?: [^`]*)? (?:--|[A-Z]{2,})[^`]*`")
	notRun = regexp.MustCompile("(?m)^ *```sh not run: (.+)\n *(\\S+ \\S+ \\S+)")
)

// outsideBlocks returns the commands with options or names of a page that no block has: make emulator cannot run them.
func outsideBlocks(page string) []string {
	return inline.FindAllString(fence.ReplaceAllString(page, ""), -1)
}

// TestCommandsAreInBlocks: the commands of the pages of operations are in their blocks, which make emulator runs, and
// docs/deploy.md lists those that it does not run.
func TestCommandsAreInBlocks(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(root("docs", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, list, _ := strings.Cut(read("deploy"), "\n## What was run\n")
	for _, name := range []string{"restore", "uninstall", "upgrade", "key-compromise", "deploy"} {
		page := read(name)
		if found := outsideBlocks(page); len(found) > 0 {
			t.Errorf("docs/%s.md has commands outside of blocks: %v", name, found)
		}
		for _, skipped := range notRun.FindAllStringSubmatch(page, -1) {
			if list := strings.Join(strings.Fields(list), " "); !strings.Contains(list, "`"+skipped[2]+"`") || !strings.Contains(list, skipped[1]) {
				t.Errorf("docs/deploy.md does not list %q of docs/%s.md with %q", skipped[2], name, skipped[1])
			}
		}
	}
	if found := outsideBlocks("`svc a`, `svc a --b`\n  ```sh\n  svc a --c\n  ```\n`aws x ID`"); len(found) != 2 {
		t.Errorf("commands outside of blocks: %v", found)
	}
}

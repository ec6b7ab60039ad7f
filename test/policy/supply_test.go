package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"svcapi/test/must"
)

// manifests are the files that pin dependencies, by the ecosystem that Dependabot calls them.
var manifests = map[string]string{"go.mod": "gomod", "package-lock.json": "npm", "requirements.txt": "pip"}

// TestDependabot checks that a new release of everything that is pinned is proposed, and that the browser is not left
// for longer than a day.
func TestDependabot(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
			Schedule    struct{ Interval string }
		}
	}
	must.Succeed(t, yaml.Unmarshal([]byte(read(".github", "dependabot.yml")), &config))
	watched := map[string]string{} // the interval, by ecosystem and folder
	for _, u := range config.Updates {
		for _, folder := range append(u.Directories, u.Directory) {
			if folder != "" {
				watched[u.Ecosystem+" "+folder] = u.Schedule.Interval
			}
		}
	}
	want := []string{"github-actions /"}
	for file := range files() {
		if ecosystem := manifests[path.Base(file)]; ecosystem != "" {
			want = append(want, ecosystem+" "+path.Join("/", path.Dir(file)))
		}
	}
	for _, need := range want {
		if watched[need] == "" {
			t.Errorf("nobody proposes new releases of %s", need)
		}
	}
	if len(watched) != len(want) {
		t.Errorf("%v are watched, want %v", watched, want)
	}
	if watched["npm /layers/chromium"] != "daily" {
		t.Error("the browser is not looked at every day")
	}
}

// jobRights are the permissions of jobs that may do more than read the repository, by workflow and job.
var jobRights = map[string]map[string]string{
	"ci.yml release":      {"contents": "write", "attestations": "write", "id-token": "write"},
	"deploy.yml deploy":   {"contents": "read", "attestations": "read", "id-token": "write"},
	"nightly.yml outside": {"contents": "read", "issues": "write"},
}

// Actions are named by commit, with the tag in a comment: a tag can be moved.
var pinnedAction = regexp.MustCompile(`^\s+- uses: [a-z0-9-]+/[a-z0-9-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// TestWorkflows checks that workflows pin what they run, that jobs have time-outs and may do no more than they need,
// that no workflow has a stored key of AWS, that releases are attested and that a deployment verifies them.
func TestWorkflows(t *testing.T) {
	workflows, err := filepath.Glob(root(".github", "workflows", "*.yml"))
	if err != nil || len(workflows) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	found := 0
	for _, file := range workflows {
		file = filepath.Base(file)
		text := read(".github", "workflows", file)
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Timeout     int `yaml:"timeout-minutes"`
			}
		}
		if err := yaml.Unmarshal([]byte(text), &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions are %v, want to read contents alone", file, workflow.Permissions)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "uses:") && !pinnedAction.MatchString(strings.TrimRight(line, "\n")) {
				t.Errorf("%s: %s is not pinned by commit", file, strings.TrimSpace(line))
			}
		}
		for name, job := range workflow.Jobs {
			if job.Timeout == 0 {
				t.Errorf("%s: %s has no time-out", file, name)
			}
			want := jobRights[file+" "+name]
			if want != nil {
				found++
			}
			for right, level := range job.Permissions {
				if want[right] != level {
					t.Errorf("%s: %s has %s: %s", file, name, right, level)
				}
			}
		}
		if regexp.MustCompile(`(?i)aws[_-](secret[_-])?access[_-]key`).MatchString(text) {
			t.Errorf("%s: a key of AWS", file)
		}
	}
	if found != len(jobRights) {
		t.Errorf("%d of %d jobs with rights", found, len(jobRights))
	}
	for file, steps := range map[string][]string{
		"ci.yml": {"make package", "uses: actions/attest@", "gh release create"},
		"deploy.yml": {"gh release download", "sha256sum --check --strict SHA256SUMS", "gh attestation verify",
			`--signer-workflow "$GITHUB_REPOSITORY/.github/workflows/ci.yml"`, "configure-aws-credentials@", "sam deploy"},
		"nightly.yml": {"make outside", "gh issue"},
	} {
		rest := read(".github", "workflows", file)
		for _, step := range steps {
			_, after, ok := strings.Cut(rest, step)
			if !ok {
				t.Errorf("%s: no %q, or not after the steps before", file, step)
			}
			rest = after
		}
	}
}

// write writes files that can be run into a folder, by their paths.
func write(t *testing.T, folder string, texts map[string]string) {
	t.Helper()
	for path, text := range texts {
		path = filepath.Join(folder, path)
		must.Succeed(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)))
	}
}

// TestOneIssue: the nightly workflow opens one issue for red checks, renews it while they are red, and closes it when
// they are green. Checks that did not run change no issue.
func TestOneIssue(t *testing.T) {
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	must.Succeed(t, yaml.Unmarshal([]byte(read(".github", "workflows", "nightly.yml")), &workflow))
	steps := workflow.Jobs["outside"].Steps
	step := steps[len(steps)-1]
	// This gh behaves as its manual says (cli.github.com/manual): "issue list" prints the number of the open issue.
	const gh = "#!/bin/sh\n[ \"$1 $2\" = 'issue list' ] && { [ -z \"$OPEN\" ] || echo \"$OPEN\"; } || echo \"$@\" >> " +
		"calls\n"
	for _, c := range []struct{ name, red, open, want string }{
		{"the first red night", "red", "", "issue create --title " + step.Env["TITLE"] + " --body-file .local/outside.md\n"},
		{"the next red night", "red", "7", "issue edit 7 --body-file .local/outside.md\n"},
		{"the first green night", "", "7", "issue close 7 --comment All checks are green.\n"},
		{"a green night", "", "", ""},
		{"checks that did not run", "absent", "7", ""},
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"gh": gh})
		if c.red != "absent" {
			write(t, dir, map[string]string{".local/outside.md": c.red})
		}
		script := fmt.Sprintf("export PATH=.:$PATH OPEN=%s TITLE='%s'\n%s", c.open, step.Env["TITLE"], step.Run)
		if output, err := run(dir, "bash", "-e", "-c", script); err != nil {
			t.Errorf("%s: %v: %s", c.name, err, output)
		}
		if calls, _ := os.ReadFile(filepath.Join(dir, "calls")); string(calls) != c.want {
			t.Errorf("%s: %q, want %q", c.name, calls, c.want)
		}
	}
}

// TestPins: make pins is red for a pin that is 60 days behind and not held, for a hold that has ended or holds nothing,
// and where a registry's client fails.
func TestPins(t *testing.T) {
	t.Parallel()
	script := read("tools", "pins.py")
	day := func(days int) string { return time.Now().AddDate(0, 0, days).UTC().Format(time.DateOnly) }
	answer := fmt.Sprintf(`{"dist-tags":{"latest":"1.1.0"},"time":{"1.0.0":"%sT00:00:00Z","1.1.0":"%sT00:00:00Z"}}`,
		day(-400), day(-61))
	for _, c := range []struct{ name, version, held, npm, want string }{
		{"the newest", "1.1.0", "[]", answer, "| left | package.json | 1.1.0 | 61 | 1.1.0 |  |"},
		{"behind", "1.0.0", "[]", answer, "! package.json: left is 1.0.0, 1.1.0 is out for more than 60 days"},
		{"held", "1.0.0", `[{"name":"left","reason":"R.","until":"` + day(1) + `"}]`, answer,
			"| left | package.json | 1.0.0 | 400 | 1.1.0 | R. Until " + day(1) + " |"},
		{"held too long", "1.0.0", `[{"name":"left","reason":"R.","until":"` + day(-2) + `"}]`, answer,
			"! the hold of left ended"},
		{"a hold of nothing", "1.1.0", `[{"name":"right","reason":"R.","until":"` + day(1) + `"}]`,
			answer, "! right is no pin"},
		{"no answer", "1.1.0", "[]", "", "! package.json: npm got no answer"},
	} {
		dir := t.TempDir()
		npm := "#!/bin/sh\n[ \"$2\" = left ] && echo '" + answer + "'\n"
		if c.npm == "" {
			npm = "#!/bin/sh\necho offline >&2\nexit 1\n"
		}
		write(t, dir, map[string]string{"tools/pins.py": script, "tools/held-pins.json": c.held, "bin/npm": npm,
			"package.json": `{"dependencies":{"left":"` + c.version + `"}}`})
		output, err := run(dir, "sh", "-c", "git init -q . && PATH=$PWD/bin:$PATH python3 tools/pins.py")
		want, red := strings.CutPrefix(c.want, "! ")
		if text := fmt.Sprint(string(output), err); (err != nil) != red || !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", c.name, text, c.want)
		}
	}
}

// TestBrowserAge: the version string of the browser's own file is compared with Chrome's stable channel, by the answer
// of either source, and no answer is red (docs/supply-chain.md, Renew the browser).
func TestBrowserAge(t *testing.T) {
	t.Parallel()
	answers := http.NewServeMux()
	server := httptest.NewServer(answers)
	defer server.Close()
	release := func(version string, days int) string {
		return fmt.Sprintf(`{"version":%q,"serving":{"startTime":%q}}`, version,
			time.Now().AddDate(0, 0, -days).UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
	for path, releases := range map[string]string{
		"same": release("153.0.8010.0", 40) + "," + release("152.0.7980.1", 80),
		"new":  release("154.0.8040.7", 13) + "," + release("153.0.8010.0", 40),
		"old":  release("156.0.8078.9", 3) + "," + release("154.0.8040.7", 16) + "," + release("153.0.8010.0", 40),
	} {
		answers.HandleFunc("/"+path, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"releases":[%s]}`, releases)
		})
	}
	// The output of apt-cache is that of "apt-cache policy chromium" on Debian 12 and on Ubuntu, which has no such
	// package.
	dir := t.TempDir()
	for name, candidate := range map[string]string{"debian153": "153.0.8010.99-1~deb12u1",
		"debian156": "156.0.8078.108-1~deb12u1", "ubuntu": "2:1snap1-0ubuntu2"} {
		program := "#!/bin/sh\n[ \"$*\" = 'policy chromium' ] && printf 'chromium:\\n  Installed: (none)\\n  Candidate: " +
			candidate + "\\n  Version table:\\n     999.0.1.1-1 500\\n'\n"
		write(t, dir, map[string]string{name: program})
	}
	for lists, days := range map[string]int{"lists": 1, "old lists": 3} {
		write(t, dir, map[string]string{lists + "/InRelease": ""})
		written := time.Now().AddDate(0, 0, -days)
		must.Succeed(t, os.Chtimes(filepath.Join(dir, lists, "InRelease"), written, written))
	}
	write(t, dir, map[string]string{"headless_shell": "\x7fELF\x00153.0.8010.0\x00127.0.0.1\x00"})
	for _, c := range []struct{ history, program, want string }{
		{"same", "debian153", "the browser is 153.0.8010.0, Chrome's stable is 153.0.8010.0"},
		{"new", "none", "the browser is 153.0.8010.0, Chrome's stable is 154.0.8040.7"},
		{"none", "debian153", "the browser is 153.0.8010.0, Chrome's stable is 153.0.8010.99"},
		{"old", "none", "! the browser is 153.0.8010.0, Chrome's stable is 156.0.8078.9, and a newer one is out for more " +
			"than 14"},
		{"none", "debian156", "! the browser is 153.0.8010.0, Chrome's stable is 156.0.8078.108, and a newer one"},
		{"none", "none", "! no source answered: the age of the browser 153.0.8010.0 is not known"},
		{"none", "ubuntu", "! no source answered: the age of the browser 153.0.8010.0 is not known"},
		{"none", "debian153 old lists", "! no source answered: the age of the browser 153.0.8010.0 is not known"},
	} {
		program, lists, _ := strings.Cut(c.program, " ")
		output, err := run(root(), "python3", "tools/browser_age.py", filepath.Join(dir, "headless_shell"),
			server.URL+"/"+c.history, filepath.Join(dir, program), filepath.Join(dir, cmp.Or(lists, "lists")))
		text := string(output)
		if err != nil {
			text = "! " + err.Error()
		}
		want, red := strings.CutPrefix(c.want, "! ")
		if (err != nil) != red || !strings.Contains(text, want) {
			t.Errorf("%s, %s: %q, want %q", c.history, c.program, text, c.want)
		}
	}
}

// TestCheckovReasons checks that each finding of Checkov that stays has a reason in its line.
func TestCheckovReasons(t *testing.T) {
	_, skipped, ok := strings.Cut(read("tools", "checkov.yaml"), "skip-check:\n")
	if !ok {
		t.Fatal("no skip-check")
	}
	reasoned := regexp.MustCompile(`^  - CKV2?_[A-Z]+_\d+ # [A-Z].{20,}\.$`)
	seen := map[string]bool{}
	for line := range strings.Lines(skipped) {
		line = strings.TrimSuffix(line, "\n")
		id, _, _ := strings.Cut(line, " #")
		if !reasoned.MatchString(line) || seen[id] {
			t.Errorf("%q has no reason, or occurs twice", line)
		}
		seen[id] = true
	}
	if len(seen) == 0 {
		t.Error("no finding is listed")
	}
}

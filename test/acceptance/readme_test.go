package acceptance

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs the commands of README.md's section "Every operation" as a reader runs them, in one shell. Each
// request succeeds.
func TestReadme(t *testing.T) {
	local(t) // the commands send
	t.Parallel()
	_, section, _ := strings.Cut(readFile(t, inRoot(t, "README.md")), "\n## Every operation\n")
	section, _, _ = strings.Cut(section, "\n## ")
	script := `curl() { command curl --fail-with-body "$@"; }` + "\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		script += block[1]
	}
	script = strings.ReplaceAll(script, "http://127.0.0.1:8080/api/v1", fixture.baseURL)
	cmd := exec.CommandContext(t.Context(), "bash", "-euxc", script)
	cmd.Dir = t.TempDir()
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for name, start := range map[string]string{
		"barcode.png": "\x89PNG", "qrcode.svg": "<svg", "receipt.pdf": "%PDF-", "report.pdf": "%PDF-", "large.pdf": "%PDF-",
	} {
		if data := readFile(t, filepath.Join(cmd.Dir, name)); !strings.HasPrefix(data, start) {
			t.Errorf("%s begins with %.20q", name, data)
		}
	}
}

// TestExamples sends every example request of openapi.yaml: each succeeds. The code samples of the documentation page
// send these requests; functions/docs/samples runs samples in each language.
func TestExamples(t *testing.T) {
	local(t) // they send
	t.Parallel()
	as := demoProject("byok").dev
	sent := request{path: send, body: single(number(), "m"), as: as}.do(t)
	if sent == nil || !sent.is(200, "") {
		t.Fatal("no send whose status can be asked for")
	}
	reference := fmt.Sprint(fixture.spec.Components.Parameters["SmsSendReference"].Value.Example)
	for _, e := range examples(fixture.spec) {
		r := request{method: e.method, path: strings.Replace(e.target, reference, sent.provider(t).Reference, 1), as: as}
		if e.body != nil {
			text, _ := json.Marshal(e.body) // an example of openapi.yaml
			r.body = string(text)
		}
		if a := r.send(t); a.status != 200 {
			t.Errorf("%s %s %s: %d %.300s", e.method, e.path, r.body, a.status, a.body)
		}
	}
}

package acceptance

import (
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

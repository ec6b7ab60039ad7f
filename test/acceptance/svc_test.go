package acceptance

import (
	"encoding/json"
	"image/png"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"svcapi/shared/project"
	"svcapi/test/must"
)

// TestFirstRequest: the request that "svc credential issue" prints works in a shell, and "svc logs" finds the lines of
// the request by the ID of its response, and a failure by its reason.
func TestFirstRequest(t *testing.T) {
	local(t) // the lines reach CloudWatch some time after the response
	p := plan{credits: 1_000_000}.make(t).drawing(t, project.Managed)
	cmd := exec.CommandContext(t.Context(), fixture.svc,
		slices.Concat([]string{"credential", "issue", p.id}, fixture.flags)...)
	cmd.Dir = fixture.dir
	output, err := cmd.Output()
	must.Succeed(t, err)
	secret := regexp.MustCompile(`Client secret +(\S+)`).FindSubmatch(output)
	line := regexp.MustCompile(`(?m)^Request +(curl .*)$`).FindSubmatch(output)
	if secret == nil || line == nil || !strings.Contains(string(line[1]), "X-ENV: development") {
		t.Fatalf("the command printed neither a secret nor a request: %d bytes", len(output))
	}
	remember(credential{Secret: string(secret[1])})

	shell := exec.CommandContext(t.Context(), "sh", "-c", string(line[1])+" -D headers")
	shell.Dir = t.TempDir()
	must.Succeed(t, shell.Run())
	picture := readFile(t, filepath.Join(shell.Dir, "barcode.png"))
	if _, err := png.Decode(strings.NewReader(picture)); err != nil {
		t.Fatalf("%v: %.200s", err, picture)
	}
	headers := readFile(t, filepath.Join(shell.Dir, "headers"))
	id := regexp.MustCompile(`(?i)x-svc-request-id: (\S+)`).FindStringSubmatch(headers)
	if id == nil {
		t.Fatalf("no request ID: %s", headers)
	}
	type logged struct {
		Function string          `json:"function"`
		Line     json.RawMessage `json:"line"`
	}
	found := svc[[]logged](t, "", "logs", id[1])
	for _, function := range []string{"barcode", "gateway"} {
		has := func(l logged) bool { return l.Function == function && strings.Contains(string(l.Line), id[1]) }
		if !slices.ContainsFunc(found, has) {
			t.Errorf("no line of %s: %+v", function, found)
		}
	}
	if a := (request{path: barcodes, body: `{"data":"4006381333932","type":"EAN13"}`, as: p.dev}).do(t); a == nil ||
		!a.is(400, "http_error") {
		t.Error("the wrong check digit is not refused")
	}
	failed := svc[[]logged](t, "", "logs", "--project", p.id, "--failed", "--reason", "render_rejected", "--last", "1h")
	if len(failed) != 1 || failed[0].Function != "barcode" {
		t.Errorf("%d lines of the failure: %+v", len(failed), failed)
	}
}

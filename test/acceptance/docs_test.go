package acceptance

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"svcapi"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/test/must"
)

// docsURL is the address of the documentation page.
func docsURL() string { return strings.TrimSuffix(fixture.baseURL, "/api/v1") + "/docs" }

// getPage requests a path below the page's root.
func getPage(t *testing.T, path string, header map[string]string) *response {
	t.Helper()
	return request{method: "GET", base: strings.TrimSuffix(docsURL(), "docs"), path: path, header: header}.send(t)
}

var partsPattern = regexp.MustCompile(`(?:src|href)="(docs/[0-9a-f]{12}/[^"]+)"`)

// docs/decisions/operating.md#documentation-page: the stack serves the page without credentials, and everything it
// needs comes from there. Each file is compressed where the client takes that, far below Lambda's limit for responses.
// functions/docs TestNegotiation has the requests for a file that the client has.
func TestDocs(t *testing.T) {
	t.Parallel()
	if fixture.stack != nil && fixture.stack.DocsURL != docsURL() {
		t.Errorf("the stack says that its documentation is at %s", fixture.stack.DocsURL)
	}
	index := getPage(t, "docs", nil)
	if index.status != 200 || !strings.HasPrefix(index.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", index.status, index.header)
	}
	paths := []string{"docs", "docs/openapi.yaml", "docs/openapi.json"}
	for _, found := range partsPattern.FindAllSubmatch(index.body, -1) {
		paths = append(paths, string(found[1]))
	}
	if len(paths) < 8 {
		t.Errorf("the page names %v", paths)
	}
	for _, path := range paths {
		plain := getPage(t, path, map[string]string{"Accept-Encoding": "identity"}) // else Go asks for gzip and unpacks it
		packed := getPage(t, path, map[string]string{"Accept-Encoding": "br, gzip;q=0.8"})
		if plain.status != 200 || packed.status != 200 || plain.header.Get("Content-Encoding") != "" ||
			packed.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d %v, %d %v", path, plain.status, plain.header, packed.status, packed.header)
			continue
		}
		unpacked := must.Get(gzip.NewReader(bytes.NewReader(packed.body))).Or(t)
		if content, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(content, plain.body) {
			t.Errorf("%s: compressed and plain responses differ: %v", path, err)
		}
		if path == "docs/openapi.yaml" && !bytes.Equal(plain.body, svcapi.OpenAPI) {
			t.Error("the document served is not openapi.yaml")
		}
		const lambda = 6 << 20
		if len(plain.body)*4/3 > lambda*3/4 {
			t.Errorf("%s has %d bytes, too near to Lambda's limit for responses", path, len(plain.body))
		}
		if _, err := uuid.Parse(plain.header.Get("X-SVC-Request-ID")); err != nil {
			t.Errorf("%s has no request ID", path)
		}
		lasting := strings.Contains(plain.header.Get("Cache-Control"), "immutable")
		if lasting != strings.HasPrefix(path, "docs/") && !strings.Contains(path, "openapi") {
			t.Errorf("%s: Cache-Control: %s", path, plain.header.Get("Cache-Control"))
		}
		policy := plain.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") ||
			strings.Contains(policy, "http") ||
			plain.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, plain.header)
		}
	}
	if script := regexp.MustCompile(`<script[^>]*>[^<]`).Find(index.body); script != nil {
		t.Errorf("the page has a script: %s", script)
	}
}

// readFile reads a file that the tests need.
func readFile(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path)).Or(t))
}

// TestReadme runs the commands of README.md's section "Every operation" as a reader runs them, in one shell. Each
// request succeeds.
func TestReadme(t *testing.T) {
	localParallel(t) // the commands send
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
	localParallel(t) // they send
	as := demoProject("byok").dev
	sent := request{path: send, body: single(number(), "m"), as: as}.do(t)
	if !sent.is(200, "") {
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

// TestFirstRequest: the request that "svc credential issue" prints works in a shell, and "svc logs" finds the lines of
// the request by the ID of its response, and a failure by its reason.
func TestFirstRequest(t *testing.T) {
	local(t) // the lines reach CloudWatch some time after the response
	p := plan{credits: 1_000_000}.make(t).drawing(t, project.Managed)
	cmd := exec.CommandContext(t.Context(), fixture.svc,
		slices.Concat([]string{"credential", "issue", p.id}, fixture.flags)...)
	cmd.Dir = fixture.dir
	output := must.Get(cmd.Output()).Or(t)
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
	wrong := request{path: barcodes, body: `{"data":"4006381333932","type":"EAN13"}`, as: p.dev}.do(t)
	if !wrong.is(400, "http_error") {
		t.Error("the wrong check digit is not refused")
	}
	failed := svc[[]logged](t, "", "logs", "--project", p.id, "--failed", "--reason", "render_rejected", "--last", "1h")
	if len(failed) != 1 || failed[0].Function != "barcode" {
		t.Errorf("%d lines of the failure: %+v", len(failed), failed)
	}
}

// unfit are checks of Schemathesis that do not fit this API: rules of numbers, barcodes and codes go beyond what a
// schema says, so that a request which fits the schema may be refused; and null counts as absent, so that some which do
// not fit it are taken.
const unfit = "positive_data_acceptance,negative_data_rejection"

// Schemathesis runs openapi.yaml against the local stack: no server error, no undocumented status, no schema violation.
// Without API_EXAMPLES it sends the document's examples and two random requests for each operation; `make test-api`
// runs all phases with both kinds of projects.
func TestSchemathesis(t *testing.T) {
	localParallel(t)
	program := must.Get(workdir.Installed(t.Context(), "schemathesis", "bin/schemathesis")).Or(t)
	projects, phases := []string{"managed"}, "examples,fuzzing"
	if os.Getenv("API_EXAMPLES") != "" {
		projects, phases = []string{"managed", "byok"}, "examples,coverage,fuzzing,stateful"
	}
	for _, name := range projects {
		as := demoProject(name).dev
		cmd := exec.CommandContext(t.Context(), program, "run", inRoot(t, "openapi.yaml"), "--url", fixture.baseURL,
			"--header", "X-API-KEY: "+as.ID, "--header", "X-API-SECRET: "+as.Secret, "--header", "X-ENV: development",
			"--phases", phases, "--max-examples", cmp.Or(os.Getenv("API_EXAMPLES"),
				"2"), "--seed", cmp.Or(os.Getenv("API_SEED"), "1"),
			"--exclude-checks", unfit, "--request-timeout", "40", "--generation-database", "none", "--no-color", "--warnings", "off")
		cmd.Dir = t.TempDir()
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, output)
			continue
		}
		t.Logf("%s: %s", name, output[max(0, len(output)-300):])
	}
}

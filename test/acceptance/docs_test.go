package acceptance

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"svcapi"
	"svcapi/test/must"
)

// docsURL is the address of the documentation page.
func docsURL() string { return strings.TrimSuffix(fixture.baseURL, "/api/v1") + "/docs" }

// getPage requests a path below the page's root.
func getPage(t *testing.T, path string, header map[string]string) *response {
	t.Helper()
	a := request{method: "GET", base: strings.TrimSuffix(docsURL(), "docs"), path: path, header: header}.send(t)
	if a == nil {
		t.FailNow()
	}
	return a
}

var partsPattern = regexp.MustCompile(`(?:src|href)="(docs/[0-9a-f]{12}/[^"]+)"`)

// docs/decisions/operating.md#documentation-page: the stack serves the page without credentials, and everything it
// needs comes from there. Each file is compressed where the client takes that, far below Lambda's limit for responses,
// and compared instead of sent again.
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
		unpacked, err := gzip.NewReader(bytes.NewReader(packed.body))
		must.Succeed(t, err)
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
		again := getPage(t, path, map[string]string{
			"Accept-Encoding": "identity", "If-None-Match": `"x", W/` + plain.header.Get("ETag"),
		})
		if again.status != 304 || len(again.body) != 0 {
			t.Errorf("%s again: %d with %d bytes", path, again.status, len(again.body))
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
	text, err := os.ReadFile(path)
	must.Succeed(t, err)
	return string(text)
}

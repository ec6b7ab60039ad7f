package acceptance

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"svcapi"
)

// page is a response of the documentation.
type page struct {
	status int
	header http.Header
	body   []byte // as it was sent
}

// docsURL is the address of the documentation page.
func docsURL() string { return strings.TrimSuffix(fixture.baseURL, "/api/v1") + "/docs" }

func getPage(t *testing.T, method, url string, header map[string]string) page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if header["Accept-Encoding"] == "" {
		r.Header.Set("Accept-Encoding", "identity") // else Go asks for gzip and unpacks it
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{response.StatusCode, response.Header, body}
}

var partsPattern = regexp.MustCompile(`(?:src|href)="(docs/[0-9a-f]{12}/[^"]+)"`)

// docs/decisions.md#documentation-page: the stack serves the page without credentials, and everything it needs comes
// from there. Each file is compressed where the client takes that, far below Lambda's limit for responses, and compared
// instead of sent again.
func TestDocs(t *testing.T) {
	t.Parallel()
	if fixture.stack != nil && fixture.stack.DocsURL != docsURL() {
		t.Errorf("the stack says that its documentation is at %s", fixture.stack.DocsURL)
	}
	index := getPage(t, "GET", docsURL(), nil)
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
	root := strings.TrimSuffix(docsURL(), "docs")
	for _, path := range paths {
		plain := getPage(t, "GET", root+path, nil)
		packed := getPage(t, "GET", root+path, map[string]string{"Accept-Encoding": "br, gzip;q=0.8"})
		if plain.status != 200 || packed.status != 200 || plain.header.Get("Content-Encoding") != "" || packed.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d %v, %d %v", path, plain.status, plain.header, packed.status, packed.header)
			continue
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed.body))
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(content, plain.body) {
			t.Errorf("%s: compressed and plain responses differ: %v", path, err)
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
		again := getPage(t, "GET", root+path, map[string]string{"If-None-Match": `"x", W/` + plain.header.Get("ETag")})
		if again.status != 304 || len(again.body) != 0 {
			t.Errorf("%s again: %d with %d bytes", path, again.status, len(again.body))
		}
		policy := plain.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") ||
			plain.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, plain.header)
		}
	}
	if script := regexp.MustCompile(`<script[^>]*>[^<]`).Find(index.body); script != nil {
		t.Errorf("the page has a script: %s", script)
	}
}

// docs/decisions.md#routes: unknown route 404, wrong method 405 with Allow, OPTIONS and HEAD 405, all in the envelope.
func TestDocsRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", "", 405}, {"PUT", "/openapi.yaml", 405}, {"DELETE", "", 405}, {"OPTIONS", "", 405}, {"HEAD", "", 405}, {"PATCH", "/openapi.json", 405},
		{"GET", "/nothing", 404}, {"GET", "/", 404}, {"GET", "/openapi", 404}, {"GET", "/../openapi.yaml", 404}, {"GET", "/web/index.html", 404},
		{"GET", "/000000000000/page.js", 404}, {"GET", "/%2e%2e/main.go", 404}, {"POST", "/nothing", 404}, {"GET", "x", 404},
	} {
		a := getPage(t, c.method, docsURL()+c.path, nil)
		var envelope struct {
			Success   bool
			RequestID string `json:"request_id"`
			Error     struct{ Code, Message string }
		}
		if c.method != "HEAD" && (json.Unmarshal(a.body, &envelope) != nil || envelope.Error.Code != "http_error" || envelope.RequestID != a.header.Get("X-SVC-Request-ID")) {
			t.Errorf("%s %s: %s", c.method, c.path, a.body)
		}
		if a.status != c.status || c.status == 405 && a.header.Get("Allow") != "GET" {
			t.Errorf("%s %s: %d %v, want %d", c.method, c.path, a.status, a.header, c.status)
		}
	}
}

// docs/decisions.md#documentation-page: the stack serves openapi.yaml as it is, and with the samples that are generated
// from it.
func TestDocsServeTheDocument(t *testing.T) {
	t.Parallel()
	if served := getPage(t, "GET", docsURL()+"/openapi.yaml", nil); !bytes.Equal(served.body, svcapi.OpenAPI) {
		t.Error("the document served is not openapi.yaml")
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(getPage(t, "GET", docsURL()+"/openapi.json", nil).body, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Paths) != fixture.spec.Paths.Len() {
		t.Errorf("openapi.json has %d paths, openapi.yaml %d", len(doc.Paths), fixture.spec.Paths.Len())
	}
}

// readFile reads a file that the tests need.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

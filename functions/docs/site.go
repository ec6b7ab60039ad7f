package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	plain "text/template"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"svcapi/shared/request"
	"svcapi/shared/telemetry"
	"svcapi/shared/testvalue"
	"svcapi/shared/wallet"
)

// headers are on every file. Scripts and styles come from this function alone, and none is inline. The playground shows
// pictures and PDFs from blob URLs. Requests go to the API beside the page.
var headers = map[string]string{
	"Content-Security-Policy": strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:", "frame-src blob:",
		"object-src blob:",
		"connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; "),
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=()",
	"Referrer-Policy":              "no-referrer",
	"Strict-Transport-Security":    request.StrictTransport,
	"Vary":                         "Accept-Encoding",
	"X-Content-Type-Options":       "nosniff",
}

// currencyElsewhere begins the paths at which callers look for currencies by mistake, because other operations are
// under /utilities (docs/decisions/currency.md#currency-path). This function serves them because it needs no
// credentials.
const currencyElsewhere = "/api/v1/utilities/currency"

// site serves files to GET requests.
type site struct {
	files func() map[string]*file // by path
	log   *telemetry.Logger
}

// file is one file.
type file struct {
	kind    string // Content-Type
	plain   []byte
	gzipped func() []byte
	etag    string
	lasting bool // the path changes with the content
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	counted := &counter{ResponseWriter: w, status: http.StatusOK}
	s.serve(counted, r)
	outcome := "success"
	if counted.status >= 400 {
		outcome = "refused"
	}
	s.log.Emit(r.Context(), telemetry.Event{
		Message: "request",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: "docs"}, {Name: "outcome", Value: outcome},
			{Name: "vendor", Value: ""}},
		Metrics: append([]telemetry.Metric{
			{Name: "Requests", Unit: telemetry.Count, Value: 1, By: []string{"outcome"}},
			{Name: "Duration", Unit: telemetry.Milliseconds, Value: float64(time.Since(began).Microseconds()) / 1000,
				By: []string{"operation"}},
		}, telemetry.Failures(counted.status)...),
		Attributes: []slog.Attr{
			slog.String("request_id", w.Header().Get("X-SVC-Request-ID")), slog.Int("status", counted.status),
			slog.String("method", r.Method), slog.Int("response_bytes", counted.bytes), s.log.Source(r.RemoteAddr),
		},
	})
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	f, found := s.files()[r.URL.EscapedPath()]
	switch {
	case strings.HasPrefix(r.URL.EscapedPath(), currencyElsewhere):
		e := *request.ErrNotFound
		e.Message = "There is no such resource. Currency operations are under /api/v1/utility/currency, and not under " +
			"/utilities."
		request.Refuse(w, r, &e)
	case !found:
		request.Refuse(w, r, request.ErrNotFound)
	case r.Method != http.MethodGet:
		request.Refuse(w, r, request.ErrMethod(http.MethodGet))
	default:
		f.serve(w, r)
	}
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	request.Identify(w, r)
	h := w.Header()
	for name, value := range headers {
		h.Set(name, value)
	}
	h.Set("ETag", f.etag)
	// A client validates the page on each visit, and never requests a part again.
	h.Set("Cache-Control", "no-cache")
	if f.lasting {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Type", f.kind)
	body := f.plain
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = f.gzipped()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	r.Header.Del("Range") // a part of one encoding does not continue the other
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether Accept-Encoding permits gzip (RFC 9110, section 12.5.3).
func acceptsGzip(values []string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(values, ","), ","), func(item string) bool {
		coding, weight, weighted := strings.Cut(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(item)), " ", ""), ";q=")
		q, err := strconv.ParseFloat(weight, 64)
		return (coding == "gzip" || coding == "*") && (!weighted || err == nil && q > 0)
	})
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // a valid level
	_, _ = w.Write(content)                                 // a write into memory cannot fail
	_ = w.Close()
	return out.Bytes()
}

// counter counts the bytes of a response and keeps its status.
type counter struct {
	http.ResponseWriter
	status, bytes int
}

// WriteHeader implements http.ResponseWriter.
func (c *counter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.bytes += n
	return n, err
}

// web holds the page and its parts.
//
//go:embed web
var web embed.FS

// page and llms are the names of templates in web: of the page, and of the reference as Markdown.
const page, llms = "index.html", "llms.txt"

// kinds are content types by extension.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8", ".yaml": "application/yaml",
}

// newFiles returns all files by path: the page with the prices of this stack, the document as it was written and in the
// form that the page needs, and the parts of the page.
func newFiles(openAPI, changelog []byte, prices wallet.Prices, credentials demo) (map[string]*file, error) {
	doc, err := parse(openAPI)
	if err != nil {
		return nil, err
	}
	parts, version := readParts()
	incomplete := doc.complete(prices)
	asJSON, noJSON := doc.json()
	index, noIndex := render(doc, prices, credentials, version)
	markdown, noText := renderText(doc)
	if err := errors.Join(incomplete, noJSON, noIndex, noText); err != nil {
		return nil, err
	}
	ofPage, _ := doc.playground().json() // a part of what asJSON has
	files := map[string]*file{}
	for path, content := range map[string][]byte{
		"/docs": index, "/docs/openapi.yaml": openAPI, "/docs/openapi.json": asJSON, "/docs/page.json": ofPage,
		"/docs/changelog.txt": changelog, "/docs/llms.txt": markdown,
	} {
		files[path] = newFile(path, content)
	}
	for name, f := range parts {
		files["/docs/"+version+"/"+name] = f
	}
	return files, nil
}

// newFile returns a file with the content type of its name.
func newFile(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	kind := kinds[cmp.Or(path.Ext(name), ".html")]                        // the page itself has no extension
	gzipped := sync.OnceValue(func() []byte { return compress(content) }) // no visitor waits for a file of another one
	return &file{kind: kind, plain: content, gzipped: gzipped,
		etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// readParts returns the parts of the page by name, and a digest of all parts. The digest is in their paths, so that
// clients may cache them for ever.
func readParts() (parts map[string]*file, version string) {
	parts, sum := map[string]*file{}, sha256.New()
	entries, _ := web.ReadDir("web") // the program contains the folder and its files
	for _, entry := range entries {
		if name := entry.Name(); name != page && name != llms {
			content, _ := web.ReadFile("web/" + name)
			parts[name] = newFile(name, content)
			parts[name].lasting = true
			fmt.Fprintln(sum, name, parts[name].etag)
		}
	}
	return parts, hex.EncodeToString(sum.Sum(nil))[:12]
}

// render returns the page.
func render(doc *document, prices wallet.Prices, credentials demo, version string) ([]byte, error) {
	// A narrow page may break a path after each slash, and a name after each dot.
	t := template.Must(template.New(page).Funcs(template.FuncMap{"splitAfter": strings.SplitAfter}).ParseFS(web, "web/"+
		page))
	r := newReference(doc, goldmark.New(goldmark.WithExtensions(extension.Table)))
	content := r.content()
	content["Parts"] = "docs/" + version // where the page's parts are, relative to the page
	content["Reasons"] = r.html(at(doc.root, "components", "schemas", "ErrorReason"))
	content["Demo"], content["SMS"], content["Values"] = credentials, prices[wallet.SMS], testvalue.All()
	var out bytes.Buffer
	err := t.Execute(&out, content)
	return out.Bytes(), err
}

// content returns what the page and llms.txt have in common.
func (r *reference) content() map[string]any {
	info := at(r.root, "info")
	return map[string]any{"Title": text(at(info, "title")), "Version": text(at(info, "version")), "Groups": r.groups(),
		"Common": r.common()}
}

// renderText returns llms.txt, the whole reference as Markdown.
func renderText(doc *document) ([]byte, error) {
	line := func(text template.HTML) string { return strings.Join(strings.Fields(string(text)), " ") }
	t := plain.Must(plain.New(llms).Funcs(plain.FuncMap{"line": line}).ParseFS(web, "web/"+llms))
	var out bytes.Buffer
	err := t.Execute(&out, newReference(doc, nil).content())
	return out.Bytes(), err
}

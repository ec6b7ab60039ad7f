package main

import (
	"bytes"
	"compress/gzip"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"svcapi/shared/request"
	"svcapi/shared/telemetry"
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
	if matches(r.Header.Values("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.kind)
	body := f.plain
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = f.gzipped()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a write into memory cannot fail
}

// matches reports whether If-None-Match names an entity (RFC 9110, section 13.1.2).
func matches(values []string, etag string) bool {
	return slices.ContainsFunc(items(values), func(item string) bool {
		item = strings.TrimSpace(item)
		return item == "*" || strings.TrimPrefix(item, "W/") == etag
	})
}

// acceptsGzip reports whether Accept-Encoding permits gzip (RFC 9110, section 12.5.3).
func acceptsGzip(values []string) bool {
	return slices.ContainsFunc(items(values), func(item string) bool {
		coding, weight, weighted := strings.Cut(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(item)), " ", ""), ";q=")
		q, err := strconv.ParseFloat(weight, 64)
		return (coding == "gzip" || coding == "*") && (!weighted || err == nil && q > 0)
	})
}

// items returns the items of a header's list.
func items(values []string) []string { return strings.Split(strings.Join(values, ","), ",") }

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

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"svcapi"
	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
	"svcapi/test/must"
)

const small = `
openapi: 3.0.1
info: {title: Small & short, version: 1.2.3}
tags:
  - {name: Second}
  - {name: First one}
paths:
  /z/{code}:
    parameters:
      - {$ref: '#/components/parameters/Code'}
    get:
      operationId: getZ
      tags: [First one]
      summary: Get <z>
      responses: {200: {description: ok, content: {application/json: {schema: {type: object}}}}}
  /a:
    x-svc-extension: true
    post:
      operationId: postA
      tags: [Second]
      summary: Post a
      description: Does a.
      x-svc-price: sms
      requestBody: {$ref: '#/components/requestBodies/A'}
      responses: {200: {$ref: '#/components/responses/Picture'}}
components:
  parameters:
    Code: {name: code, in: path, required: true, schema: {$ref: '#/components/schemas/Code'}}
  requestBodies:
    A: {content: {application/json: {examples: {first: {value: {b: 1, a: [true, null, '7']}}, other: {value: {}}}}}}
  responses:
    Picture: {description: ok, content: {image/png: {schema: {type: string}}, image/svg+xml: {schema: {type: string}}}}
  schemas:
    Code: {type: string, example: LKR}
`

func newSite(t testing.TB, log io.Writer) *site {
	t.Helper()
	files, err := newFiles([]byte(small), nil, wallet.Prices{wallet.SMS: 1_234_567}, demo{})
	must.Succeed(t, err)
	return &site{files: func() map[string]*file { return files }, log: telemetry.New(log, telemetry.Config{})}
}

func (s *site) get(header http.Header, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header = header
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// The document has its original order, prices, samples and the address of its own stack.
func TestDocument(t *testing.T) {
	text := newSite(t, io.Discard).get(nil, "/docs/openapi.json").Body.Bytes()
	if z, a := bytes.Index(text, []byte(`"/z/{code}"`)), bytes.Index(text, []byte(`"/a"`)); z < 0 || a < z {
		t.Errorf("the order is not that of the document: %s", text)
	}
	var doc struct {
		Servers []struct{ URL string }
		Paths   map[string]struct {
			Get, Post struct {
				Credits int64                            `json:"x-svc-credits"`
				Samples []struct{ Label, Source string } `json:"x-codeSamples"`
			}
		}
	}
	must.Succeed(t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), `"x-svc-extension":true,`, "")), &doc))
	if len(doc.Servers) != 1 || doc.Servers[0].URL != "../api/v1" {
		t.Errorf("servers: %v", doc.Servers)
	}
	get, post := doc.Paths["/z/{code}"].Get, doc.Paths["/a"].Post
	if post.Credits != 1_234_567 || get.Credits != 0 {
		t.Errorf("prices: %d, %d", post.Credits, get.Credits)
	}
	if len(get.Samples) != 5 || !strings.Contains(get.Samples[0].Source, "'{base_url}/z/LKR'") ||
		strings.Contains(get.Samples[0].Source, "-d ") {
		t.Errorf("GET: %v", get.Samples)
	}
	if len(post.Samples) != 5 || !strings.Contains(post.Samples[0].Source, "-o code.png") ||
		!strings.Contains(post.Samples[2].Source, "\"a\": [\n        True,\n        None,\n        \"7\"\n") {
		t.Errorf("POST: %v", post.Samples)
	}
}

// The page lists the operations with prices under their tags, in the order of the document, and escapes all text.
func TestPage(t *testing.T) {
	page := newSite(t, io.Discard).get(nil, "/docs").Body.String()
	last := 0
	for _, part := range []string{
		"<title>Small &amp; short</title>", `data-sms-price="1234567"`, ">Second<", `href="#/Second/postA"`, ">First one<",
		`href="#/First%20one/getZ"`, "Get &lt;z&gt;", "1,234,567 credits a unit", "free",
		`id="/Second/postA"`, "Post a", `beyond version 1.0.0 of the contract">extension<`, "<p>Does a.</p>",
		`id="/First%20one/getZ"`,
	} {
		at := strings.Index(page[last:], part)
		if at < 0 {
			t.Errorf("the page lacks %s, or has it elsewhere", part)
			continue
		}
		last += at
	}
}

// RFC 9110, 12.5.3 and 13.1.2.
func TestNegotiation(t *testing.T) {
	s := newSite(t, io.Discard)
	etag := s.files()["/docs"].etag
	for _, c := range []struct {
		name, value string
		status      int
		encoding    string
	}{
		{"Accept-Encoding", "gzip", 200, "gzip"},
		{"Accept-Encoding", "br, GZIP ; q=0.5", 200, "gzip"},
		{"Accept-Encoding", "*", 200, "gzip"},
		{"Accept-Encoding", "gzip;q=0", 200, ""},
		{"Accept-Encoding", "gzip; q=0.0, br", 200, ""},
		{"Accept-Encoding", "gzip;q=x", 200, ""},
		{"Accept-Encoding", "xgzip", 200, ""},
		{"Accept-Encoding", "", 200, ""},
		{"If-None-Match", etag, 304, ""},
		{"If-None-Match", "W/" + etag, 304, ""},
		{"If-None-Match", `"a", ` + etag + `, "b"`, 304, ""},
		{"If-None-Match", "*", 304, ""},
		{"If-None-Match", `"a"`, 200, ""},
	} {
		w := s.get(http.Header{c.name: {c.value}}, "/docs")
		if w.Code != c.status || w.Header().Get("Content-Encoding") != c.encoding || w.Header().Get("ETag") != etag {
			t.Errorf("%s: %s: %d %v", c.name, c.value, w.Code, w.Header())
		}
	}
}

// The function does not start with a document that cannot be served, or without the price of an operation.
func TestBrokenDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"": "mapping", "- a": "mapping", "a: [": "yaml", "a: &x 1\nb: *x": "aliases", small: "sms",
	} {
		_, err := newFiles([]byte(text), nil, wallet.Prices{wallet.PDF: 1}, demo{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// docs/decisions/operating.md#documentation-page: switched off, every path is 404, in the envelope of the API.
func TestOff(t *testing.T) {
	off := &site{files: func() map[string]*file { return nil }, log: telemetry.New(io.Discard, telemetry.Config{})}
	for _, path := range []string{"/docs", "/docs/openapi.json"} {
		if w := off.get(nil, path); w.Code != http.StatusNotFound ||
			!strings.Contains(w.Body.String(), `"code":"http_error"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for value, want := range map[string]bool{"on": true, "off": true, "false": false, "": false} {
		if err := (config{Docs: value}).Validate(); (err == nil) != want {
			t.Errorf("DOCS=%q: %v", value, err)
		}
	}
}

// TestMarkdown checks that llms.txt has each operation with its path, its price and its fields, as text.
func TestMarkdown(t *testing.T) {
	prices := wallet.Prices{}
	for _, p := range wallet.PriceList() {
		prices[p.Name] = 1
	}
	files, err := newFiles(svcapi.OpenAPI, nil, prices, demo{})
	must.Succeed(t, err)
	doc, err := parse(svcapi.OpenAPI)
	must.Succeed(t, err)
	text := string(files["/docs/llms.txt"].plain)
	for _, o := range doc.operations() {
		id, summary := at(o.node, "operationId").Value, at(o.node, "summary").Value
		_, part, found := strings.Cut(text, "\n## "+summary+"\n")
		part, _, _ = strings.Cut(part, "\n## ")
		if !found || !strings.Contains(part, o.method+" "+o.path+" ("+id+", ") ||
			!strings.Contains(part, "### Response 200") {
			t.Errorf("%s: %.300q", id, part)
		}
	}
	for _, markup := range []string{"<p>", "&lt;", "&#34;", "{base_url}"} {
		if strings.Contains(text, markup) {
			t.Errorf("llms.txt has %s", markup)
		}
	}
	if !strings.Contains(text, "- margins.top (number; 0 to 100") {
		t.Error("llms.txt lacks the field margins.top with its rule")
	}
}

// Every request gets a file of the site, 304 or an error, for all headers and paths.
func FuzzSite(f *testing.F) {
	for _, path := range []string{"/docs", "/docs/", "/docs/openapi.json", "/docs/%2e%2e/template.yaml", "/docs/../x",
		"/docs/openapi.json/", "//docs", "/docs/%00"} {
		f.Add("GET", path, "gzip;q=0.5, *;q=0", `W/"x", *`)
		f.Add("POST", path, "gzip;q=NaN", "")
	}
	var log bytes.Buffer
	s := newSite(f, &log)
	f.Fuzz(func(t *testing.T, method, path, encoding, match string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, &http.Request{Method: method, URL: u,
			Header: http.Header{"Accept-Encoding": {encoding}, "If-None-Match": {match}}})
		// for the alarms of the gateway
		if counted := bytes.Contains(log.Bytes(), []byte("ClientErrors")); counted != (w.Code >= http.StatusBadRequest) {
			t.Errorf("%s %q: %d, counted: %v", method, path, w.Code, counted)
		}
		log.Reset()
		file, known := s.files()[u.EscapedPath()]
		body := w.Body.Bytes()
		switch w.Code {
		case http.StatusOK:
			unzipped, err := gzip.NewReader(bytes.NewReader(file.gzipped()))
			must.Succeed(t, err)
			plain, err := io.ReadAll(unzipped)
			if !known || method != http.MethodGet || err != nil ||
				!bytes.Equal(body, plain) && (!bytes.Equal(body, file.gzipped()) || w.Header().Get("Content-Encoding") != "gzip") {
				t.Errorf("%s %q: %d bytes", method, path, len(body))
			}
		case http.StatusNotModified:
			if !known || len(body) > 0 {
				t.Errorf("%s %q: %d bytes", method, path, len(body))
			}
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			if known && method == http.MethodGet || !bytes.Contains(body, []byte(`"http_error"`)) {
				t.Errorf("%s %q: %s", method, path, body)
			}
		default:
			t.Errorf("%s %q: %d", method, path, w.Code)
		}
	})
}

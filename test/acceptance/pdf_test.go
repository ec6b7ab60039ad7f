package acceptance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"log"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"svcapi/local/demo"
	"svcapi/shared/credit"
	"svcapi/shared/project"
	"svcapi/test/pdftest"
)

const pdfs = "/utilities/pdf/generate"

// asked are the paths of the requests to the host of images.
var asked struct {
	sync.Mutex
	paths []string
}

// serveImages starts a host of images, and returns the variables with which the functions treat it as public.
func (s *system) serveImages() (map[string]string, error) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 200, 100))); err != nil {
		return nil, err
	}
	s.images = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Lock()
		asked.paths = append(asked.paths, r.URL.Path)
		asked.Unlock()
		switch {
		case strings.HasPrefix(r.URL.Path, "/noise/"):
			var n int
			_, _ = fmt.Sscanf(r.URL.Path, "/noise/%d/", &n)
			_, _ = w.Write(noise()[n%noises])
		case strings.HasPrefix(r.URL.Path, "/heavy/"):
			_, _ = w.Write(heavyPhoto(r.URL.Path))
		case strings.HasSuffix(r.URL.Path, ".png"):
			_, _ = w.Write(picture.Bytes())
		case strings.HasSuffix(r.URL.Path, ".svg"):
			_, _ = io.WriteString(w, "<svg xmlns='http://www.w3.org/2000/svg'/>")
		case r.URL.Path == "/away":
			http.Redirect(w, r, "https://169.254.169.254/latest/meta-data/", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	s.images.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.images.StartTLS()
	authority := filepath.Join(s.dir, "images.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.images.Certificate().Raw})
	return map[string]string{"SVC_TEST_PUBLIC_NETS": "127.0.0.1/32", "SVC_TEST_CA": authority}, os.WriteFile(authority, certificate, 0o644)
}

const noises = 5

// noise is pictures of 1.2 MB each that do not compress, and none like another. They are made before a document asks for
// them: drawn on demand, under the race detector, one takes longer than an image may.
var noise = sync.OnceValue(func() [noises][]byte {
	random, picture := rand.New(rand.NewPCG(1, 1)), image.NewRGBA(image.Rect(0, 0, 1000, 390))
	var all [noises][]byte
	for n := range all {
		for i := range picture.Pix {
			picture.Pix[i] = byte(random.Uint32()) | byte(i%4/3*255)
		}
		var encoded bytes.Buffer
		_ = (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&encoded, picture)
		all[n] = encoded.Bytes()
	}
	return all
})

// heavyPhoto is a small photo with comments of four megabytes, which depend on the name. A PDF holds a photo with all its bytes.
func heavyPhoto(name string) []byte {
	var photo bytes.Buffer
	_ = jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 64, 64)), nil)
	all := photo.Bytes()[:2:2] // the start marker
	for n := range 62 {
		segment := append([]byte{0xff, 0xfe, 0xff, 0xff}, fmt.Sprintf("%s %d ", name, n)...)
		all = append(all, append(segment, make([]byte, 0xffff+2-len(segment))...)...)
	}
	return append(all, photo.Bytes()[2:]...)
}

// streamed is the route that streams its response.
const streamed = "/utilities/pdf/stream"

// twentyMB is a document whose PDF has more than 20,000,000 bytes.
func twentyMB() string {
	var html strings.Builder
	for n := range 5 {
		fmt.Fprintf(&html, "<img src='%s/heavy/%d.jpg'>", fixture.images.URL, n)
	}
	return html.String()
}

// undated replaces the time stamps of a PDF.
func undated(pdf []byte) []byte {
	return regexp.MustCompile(`Date \(D:[^)]*\)`).ReplaceAll(pdf, []byte("Date ()"))
}

// openapi.yaml#streamPdf: the stream has the same bytes as the other route, and no length. docs/decisions.md#pdf-stream.
func TestPDFStream(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	fields := map[string]any{"html": "<h1>Invoice</h1><p>𝅾", "page_size": "Letter"}
	whole := printed(t, fields, p.dev)
	a := request{path: streamed, body: object(fields), as: p.dev}.send(t)
	if a == nil {
		return
	}
	if _, length := a.header["Content-Length"]; a.status != 200 || length || a.header.Get("Content-Type") != "application/pdf" ||
		a.header.Get("Content-Disposition") != `inline; filename="svc-document.pdf"` || a.header.Get("Cache-Control") != "no-store" ||
		a.header.Get("X-SVC-Request-ID") == "" || a.header.Get("X-RateLimit-Limit") == "" || !bytes.Equal(undated(a.body), undated(whole)) {
		t.Errorf("%d %v, %d bytes, want %d", a.status, a.header, len(a.body), len(whole))
	}
	fields["response_type"] = "base64"
	b := request{path: streamed, body: object(fields), as: p.dev}.do(t)
	if b == nil {
		return
	}
	var result struct {
		Data struct {
			Format    string
			MediaType string `json:"media_type"`
			Data      []byte
		}
	}
	if err := json.Unmarshal(b.body, &result); err != nil || b.status != 200 || !b.Success || result.Data.Format != "base64" ||
		result.Data.MediaType != "application/pdf" || !bytes.Equal(undated(result.Data.Data), undated(whole)) {
		t.Errorf("%d %.200s: %v", b.status, b.body, err)
	}
	request{path: streamed, body: `{"html":""}`, as: p.dev}.failsOn(t, "html")
	for _, c := range []struct {
		r      request
		status int
		code   string
	}{
		{request{body: "{}", as: credential{p.dev.ID, "wrong"}}, 401, "unauthorized"},
		{request{body: `{"html":"x"}`, as: p.dev, method: "GET"}, 405, "http_error"},
		{request{body: object(map[string]any{"html": strings.Repeat("<div>", 251)}), as: p.dev}, 400, "http_error"},
	} {
		c.r.path = streamed
		if a := c.r.do(t); a != nil && !a.is(c.status, c.code) {
			t.Errorf("%d %s, want %d %s", a.status, a.body, c.status, c.code)
		}
	}
}

// docs/decisions.md#pdf-stream: a PDF of 20 MB arrives whole, binary and as Base64, and is charged once. A client that hangs
// up is charged. The other route names the limit and this route.
func TestPDFStreamLarge(t *testing.T) {
	local(t)
	t.Parallel()
	const price, size = 2000, 20_000_000
	p := plan{credits: 3*price + 1}.make(t).printing(t, project.Managed)
	body := object(map[string]any{"html": twentyMB()})
	if a := (request{path: pdfs, body: body, as: p.dev}).do(t); a != nil && (!a.is(400, "http_error") ||
		!strings.Contains(string(a.body), "at most 4700000 are allowed. POST /api/v1/utilities/pdf/stream returns PDFs of up to 33554432 bytes.")) {
		t.Errorf("%d %.300s", a.status, a.body)
	}
	if a := (request{path: streamed, body: body, as: p.dev}).send(t); a != nil && (a.status != 200 || len(a.body) < size || len(pdftest.Sheets(t, a.body)) == 0) {
		t.Errorf("%d, %d bytes: %.200s", a.status, len(a.body), a.body)
	}
	if a := (request{path: streamed, body: object(map[string]any{"html": twentyMB(), "response_type": "base64"}), as: p.dev}).send(t); a != nil {
		var result struct{ Data struct{ Data []byte } }
		if err := json.Unmarshal(a.body, &result); err != nil || a.status != 200 || len(result.Data.Data) < size || len(pdftest.Sheets(t, result.Data.Data)) == 0 {
			t.Errorf("%d, %d bytes: %v", a.status, len(result.Data.Data), err)
		}
	}
	ctx, hangUp := context.WithCancel(t.Context())
	in, err := http.NewRequestWithContext(ctx, http.MethodPost, fixture.baseURL+streamed, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	in.Header.Set("X-API-KEY", p.dev.ID)
	in.Header.Set("X-API-SECRET", p.dev.Secret)
	out, err := client.Do(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out.Body, make([]byte, 1<<20)); err != nil || out.StatusCode != 200 {
		t.Errorf("%d, %v", out.StatusCode, err)
	}
	hangUp()
	_ = out.Body.Close()
	for _, function := range []string{"PdfFunction", "PdfRenderFunction"} {
		if err := fixture.stack.AwaitIdle(t.Context(), function); err != nil {
			t.Errorf("%s still works: %v", function, err)
		}
	}
	captured := 0
	for _, e := range p.ledger(t) {
		if e.Operation == credit.PDF && e.Credits == price {
			captured++
		}
	}
	if b := p.balance(t); b != 1 || captured != 3 {
		t.Errorf("%d credits are left, %d PDFs are charged", b, captured)
	}
}

// printing connects the project to the built-in converter.
func (p *tenant) printing(t *testing.T, mode project.Mode) *tenant {
	t.Helper()
	svc[any](t, "", "integration", "set", p.id, "pdf", "builtin", "--env", "development", "--mode", string(mode))
	return p
}

// printed sends a request that must succeed, checks what openapi.yaml#Pdf requires of every binary response, and
// returns the PDF.
func printed(t *testing.T, fields map[string]any, as credential) []byte {
	t.Helper()
	a := request{path: pdfs, body: object(fields), as: as}.send(t)
	if a == nil {
		return nil
	}
	h := a.header
	id, err := uuid.Parse(h.Get("X-SVC-Request-ID"))
	if a.status != 200 || err != nil || id.String() != h.Get("X-SVC-Request-ID") || h.Get("Content-Type") != "application/pdf" ||
		h.Get("Content-Length") != strconv.Itoa(len(a.body)) || h.Get("Cache-Control") != "no-store" ||
		h.Get("Content-Disposition") != `inline; filename="svc-document.pdf"` || !bytes.HasPrefix(a.body, []byte("%PDF-1.")) {
		t.Errorf("%.200v: %d %v %.200s", fields, a.status, h, a.body)
		return nil
	}
	return a.body
}

// openapi.yaml#generatePdf, docs/decisions.md#pdf-geometry: page_size A4 (default), Letter, Legal; orientation; margins
// in millimetres, default 15 each. Binary: the PDF's bytes as application/pdf with Content-Length, Cache-Control
// no-store, the fixed filename svc-document.pdf inline, and X-SVC-Request-ID.
func TestPDF(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	const block = "<!DOCTYPE html><style>@page{size:A5;margin:1mm!important}</style><body style='margin:0'><div style='height:600mm;background:#000'>"
	even := pdftest.Margins{15, 15, 15, 15}
	for _, c := range []struct {
		fields        map[string]any
		width, height float64 // millimetres
		margins       pdftest.Margins
	}{
		{map[string]any{}, 210, 297, even},
		{map[string]any{"page_size": "Letter", "orientation": "portrait"}, 215.9, 279.4, even},
		{map[string]any{"page_size": "Legal", "orientation": "landscape"}, 355.6, 215.9, even},
		{map[string]any{"page_size": nil, "orientation": nil, "margins": nil, "response_type": nil, "privacy_mode": nil, "is_base64": nil}, 210, 297, even},
		{map[string]any{"margins": map[string]any{"top": 0, "right": 12.5, "left": 100, "bottom": nil, "unknown": 1}}, 210, 297, pdftest.Margins{0, 12.5, 15, 100}},
		{map[string]any{"is_base64": true, "html": base64.StdEncoding.EncodeToString([]byte(block)), "response_type": "binary"}, 210, 297, even},
		{map[string]any{"is_base64": true, "html": " " + strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(block)), "=") + "\r\n"}, 210, 297, even},
	} {
		if c.fields["html"] == nil {
			c.fields["html"] = block
		}
		pdf := printed(t, c.fields, p.dev)
		if pdf == nil {
			continue
		}
		for _, sheet := range pdftest.Sheets(t, pdf) {
			if math.Abs(sheet[0]-c.width/25.4*72) > 1 || math.Abs(sheet[1]-c.height/25.4*72) > 1 {
				t.Errorf("%.200v: %v points", c.fields, sheet)
			}
		}
		if got := pdftest.Inked(t, pdf); !got.Near(c.margins, 1) {
			t.Errorf("%.200v: margins %v, want %v", c.fields, got, c.margins)
		}
	}
	want := "Invoice 1042 ශ්\u200dරී ලංකාව தமிழ் எழுத்து"
	if got := pdftest.Text(t, printed(t, map[string]any{"html": want + "<script>document.write('x')</script>"}, p.dev)); got != want {
		t.Errorf("the text is %q", got)
	}
}

// openapi.yaml#Pdf: base64 is the success envelope with format base64, media_type application/pdf.
func TestPDFBase64(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	a := request{path: pdfs, body: object(map[string]any{"html": "<p>Base64", "response_type": "base64"}), as: p.dev}.do(t)
	if a == nil {
		return
	}
	var result struct {
		Data struct {
			Format    string
			MediaType string `json:"media_type"`
			Data      []byte
		}
	}
	if err := json.Unmarshal(a.body, &result); err != nil || a.status != 200 {
		t.Fatalf("%d %.200s: %v", a.status, a.body, err)
	}
	if result.Data.Format != "base64" || result.Data.MediaType != "application/pdf" || pdftest.Text(t, result.Data.Data) != "Base64" {
		t.Errorf("%.300s", a.body)
	}
}

// The response names a character that no font has, in both types of the response (docs/decisions.md#pdf-missing-glyphs).
func TestPDFMissingGlyphs(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	for html, want := range map[string]string{"<p>Amharic: አ": "missing-glyphs", "<title>አ</title><p>✓ Rs. 1,250": ""} {
		for _, kind := range []string{"binary", "base64"} {
			a := request{path: pdfs, body: object(map[string]any{"html": html, "response_type": kind}), as: p.dev}.send(t)
			if a == nil {
				return
			}
			if got := a.header.Get("X-SVC-Warnings"); a.status != 200 || got != want {
				t.Errorf("%s as %s: %d, %q", html, kind, a.status, got)
			}
		}
	}
}

// openapi.yaml#PdfRequest: html has 1 to 524,288 bytes, after decoding when is_base64 is true. JSON may escape it to
// more than three times the length.
func TestPDFLargest(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	const largest = 524_288
	html := "<p>first" + strings.Repeat("< ", (largest-len("<p>first")-len("last"))/2) + "last"
	escaped := strings.ReplaceAll(html, "<", `\u003c`)
	for _, c := range []struct {
		name, body string
		status     int
	}{
		{"escaped", `{"html":"` + escaped + `"}`, 200},
		{"a byte more", `{"html":"` + escaped + `x"}`, 422},
		{"Base64", object(map[string]any{"is_base64": true, "html": base64.StdEncoding.EncodeToString([]byte(html))}), 200},
		{"Base64, a byte more", object(map[string]any{"is_base64": true, "html": base64.StdEncoding.EncodeToString([]byte(html + "x"))}), 422},
		{"characters are not bytes", object(map[string]any{"html": strings.Repeat("ශ", largest/3+1)}), 422},
	} {
		a := request{path: pdfs, body: c.body, as: p.dev}.send(t)
		if a == nil {
			continue
		}
		if c.status == 200 {
			if text := pdftest.Text(t, a.body); !strings.HasPrefix(text, "first") || !strings.HasSuffix(text, "last") {
				t.Errorf("%s: %d %.200s", c.name, a.status, a.body)
			}
			continue
		}
		if a.status != c.status || !strings.Contains(string(a.body), `"html":["must be at most 524288 bytes"]`) {
			t.Errorf("%s: %d %.300s", c.name, a.status, a.body)
		}
	}
}

// openapi.yaml#PdfUnprocessable, docs/decisions.md#pdf-base64: 422 validation_failed for html that is missing or
// malformed Base64, and for a field outside its range or list.
func TestPDFFields(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	for _, c := range []struct{ body, fields string }{
		{``, "html"}, {`{}`, "html"}, {`[]`, "body"}, {`{"html":null}`, "html"}, {`{"html":""}`, "html"}, {`{"html":1}`, "html"}, {`{"html":["x"]}`, "html"},
		{`{"html":"x","html":"y"}`, "body"}, {"{\"html\":\"\xff\"}", "body"}, {`{"html":"\ud800"}`, "body"},
		{`{"html":"%%%","is_base64":true}`, "html"}, {`{"html":"eA=","is_base64":true}`, "html"}, {`{"html":"eA===","is_base64":true}`, "html"},
		{`{"html":"e-_A","is_base64":true}`, "html"}, {`{"html":"  ","is_base64":true}`, "html"}, {`{"html":"gICA","is_base64":true}`, "html"},
		{`{"html":"eA==eA==","is_base64":true}`, "html"}, {`{"html":"x","is_base64":"true"}`, "is_base64"}, {`{"html":"x","is_base64":1}`, "is_base64"},
		{`{"html":"x","page_size":"A5"}`, "page_size"}, {`{"html":"x","page_size":"a4"}`, "page_size"}, {`{"html":"x","page_size":4}`, "page_size"},
		{`{"html":"x","orientation":"Landscape"}`, "orientation"}, {`{"html":"x","orientation":""}`, "orientation"},
		{`{"html":"x","margins":15}`, "margins"}, {`{"html":"x","margins":[15]}`, "margins"},
		{`{"html":"x","margins":{"top":-0.1}}`, "margins.top"}, {`{"html":"x","margins":{"left":100.1}}`, "margins.left"},
		{`{"html":"x","margins":{"right":"15"}}`, "margins.right"}, {`{"html":"x","margins":{"bottom":1e999}}`, "margins.bottom"},
		{`{"html":"x","header_html":""}`, "header_html"}, {`{"html":"x","footer_html":1}`, "footer_html"}, {`{"html":"eA==","is_base64":true,"header_html":"%"}`, "header_html"},
		{object(map[string]any{"html": "x", "footer_html": strings.Repeat("x", 524_289)}), "footer_html"},
		{`{"html":"x","page_ranges":""}`, "page_ranges"}, {`{"html":"x","page_ranges":"0"}`, "page_ranges"}, {`{"html":"x","page_ranges":"3-1"}`, "page_ranges"},
		{`{"html":"x","page_ranges":"1,"}`, "page_ranges"}, {`{"html":"x","page_ranges":"1-"}`, "page_ranges"}, {`{"html":"x","page_ranges":"-3"}`, "page_ranges"},
		{`{"html":"x","page_ranges":"1;2"}`, "page_ranges"}, {`{"html":"x","page_ranges":" 1"}`, "page_ranges"}, {`{"html":"x","page_ranges":1}`, "page_ranges"},
		{`{"html":"x","page_ranges":"10000"}`, "page_ranges"}, {`{"html":"x","scale":0.09}`, "scale"}, {`{"html":"x","scale":2.01}`, "scale"}, {`{"html":"x","scale":"1"}`, "scale"},
		{`{"html":"x","metadata":"t"}`, "metadata"}, {`{"html":"x","metadata":{"title":1,"author":[],"subject":true,"keywords":{}}}`, "metadata.author metadata.keywords metadata.subject metadata.title"},
		{object(map[string]any{"html": "x", "metadata": map[string]any{"title": strings.Repeat("é", 256)}}), "metadata.title"}, {`{"html":"x","tagged":"yes"}`, "tagged"},
		{`{"html":"x","response_type":"pdf"}`, "response_type"}, {`{"html":"x","privacy_mode":"yes"}`, "privacy_mode"},
		{`{"html":7,"is_base64":7,"page_size":7,"orientation":7,"margins":{"top":"7","right":"7","bottom":"7","left":"7"},"response_type":7,"privacy_mode":7}`,
			"html is_base64 margins.bottom margins.left margins.right margins.top orientation page_size privacy_mode response_type"},
	} {
		request{path: pdfs, body: c.body, as: p.dev}.failsOn(t, c.fields)
	}
}

// openapi.yaml#PdfRequest, docs/decisions.md#pdf-fields: header, footer, page ranges, scale, metadata and tags, plain and as
// Base64, and 400 for a range without a page.
func TestPDFExtensionFields(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	const html = "<title>Report</title><p>first<p style='break-before:page'>second<p style='break-before:page'>third"
	const header, footer = "<b class=title style='font-size:9px'></b>", "<i style='font-size:9px'><span class=pageNumber></span>/<span class=totalPages></span></i>"
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	more := map[string]any{
		"page_ranges": "3,1", "scale": 0.5, "metadata": map[string]any{"title": "Annual report", "author": "Acme", "subject": "Figures", "keywords": "a, b"}, "tagged": true,
	}
	for _, encoded := range []bool{false, true} {
		fields := map[string]any{"html": html, "header_html": header, "footer_html": footer}
		if encoded {
			fields = map[string]any{"html": encode(html), "header_html": encode(header), "footer_html": encode(footer), "is_base64": true}
		}
		maps.Copy(fields, more)
		pdf := printed(t, fields, p.dev)
		if pdf == nil {
			return
		}
		text := pdftest.Text(t, pdf)
		for want, shown := range map[string]bool{"Annual report": true, "first": true, "second": false, "third": true, "1/": true, "3/": true} {
			if strings.Contains(text, want) != shown {
				t.Errorf("%q is in %q: %v", want, text, !shown)
			}
		}
		if sheets := pdftest.Sheets(t, pdf); len(sheets) != 2 {
			t.Errorf("%d pages", len(sheets))
		}
		for name, want := range map[string]string{"Title": "Annual report", "Author": "Acme", "Subject": "Figures", "Keywords": "a, b", "Tagged": "yes"} {
			if got := pdftest.Info(t, pdf, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	a := request{path: pdfs, body: object(map[string]any{"html": html, "page_ranges": "1,4"}), as: p.dev}.do(t)
	if a != nil && (!a.is(400, "http_error") || !strings.Contains(string(a.body), "page_ranges")) {
		t.Errorf("%d %s", a.status, a.body)
	}
	b := request{path: pdfs, body: object(map[string]any{"html": html, "header_html": strings.Repeat("<div>", 251)}), as: p.dev}.do(t)
	if b != nil && (!b.is(400, "http_error") || !strings.Contains(string(b.body), "250 deep")) {
		t.Errorf("%d %s", b.status, b.body)
	}
}

// openapi.yaml#PdfRejected: 400 http_error. docs/decisions.md#pdf-loads: what is not permitted is simply not loaded.
// docs/decisions.md#pdf-limits: limits are named.
func TestPDFDocuments(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	host := fixture.images.URL
	noise()
	noisy := func(n int) (html string) {
		for i := range n {
			html += fmt.Sprintf("<img width=90 src='%s/noise/%d/ID'>", host, i)
		}
		return html
	}
	for _, c := range []struct {
		name, html string
		message    string // of the 400; empty: 200
		asks       bool   // the host of images
	}{
		{"an image", "<img src='" + host + "/ID.png'>", "", true},
		{"images in styles", "<p style='background:url(" + host + "/ID.png)'>x", "", true},
		{"an image that is not there", "<img src='" + host + "/ID.gif'>", "could not be loaded: status 404", true},
		{"no image", "<img src='" + host + "/ID.svg'>", "is no PNG, JPEG, GIF or WebP image", true},
		{"a forbidden redirect", "<img src='" + host + "/away'>", "redirects to an address that is not permitted", false},
		{"another scheme", "<img src='" + strings.Replace(host, "https", "http", 1) + "/ID.png'>x", "", false},
		{"another loopback", "<img src='" + strings.Replace(host, "127.0.0.1", "127.0.0.2", 1) + "/ID.png'>x", "", false},
		{"a style sheet", "<link rel=stylesheet href='" + host + "/ID.png'>x", "", false},
		{"a frame", "<iframe src='" + host + "/ID.png'></iframe>x", "", false},
		{"a script", "<script src='" + host + "/ID.png'></script>x", "", false},
		{"a font", "<style>@font-face{font-family:f;src:url(" + host + "/ID.png)}p{font-family:f}</style><p>x", "", false},
		{"a broken data image", "<img src='data:image/png;base64,xxxx'>x", "", false},
		{"too deep", strings.Repeat("<div>", 251), "nested more than 250 deep", false},
		{"too many elements", strings.Repeat("<p>", 40_001), "more than 40000 elements", false},
		{"nearly too large", noisy(3), "", true},
		{"too large", noisy(5), "at most 4700000 are allowed", true},
		{"too many pages", strings.Repeat("<p style='break-after:page'>x", 501), "more than 500 pages", false},
	} {
		html := strings.ReplaceAll(c.html, "ID", strings.ReplaceAll(c.name, " ", "-"))
		a := request{path: pdfs, body: object(map[string]any{"html": html}), as: p.dev}.send(t)
		if a == nil {
			continue
		}
		switch {
		case c.message == "" && (a.status != 200 || !bytes.HasPrefix(a.body, []byte("%PDF-"))):
			t.Errorf("%s: %d %.300s", c.name, a.status, a.body)
		case c.message != "" && (a.status != 400 || !strings.Contains(string(a.body), `"code":"http_error"`) || !strings.Contains(string(a.body), c.message)):
			t.Errorf("%s: %d %.300s, want %s", c.name, a.status, a.body, c.message)
		}
		asked.Lock()
		if got := slices.ContainsFunc(asked.paths, func(path string) bool { return strings.Contains(path, strings.ReplaceAll(c.name, " ", "-")) }); got != c.asks {
			t.Errorf("%s: the host was asked: %v", c.name, got)
		}
		asked.Unlock()
	}
}

// openapi.yaml#generatePdf: 401, 402, 422 provider_selection_failed, 429, 503 project_paused.
// docs/decisions.md#pdf-charged-last: nothing is rendered before rate limit and credits have said yes, and a failed
// render is not charged.
func TestPDFErrors(t *testing.T) {
	local(t)
	t.Parallel()
	bare := plan{credits: 5000}.make(t)
	poor := plan{credits: 1999}.make(t).printing(t, project.Managed)
	paused := plan{}.make(t).printing(t, project.BYOK)
	svc[any](t, "", "project", "pause", paused.id)
	limited := plan{limit: 1}.make(t).printing(t, project.BYOK)
	good := func(name string) string {
		return object(map[string]any{"html": "<img src='" + fixture.images.URL + "/refused-" + name + ".png'>"})
	}
	printed(t, map[string]any{"html": "x"}, limited.dev)
	for _, c := range []struct {
		name   string
		r      request
		status int
		code   string
	}{
		{"secret", request{body: good("secret"), as: credential{poor.dev.ID, "wrong"}}, 401, "unauthorized"},
		{"paused", request{body: "{}", as: paused.dev}, 503, "project_paused"},
		{"body", request{body: "{}", as: bare.dev}, 422, "validation_failed"},
		{"integration", request{body: good("integration"), as: bare.dev}, 422, "provider_selection_failed"},
		{"credits", request{body: good("credits"), as: poor.dev}, 402, "insufficient_funds"},
		{"credits before limits", request{body: object(map[string]any{"html": strings.Repeat("<div>", 251)}), as: poor.dev}, 402, "insufficient_funds"},
		{"limit", request{body: good("limit"), as: limited.dev}, 429, "rate_limit_exceeded"},
		{"method", request{method: "GET", as: poor.dev}, 405, "http_error"},
		{"large", request{body: good("large") + strings.Repeat(" ", 4<<20), as: poor.dev}, 413, "http_error"},
	} {
		c.r.path = pdfs
		if a := c.r.do(t); a != nil && !a.is(c.status, c.code) {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.status, a.body, c.status, c.code)
		}
	}
	asked.Lock()
	defer asked.Unlock()
	for _, path := range asked.paths {
		if strings.Contains(path, "refused") {
			t.Errorf("%s was loaded for a refused request", path)
		}
	}
}

// docs/decisions.md#modes: Managed charges credits, Manual 0. docs/decisions.md#what-is-charged: a request that fails
// is not charged.
func TestPDFMoney(t *testing.T) {
	t.Parallel()
	const price = 2000
	p := plan{credits: 2*price + 1}.make(t).printing(t, project.Managed)
	if a := (request{path: pdfs, body: object(map[string]any{"html": strings.Repeat("<div>", 251)}), as: p.dev}).do(t); a != nil && !a.is(400, "http_error") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if b := p.balance(t); b != 2*price+1 {
		t.Errorf("a refused document leaves %d credits", b)
	}
	for range 2 {
		printed(t, map[string]any{"html": "<p>paid"}, p.dev)
	}
	if a := (request{path: pdfs, body: `{"html":"x"}`, as: p.dev}).do(t); a != nil && !a.is(402, "insufficient_funds") {
		t.Errorf("the third PDF of two: %d %s", a.status, a.body)
	}
	entries := p.ledger(t)
	captured := 0
	for _, e := range entries {
		if e.Operation == credit.PDF && e.Credits == price && e.Vendor == "builtin" {
			captured++
		}
	}
	if b := p.balance(t); b != 1 || captured != 2 {
		t.Errorf("%d credits are left, %d of %d entries are PDFs", b, captured, len(entries))
	}
}

// docs/decisions.md#privacy-mode: no part of the document, nor of the error's message, is in any log.
func TestPDFPrivacy(t *testing.T) {
	local(t)
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	for i, c := range []struct {
		private bool
		html    string
		status  int
	}{
		{false, "<p>MARK", 200}, {true, "<p>MARK", 200},
		{false, "<img src='" + fixture.images.URL + "/MARK.gif'>", 400}, {true, "<img src='" + fixture.images.URL + "/MARK.gif'>", 400},
	} {
		mark := fmt.Sprintf("confidential%d", i)
		a := request{path: pdfs, body: object(map[string]any{"html": strings.ReplaceAll(c.html, "MARK", mark), "privacy_mode": c.private}), as: p.dev}.send(t)
		if a == nil {
			continue
		}
		lines := logLines(t, fixture.stack.LogDir, mark)
		if a.status != c.status || (len(lines) == 0) != c.private {
			t.Errorf("%v: %d, logged: %q", c, a.status, lines)
		}
	}
}

// docs/decisions.md#pdf-renderer: a renderer that dies is replaced once. Where the next one dies, too, the request is a 500
// that charges nothing, and the reservation is released before the response, not by the settler.
func TestPDFRendererDies(t *testing.T) {
	const price = 2000
	n := oneProcessStack(t)
	for kills, status := range []int{200, 200, 500} {
		if err := errors.Join(n.stack.AwaitIdle(t.Context(), "PdfRenderFunction"), n.stack.AwaitIdle(t.Context(), "PdfFunction")); err != nil {
			t.Fatal(err)
		}
		before, err := n.ledger.Wallet(t.Context(), demo.ID("managed"))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range n.stack.Processes("PdfRenderFunction") { // the event has to start a process
			if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		for len(n.stack.Processes("PdfRenderFunction")) > 0 {
			time.Sleep(time.Millisecond)
		}
		ended := make(chan struct{})
		var killing sync.WaitGroup
		killing.Go(func() {
			var dead []int
			for len(dead) < kills {
				for _, id := range n.stack.Processes("PdfRenderFunction") {
					if !slices.Contains(dead, id) && len(dead) < kills && syscall.Kill(id, syscall.SIGKILL) == nil {
						dead = append(dead, id)
					}
				}
				select {
				case <-ended:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		a := request{path: pdfs, body: `{"html":"<p>x"}`, as: demoProject("managed").dev, base: n.stack.BaseURL}.send(t)
		close(ended)
		killing.Wait()
		after, err := n.ledger.Wallet(t.Context(), demo.ID("managed"))
		if err != nil {
			t.Fatal(err)
		}
		charged := map[int]int64{200: price}[status]
		if a.status != status || status == 500 && !strings.Contains(string(a.body), `"code":"internal_error"`) ||
			before.Balance-after.Balance != charged || status == 500 && after.Reserved != 0 {
			t.Errorf("%d dead renderers: %d %.200s, %d credits, %d reserved", kills, a.status, a.body, before.Balance-after.Balance, after.Reserved)
		}
	}
}

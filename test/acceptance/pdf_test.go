package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"svcapi/shared/project"
	"svcapi/shared/wallet"
	"svcapi/test/must"
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
	s.images = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Lock()
		asked.paths = append(asked.paths, r.URL.Path)
		asked.Unlock()
		if strings.HasPrefix(r.URL.Path, "/heavy/") {
			_, _ = w.Write(heavyPhoto(r.URL.Path))
			return
		}
		http.NotFound(w, r)
	}))
	s.images.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.images.StartTLS()
	authority := filepath.Join(s.dir, "images.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.images.Certificate().Raw})
	return map[string]string{"SVC_TEST_PUBLIC_NETS": "127.0.0.1/32", "SVC_TEST_CA": authority},
		os.WriteFile(authority, certificate, 0o644)
}

// heavyPhoto is a small photo with comments of four megabytes, which depend on the name. A PDF holds a photo with all
// its bytes.
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

// openapi.yaml#streamPdf: the stream has the same bytes as the other route, and no length.
// docs/decisions/pdf.md#pdf-stream.
func TestPDFStream(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	fields := map[string]any{"html": "<h1>Invoice</h1><p>𝅾", "page_size": "Letter"}
	whole := printed(t, fields, p.dev)
	a := request{path: streamed, body: object(fields), as: p.dev}.send(t)
	if _, length := a.header["Content-Length"]; a.status != 200 || length ||
		a.header.Get("Content-Type") != "application/pdf" ||
		a.header.Get("Content-Disposition") != `inline; filename="svc-document.pdf"` ||
		a.header.Get("Cache-Control") != "no-store" ||
		a.header.Get("X-SVC-Request-ID") == "" || a.header.Get("X-RateLimit-Limit") == "" ||
		!bytes.Equal(undated(a.body), undated(whole)) {
		t.Errorf("%d %v, %d bytes, want %d", a.status, a.header, len(a.body), len(whole))
	}
	fields["response_type"] = "base64"
	if pdf := encoded(t, streamed, fields, p.dev); !bytes.Equal(undated(pdf), undated(whole)) {
		t.Errorf("%d bytes in Base64, want %d", len(pdf), len(whole))
	}
}

// docs/decisions/pdf.md#pdf-stream: a PDF of 20 MB arrives whole, binary and as Base64, and is charged once. A client
// that hangs up is charged. The other route names the limit and this route.
func TestPDFStreamLarge(t *testing.T) {
	localParallel(t)
	const price, size = 2000, 20_000_000
	p := plan{credits: 3*price + 1}.make(t).printing(t, project.Managed)
	body := object(map[string]any{"html": twentyMB()})
	if a := (request{path: pdfs, body: body, as: p.dev}).do(t); !a.is(400, "http_error") ||
		!strings.Contains(string(a.body),
			"at most 4700000 are allowed. POST /api/v1/utilities/pdf/stream returns PDFs of up to 33554432 bytes.") {
		t.Errorf("%d %.300s", a.status, a.body)
	}
	a := request{path: streamed, body: body, as: p.dev}.send(t)
	if a.status != 200 || len(a.body) < size || len(pdftest.Sheets(t, a.body)) == 0 {
		t.Errorf("%d, %d bytes: %.200s", a.status, len(a.body), a.body)
	}
	if pdf := encoded(t, streamed, map[string]any{"html": twentyMB(), "response_type": "base64"},
		p.dev); len(pdf) < size || len(pdftest.Sheets(t, pdf)) == 0 {
		t.Errorf("%d bytes in Base64", len(pdf))
	}
	ctx, hangUp := context.WithCancel(t.Context())
	in, err := http.NewRequestWithContext(ctx, http.MethodPost, fixture.baseURL+streamed, strings.NewReader(body))
	must.Succeed(t, err)
	in.Header.Set("X-API-KEY", p.dev.ID)
	in.Header.Set("X-API-SECRET", p.dev.Secret)
	out := must.Get(client.Do(in)).Or(t)
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
		if e.Operation == wallet.PDF && e.Credits == price {
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
	h := a.header
	id, err := uuid.Parse(h.Get("X-SVC-Request-ID"))
	if a.status != 200 || err != nil || id.String() != h.Get("X-SVC-Request-ID") ||
		h.Get("Content-Type") != "application/pdf" ||
		h.Get("Content-Length") != strconv.Itoa(len(a.body)) || h.Get("Cache-Control") != "no-store" ||
		h.Get("Content-Disposition") != `inline; filename="svc-document.pdf"` || !bytes.HasPrefix(a.body, []byte("%PDF-1.")) {
		t.Errorf("%.200v: %d %v %.200s", fields, a.status, h, a.body)
		return nil
	}
	return a.body
}

// openapi.yaml#generatePdf, docs/decisions/pdf.md#pdf-geometry: a page is A4 with margins of 15 mm, whatever the
// document wants. Binary: the PDF's bytes as application/pdf with Content-Length, Cache-Control no-store, the fixed
// filename svc-document.pdf inline, and X-SVC-Request-ID. Base64: the success envelope with a media_type
// (docs/decisions/pdf.md#pdf-base64). functions/pdf has the table of fields.
func TestPDF(t *testing.T) {
	t.Parallel()
	p := plan{}.make(t).printing(t, project.BYOK)
	const text = "Invoice 1042 ශ්\u200dරී ලංකාව தமிழ் எழுத்து"
	fields := map[string]any{"html": "<!DOCTYPE html><style>@page{size:A5;margin:1mm!important}</style><body style='margin:0'>" +
		"<div style='height:267mm;background:#000'></div>" + text + "<script>document.write('x')</script>"}
	pdf := printed(t, fields, p.dev)
	sheets, margins := pdftest.Sheets(t, pdf), pdftest.Inked(t, pdf)
	if len(sheets) != 2 || math.Abs(sheets[0][0]-595.92) > 1 || math.Abs(sheets[0][1]-841.92) > 1 ||
		!margins.Near(pdftest.Margins{15, 15, 15, 15}, 1) || pdftest.Text(t, pdf) != text {
		t.Errorf("%v points, margins %v, %q", sheets, margins, pdftest.Text(t, pdf))
	}
	fields["response_type"] = "base64"
	if again := encoded(t, pdfs, fields, p.dev); !bytes.Equal(undated(again), undated(pdf)) {
		t.Errorf("%d bytes in Base64, want %d", len(again), len(pdf))
	}
	fields["password"] = "sesame-1042" // docs/decisions/pdf.md#pdf-password
	locked := encoded(t, pdfs, fields, p.dev)
	if !bytes.HasPrefix(locked, []byte("%PDF-2.0")) || !bytes.Contains(locked, []byte("/AESV3")) {
		t.Errorf("%.300s", locked)
	}
}

// The response has the warnings, on both routes and in both types of the response; a strict document is 400 and charges
// nothing (docs/decisions/pdf.md#pdf-warnings).
func TestPDFWarnings(t *testing.T) {
	t.Parallel()
	p := plan{credits: 2000}.make(t).printing(t, project.Managed)
	send := func(path string, fields map[string]any) *response {
		return request{path: path, body: object(fields), as: p.dev}.send(t)
	}
	const blocked = "<p id=a>አ<img src=http://a.example/a>"
	a := send(pdfs, map[string]any{"html": blocked, "strict": true})
	const says = "missing-glyphs (#a on page 1), resources-blocked;n=1 (img on page 1)."
	if !a.is(400, "http_error") || !strings.HasSuffix(a.Error.Message, says) ||
		!strings.Contains(string(a.body), `"render_rejected"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a = send(pdfs, map[string]any{"html": "<p>✓", "strict": true}); a.status != 200 { // the first charge
		t.Errorf("%d %s", a.status, a.body)
	}
	p = plan{}.make(t).printing(t, project.BYOK)
	for html, want := range map[string]string{blocked: "missing-glyphs, resources-blocked;n=1",
		"<title>አ</title><p>✓ Rs. 1,250": ""} {
		for _, path := range []string{pdfs, streamed} {
			for _, kind := range []string{"binary", "base64"} {
				a := send(path, map[string]any{"html": html, "response_type": kind})
				if a.status != 200 || a.header.Get("X-SVC-Warnings") != want {
					t.Errorf("%s as %s of %s: %d, %q", html, kind, path, a.status, a.header.Get("X-SVC-Warnings"))
				}
			}
		}
	}
}

// docs/decisions/pdf.md#pdf-isolation: the second stack renders in environments of one project each. functions/pdf
// TestReplacedBrowserOfProjects shows what that separates, and TestRenderer what a renderer's death does.
func TestPDFIsolation(t *testing.T) {
	n := oneProcessStack(t)
	a := request{path: pdfs, body: `{"html":"<p>x"}`, as: demoProject("managed").dev, base: n.stack.BaseURL}.send(t)
	if a.status != 200 || !bytes.HasPrefix(a.body, []byte("%PDF-")) {
		t.Errorf("%d %.200s", a.status, a.body)
	}
}

// encoded sends a request that must succeed, and returns the PDF of its envelope (openapi.yaml#Pdf).
func encoded(t *testing.T, path string, fields map[string]any, as credential) []byte {
	t.Helper()
	a := request{path: path, body: object(fields), as: as}.do(t)
	var result struct {
		Data struct {
			Format    string
			MediaType string `json:"media_type"`
			Data      []byte
		}
	}
	if err := json.Unmarshal(a.body, &result); err != nil || !a.is(200, "") || result.Data.Format != "base64" ||
		result.Data.MediaType != "application/pdf" {
		t.Errorf("%d %.200s: %v", a.status, a.body, err)
	}
	return result.Data.Data
}

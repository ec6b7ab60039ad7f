package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"

	"svcapi/functions/pdf/render/browser"
	"svcapi/functions/pdf/render/event"
	"svcapi/shared/afterresponse"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

func TestMain(m *testing.M) { pdftest.Main(m) }

// configuration returns the configuration of the deployed function, with the loopback as public network.
func configuration(t testing.TB, images *httptest.Server) config {
	c := config{Browser: pdftest.Browser(), MemoryMB: 2048, RenderSeconds: 20, MaxPages: 500}
	if images != nil {
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: images.Certificate().Raw})
		c.TestCA = string(authority)
		c.TestPublicNets = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	return c
}

// started returns a renderer with the deployed function's limits.
func started(t testing.TB, c config) *renderer {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	r, err := newRenderer(c, slog.New(slog.DiscardHandler), browser.Isolate(), func(context.Context, afterresponse.Work) {})
	must.Succeed(t, err)
	t.Cleanup(r.browser.Close)
	must.Succeed(t, r.browser.Ready(t.Context()))
	return r
}

// page returns a document on A4 with the default margins.
func page(html string) browser.Document {
	return browser.Document{Event: event.Event{HTML: []byte(html), PageSize: "A4", Margins: around(15),
		MaxBytes: event.MaxPDF}}
}

// TestRenewsPage checks that a document that reached the browser has the browser's next page awaited after the response
// (docs/decisions/requests.md#after-response).
func TestRenewsPage(t *testing.T) {
	r := started(t, configuration(t, nil))
	for html, want := range map[string]int{"<p>x": 1, strings.Repeat("<p>", 1_000_000): 0} {
		var waits []func(context.Context) error
		r.after = func(_ context.Context, w afterresponse.Work) { waits = append(waits, w.Run) }
		_, _, err := r.render(t.Context(), page(html))
		if len(waits) != want || (err == nil) != (want == 1) {
			t.Fatalf("%.10s: %d waits, want %d; %v", html, len(waits), want, err)
		}
		for _, wait := range waits {
			if err := wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// handled returns the result of an event.
func handled(t *testing.T, r *renderer, e event.Event) event.Result {
	t.Helper()
	text, err := e.Encode()
	must.Succeed(t, err)
	response, err := r.handle(t.Context(), json.RawMessage(text))
	must.Succeed(t, err)
	result, err := event.Read(response, e.MaxBytes)
	must.Succeed(t, err)
	return result
}

// accessible reports whether an encrypted PDF permits reading aloud (bit 10 of ISO 32000-1, table 22).
func accessible(pdf []byte) bool {
	_, handler, _ := bytes.Cut(pdf, []byte("/Standard"))
	permissions, err := strconv.Atoi(string(regexp.MustCompile(`/P (-?\d+)`).FindSubmatch(handler)[1]))
	return err == nil && permissions&(1<<9) != 0
}

// docs/decisions/pdf.md#pdf-password: a reader that is not the product's opens the PDF with its password alone, and
// finds text, title, bookmarks and tags. No error has the password.
func TestPassword(t *testing.T) {
	r := started(t, configuration(t, serveFiles(t)))
	for _, password := range []string{"1234", "pässwörd ශ්\u200dරී", strings.Repeat("x", 32)} {
		e := event.Event{
			HTML: []byte("<html lang=en><h1>Salary</h1><p style='break-before:page'>2026"), PageWidth: 100, PageHeight: 150,
			Outline:  true,
			MaxBytes: 1 << 20,
			Password: event.Password(password), Metadata: event.Metadata{Title: "Pay slip", Author: "Acme"},
		}
		result := handled(t, r, e)
		if strings.Contains(fmt.Sprintf("%v %+v", e, e), password) {
			t.Errorf("%+v", e)
		}
		out := string(pdftest.Tool(t, result.PDF, "pdfinfo", "-upw", password))
		for _, want := range []string{"Pay slip", "Acme", "Tagged:          yes", "Pages:           2", "283.92 x 426 pts",
			"yes (print:yes copy:yes change:no addNotes:no algorithm:AES-256)"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
		described := string(pdftest.Tool(t, result.PDF, "pdfinfo", "-upw", password, "-meta"))
		shown := string(pdftest.Tool(t, result.PDF, "pdftotext", "-upw", password))
		if !strings.Contains(described, "<rdf:li>en</rdf:li>") || strings.Contains(described, "<pdfuaid:part>") ||
			!accessible(result.PDF) || !strings.Contains(shown, "Salary") || !strings.Contains(string(result.PDF), "/R 6") {
			t.Errorf("the metadata is %s, the text %s", described, shown)
		}
		path := filepath.Join(t.TempDir(), "a.pdf")
		must.Succeed(t, os.WriteFile(path, result.PDF, 0o600))
		for _, wrong := range []string{"", password[1:]} {
			if out, err := exec.Command("pdfinfo", "-upw", wrong, path).CombinedOutput(); err == nil {
				t.Errorf("%q opens the PDF: %s", wrong, out)
			}
		}
		if _, err := encrypt(result.PDF, event.Password(password), e.MaxBytes); err == nil ||
			strings.Contains(err.Error(), password) {
			t.Errorf("a PDF that is encrypted: %v", err)
		}
	}
	d := page("<p>x")
	pdf, _, err := r.render(t.Context(), d)
	must.Succeed(t, err)
	long := strings.Repeat("x", event.MaxPassword) // poppler's programs take 32 bytes at most
	whole, err := encrypt(pdf, event.Password(long), 1<<20)
	for user, opens := range map[string]bool{long: true, long[1:]: false} {
		conf := &model.Configuration{Cmd: model.LISTINFO, Reader15: true, UserPW: user,
			ValidationMode: model.ValidationRelaxed, Limits: model.DefaultResourceLimits()}
		if _, readErr := pdfcpu.ReadWithContext(t.Context(), bytes.NewReader(whole), conf); err != nil ||
			(readErr == nil) != opens {
			t.Errorf("%d bytes: %v, %v", len(user), err, readErr)
		}
	}
	var rejected *event.RejectionError
	if _, err := encrypt(pdf, "1234", int64(len(pdf))); !errors.As(err, &rejected) || !rejected.TooLarge {
		t.Errorf("an encrypted PDF over the limit: %v", err)
	}
}

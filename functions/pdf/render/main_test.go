package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"svcapi/functions/pdf/render/browser"
	"svcapi/functions/pdf/render/event"
	"svcapi/shared/afterresponse"
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
	r, err := newRenderer(c, browser.Isolate(), func(context.Context, afterresponse.Work) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.browser.Close)
	if err := r.browser.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
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

// The log line at the start names for each protection whether it is in force.
func TestProtectionStates(t *testing.T) {
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("browser protections", protectionStates([]browser.Protection{
		{Name: "undumpable", Denied: os.ErrPermission}, {Name: "subreaper"},
	})...)
	if got := log.String(); !strings.Contains(got, `undumpable="permission denied" subreaper="in force"`) {
		t.Error(got)
	}
}

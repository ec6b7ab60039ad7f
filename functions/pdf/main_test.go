package main

import (
	"bytes"
	"encoding/pem"
	"image"
	"image/color"
	"image/png"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"svcapi/functions/pdf/browser"
	"svcapi/local/pdftest"
)

func TestMain(m *testing.M) { pdftest.Main(m, browser.Seclude) }

// settings are those of the deployed function, with the loopback as public network.
func settings(t testing.TB, images *httptest.Server) config {
	c := config{Browser: pdftest.Browser(), MemoryMB: 2048, RenderSeconds: 20, MaxPages: 500}
	if images != nil {
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: images.Certificate().Raw})
		c.TestCA = filepath.Join(t.TempDir(), "authority.pem")
		if err := os.WriteFile(c.TestCA, authority, 0o600); err != nil {
			t.Fatal(err)
		}
		c.TestPublicNets = "127.0.0.0/8"
	}
	return c
}

// started returns a renderer with the deployed function's limits.
func started(t testing.TB, c config) *renderer {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	r, err := newRenderer(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.browser.Close)
	if err := r.browser.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func serveImages(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// chequered is a PNG of so many pixels, in few bytes.
func chequered(width, height int) []byte {
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black})
	for i := range m.Pix {
		m.Pix[i] = uint8(i / 8 % 2)
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	_ = encoder.Encode(&b, m)
	return b.Bytes()
}

var a4 = browser.Geometry{Size: browser.Sizes["A4"], Margins: browser.Margins{Top: 15, Right: 15, Bottom: 15, Left: 15}}

// The function pdfrender renders HTML to PDF for the function pdf. Its role may write its own log and nothing else,
// because the documents are those of strangers (docs/decisions/pdf.md#pdf-renderer).
package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"svcapi/functions/pdf/render/browser"
	"svcapi/functions/pdf/render/fetch"
	"svcapi/functions/pdf/render/limits"
	"svcapi/shared/afterresponse"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
)

func main() {
	// Before anything else, because no process started later may read the memory of this one.
	protections := browser.Isolate()
	registration := afterresponse.Register()
	cfg, err := settings.Read[config]()
	if err != nil {
		telemetry.Exit(fmt.Errorf("configuration: %w", err))
	}
	log := telemetry.New(os.Stdout, cfg.Log)
	after := afterresponse.New(log)
	r, err := newRenderer(cfg, log.Slog(), protections, after.Do)
	if err != nil {
		telemetry.Exit(err)
	}
	afterresponse.Start(after, registration, r.handle)
}

// config is the configuration that the function reads from the environment.
type config struct {
	Log           telemetry.Config
	Browser       string `env:"CHROMIUM" envDefault:"/opt/chromium/headless_shell"` // of the layer
	MemoryMB      int    `env:"AWS_LAMBDA_FUNCTION_MEMORY_SIZE" envDefault:"2048"`  // set by Lambda
	RenderSeconds int    `env:"PDF_RENDER_SECONDS" envDefault:"20"`
	MaxPages      int    `env:"PDF_MAX_PAGES" envDefault:"500"`
	ImageHosts    string `env:"PDF_IMAGE_HOSTS"` // comma-separated; empty: every public host

	// Tests only: networks that count as public, and the authority of their servers (PEM).
	TestPublicNets []netip.Prefix `env:"SVC_TEST_PUBLIC_NETS"`
	TestCA         string         `env:"SVC_TEST_CA,file"`
}

// The limits that are not parameters are measured for a function of 2,048 MB. A table with the maximum of elements as
// rows and cells takes 1.4 GB, and the maximum of pixels 0.7 GB.
var (
	documentLimits = limits.Limits{Elements: 40_000, Depth: 250, Tables: 20, Pixels: 60_000_000}
	imageLimits    = fetch.Limits{
		Images: 100, Bytes: 5 << 20, TotalBytes: 20 << 20, Pixels: 20_000_000, TotalPixels: 60_000_000,
		Redirects: 3, Time: 10 * time.Second,
	}
)

const (
	// memoryShare is the part of the function's memory for the browser and this process. The system and the layer use the
	// rest.
	memoryShare = 0.75
	// A browser is replaced after this number of documents, or when it holds this number of bytes between two documents.
	recycleAfter  = 200
	recycleMemory = 300 << 20
)

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	wrong := []error{
		settings.InRange("PDF_RENDER_SECONDS", c.RenderSeconds, 1,
			23), settings.InRange("PDF_MAX_PAGES", c.MaxPages, 1, 2000),
		settings.InRange("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", c.MemoryMB, 1024, 10240),
	}
	if _, err := os.Stat(c.Browser); err != nil {
		wrong = append(wrong, fmt.Errorf("no browser at %s: `make layer` unpacks one on x86-64 Linux; elsewhere set "+
			"CHROMIUM to the path of Chrome or Chromium", c.Browser))
	}
	return errors.Join(wrong...)
}

// fetcher returns the client that loads images.
func (c config) fetcher() (*fetch.Client, error) {
	hosts, err := fetch.ParseHosts(c.ImageHosts)
	if err != nil {
		return nil, fmt.Errorf("PDF_IMAGE_HOSTS: %w", err)
	}
	o := fetch.Options{Limits: imageLimits, Hosts: hosts, Public: c.TestPublicNets}
	if c.TestCA != "" {
		o.Roots = x509.NewCertPool()
		if !o.Roots.AppendCertsFromPEM([]byte(c.TestCA)) {
			return nil, errors.New("SVC_TEST_CA holds no certificate")
		}
	}
	return fetch.New(o), nil
}

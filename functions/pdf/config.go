package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"svcapi/functions/pdf/browser"
	"svcapi/functions/pdf/fetch"
	"svcapi/functions/pdf/limits"
	"svcapi/shared/api"
)

// config is what the function reads from the environment.
type config struct {
	API           api.Config
	Browser       string `env:"CHROMIUM" envDefault:"/opt/chromium/headless_shell"` // of the layer
	MemoryMB      int64  `env:"AWS_LAMBDA_FUNCTION_MEMORY_SIZE" envDefault:"2048"`  // set by Lambda
	RenderSeconds int    `env:"PDF_RENDER_SECONDS" envDefault:"20"`
	MaxPages      int    `env:"PDF_MAX_PAGES" envDefault:"500"`
	ImageHosts    string `env:"PDF_IMAGE_HOSTS"` // comma-separated; empty: every public host

	// Tests only: networks that count as public, and a file with the authority of their servers.
	TestPublicNets string `env:"SVC_TEST_PUBLIC_NETS"`
	TestCA         string `env:"SVC_TEST_CA"`
}

// What the limits are, beside those that the environment sets. They are measured against a function of 2,048 MB: a table
// of as many rows and cells as elements are allowed takes 1.4 GB, as many pixels 0.9 GB with the test that draws them.
var (
	documentLimits = limits.Limits{Elements: 40_000, Depth: 250, Tables: 20, Pixels: 60_000_000, Measure: fetch.Measure}
	imageLimits    = fetch.Limits{
		Images: 100, Bytes: 5 << 20, TotalBytes: 20 << 20, Pixels: 20_000_000, TotalPixels: 60_000_000,
		Redirects: 3, Time: 10 * time.Second,
	}
)

const (
	// maxPDF is the largest PDF in bytes. Lambda takes 6,291,556 bytes of answer, with Base64 and headers.
	maxPDF = 4_700_000
	// memoryShare of the function's memory is for the browser and this process; the rest is the system's and the layer's.
	memoryShare = 0.75
	// A browser is replaced after so many documents, or when it holds so much between two of them.
	recycleAfter  = 200
	recycleMemory = 300 << 20
)

// Validate says what is wrong with the configuration.
func (c config) Validate() error {
	var wrong []error
	if c.RenderSeconds < 1 || c.RenderSeconds > 23 {
		wrong = append(wrong, fmt.Errorf("PDF_RENDER_SECONDS is %d, wants 1 to 23", c.RenderSeconds))
	}
	if c.MaxPages < 1 || c.MaxPages > 2000 {
		wrong = append(wrong, fmt.Errorf("PDF_MAX_PAGES is %d, wants 1 to 2000", c.MaxPages))
	}
	if c.MemoryMB < 1024 {
		wrong = append(wrong, fmt.Errorf("the function has %d MB of memory, wants at least 1024", c.MemoryMB))
	}
	if _, err := os.Stat(c.Browser); err != nil {
		wrong = append(wrong, fmt.Errorf("no browser at %s: `make layer` unpacks one on x86-64 Linux; elsewhere set CHROMIUM to the path of Chrome or Chromium", c.Browser))
	}
	return errors.Join(append(wrong, c.API.Validate())...)
}

// fetcher makes the loader of images.
func (c config) fetcher() (*fetch.Client, error) {
	hosts, err := fetch.ParseHosts(c.ImageHosts)
	if err != nil {
		return nil, fmt.Errorf("PDF_IMAGE_HOSTS: %w", err)
	}
	o := fetch.Options{Limits: imageLimits, Hosts: hosts}
	if c.TestPublicNets != "" {
		for text := range strings.SplitSeq(c.TestPublicNets, ",") {
			network, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("SVC_TEST_PUBLIC_NETS: %w", err)
			}
			o.Public = append(o.Public, network)
		}
	}
	if c.TestCA != "" {
		pem, err := os.ReadFile(c.TestCA)
		if err != nil {
			return nil, fmt.Errorf("SVC_TEST_CA: %w", err)
		}
		o.Roots = x509.NewCertPool()
		if !o.Roots.AppendCertsFromPEM(pem) {
			return nil, errors.New("SVC_TEST_CA holds no certificate")
		}
	}
	return fetch.New(o), nil
}

// browserOptions are those of the browser within the function's memory.
func (c config) browserOptions() browser.Options {
	return browser.Options{
		Path: c.Browser, Dir: os.TempDir(),
		Time: time.Duration(c.RenderSeconds) * time.Second, Memory: int64(float64(c.MemoryMB<<20) * memoryShare),
		Pages: c.MaxPages, Bytes: maxPDF, RecycleAfter: recycleAfter, RecycleMemory: recycleMemory,
	}
}

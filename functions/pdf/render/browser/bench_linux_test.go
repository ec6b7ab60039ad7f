package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-rod/rod/lib/cdp"

	"svcapi/functions/pdf/render/limits"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// bare is the baseline: the same browser with the same flags and only the necessary protocol calls, which set the
// content, wait for the load event and print. One page serves all documents, without limits.
type bare struct {
	process *process
	client  *cdp.Client
	loaded  chan struct{}
	target  string
	session string
}

func startBare(b *testing.B, path string) *bare {
	b.Helper()
	p, err := launch(path, b.TempDir())
	must.Succeed(b, err)
	d := &bare{process: p, client: cdp.New().Start(p.transport), loaded: make(chan struct{}, 1)}
	go func() {
		for event := range d.client.Event() {
			if event.Method == "Page.loadEventFired" {
				d.loaded <- struct{}{}
			}
		}
	}()
	var target struct{ TargetID string }
	d.call(b, "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	d.call(b, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	d.target, d.session = target.TargetID, session.SessionID
	d.call(b, "Page.enable", nil, nil)
	return d
}

func (d *bare) call(b *testing.B, method string, params, result any) {
	b.Helper()
	response, err := d.client.Call(context.Background(), d.session, method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(response, result)
	}
	if err != nil {
		b.Fatal(method, err)
	}
}

func (d *bare) render(b *testing.B, html string) []byte {
	b.Helper()
	d.call(b, "Page.setDocumentContent", map[string]any{"frameId": d.target, "html": html}, nil)
	<-d.loaded
	var printed struct{ Data string }
	d.call(b, "Page.printToPDF", map[string]any{"printBackground": true, "generateTaggedPDF": false}, &printed)
	pdf, err := base64.StdEncoding.DecodeString(printed.Data)
	must.Succeed(b, err)
	return pdf
}

// pass has the document limits of the deployed function.
var pass = limits.Limits{Elements: 40_000, Depth: 250, Tables: 20, Pixels: 60_000_000}

// middle returns the median.
func middle(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}

// BenchmarkRender compares a warm document with the bare calls, in turns. "ms" is a request to an idle function,
// "back-ms" a request immediately after another one, which waits for its page.
func BenchmarkRender(b *testing.B) {
	for name, html := range map[string]string{"invoice": pdftest.Invoice, "table": pdftest.Table()} {
		b.Run(name, func(b *testing.B) {
			o := limitsOf(b)
			r := New(o)
			defer r.Close()
			d := startBare(b, pdftest.Browser())
			defer d.process.end()
			document := a4(html)
			product := func() time.Duration {
				began := time.Now()
				must.Succeed(b, pass.Check(nil, html))
				if _, _, err := r.Render(b.Context(), document); err != nil {
					b.Fatal(err)
				}
				return time.Since(began)
			}
			next(b, r)
			product()
			d.render(b, html)
			var rested, back, alone []time.Duration
			peak := int64(0)
			for b.Loop() {
				next(b, r)
				stop := make(chan struct{})
				go func() {
					for {
						for _, group := range browsers() {
							if group != d.process.group {
								peak = max(peak, memory(append(groupMembers(group), os.Getpid())))
							}
						}
						select {
						case <-stop:
							return
						case <-time.After(100 * time.Millisecond):
						}
					}
				}()
				rested = append(rested, product())
				back = append(back, product())
				close(stop)
				next(b, r)
				began := time.Now()
				d.render(b, html)
				alone = append(alone, time.Since(began))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(middle(rested), "ms")
			b.ReportMetric(middle(back), "back-ms")
			b.ReportMetric(middle(alone), "bare-ms")
			b.ReportMetric(middle(rested)/middle(alone), "ratio")
			b.ReportMetric(float64(peak>>20), "peak-MiB")
		})
	}
}

// BenchmarkStart compares the start up to the first PDF, with the self-test, with that of the bare browser with one
// font.
func BenchmarkStart(b *testing.B) {
	var ours, bare []time.Duration
	layer, alone := filepath.Dir(pdftest.Browser()), b.TempDir()
	for _, name := range []string{"headless_shell", "lib", "fonts/Tinos_400Regular.ttf"} {
		err := os.MkdirAll(filepath.Join(alone, "fonts"), 0o700)
		must.Succeed(b, errors.Join(err, os.Symlink(filepath.Join(layer, name), filepath.Join(alone, name))))
	}
	write(b, filepath.Join(alone, "fonts.conf"), `<fontconfig><dir prefix="relative">fonts</dir></fontconfig>`, 0o600)
	for b.Loop() {
		began := time.Now()
		r := New(limitsOf(b))
		if _, _, err := r.Render(b.Context(), a4(pdftest.Invoice)); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(began))
		r.Close()
		began = time.Now()
		d := startBare(b, filepath.Join(alone, "headless_shell"))
		d.render(b, pdftest.Invoice)
		bare = append(bare, time.Since(began))
		d.process.end()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(ours), "ms")
	b.ReportMetric(middle(bare), "bare-ms")
	b.ReportMetric(middle(ours)/middle(bare), "ratio")
}

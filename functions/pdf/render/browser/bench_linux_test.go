package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-rod/rod/lib/cdp"

	"svcapi/functions/pdf/render/fetch"
	"svcapi/functions/pdf/render/limits"
	"svcapi/test/pdftest"
)

// bare is the baseline: the same browser with the same flags and only the necessary protocol calls, which set the content,
// wait for the load event and print. One page serves all documents, without limits.
type bare struct {
	process *process
	client  *cdp.Client
	loaded  chan struct{}
	target  string
	session string
}

func startBare(b *testing.B) *bare {
	b.Helper()
	p, err := launch(pdftest.Browser(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
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
	if err != nil {
		b.Fatal(err)
	}
	return pdf
}

// invoice is a small document.
const invoice = `<!DOCTYPE html><meta charset="utf-8"><style>body{font:11pt sans-serif}table{width:100%;border-collapse:collapse}td,th{padding:2mm;border-bottom:1px solid #888;text-align:left}
</style><h1>Invoice 2026-1042</h1><p>Nimal Perera, Kandy<br>20 November 2026</p><table><tr><th>Item<th>Count<th>Price<tr><td>Domain, one year<td>1<td>4,500.00
<tr><td>Hosting, one year<td>1<td>18,000.00<tr><td>Support, hours<td>6<td>21,000.00<tr><th>Total<th><th>43,500.00</table><p>ස්තුතියි. நன்றி. Thank you.`

// table is a document of 512 KiB.
func table() string {
	var t strings.Builder
	t.WriteString("<!DOCTYPE html><table>")
	for i := 0; t.Len() < 524_288-200; i++ {
		fmt.Fprintf(&t, "<tr><td>%06d<td>A line of a long statement, with some words in it<td>Kandy, Central Province, Sri Lanka<td>%d.00", i, i*37%100_000)
	}
	return t.String()
}

// pass has the document limits of the deployed function.
var pass = limits.Limits{Elements: 40_000, Depth: 250, Tables: 20, Pixels: 60_000_000, Measure: fetch.Measure}

// middle returns the median.
func middle(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}

// BenchmarkRender compares a warm document with the bare calls, in turns. "ms" is a request to an idle function, "back-ms"
// a request immediately after another one, which waits for its page.
func BenchmarkRender(b *testing.B) {
	for name, html := range map[string]string{"invoice": invoice, "table": table()} {
		b.Run(name, func(b *testing.B) {
			o := limitsOf(b)
			r := New(o)
			defer r.Close()
			d := startBare(b)
			defer d.process.end()
			document := Document{HTML: html, Geometry: a4}
			product := func() time.Duration {
				began := time.Now()
				if err := pass.Check(html); err != nil {
					b.Fatal(err)
				}
				if _, err := r.Render(b.Context(), document); err != nil {
					b.Fatal(err)
				}
				return time.Since(began)
			}
			rest := func() {
				if err := r.Ready(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			rest()
			product()
			d.render(b, html)
			var rested, back, alone []time.Duration
			peak := int64(0)
			for b.Loop() {
				rest()
				stop := make(chan struct{})
				go func() {
					for {
						for _, group := range browsers(b) {
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
				rest()
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

// BenchmarkStart compares the start up to the first PDF, with the self-test, with that of the bare browser.
func BenchmarkStart(b *testing.B) {
	var ours, bare []time.Duration
	for b.Loop() {
		began := time.Now()
		r := New(limitsOf(b))
		if _, err := r.Render(b.Context(), Document{HTML: invoice, Geometry: a4}); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(began))
		r.Close()
		began = time.Now()
		d := startBare(b)
		d.render(b, invoice)
		bare = append(bare, time.Since(began))
		d.process.end()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(ours), "ms")
	b.ReportMetric(middle(bare), "bare-ms")
	b.ReportMetric(middle(ours)/middle(bare), "ratio")
}

// BenchmarkZygote compares the browser with and without --no-zygote, in turns: idle, immediately after another document, the
// start up to the first PDF, and the memory of an idle browser.
func BenchmarkZygote(b *testing.B) {
	kinds := []struct{ name, drop string }{{"without", "--none"}, {"with", "--no-zygote"}}
	document := Document{HTML: invoice, Geometry: a4}
	type figures struct{ start, rested, back, ended []time.Duration }
	taken := map[string]*figures{}
	paths, held := map[string]string{}, map[string][]int64{}
	for _, kind := range kinds {
		taken[kind.name] = &figures{}
		paths[kind.name] = wrapper(b, kind.drop, `exec "$browser" "$@"`)
	}
	timed := func(into *[]time.Duration, f func()) {
		began := time.Now()
		f()
		*into = append(*into, time.Since(began))
	}
	for b.Loop() {
		for _, kind := range kinds {
			o := limitsOf(b)
			o.Path = paths[kind.name]
			into := taken[kind.name]
			var r *Renderer
			once := func() {
				if _, err := r.Render(b.Context(), document); err != nil {
					b.Fatal(err)
				}
			}
			timed(&into.start, func() { r = New(o); once() })
			for range 5 {
				if err := r.Ready(b.Context()); err != nil {
					b.Fatal(err)
				}
				timed(&into.rested, once)
				timed(&into.back, once)
			}
			if err := r.Ready(b.Context()); err != nil {
				b.Fatal(err)
			}
			for _, group := range browsers(b) {
				held[kind.name] = append(held[kind.name], memory(groupMembers(group))>>20)
			}
			timed(&into.ended, r.Close)
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, f := range taken {
		b.ReportMetric(middle(f.start), name+"-start-ms")
		b.ReportMetric(middle(f.rested), name+"-ms")
		b.ReportMetric(middle(f.back), name+"-back-ms")
		b.ReportMetric(middle(f.ended), name+"-end-ms")
		slices.Sort(held[name])
		b.ReportMetric(float64(held[name][len(held[name])/2]), name+"-MiB")
	}
}

func BenchmarkMissingGlyphs(b *testing.B) {
	r := run(b, limitsOf(b))
	pdf := render(b, r, invoice)
	for b.Loop() {
		MissingGlyphs(pdf)
	}
}

package browser

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

func TestMain(m *testing.M) {
	if os.Getenv(servedDir) != "" {
		serveLines()
		return
	}
	if err := os.Setenv("AWS_SECRET_ACCESS_KEY", "CANARY-SECRET"); err != nil { // no browser has it
		panic(err)
	}
	pdftest.Main(m)
}

// servedDir is the variable that makes this program render each line of its standard input, with a folder for profiles.
const servedDir = "BROWSER_SERVE"

// serveLines renders each line of standard input, and prints the number of started browsers and the error of the
// render.
func serveLines() {
	var starts counter
	o := deployed("")
	o.Dir, o.Time, o.Log = os.Getenv(servedDir), 2*time.Second, slog.New(slog.NewTextHandler(&starts, nil))
	r := New(o)
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			r.Close()
			return
		}
		_, _, err = r.Render(context.Background(), a4(strings.ReplaceAll(line, "LONG", strings.Repeat("x", 500_000))))
		_, _ = fmt.Fprintf(os.Stdout, "%d %v\n", starts.Load(), err)
	}
}

// counter counts the starts of browsers in a log.
type counter struct{ atomic.Int64 }

func (c *counter) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "browser started") {
		c.Add(1)
	}
	return len(line), nil
}

// limitsOf returns the options of the deployed function.
func limitsOf(t testing.TB) Options { return deployed(t.TempDir()) }

func deployed(dir string) Options {
	return Options{
		Path: pdftest.Browser(), Dir: dir, Time: 20 * time.Second, Memory: 1536 << 20, Pages: 500,
		RecycleAfter: 200, RecycleMemory: 300 << 20, Protections: Isolate(), Log: slog.New(slog.DiscardHandler),
	}
}

// run returns a renderer that is ready. The renderer ends with the test.
func run(t testing.TB, o Options) *Renderer {
	t.Helper()
	r := New(o)
	t.Cleanup(r.Close)
	next(t, r)
	return r
}

// beside returns a renderer with the options of the deployed function, for a test that runs beside others.
func beside(t *testing.T) *Renderer {
	t.Helper()
	t.Parallel()
	return run(t, limitsOf(t))
}

// next waits for the prepared page of a renderer, and leaves the page there.
func next(t testing.TB, r *Renderer) prepared {
	t.Helper()
	p, err := r.take(t.Context())
	if err == nil {
		r.ready <- p
		err = p.err
	}
	must.Succeed(t, err)
	return p
}

// a4 returns a document on A4 with the default margins.
func a4(html string) Document {
	return Document{Event: event.Event{HTML: []byte(html), PageSize: "A4",
		Margins: margins(15, 15, 15, 15), MaxBytes: 4_700_000}}
}

func margins(top, right, bottom, left float64) event.Margins {
	return event.Margins{Top: top, Right: right, Bottom: bottom, Left: left}
}

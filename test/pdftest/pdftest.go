// Package pdftest measures PDFs with poppler-utils, a reader that is independent of the product.
package pdftest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"iter"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svcapi/local/chromium"
	"svcapi/local/jail"
	"svcapi/local/jail/spec"
	"svcapi/local/workdir"
	"svcapi/test/must"
)

// Everything is true in make test-hostile, where the long tests also run.
var Everything = os.Getenv("EVERYTHING") != ""

// millimetresPerInch converts between the units of paper and of PDF: an inch has 72 points.
const millimetresPerInch = 25.4

// Main runs a package's tests in the jail of the local stack's functions, with the browser's path in the variable
// CHROMIUM. Where there is no jail (JAIL=off, or another system than Linux), the tests run without it: make
// test-unjailed runs those so that check what the jail denies.
func Main(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if Jailed() {
		err := errors.Join(os.Chdir(os.Getenv(dirVariable)), os.Setenv("TMPDIR", "/tmp"), parse())
		if err != nil {
			return 0, err
		}
		return m.Run(), nil
	}
	path, err := chromium.Path(context.Background(), report)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(os.Setenv(chromium.Variable, path), parse()); err != nil {
		return 0, err
	}
	// A fuzzing process talks with those that it starts.
	if os.Getenv(jail.Variable) == "off" || value("test.fuzz") != "" || value("test.fuzzworker") == "true" ||
		value("test.list") != "" {
		return m.Run(), nil
	}
	j, err := jail.New(context.Background(), report)
	if err != nil {
		return 0, err
	}
	if !j.Has(spec.Filter) {
		return m.Run(), nil
	}
	return 0, confined(j, filepath.Dir(path))
}

// parse reads the flags. The parallel tests wait more than they compute.
func parse() error {
	flag.Parse()
	return flag.Set("test.parallel", "6")
}

func report(line string) { fmt.Fprintln(os.Stderr, line) }

// dirVariable is the variable that passes the folder of the package to the process in the jail.
const dirVariable = "PDFTEST_DIR"

// Jailed reports whether this process is in the jail.
func Jailed() bool { return os.Getenv(dirVariable) != "" }

// scratch limits the temporary files of the tests, in bytes.
const scratch = 1 << 30

// confined runs this program in the jail with the same arguments, but for the files that it would write.
func confined(j *jail.Jail, browser string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	root, err := workdir.Root()
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(argument string) bool {
		name, _, _ := strings.Cut(argument, "=")
		return slices.Contains([]string{"-test.testlogfile", "-test.outputdir", "-test.gocoverdir", "-test.trace"}, name) ||
			strings.HasSuffix(name, "profile")
	})
	p, err := j.Start(jail.Command{
		Binary: self, Args: args, Env: append(os.Environ(), dirVariable+"="+here), Output: os.Stdout,
		Readable: []string{root, browser}, Scratch: scratch,
	})
	if err != nil {
		return err
	}
	<-p.Done()
	return p.Err()
}

func value(name string) string { return flag.Lookup(name).Value.String() }

// Rows returns the rows of a file of testdata, each a line with a name, a colon and a text, without the lines that
// begin with "#".
func Rows(t testing.TB, path string) iter.Seq2[string, string] {
	t.Helper()
	content := must.Get(os.ReadFile(path)).Or(t)
	return func(yield func(name, text string) bool) {
		for line := range strings.Lines(string(content)) {
			name, text, isRow := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			if isRow && !strings.HasPrefix(name, "#") && !yield(name, text) {
				return
			}
		}
	}
}

// Serve starts a server with a certificate of its own, which ends with the test.
func Serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// Browser is the path of the browser, within Main.
func Browser() string { return os.Getenv(chromium.Variable) }

// Tool runs one of the tools of poppler-utils on a PDF and returns its output.
func Tool(t testing.TB, pdf []byte, name string, args ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "document.pdf")
	must.Succeed(t, os.WriteFile(path, pdf, 0o600))
	args = append(args, path)
	if name == "pdftotext" {
		args = append(args, "-") // the others print by themselves
	}
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s (make poppler installs it): %v", name, err)
	}
	return out
}

// Text returns the text of a PDF in the order of the PDF, with single spaces.
func Text(t testing.TB, pdf []byte) string {
	t.Helper()
	return strings.Join(strings.Fields(string(Tool(t, pdf, "pdftotext", "-raw"))), " ")
}

// Info returns a property that a PDF has by pdfinfo, such as Title or Tagged; empty where it has none.
func Info(t testing.TB, pdf []byte, name string) string {
	t.Helper()
	for line := range strings.Lines(string(Tool(t, pdf, "pdfinfo"))) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

var sheet = regexp.MustCompile(`Page +\d+ size: +([\d.]+) x ([\d.]+) pts`)

// Sheets returns the widths and heights of all pages in points.
func Sheets(t testing.TB, pdf []byte) [][2]float64 {
	t.Helper()
	var all [][2]float64
	for _, m := range sheet.FindAllSubmatch(Tool(t, pdf, "pdfinfo", "-f", "1", "-l", "100000"), -1) {
		width, _ := strconv.ParseFloat(string(m[1]), 64)
		height, _ := strconv.ParseFloat(string(m[2]), 64)
		all = append(all, [2]float64{width, height})
	}
	return all
}

// Margins are millimetres, clockwise from the top.
type Margins [4]float64

// Near reports whether no side differs by more than the given millimetres.
func (m Margins) Near(other Margins, by float64) bool {
	for i := range m {
		if math.Abs(m[i]-other[i]) > by {
			return false
		}
	}
	return true
}

// Inked returns the distances between the first page's ink and the page's edges.
func Inked(t testing.TB, pdf []byte) Margins {
	t.Helper()
	const dpi = 72
	sheet := Gray(t, pdf, dpi, "-aa", "no", "-aaVector", "no")
	width, height := sheet.Rect.Dx(), sheet.Rect.Dy()
	left, top, right, bottom := width, height, -1, -1
	dark := func(r rune) bool { return r < 100 }
	for y := range height {
		row := sheet.Pix[y*width : (y+1)*width]
		if first := bytes.IndexFunc(row, dark); first >= 0 {
			left, right = min(left, first), max(right, bytes.LastIndexFunc(row, dark))
			top, bottom = min(top, y), y
		}
	}
	mm := func(pixels int) float64 { return float64(pixels) / dpi * millimetresPerInch }
	return Margins{mm(top), mm(width - 1 - right), mm(height - 1 - bottom), mm(left)}
}

// Gray draws the first page of a PDF in shades of grey, with options of pdftoppm.
func Gray(t testing.TB, pdf []byte, dpi int, options ...string) *image.Gray {
	t.Helper()
	pgm := Tool(t, pdf, "pdftoppm",
		append(options, "-r", strconv.Itoa(dpi), "-gray", "-f", "1", "-l", "1", "-singlefile")...)
	var width, height, depth int
	must.Get(fmt.Sscanf(string(pgm[:min(len(pgm), 30)]), "P5\n%d %d\n%d\n", &width, &height, &depth)).Or(t)
	return &image.Gray{Pix: pgm[len(pgm)-width*height:], Stride: width, Rect: image.Rect(0, 0, width, height)}
}

// PNG draws one page of a PDF.
func PNG(t testing.TB, pdf []byte, page, dpi int) []byte {
	t.Helper()
	return Tool(t, pdf, "pdftoppm", "-png", "-r", strconv.Itoa(dpi), "-f", strconv.Itoa(page), "-l",
		strconv.Itoa(page), "-singlefile")
}

// Invoice is a small document.
const Invoice = `<!DOCTYPE html><meta charset="utf-8"><style>body{font:11pt sans-serif}table{width:100%;border-collapse:collapse}td,th{padding:2mm;border-bottom:1px solid #888;text-align:left}
</style><h1>Invoice 2026-1042</h1><p>Nimal Perera, Kandy<br>20 November 2026</p><table><tr><th>Item<th>Count<th>Price<tr><td>Domain, one year<td>1<td>4,500.00
<tr><td>Hosting, one year<td>1<td>18,000.00<tr><td>Support, hours<td>6<td>21,000.00<tr><th>Total<th><th>43,500.00</table><p>ස්තුතියි. நன்றி. Thank you.`

// Table returns a document of 512 KiB. Each row has one line, so that the number of pages does not depend on a pixel.
func Table() string {
	var t strings.Builder
	t.WriteString("<!DOCTYPE html><table>")
	for i := 0; t.Len() < 524_288-200; i++ {
		fmt.Fprintf(&t, "<tr><td>%06d<td>A line of a long statement, with some words<td>Kandy, Central Province<td>%d.00", i,
			i*37%100_000)
	}
	return t.String()
}

package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"svcapi/local/chromium"
	"svcapi/local/demo"
	"svcapi/local/process"
	"svcapi/local/stack"
	"svcapi/shared/project"
	"svcapi/test/pdftest"
)

const (
	gotenbergStart = time.Minute            // until Gotenberg responds
	pause          = 100 * time.Millisecond // after each document, for the work that no client waits for
)

// documents are compared one after another, each in rounds of several documents. Gotenberg's browser starts anew after
// 100 of them.
var documents = []struct {
	name, html   string
	rounds, each int
	goal         float64 // the largest ratio
}{
	{"invoice", pdftest.Invoice, 9, 7, 0.5},
	{"table of 512 KiB", pdftest.Table(), 5, 3, 0.9},
	{"table of 4,000 short rows", rows("<!DOCTYPE html><table>", "<tr><td>%06d<td>Item %d<td>%d.00", 4_000), 5, 3, 0.9},
	{"the same, styled", rows(styledTable, "<tr><td>%06d<td>Item %d<td>%d.00", 4_000), 5, 3, 0.9},
	{"statement of 400 rows", rows(styledTable, "<tr><td>%06d<td>Payment %d, thank you<td>%d.00", 400), 5, 5, 0.9},
}

const styledTable = `<!DOCTYPE html><style>body{font:9pt Arial}table{width:100%;border-collapse:collapse}td,th{border:1px solid #999;
padding:1mm}tr:nth-child(even){background:#eee}</style><table><thead><tr><th>No.<th>Description<th>Amount</thead><tbody>`

// rows returns a document with n rows after its start.
func rows(start, row string, n int) string {
	var text strings.Builder
	text.WriteString(start)
	for i := range n {
		fmt.Fprintf(&text, row, i, i*7%997, i*37%100_000)
	}
	return text.String()
}

// gotenberg is a running Gotenberg.
type gotenberg struct {
	url     string
	process *exec.Cmd
}

// gotenbergTools are the programs that Gotenberg wants to know, by the variable that names the path. No document uses
// them.
var gotenbergTools = map[string]string{
	"QPDF_BIN_PATH": "qpdf", "PDFTK_BIN_PATH": "pdftk", "EXIFTOOL_BIN_PATH": "exiftool", "PDFCPU_BIN_PATH": "true",
}

// sameSheet are the fields that give a PDF of Gotenberg the sheet of openapi.yaml#PdfRequest's defaults.
var sameSheet = map[string]string{
	"paperWidth": "210mm", "paperHeight": "297mm", "printBackground": "true",
	"marginTop": "15mm", "marginRight": "15mm", "marginBottom": "15mm", "marginLeft": "15mm",
}

// compareGotenberg prints how long a PDF takes through the whole local stack and by Gotenberg over HTTP, with the same
// browser.
func compareGotenberg(ctx context.Context, dir string, out io.Writer) (err error) {
	other, err := startGotenberg(ctx, dir)
	if err != nil {
		return err
	}
	defer other.close()
	b := &bench{dir: dir}
	if b.stack, err = stack.Start(ctx, stack.Options{LogDir: filepath.Join(dir, "stack")}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stack.Close()) }()
	if err := b.grant(ctx); err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "PDF\tthis stack, median\tGotenberg, median\tratio\tratios of rounds\tgoal\t")
	for _, d := range documents {
		ours, theirs, err := b.requestsOf(d.html, other)
		if err != nil {
			return err
		}
		var all [2][]time.Duration
		var ratios []string
		for round := -1; round < d.rounds; round++ { // round -1 warms up
			var times [2][]time.Duration
			var pages [2]int
			for range d.each {
				for _, side := range rand.Perm(2) { // a machine may slow down at intervals
					took, pdf, err := []request{ours, theirs}[side](ctx)
					if err != nil {
						return fmt.Errorf("%s: %w", d.name, err)
					}
					times[side], pages[side] = append(times[side], took), bytes.Count(pdf, []byte("/Type /Page\n"))
				}
				if pages[0] == 0 || pages[0] != pages[1] {
					return fmt.Errorf("%s: %d pages here, %d of Gotenberg: this is not the same work", d.name, pages[0], pages[1])
				}
			}
			if round < 0 {
				continue
			}
			all[0], all[1] = append(all[0], times[0]...), append(all[1], times[1]...)
			ratios = append(ratios, fmt.Sprintf("%.2f", ratio(quantile(times[0], 0.5), quantile(times[1], 0.5))))
		}
		whole := ratio(quantile(all[0], 0.5), quantile(all[1], 0.5))
		fmt.Fprintf(t, "%s\t%s\t%s\t%.2f%s\t%s\t%.2f\t\n", d.name, ms(quantile(all[0], 0.5)), ms(quantile(all[1], 0.5)),
			whole, verdict(whole <= d.goal), ratios, d.goal)
		if err := t.Flush(); err != nil { // a later document may fail
			return err
		}
	}
	return nil
}

// request makes one request, and returns the time until the last byte of the PDF has come.
type request func(context.Context) (time.Duration, []byte, error)

// requestsOf returns a request for a document to each side. Each waits until its side has no more work.
func (b *bench) requestsOf(html string, other *gotenberg) (ours, theirs request, err error) {
	body, err := json.Marshal(map[string]any{"html": html, "page_size": "A4"})
	if err != nil {
		return nil, nil, err
	}
	as := demo.CredentialOf("managed", project.Development)
	header := http.Header{"X-Api-Key": {as.ClientID}, "X-Api-Secret": {as.ClientSecret},
		"Content-Type": {"application/json"}}
	client := &http.Client{Transport: &http.Transport{}}
	ours = func(ctx context.Context) (time.Duration, []byte, error) {
		took, pdf, err := timed(ctx, client, b.stack.BaseURL+"/utilities/pdf/generate", header, body)
		for _, folder := range []string{"pdf", "pdfrender"} {
			if f, ok := b.stack.Template.Function(folder); ok && err == nil {
				err = b.stack.AwaitIdle(ctx, f.LogicalID)
			}
		}
		<-time.After(pause)
		return took, pdf, err
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("files", "index.html")
	if err == nil {
		_, err = io.WriteString(file, html)
	}
	for field, value := range sameSheet {
		err = errors.Join(err, w.WriteField(field, value))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, nil, err
	}
	formHeader := http.Header{"Content-Type": {w.FormDataContentType()}}
	theirs = func(ctx context.Context) (time.Duration, []byte, error) {
		took, pdf, err := timed(ctx, client, other.url+"/forms/chromium/convert/html", formHeader, form.Bytes())
		<-time.After(pause)
		return took, pdf, err
	}
	return ours, theirs, nil
}

// timed is a request with these bytes.
func timed(ctx context.Context, client *http.Client, url string, header http.Header,
	body []byte) (time.Duration, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header = header
	began := time.Now()
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	pdf, err := io.ReadAll(response.Body)
	took := time.Since(began)
	if err == nil && (response.StatusCode != http.StatusOK || !bytes.HasPrefix(pdf, []byte("%PDF-"))) {
		err = fmt.Errorf("%s: %d %.200s", url, response.StatusCode, pdf)
	}
	return took, pdf, err
}

// startGotenberg starts the program gotenberg-chromium of the path, with the browser of the layer.
func startGotenberg(ctx context.Context, dir string) (*gotenberg, error) {
	program, err := exec.LookPath("gotenberg-chromium")
	if err != nil {
		return nil, fmt.Errorf("make bench-gotenberg builds this program: %w", err)
	}
	browser, err := chromium.Path(ctx, func(step string) { fmt.Fprintln(os.Stderr, step) })
	if err != nil {
		return nil, err
	}
	beside := filepath.Dir(browser)
	work := filepath.Join(dir, "gotenberg")
	environment := append(os.Environ(),
		"CHROMIUM_BIN_PATH="+browser, "CHROMIUM_HYPHEN_DATA_DIR_PATH="+work, "TMPDIR="+work,
		"FONTCONFIG_FILE="+filepath.Join(beside, "fonts.conf"), "LD_LIBRARY_PATH="+filepath.Join(beside, "lib"),
	)
	for variable, tool := range gotenbergTools {
		path, err := exec.LookPath(tool)
		if err != nil {
			return nil, fmt.Errorf("%w (apt-get install qpdf pdftk-java libimage-exiftool-perl)", err)
		}
		environment = append(environment, variable+"="+path)
	}
	port, err := process.FreePort(0)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "gotenberg.log"))
	if err = errors.Join(err, os.Mkdir(work, 0o755)); err != nil {
		return nil, err
	}
	defer log.Close()
	g := &gotenberg{url: "http://127.0.0.1:" + strconv.Itoa(port)}
	arguments := []string{program, "--api-bind-ip=127.0.0.1", "--api-port=" + strconv.Itoa(port), "--chromium-auto-start",
		"--pdfengines-convert-engines=qpdf", "--log-level=error"} // the default engine is not in this program
	if os.Geteuid() == 0 { // root's browser raises the priority of its threads; the one in Gotenberg's image may not
		arguments = append([]string{"setpriv", "--bounding-set=-sys_nice"}, arguments...)
	}
	g.process = exec.Command(arguments[0], arguments[1:]...)
	g.process.Env, g.process.Dir, g.process.Stdout, g.process.Stderr = environment, work, log, log
	if err := g.process.Start(); err != nil {
		return nil, err
	}
	for until := time.Now().Add(gotenbergStart); time.Now().Before(until) && ctx.Err() == nil; {
		if g.healthy(ctx) {
			return g, nil
		}
		<-time.After(pause)
	}
	g.close()
	text, _ := os.ReadFile(log.Name())
	return nil, fmt.Errorf("gotenberg did not start: %w\n%s", context.Cause(ctx), text)
}

func (g *gotenberg) healthy(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/health", http.NoBody)
	if err != nil {
		return false
	}
	response, err := new(http.Client).Do(r)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// close ends Gotenberg, which ends its browser.
func (g *gotenberg) close() {
	_ = g.process.Process.Signal(os.Interrupt)
	_ = g.process.Wait()
}

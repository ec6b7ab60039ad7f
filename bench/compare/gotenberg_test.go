package compare

import (
	"bytes"
	"context"
	"encoding/base64"
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

// A document is compared in rounds of several requests.
type document struct {
	name, html   string
	rounds, each int
	goal         float64 // the largest ratio
}

// documents returns the documents, which are compared one after another. Gotenberg's browser starts anew after 100
// requests. The fonts are those of the layer.
func documents(fonts string) ([]document, error) {
	font, err := os.ReadFile(filepath.Join(fonts, "OpenSans_400Regular.ttf"))
	if err != nil {
		return nil, err
	}
	webFont := fmt.Sprintf("<!DOCTYPE html><style>@font-face{font-family:Own;src:url(data:font/ttf;base64,%s)}"+
		"body{font:9pt Own}</style><table>", base64.StdEncoding.EncodeToString(font))
	const short, groups = "<tr><td>%06d<td>Item %d<td>%d.00",
		"<tr><th colspan=3>Group %06d<tr><td rowspan=2>Item %d<td colspan=2>Two columns<tr><td>One<td>%d.00"
	ten := "<tr><td>%06d<td>%d<td>%d.00" + strings.Repeat("<td>Kandy", 7)
	return []document{
		{"invoice", pdftest.Invoice, 9, 7, 0.25},
		{"table of 512 KiB", pdftest.Table(), 5, 3, 0.85},
		{"table of 4,000 short rows", rows("<!DOCTYPE html><table>", short, 4_000), 5, 3, 0.85},
		{"the same, styled", rows(styledTable, short, 4_000), 5, 3, 0.85},
		{"10 columns, styled, 1,500 rows", rows(styledTable, ten, 1_500), 5, 3, 0.85},
		{"colspans and rowspans, styled, 1,500 groups", rows(styledTable, groups, 1_500), 5, 3, 0.85},
		{"4,000 short rows in a font of the document", rows(webFont, short, 4_000), 5, 3, 0.85},
		{"statement of 400 rows", rows(styledTable, "<tr><td>%06d<td>Payment %d, thank you<td>%d.00", 400), 5, 5, 0.85},
	}, nil
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
	browser, err := chromium.Path(ctx, func(step string) { fmt.Fprintln(os.Stderr, step) })
	if err != nil {
		return err
	}
	other, err := startGotenberg(ctx, dir, browser)
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
	all, err := documents(filepath.Join(filepath.Dir(browser), "fonts"))
	if err != nil {
		return err
	}
	for _, d := range all {
		ours, theirs, err := b.requestsOf(d.html, other)
		if err != nil {
			return err
		}
		var took [2][]time.Duration
		var ratios []string
		for round := -1; round < d.rounds; round++ { // round -1 warms up
			var times [2][]time.Duration
			var pages [2]int
			for range d.each {
				for _, side := range rand.Perm(2) { // a machine may slow down at intervals
					one, pdf, err := []request{ours, theirs}[side](ctx)
					if err != nil {
						return fmt.Errorf("%s: %w", d.name, err)
					}
					times[side], pages[side] = append(times[side], one), bytes.Count(pdf, []byte("/Type /Page\n"))
				}
				if pages[0] == 0 || pages[0] != pages[1] {
					return fmt.Errorf("%s: %d pages here, %d of Gotenberg: this is not the same work", d.name, pages[0], pages[1])
				}
			}
			if round < 0 {
				continue
			}
			took[0], took[1] = append(took[0], times[0]...), append(took[1], times[1]...)
			ratios = append(ratios, fmt.Sprintf("%.2f", ratio(quantile(times[0], 0.5), quantile(times[1], 0.5))))
		}
		whole := ratio(quantile(took[0], 0.5), quantile(took[1], 0.5))
		fmt.Fprintf(t, "%s\t%s\t%s\t%.2f%s\t%s\t%.2f\t\n", d.name, ms(quantile(took[0], 0.5)), ms(quantile(took[1], 0.5)),
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

// startGotenberg starts the program gotenberg-chromium of the path, with a browser.
func startGotenberg(ctx context.Context, dir, browser string) (*gotenberg, error) {
	program, err := exec.LookPath("gotenberg-chromium")
	if err != nil {
		return nil, fmt.Errorf("make bench-gotenberg builds this program: %w", err)
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

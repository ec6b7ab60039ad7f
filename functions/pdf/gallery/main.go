// The command gallery renders twelve documents (see the target gallery-pdf). Its arguments are a folder and the path of the
// browser. The command writes pdfs.md into the folder, and the PDFs with pictures of their first pages into pdfs.
package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"svcapi/functions/pdf/render/browser"
	"svcapi/functions/pdf/render/event"
)

//go:embed documents
var documents embed.FS

// example is one document of the gallery.
type example struct {
	name, about string
	size        string // empty: A4
	landscape   bool
	margins     event.Margins

	header, footer string // HTML in the margins of each page
}

var even = event.Margins{Top: 15, Right: 15, Bottom: 15, Left: 15}

var examples = []example{
	{name: "invoice", about: "An invoice with its logo as a data image", margins: even},
	{name: "statement", about: "A statement of 40 pages: repeated table heads, page numbers in a margin box", margins: event.Margins{Top: 15, Right: 12, Bottom: 20, Left: 12}},
	{name: "certificate", about: "A certificate in landscape, drawn to the edge of the sheet", landscape: true},
	{name: "labels", about: "A sheet of 24 address labels on Letter", size: "Letter", margins: event.Margins{Top: 12, Right: 6, Bottom: 12, Left: 6}},
	{name: "tickets", about: "Tickets with barcodes as data images", margins: even},
	{name: "letter-sinhala", about: "A letter in Sinhala", margins: event.Margins{Top: 25, Right: 25, Bottom: 25, Left: 25}},
	{name: "letter-tamil", about: "A letter in Tamil", margins: event.Margins{Top: 25, Right: 25, Bottom: 25, Left: 25}},
	{name: "wide-table", about: "A wide table in landscape", landscape: true, margins: event.Margins{Top: 10, Right: 10, Bottom: 10, Left: 10}},
	{name: "report", about: "A report in two columns with a chart as SVG", margins: even},
	{name: "margin-boxes", about: "Margin boxes of the document's own style: `@page { @top-left { … } @bottom-center { content: counter(page) \" / \" counter(pages) } }`", margins: event.Margins{Top: 25, Right: 20, Bottom: 25, Left: 20}},
	{name: "header-footer", about: "`header_html` and `footer_html` with `title`, `date`, `pageNumber` and `totalPages`", margins: event.Margins{Top: 25, Right: 20, Bottom: 25, Left: 20},
		header: `<div style="font-size:9px;width:100%;margin:0 20mm;color:#555;border-bottom:1px solid #aaa"><span class="title"></span></div>`,
		footer: `<div style="font-size:9px;width:100%;margin:0 20mm;color:#555;text-align:right">Page <span class="pageNumber"></span> of <span class="totalPages"></span></div>`},
	{name: "agreement", about: "An agreement on Legal with numbered clauses", size: "Legal", margins: event.Margins{Top: 25, Right: 25, Bottom: 25, Left: 25}},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gallery <folder> <browser>")
		os.Exit(2)
	}
	if err := draw(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func draw(ctx context.Context, folder, path string) (err error) {
	pictures := filepath.Join(folder, "pdfs")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	profiles, err := os.MkdirTemp("", "gallery")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(profiles)) }()
	templates, err := template.New("").Funcs(helpers(folder)).ParseFS(documents, "documents/*.html")
	if err != nil {
		return err
	}
	r := browser.New(browser.Options{
		Path: path, Dir: profiles, Time: 20 * time.Second, Memory: 1 << 31, Pages: 500, Bytes: 4_700_000, RecycleAfter: 100, RecycleMemory: 1 << 30,
	})
	defer r.Close()
	var index strings.Builder
	index.WriteString("# PDFs\n\nTwelve documents, rendered by `make gallery`. The pictures show the first pages of responses of `POST /utilities/pdf/generate`. " +
		"A picture links to its PDF. The HTML is in [functions/pdf/gallery/documents](../../functions/pdf/gallery/documents).\n\n| Document | Pages | Bytes | First page |\n|---|---|---|---|\n")
	for _, e := range examples {
		pdf, err := e.render(ctx, r, templates)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		name := filepath.Join(pictures, e.name)
		if err := os.WriteFile(name+".pdf", pdf, 0o644); err != nil {
			return err
		}
		pages, err := picture(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		fmt.Fprintf(&index, "| %s | %s | %d | [![%s](pdfs/%s.png)](pdfs/%s.pdf) |\n", e.about, pages, len(pdf), e.name, e.name, e.name)
	}
	return os.WriteFile(filepath.Join(folder, "pdfs.md"), []byte(index.String()), 0o644)
}

func (e example) render(ctx context.Context, r *browser.Renderer, templates *template.Template) ([]byte, error) {
	var html bytes.Buffer
	if err := templates.ExecuteTemplate(&html, e.name+".html", nil); err != nil {
		return nil, err
	}
	size := browser.Sizes[cmp.Or(e.size, "A4")]
	pdf, err := r.Render(ctx, browser.Document{HTML: html.String(), Header: e.header, Footer: e.footer, Geometry: browser.Geometry{Size: size, Landscape: e.landscape, Margins: e.margins}})
	// The same document gives the same file, so that git shows only real changes.
	return undated(pdf), err
}

// undated replaces the time stamps of a PDF by a fixed time.
func undated(pdf []byte) []byte {
	for _, key := range []string{"/CreationDate (D:", "/ModDate (D:"} {
		if at := bytes.Index(pdf, []byte(key)); at >= 0 {
			copy(pdf[at+len(key):], "20260101000000")
		}
	}
	return pdf
}

// picture draws the first page of a PDF, and returns the number of pages.
func picture(ctx context.Context, name string) (pages string, err error) {
	if err := exec.CommandContext(ctx, "pdftoppm", "-png", "-r", "50", "-singlefile", "-f", "1", "-l", "1", name+".pdf", name).Run(); err != nil {
		return "", fmt.Errorf("pdftoppm (of poppler-utils): %w", err)
	}
	info, err := exec.CommandContext(ctx, "pdfinfo", name+".pdf").Output()
	if err != nil {
		return "", fmt.Errorf("pdfinfo (of poppler-utils): %w", err)
	}
	_, rest, found := strings.Cut(string(info), "Pages:")
	if !found {
		return "", errors.New("pdfinfo reports no pages")
	}
	return strings.Fields(rest)[0], nil
}

// helpers returns the functions that the documents use.
func helpers(folder string) template.FuncMap {
	return template.FuncMap{
		"count": func(n int) (numbers []int) {
			for i := range n {
				numbers = append(numbers, i+1)
			}
			return numbers
		},
		"mix":  func(i, j int) int { return i*31 + j*17 },
		"pick": func(i int, of ...string) string { return of[i%len(of)] },
		"money": func(i, spread int) string {
			cents := i * 7919 % (spread * 100)
			return fmt.Sprintf("%d.%02d", cents/100, cents%100)
		},
		// picture returns a barcode of the gallery as a data URL.
		"picture": func(name string) (template.URL, error) {
			body, err := os.ReadFile(filepath.Join(folder, "barcodes", name+".png"))
			return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(body)), err
		},
	}
}

package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"flag"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svcapi/functions/pdf/render/browser"
	"svcapi/functions/pdf/render/event"
	"svcapi/test/pdftest"
)

// update makes TestGallery write docs/gallery: make gallery-pdf.
var update = flag.Bool("update", false, "write the PDFs of docs/gallery")

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

// The documents of the gallery are rendered, with the pages that docs/gallery lists and without a missing glyph.
func TestGallery(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "docs", "gallery")
	templates, err := template.New("").Funcs(helpers(folder)).ParseGlob("../gallery/*.html")
	if err != nil {
		t.Fatal(err)
	}
	r := started(t, configuration(t, nil))
	var index strings.Builder
	index.WriteString("# PDFs\n\nTwelve documents, rendered by `make gallery`. The pictures show the first pages of responses of `POST /utilities/pdf/generate`. " +
		"A picture links to its PDF. The HTML is in [functions/pdf/gallery](../../functions/pdf/gallery).\n\n| Document | Pages | Bytes | First page |\n|---|---|---|---|\n")
	listed, err := os.ReadFile(filepath.Join(folder, "pdfs.md"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range examples {
		var html bytes.Buffer
		if err := templates.ExecuteTemplate(&html, e.name+".html", nil); err != nil {
			t.Fatal(err)
		}
		d := page(html.String())
		d.Header, d.Footer = e.header, e.footer
		d.Geometry = browser.Geometry{Size: browser.Sizes[cmp.Or(e.size, "A4")], Landscape: e.landscape, Margins: e.margins}
		pdf, _, err := r.render(t.Context(), "", d)
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		row := fmt.Sprintf("| %s | %s | ", e.about, pdftest.Info(t, pdf, "Pages"))
		if browser.MissingGlyphs(pdf) || !*update && !bytes.Contains(listed, []byte(row)) {
			t.Errorf("%s: missing glyphs %v, and docs/gallery/pdfs.md wants %q", e.name, browser.MissingGlyphs(pdf), row)
		}
		if *update {
			name := "pdfs/" + e.name
			write(name+".pdf", undated(pdf))
			write(name+".png", pdftest.PNG(t, pdf, 1, 50))
			fmt.Fprintf(&index, "%s%d | [![%s](%s.png)](%[4]s.pdf) |\n", row, len(pdf), e.name, name)
		}
	}
	if *update {
		write("pdfs.md", []byte(index.String()))
	}
}

// undated replaces the time stamps of a PDF by a fixed time: the same document gives the same file.
func undated(pdf []byte) []byte {
	for _, key := range []string{"/CreationDate (D:", "/ModDate (D:"} {
		if at := bytes.Index(pdf, []byte(key)); at >= 0 {
			copy(pdf[at+len(key):], "20260101000000")
		}
	}
	return pdf
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

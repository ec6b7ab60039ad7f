package main

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// update makes TestGallery write docs/gallery: make gallery-pdf.
var update = flag.Bool("update", false, "write the PDFs of docs/gallery")

// example is one document of the gallery.
type example struct {
	name, about string
	sheet       [2]float64 // width and height; zero: A4
	landscape   bool
	margins     event.Margins

	header, footer string // HTML in the margins of each page
}

// around returns equal margins.
func around(mm float64) event.Margins { return event.Margins{Top: mm, Right: mm, Bottom: mm, Left: mm} }

var examples = []example{
	{name: "invoice", about: "An invoice with its logo as a data image", margins: around(15)},
	{name: "payslip", about: "A payslip in Calibri with headings in three scripts", margins: around(18)},
	{name: "statement", about: "A statement of 400 rows: repeated table heads, page numbers in a margin box",
		margins: event.Margins{Top: 15, Right: 12, Bottom: 20, Left: 12}},
	{name: "letter", about: "A letter in Sinhala, Tamil and English with bold and italics", margins: around(25)},
	{name: "receipt-arabic", about: "A receipt in Arabic, from right to left", margins: around(20)},
	{name: "label", about: "A shipping label of 100 × 150 mm", sheet: [2]float64{100, 150}},
	{name: "receipt-thermal", about: "A receipt of a thermal printer, 80 mm wide",
		sheet: [2]float64{80, 170}, margins: around(4)},
	{name: "certificate", about: "A certificate in landscape, drawn to the edge of the sheet", landscape: true},
	{name: "form", about: "A filled form with fields and boxes", margins: around(18)},
	{name: "report", about: "A report in two columns with a chart as SVG", margins: around(15)},
	{name: "article", about: "An article with footnotes and page numbers: `@page { @top-left { … } @bottom-center { " +
		"content: counter(page) \" / \" counter(pages) } }`", margins: event.Margins{Top: 25, Right: 30,
		Bottom: 25, Left: 30}},
	{name: "mathematics", about: "Formulas in MathML", margins: around(25)},
	{name: "header-footer", about: "`header_html` and `footer_html` with `title`, `date`, `pageNumber` and `totalPages`",
		margins: event.Margins{Top: 25, Right: 20, Bottom: 25, Left: 20},
		header: `<div style="font-size:9px;width:100%;margin:0 20mm;color:#555;border-bottom:1px solid #aaa"><span ` +
			`class="title"></span></div>`,
		footer: `<div style="font-size:9px;width:100%;margin:0 20mm;color:#555;text-align:right">Page <span ` +
			`class="pageNumber"></span> of <span class="totalPages"></span></div>`},
	{name: "tickets", about: "Tickets with barcodes as data images", margins: around(15)},
}

// The documents of the gallery are rendered, with the pages that docs/gallery lists, without a missing glyph and
// without a Type 3 font, which Chromium writes for a bold that no font has.
func TestGallery(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "docs", "gallery")
	templates, err := template.New("").Funcs(helpers(folder)).ParseGlob("../gallery/*.html")
	must.Succeed(t, err)
	r := started(t, configuration(t, nil))
	var index strings.Builder
	index.WriteString("# PDFs\n\nDocuments of all kinds, rendered by `make gallery`. The pictures show the first pages " +
		"of responses of `POST /utilities/pdf/generate`. " +
		"A picture links to its PDF. The HTML is in [functions/pdf/gallery](../../functions/pdf/gallery).\n\n| Document | " +
		"Pages | Bytes | First page |\n|---|---|---|---|\n")
	listed, err := os.ReadFile(filepath.Join(folder, "pdfs.md"))
	must.Succeed(t, err)
	write := func(name string, content []byte) {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), content, 0o644))
	}
	for _, e := range examples {
		var html bytes.Buffer
		must.Succeed(t, templates.ExecuteTemplate(&html, e.name+".html", nil))
		d := page(html.String())
		d.Header, d.Footer, d.Landscape, d.Margins = []byte(e.header), []byte(e.footer), e.landscape, e.margins
		if e.sheet[0] > 0 {
			d.PageSize, d.PageWidth, d.PageHeight = "", e.sheet[0], e.sheet[1]
		}
		pdf, warnings, err := r.render(t.Context(), d)
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		if fonts := pdftest.Tool(t, pdf, "pdffonts"); bytes.Contains(fonts, []byte("Type 3")) {
			t.Errorf("%s has a font without a file:\n%s", e.name, fonts)
		}
		row := fmt.Sprintf("| %s | %s | ", e.about, pdftest.Info(t, pdf, "Pages"))
		if warnings != "" || !*update && !bytes.Contains(listed, []byte(row)) {
			t.Errorf("%s: warnings %q, and docs/gallery/pdfs.md wants %q", e.name, warnings, row)
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
	return regexp.MustCompile(`Date \(D:\d{14}`).ReplaceAll(pdf, []byte("Date (D:20260101000000"))
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

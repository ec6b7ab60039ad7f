package browser

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// block fills the whole content area of the pages.
const block = `<div style="height:600mm;background:#000"></div>`

func wantSheet(t *testing.T, pdf []byte, d Document) {
	t.Helper()
	sheet := d.sheet()
	for i, got := range pdftest.Sheets(t, pdf) {
		if math.Abs(got[0]-sheet.width/25.4*72) > 1 || math.Abs(got[1]-sheet.height/25.4*72) > 1 {
			t.Errorf("page %d has %v points, want %v mm", i+1, got, sheet)
		}
	}
	want := pdftest.Margins{d.Margins.Top, d.Margins.Right, d.Margins.Bottom, d.Margins.Left}
	if got := pdftest.Inked(t, pdf); !got.Near(want, 1) {
		t.Errorf("margins are %v, want %v", got, want)
	}
}

// openapi.yaml#PdfRequest: page_size A4, Letter, Legal; orientation portrait, landscape; margins 0 to 100 mm; sheets in
// millimetres; and the size of the document's page rule, which has a limit and leaves the margins to the request
// (docs/decisions/pdf.md#pdf-fields).
func TestGeometry(t *testing.T) {
	r := beside(t)
	for name := range named {
		for _, landscape := range []bool{false, true} {
			several := []event.Margins{margins(15, 15, 15, 15), margins(5, 12.5, 30, 60)}
			if name == "A4" {
				several = append(several, event.Margins{}, margins(100, 100, 100, 100))
			}
			for _, margins := range several {
				d := a4("<!DOCTYPE html><body style='margin:0'>" + block)
				d.PageSize, d.Landscape, d.Margins = name, landscape, margins
				t.Run(fmt.Sprintf("%s,%v,%v", name, landscape, margins), func(t *testing.T) {
					wantSheet(t, printed(t, r, d), d)
				})
			}
		}
	}
	for _, c := range []struct {
		style string
		e     event.Event
		want  size // zero: an error
	}{
		{"", event.Event{PageWidth: 80, PageHeight: 2000}, size{80, 2000}},
		{"", event.Event{PageWidth: 10, PageHeight: 10}, size{10, 10}},
		{"@page{size:80mm 200mm;margin:40mm}", event.Event{PageSize: "A4", CSSSize: true}, size{80, 200}},
		{"@page{size:62mm 29mm}", event.Event{PageSize: "A4", CSSSize: true, Margins: margins(15, 15, 15, 15)}, size{62, 29}},
		{"", event.Event{PageSize: "Letter", Landscape: true, CSSSize: true}, size{279.4, 215.9}},
		{"@page{size:1000000cm 1000000cm}", event.Event{PageSize: "A4", CSSSize: true}, size{}},
		{"@page{size:0 0}", event.Event{PageSize: "A4", CSSSize: true}, size{210, 297}},
	} {
		d := Document{Event: c.e}
		d.HTML = []byte("<style>" + c.style + "</style><body style='margin:0'><div style='height:2100mm;background:#000'>")
		if d.MaxBytes = 1 << 20; d.Margins == (event.Margins{}) {
			d.Margins = margins(2, 2, 2, 2)
		}
		pdf, _, err := r.Render(t.Context(), d)
		if (err == nil) != (c.want.width > 0) {
			t.Errorf("%s: %v", c.style, err)
		}
		if err == nil {
			d.PageSize, d.PageWidth, d.PageHeight, d.Landscape = "", c.want.width, c.want.height, false
			if usual := min(d.Margins.Top, c.want.height/4); usual < d.Margins.Top { // of a small label
				d.Margins.Top, d.Margins.Bottom = usual, usual
			}
			wantSheet(t, pdf, d)
		}
	}
}

// Chromium lays a document out for the window only before the print, and only where the document may need that. A
// program that fails in the page is an error.
func TestHideOnScreen(t *testing.T) {
	page := next(t, run(t, limitsOf(t))).page
	page.ctx = t.Context()
	for i, step := range []func() error{
		func() error { return page.load("<b>") },
		func() error { return page.load("<b style='color:url(a)'>") }, // alone is shown
		func() error { return page.insertRules(a4("")) },
	} {
		err, shown := step(), false
		failed := page.evaluate("test", "String(document.querySelector('b').checkVisibility())", &shown)
		if err != nil || failed != nil || shown != (i == 1) {
			t.Errorf("step %d: shown is %v; %v, %v", i, shown, err, failed)
		}
	}
	if err := page.evaluate("test", "throw new RangeError()", nil); !errors.Is(err, errProgram) {
		t.Errorf("a program that fails: %v", err)
	}
}

// Page size, orientation and margins of the request override every form of @page in the document.
func TestGeometryOverridesDocument(t *testing.T) {
	t.Parallel()
	const evil = "margin:3mm!important;margin-left:70mm!important;size:A5 landscape!important;" +
		"page-orientation:rotate-left!important"
	sheet := func(css string) string {
		return "data:text/css;base64," + base64.StdEncoding.EncodeToString([]byte(css))
	}
	innermost := regexp.MustCompile(`SHEET<<([^<>]*)>>`)
	places := []string{
		"<!DOCTYPE html><style>CSS</style>",
		"<!DOCTYPE html><p hidden>x<style>CSS</style>",
		"<!DOCTYPE html><link rel=stylesheet media=print href='LINK'>",
	}
	r := run(t, limitsOf(t))
	n := 0
	// In random order: make test renders some of the style sheets, the long tests all.
	for name, html := range maps.Collect(pdftest.Rows(t, "testdata/geometry.txt")) {
		d := a4(strings.ReplaceAll(html, "BLOCK", block))
		if html[0] != '<' {
			if n++; n > 25 && !pdftest.Everything {
				continue
			}
			css := strings.ReplaceAll(html, "EVIL", evil)
			for innermost.MatchString(css) {
				css = innermost.ReplaceAllStringFunc(css, func(m string) string { return sheet(innermost.FindStringSubmatch(m)[1]) })
			}
			head := strings.NewReplacer("CSS", css, "LINK", sheet(css)).Replace(places[n%len(places)])
			d = a4(head + "<body style='margin:0'>" + block)
			d.Landscape, d.Margins = n%2 == 1, margins(15, 20, 25, 30)
		}
		t.Run(name, func(t *testing.T) {
			if wantSheet(t, printed(t, r, d), d); t.Failed() {
				t.Logf("%s", d.HTML)
			}
		})
	}
}

// fivePages are five pages with a number each.
const fivePages = `<title>Five</title><style>p{break-after:page;margin:0}p:last-child{break-after:auto}</style><p>` +
	`one<p>two<p>three<p>four<p>five`

// Headers and footers are drawn within the margins of each page, with the page's numbers, and run nothing.
func TestHeaderAndFooter(t *testing.T) {
	r := beside(t)
	render := func(header, footer string) (pdf []byte, err error) {
		d := a4(fivePages)
		d.Header, d.Footer = []byte(header), []byte(footer)
		pdf, _, err = r.Render(t.Context(), d)
		return pdf, err
	}
	pdf, err := render(
		`<style>div{font-size:9pt}</style><div>Acme <b class="title"></b></div>`,
		`<div style="font-size:9pt;text-align:right;width:100%">page <span class="pageNumber"></span> of <span `+
			`class=totalPages></span></div>`)
	must.Succeed(t, err)
	text := strings.Join(strings.Fields(pdftest.Text(t, pdf)), " ")
	for _, want := range []string{"Acme Five", "one", "page 1 of 5", "page 5 of 5"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if got := pdftest.Inked(t, pdf); got[0] > 14 || got[2] > 14 {
		t.Errorf("the header and the footer are not in the margins: %v", got)
	}
	pdf, err = render(`<p style="font-size:9pt">head`, "")
	if err != nil || strings.Contains(pdftest.Text(t, pdf), "1/5") || !strings.Contains(pdftest.Text(t, pdf), "head") {
		t.Errorf("a header alone: %q, %v", pdftest.Text(t, pdf), err)
	}
	for _, hostile := range []string{
		`<img src=x onerror="document.body.innerHTML='RAN'">`, `<script>document.body.innerHTML='RAN'</script>`,
		`<svg onload="document.body.innerHTML='RAN'"></svg>`, `<iframe srcdoc="<p>RAN"></iframe>`,
		`<div style="animation:x 1ms" onanimationstart="this.innerText='RAN'">`,
		`<style>@keyframes x{}</style><p style="animation:x 1ms" onanimationend="this.innerText='RAN'">`,
		`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 ` +
			`onerror=document.body.innerText='RAN'&gt;">`,
		`<noscript><p title="</noscript><img src=x onerror=document.body.innerText='RAN'>"></noscript>`,
		`<details open ontoggle="this.innerText='RAN'">`,
		`<style></style><p title="</style><img src onerror=document.body.innerText='RAN'>">`,
		`<a href="javascript:document.body.innerText='RAN'" autofocus onfocus="this.click()">`,
		`<body onload="document.body.innerText='RAN'"><p>`, `<object data="data:text/html,<p>RAN"></object>`,
		`<template shadowrootmode=open><p>RAN</template>`,
	} {
		pdf, err := render(`<div style="font-size:9pt">`+hostile, "")
		if err != nil || strings.Contains(pdftest.Text(t, pdf), "RAN") {
			t.Errorf("%s: %q, %v", hostile, pdftest.Text(t, pdf), err)
		}
	}
}

// TestRanges checks which pages are printed, and that a range without a page is an error of the document.
func TestRanges(t *testing.T) {
	t.Parallel()
	o := limitsOf(t)
	o.Pages = 4
	r := run(t, o)
	for text, want := range map[string]string{
		"1": "one", "2-3": "two three", "5": "five", "4,1-2": "one two four", "2-3,3-4": "two three four",
		"3-99": "three four five", "1,1,1": "one",
		"6": "page_ranges", "1,6": "page_ranges", "6,1-3": "page_ranges", "1-2,9999": "page_ranges",
		"1-5": "more than 4 pages", "1-9999": "more than 4 pages", "": "more than 4 pages",
		"2-5,6": "page_ranges",
	} {
		d := a4(fivePages)
		d.PageRanges = text
		pdf, _, err := r.Render(t.Context(), d)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
			continue
		}
		if got := strings.Join(strings.Fields(pdftest.Text(t, pdf)), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	d := a4(fivePages)
	d.PageRanges, d.Footer = "2", []byte(`<p style="font-size:9pt"><span class=pageNumber></span>/<span `+
		`class=totalPages></span>`)
	pdf, _, err := r.Render(t.Context(), d)
	if err != nil || !strings.Contains(pdftest.Text(t, pdf), "2/") {
		t.Errorf("a footer on page 2: %q, %v", pdftest.Text(t, pdf), err)
	}
}

func TestFirstPages(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 7, "1-7"}, {"1-3,5", 7, "1-3,5-5"}, {"1-3,5", 3, "1-3"}, {"1-3,5", 2, "1-2"}, {"5-9,2", 3, "2-2,5-6"},
		{"2-3,1-2,4", 7, "1-4"},
	} {
		if got := pageRanges(firstPages(c.text, c.n)); got != c.want {
			t.Errorf("%q, %d: %s, want %s", c.text, c.n, got, c.want)
		}
	}
}

// TestScale checks that the content is scaled and the margins are not.
func TestScale(t *testing.T) {
	r := run(t, limitsOf(t))
	var words []int
	for _, scale := range []float64{0.5, 0, 1, 2} {
		d := a4("<body style=margin:0>" + strings.Repeat("Hword ", 3000))
		d.Scale = scale
		pdf := printed(t, r, d)
		if got := pdftest.Inked(t, pdf); got[3] < 14 || got[3] > 16.5 || got[0] < 14 {
			t.Errorf("scale %v: %v", scale, got)
		}
		words = append(words, len(pdftest.Sheets(t, pdf)))
	}
	if words[1] != words[2] || words[0] >= words[1] || words[3] <= words[2] {
		t.Errorf("pages: %v", words)
	}
}

// TestMetadata checks what a PDF says of itself, and that a tagged PDF has tags.
func TestMetadata(t *testing.T) {
	r := beside(t)
	const odd = `(a) \ <b> ස්තුතියි 😀 "q"`
	for _, title := range []string{"", odd} {
		for _, tagged := range []bool{false, true} {
			d := a4(fivePages)
			d.Metadata, d.Tagged = event.Metadata{Title: title, Author: "Nimal (Perera)", Subject: odd, Keywords: "a, b"}, tagged
			pdf := printed(t, r, d)
			want := map[string]string{"Title": "Five", "Author": "Nimal (Perera)", "Subject": odd, "Keywords": "a, b",
				"Tagged": map[bool]string{false: "no", true: "yes"}[tagged], "Pages": "5"}
			if title != "" {
				want["Title"] = title
			}
			for name, value := range want {
				if got := pdftest.Info(t, pdf, name); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
			if pdftest.Info(t, pdf, "CreationDate") == "" ||
				strings.Join(strings.Fields(pdftest.Text(t, pdf)), " ") != "one two three four five" {
				t.Errorf("the update spoils the PDF: %q", pdftest.Text(t, pdf))
			}
		}
	}
	d := a4(fivePages)
	pdf, _, err := r.Render(t.Context(), d)
	if err != nil || bytes.Count(pdf, []byte("%%EOF")) != 1 {
		t.Errorf("a PDF without metadata has an update: %v", err)
	}
	d.Tagged, d.MaxBytes = true, int64(len(pdf))+1000
	if _, _, err := r.Render(t.Context(), d); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a PDF over the limit: %v", err)
	}
}

// A PDF links to http, https, mailto, tel and its own places, without other actions (docs/decisions/pdf.md#pdf-links).
func TestLinks(t *testing.T) {
	r := beside(t)
	text, err := os.ReadFile("testdata/links.html")
	must.Succeed(t, err)
	tagged, header := a4(string(text)), a4("<p>a")
	tagged.Tagged, header.Header, header.Footer = true, text, text
	want := []string{"mailto:a@b.example", "tel:+94771234567", "http://a.example/",
		`https://a.example/(x)?y=\z&%3E%3E/S%20/JavaScript`, "http://frame.example/"}
	for _, d := range []Document{a4(string(text)), tagged, header} {
		pdf := printed(t, r, d)
		if d.Header != nil { // a header has no links at all
			want = nil
		}
		var got []string
		for line := range strings.Lines(string(pdftest.Tool(t, pdf, "pdfinfo", "-url"))) {
			if _, address, ok := strings.Cut(line, "Annotation "); ok {
				got = append(got, strings.TrimSpace(address))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("tagged %v, header %v: links are %q, want %q", d.Tagged, d.Header != nil, got, want)
		}
		if program := pdftest.Tool(t, pdf, "pdfinfo", "-js"); len(program) > 0 {
			t.Errorf("the PDF has the program %s", program)
		}
		if _, update, _ := bytes.Cut(pdf, []byte("%%EOF\n")); len(update) > 0 { // all links of the PDF again
			pdf = update
		}
		named := bytes.Count(pdf, []byte("\n/Dest /top"))
		if actions := bytes.Count(pdf, []byte("/Type /Action\n")); actions != len(want) || named == 0 != (want == nil) {
			t.Errorf("%d actions, %d links to places of the document", actions, named)
		}
	}
}

package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// many are 10,000 elements with addresses of their own.
func many(element string) string {
	var html strings.Builder
	for i := range 10_000 {
		html.WriteString(strings.ReplaceAll(element, "NUMBER", strconv.Itoa(i)))
	}
	return html.String()
}

// BenchmarkBlocked compares documents that name 10,000 blocked resources with documents that name one 10,000 times, by
// the least time of each.
func BenchmarkBlocked(b *testing.B) {
	r := started(b, configuration(b, nil))
	for _, c := range []struct{ kind, start, blocked string }{
		{"images", "", "<img src=http://a.example/NUMBER>"},
		{"relative-images", "<base href=http://a.example/>", "<img src=NUMBER>"},
		{"style-sheets", "", "<link rel=stylesheet href=https://a.example/NUMBER>"},
		{"scripts", "", "<script src=https://a.example/NUMBER></script>"},
		{"backgrounds", "", "<p style='background:url(http://a.example/NUMBER)'>"},
		{"imports", "", "<style>@import url(http://a.example/NUMBER);</style>"},
	} {
		b.Run(c.kind, func(b *testing.B) {
			took := [2]time.Duration{math.MaxInt64, math.MaxInt64}
			for b.Loop() {
				one := strings.Repeat(strings.ReplaceAll(c.blocked, "NUMBER", "1234"), 10_000)
				for i, html := range []string{many(c.blocked), one} {
					ready := r.browser.Ready(b.Context())
					began := time.Now()
					_, _, err := r.render(b.Context(), page(c.start+html))
					must.Succeed(b, errors.Join(ready, err))
					took[i] = min(took[i], time.Since(began))
				}
			}
			b.ReportMetric(float64(took[0])/float64(took[1]), "times")
		})
	}
}

// docs/decisions/pdf.md#pdf-warnings, docs/decisions/pdf.md#pdf-unsupported-css: a warning names each loss of a PDF,
// and the message of a strict document has its selectors and pages. An element that the document does not display
// causes no warning.
func TestWarnings(t *testing.T) {
	files := serveFiles(t)
	r := started(t, configuration(t, files))
	place := regexp.MustCompile(` \((?:[^()]|\([^()]*\))*\)`)
	for want, text := range pdftest.Rows(t, "testdata/warnings.txt") {
		want = strings.TrimPrefix(want, "-")
		html := shape(t, text, map[string]string{"Next": "<p style='break-before:page'>", "Files": files.URL})
		d := page("<!DOCTYPE html><meta charset=utf-8>" + html)
		pdf, got, err := r.render(t.Context(), d)
		if err != nil || got != place.ReplaceAllString(want, "") || len(pdf) == 0 {
			t.Errorf("%.200s: %q, %v, want %q", html, got, err, want)
		}
		d.Strict = true
		_, _, err = r.render(t.Context(), d)
		var rejected *event.RejectionError
		if want == "" && err != nil || want != "" && (!errors.As(err, &rejected) || rejected.ExceedsLimit ||
			rejected.Message != "strict is true, and the document has warnings: "+want || rejected.Address != want) {
			t.Errorf("strict, %.200s: %v, want %q", html, err, want)
		}
	}
	d := page("<p>A")
	for html, want := range map[string]string{
		"<img src=http://a.example/h><img src=data:,>": "resources-blocked;n=2",
		"<script>1</script>":                           "resources-blocked;n=1, scripts-ignored",
		"<script src=https://a.example/s></script><canvas></canvas><iframe src=https://a.example/f></iframe>":          "resources-blocked;n=3, scripts-ignored",
		"<svg><path /></svg><link rel=stylesheet href=https://a.example/l><link rel=icon href=https://a.example/i>":    "resources-blocked;n=3",
		"<p style='background:url(http://a.example/b)'><style>@import \"https://a.example/c\";</style>":                "resources-blocked;n=3",
		"<script type=application/ld+json>{}</script><!--a--><p style='background:url(data:,)'><template>a</template>": "resources-blocked;n=1",
	} {
		d.Header, d.Footer = []byte(html), []byte("<img src=logo.png>") // one of each count
		if _, got, err := r.render(t.Context(), d); err != nil || got != want {
			t.Errorf("%s in a header: %q, %v, want %q", html, got, err, want)
		}
	}
	d.Header = []byte("<img src=http://a.example/h>")
	d.Strict = true
	if _, _, err := r.render(t.Context(), d); err == nil || !strings.HasSuffix(err.Error(), ": resources-blocked;n=2") {
		t.Errorf("strict, images of a header and a footer: %v", err)
	}
	label := page("<style>@page{size:40mm 90mm}</style><body style='margin:0'>" +
		"<div style='overflow:auto'><p style='width:18mm'>A</div>")
	label.CSSSize = true
	if _, got, err := r.render(t.Context(), label); err != nil || got != "" {
		t.Errorf("a label with usual margins: %q, %v", got, err)
	}
}

// docs/decisions/pdf.md#pdf-files: relative addresses of a document, of its header and footer and of its style sheets
// load the files of the request, and nothing else does.
func TestFiles(t *testing.T) {
	font, err := os.ReadFile(filepath.Join(filepath.Dir(pdftest.Browser()), "fonts", "Cousine_700Bold.ttf"))
	must.Succeed(t, err)
	const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><rect width="90" height="90"/>`
	png := pdftest.Chequered(64, 64)
	r := started(t, configuration(t, nil))
	const shows, face = "images", "@font-face{font-family:f;src:url(../f/a.ttf?v=4#x)}p{font-family:f}"
	const own = "<style>@font-face{font-family:f;src:url(a.ttf)}p{font-family:f}</style><p>A"
	type files = map[string]string
	image, drawn := files{"a.png": string(png)}, files{"a.svg": drawing + "</svg>"}
	for _, c := range []struct {
		name, html, header string
		files              files
		want, shown        string // the warnings, or the error; images, or the name of a font
	}{
		{"an image in a folder, with a query", "<img src='./img/a%20%C3%A9.png?v=1#x'>", "",
			files{"img/a é.png": string(png)}, "", shows},
		{"from the root", "<img src=/img/a.png>", "", files{"img/a.png": string(png)}, "", shows},
		{"a style sheet with its import, font and image", "<link rel=stylesheet href=css/a.css><p>A", "", files{
			"css/a.css": "@import 'b.css';p{background:url(../a.png)}", "css/b.css": face, "f/a.ttf": string(font),
			"a.png": string(png)}, "", "Cousine-Bold"},
		{"a font of the document's own style", own, "", files{"a.ttf": string(font)}, "", "Cousine-Bold"},
		{"a font in the document's own style", strings.Replace(own, "a.ttf", "'data:font/ttf;base64,"+
			base64.StdEncoding.EncodeToString(font)+"'", 1), "", nil, "", "Cousine-Bold"},
		{"a drawing", "<img src=a.svg>", "", drawn, "", ""},
		{"a transparent drawing without a size", "<img src=a.svg>", "",
			files{"a.svg": "<?xml version='1.0'?><!DOCTYPE svg><svg xmlns='http://www.w3.org/2000/svg'/>"}, "", ""},
		{"a drawing that names others", "<img src=a.svg>", "", files{"a.svg": drawing +
			"<style>@import 'https://a.example/s';</style><image href='https://a.example/i'/><use href='#a'/></svg>"},
			"resources-blocked;n=2", ""},
		{"a drawing that is no XML", "<img src=a.svg>", "", files{"a.svg": drawing}, "the image a.svg cannot be decoded", ""},
		{"a broken image", "<img src=a.png>", "", files{"a.png": string(png[:40])}, "the image a.png cannot be decoded", ""},
		{"a broken font", own, "", files{"a.ttf": string(font[:900])}, "resources-blocked;n=1", ""},
		{"unused", "<p>A", "", files{"a.png": string(png), "b.css": ""}, "unused-files;n=2", ""},
		{"a font that no text needs", strings.Replace(own, "p{font-family:f}", "", 1), "",
			files{"a.ttf": string(font)}, "", ""},
		{"no such file", "<img src=b.png><link rel=stylesheet href=b.css>", "", image,
			"resources-blocked;n=2, unused-files;n=1", ""},
		{"a base of the document's own", "<base href=http://a.example/><img src=a.png>", "", image,
			"resources-blocked;n=1", ""},
		{"a relative base", "<base href=img/><img src=a.png>", "", files{"img/a.png": string(png)}, "", shows},
		{"a frame", "<iframe src=a.svg></iframe>", "", drawn, "resources-blocked;n=1", ""},
		{"a sprite", "<svg><use href=a.svg#a /></svg>", "", files{"a.svg": drawing + "<g id='a'/></svg>"}, "", ""},
		{"a style sheet that leaves", "<link rel=stylesheet href=a.css><p>A", "", files{
			"a.css": "@import 'http://a.example/c';p{background:url(//a.example/b);list-style:url(x.png)}"},
			"resources-blocked;n=3", ""},
		{"a header", "<p>A", "<link rel=stylesheet href=css/a.css><p>A", files{"a.png": string(png),
			"css/a.css": "@import 'b.css';p{-webkit-print-color-adjust:exact}", "css/b.css": "p{background:url(../a.png)}"}, "",
			shows},
		{"an image and a font of a header", "<p>A",
			"<style>" + strings.ReplaceAll(face, "../", "") + "</style><p><img src=a.png>A",
			files{"a.png": string(png), "f/a.ttf": string(font)}, "resources-blocked;n=1", shows},
		{"a header that leaves", "<p>A", "<link rel=stylesheet href=a.css><p style='background:url(b.png)'>A",
			files{"a.css": "@import 'a.css';p{background:url(http://a.example/)}"}, "resources-blocked;n=3", ""},
		{"too many pixels", "<p>A", "", files{"a.png": string(pdftest.Chequered(9000, 9000))},
			"more than 60000000 pixels", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := page("<!DOCTYPE html>" + c.html)
			d.Header, d.Files = []byte(c.header), map[string][]byte{}
			for name, body := range c.files {
				d.Files[name] = []byte(body)
			}
			pdf, got, err := r.render(t.Context(), d)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasSuffix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%q, want %q", got, c.want)
			}
			if tool := map[bool]string{true: "pdfimages", false: "pdffonts"}[c.shown == shows]; c.shown != "" {
				args := map[string][]string{"pdfimages": {"-list"}}[tool]
				if out := pdftest.Tool(t, pdf, tool, args...); !bytes.Contains(out, []byte(strings.TrimSuffix(c.shown, "s"))) {
					t.Errorf("%s: %s", tool, out)
				}
			}
		})
	}
}

// docs/decisions/pdf.md#pdf-references: numbers of pages and texts of places, and leaders, as CSS Generated Content for
// Paged Media 3 defines them.
func TestReferences(t *testing.T) {
	r := started(t, configuration(t, nil))
	const next = "<div style='break-before:page'></div>"
	counter := func(value string) string { return "<style>a::after{content:" + value + "}</style>" }
	chapters := "<p><a href=#one>A</a><p><a href=#two>B</a>" + next + "<h1 id=one>First  one</h1>" + next + next +
		"<h1><a name=two></a>Second</h1>"
	for _, c := range []struct{ html, want, warnings string }{ // the texts of the first page
		{counter("' on ' target-counter(attr(href), page)") + chapters, "A on 2 B on 4 ", ""},
		{counter("' on ' target-counter(attr(href url), page, upper-roman) ';' !important") +
			"<style>a::after{content:none}</style>" + chapters, "A on II; B on IV; ", ""},
		{"<style>@media print{p{a:after{content:' on ' target-counter(attr(href),page)}}@media screen{a::after{" +
			"content:none}}}</style>" + chapters, "A on 2 B on 4 ", ""},
		{counter("' ' target-text(attr(href)) target-counter('#one', page)") + "<p><a href='#one'>A</a>" + next +
			"<h1 id=one>First  one</h1>", "A First one2 First", ""},
		{"<style>h1::before{content:'1. '}a::after{content:target-text(attr(href), before) target-text(attr(href), " +
			"first-letter)}</style><a href=#x>A</a><h1 id=x>Words</h1>", "A1. W 1. Words", ""},
		{counter("target-counter(attr(href), page)") + "<a href='#caf%C3%A9'>A</a>" + next + "<p id=café>x", "A2", ""},
		{counter("target-counter(attr(href), page)") + "<a href='https://a.example/#one'>A</a><a>B</a>", "AB", ""},
		{counter("target-counter(attr(href), page)") + "<a href=#none>A</a>", "A",
			`unsupported-css;n=1;names="target-counter"`},
		{counter("target-counter(attr(href), page)") + "<a href=#x>A</a><p id=x hidden>x", "A",
			`unsupported-css;n=1;names="target-counter"`},
		{counter("target-counter(attr(href), chapter) leader('.')") + chapters, "A B First",
			`unsupported-css;n=2;names="target-counter leader"`},
	} {
		d := page("<!DOCTYPE html><meta charset=utf-8><style>body{margin:0}</style>" + c.html)
		pdf, warnings, err := r.render(t.Context(), d)
		if err != nil || warnings != c.warnings {
			t.Errorf("%.300s: %q, %v, want %q", c.html, warnings, err, c.warnings)
			continue
		}
		if text := pdftest.Text(t, pdf); !strings.HasPrefix(text, c.want) {
			t.Errorf("%.300s: %q, want %q", c.html, text, c.want)
		}
	}

	// The contents of many pages name the pages on which poppler finds the chapters, also where only some are printed.
	var contents, headings strings.Builder
	for i := range 120 {
		fmt.Fprintf(&contents, "<p><a href='#c%d'>C%d </a></p>", i, i)
		fmt.Fprintf(&headings, "<h1 id=c%d>Chapter %d.</h1><div style='height:%dmm'></div>", i, i, 20+i%7*40)
	}
	d := page("<style>body{margin:0}</style>" + counter("leader('.') ' ' target-counter(attr(href), page)") +
		contents.String() + next + headings.String())
	pdf, _, err := r.render(t.Context(), d)
	must.Succeed(t, err)
	names := regexp.MustCompile(`C(\d+) \.{100,} (\d+)`).FindAllStringSubmatch(pdftest.Text(t, pdf), -1)
	for _, name := range names {
		text := string(pdftest.Tool(t, pdf, "pdftotext", "-f", name[2], "-l", name[2]))
		if !strings.Contains(text, "Chapter "+name[1]+".") {
			t.Errorf("chapter %s is not on page %s", name[1], name[2])
		}
	}
	if len(names) != 120 {
		t.Errorf("%d names with leaders in the contents", len(names))
	}
	if right := pdftest.Inked(t, pdf)[1]; right < 15 || right > 16.5 {
		t.Errorf("the leaders end %.1f mm before the edge of the page", right)
	}
	d.PageRanges = "1"
	if part, _, err := r.render(t.Context(), d); err != nil ||
		!strings.HasPrefix(pdftest.Text(t, pdf), pdftest.Text(t, part)) {
		t.Errorf("another text of the first page alone, %v", err)
	}
}

// docs/decisions/pdf.md#pdf-content-height: a page ends where its content ends, whatever the content is.
func TestContentHeight(t *testing.T) {
	r := started(t, configuration(t, nil))
	const plain = "<!DOCTYPE html><meta charset=utf-8><style>*{margin:0}div{height:50mm;background:#ccc}</style>"
	next := "<div style='break-before:page;height:70mm'></div>"
	for _, c := range []struct {
		name, html string
		e          event.Event
		pages      int
		height     float64 // millimetres of the content; 0: not known
		message    string
	}{
		{"short", plain + "<div></div>", event.Event{}, 1, 50, ""},
		{"nothing", plain, event.Event{}, 1, 2, ""},
		{"margins", plain + "<body style='margin:10mm 0'><div></div>", event.Event{}, 1, 70, ""},
		{"quirks", "<style>*{margin:0}</style><div style='height:50mm'></div><p>", event.Event{}, 1, 50, ""},
		{"text", plain + strings.Repeat("<p>ශ්\u200dරී receipt of several words that fill a line of paper", 99),
			event.Event{}, 1, 0, ""},
		{"long", plain + strings.Repeat("<div></div>", 100), event.Event{}, 1, 5000, ""},
		{"highest", plain + "<div style='height:5071.5mm'></div>", event.Event{}, 1, 5071.5, ""},
		{"too high", plain + strings.Repeat("<div></div>", 120), event.Event{}, 0, 0,
			"with its margins the content is 6008 mm high, and a page has at most 5080 mm"},
		{"far too high", plain + strings.Repeat("<div></div>", 9000), event.Event{}, 0, 0,
			"with its margins the content is 449990 mm high, and a page has at most 5080 mm"},
		{"too high before a break", plain + strings.Repeat("<div></div>", 120) + next, event.Event{}, 0, 0,
			"with its margins the content is 6078 mm high, and a page has at most 5080 mm"},
		{"break", plain + "<div></div>" + next, event.Event{}, 2, 70, ""},
		{"breaks", plain + strings.Repeat("<div></div>", 90) + next + strings.Repeat("<div></div>", 60),
			event.Event{}, 2, 4500, ""},
		{"second page", plain + "<div></div>" + next, event.Event{PageRanges: "2"}, 1, 70, ""},
		{"scale", plain + "<div></div>", event.Event{Scale: 0.5}, 1, 25, ""},
		{"of the window", plain + "<body style='min-height:100vh'><div></div>", event.Event{}, 1, 50, ""},
		{"half of the window", plain + "<body style='padding-top:50vh'><div></div>", event.Event{}, 1, 100, ""},
		{"wide", plain + "<div></div><table style='width:100mm;height:30mm'><td>A", event.Event{}, 1, 80 * 72 / 100., ""},
		{"landscape", plain + "<div></div>", event.Event{PageSize: "A4", Landscape: true}, 1, 50, ""},
	} {
		c.e.HTML, c.e.ContentHeight, c.e.Margins, c.e.MaxBytes = []byte(c.html), true, around(4), 1<<20
		width := 297.0
		if c.e.PageSize == "" {
			width, c.e.PageWidth = 80, 80
		}
		result := handled(t, r, c.e)
		if result.Rejection != nil || c.message != "" {
			if result.Rejection == nil || result.Rejection.Message != c.message || result.Rejection.ExceedsLimit {
				t.Errorf("%s: %+v, want %q", c.name, result.Rejection, c.message)
			}
			continue
		}
		sheets := pdftest.Sheets(t, result.PDF)
		got := sheets[0][1]*25.4/72 - 8
		if len(sheets) != c.pages || c.height > 0 && math.Abs(got-c.height) > 1 ||
			math.Abs(sheets[0][0]*25.4/72-width) > 0.7 {
			t.Errorf("%s: %d pages, %v, content %.2f", c.name, len(sheets), sheets[0], got)
		}
		if m := pdftest.Inked(t, result.PDF); c.name == "text" && m[2] > 6 {
			t.Errorf("%.1f mm below the text", m[2])
		}
	}
}

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"svcapi/test/pdftest"
)

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
			"<style>a::after{content:none}" +
			"</style>" + chapters, "A on II; B on IV; ", ""},
		{"<style>@media print{p{a:after{content:' on ' target-counter(attr(href),page)}}@media screen{a::after{" +
			"content:none}}}</style>" + chapters, "A on 2 B on 4 ", ""},
		{counter("' ' target-text(attr(href)) target-counter('#one', page)") + "<p><a href='#one'>A</a>" + next +
			"<h1 id=one>First  one</h1>", "A First one2 First", ""},
		{"<style>h1::before{content:'1. '}a::after{content:target-text(attr(href), before) target-text(attr(href), " +
			"first-letter)}" +
			"</style><a href=#x>A</a><h1 id=x>Words</h1>", "A1. W 1. Words", ""},
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
	if err != nil {
		t.Fatal(err)
	}
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

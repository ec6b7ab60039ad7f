package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"svcapi/functions/pdf/render/event"
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
					if err := errors.Join(ready, err); err != nil {
						b.Fatal(err)
					}
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
	const next = "<p style='break-before:page'>"
	for html, want := range map[string][2]string{ // the header, and the end of the message; empty: as the header
		"<p>A<img src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAAC'>": {},
		"<p>A" + next + "<b>\uf015</b>": {"missing-glyphs",
			"missing-glyphs (b U+F015 on page 2)"},
		"<style>i::before{content:'\\f015'}</style><i></i><p hidden>\uf015": {"missing-glyphs",
			"missing-glyphs (i U+F015 on page 1)"},
		"<p hidden>\uf015": {},
		"<link rel=stylesheet href=https://a.example/a><link rel=stylesheet media=screen href=https://a.example/b>": {"resources-blocked;n=1", "resources-blocked;n=1 (head > link:nth-of-type(1))"},
		"<img src=http://a.example/a><i>x</i>" + next +
			"<img id=b src=http://a.example/a><img src=c.png><img hidden src=http://a.example/d>": {"resources-blocked;n=2",
			"resources-blocked;n=2 (body > img:nth-of-type(1) on page 1, #b on page 2, img:nth-of-type(2) on page 2)"},
		"<style>@font-face{font-family:f;src:url(https://a.example/f)}@font-face{font-family:g;" +
			"src:url(https://a.example/g)}p{font-family:f}</style><p>A": {"resources-blocked;n=1",
			"resources-blocked;n=1 (head > style:nth-of-type(1))"},
		"<style>@import'https://a.example/i';" +
			"p{background:url(http://a.example/p)}i{background:url(http://a.example/i2)}</style><p>A": {"resources-blocked;n=2",
			"resources-blocked;n=2 (head > style:nth-of-type(1), p on page 1)"},
		"<noscript><iframe style='display:none' src=https://a.example/></iframe></noscript><iframe " +
			"src=https://a.example/f></iframe>": {"resources-blocked;n=1",
			"resources-blocked;n=1 (iframe:nth-of-type(2) on page 1)"},
		"<style>@media print{.no{display:none}}</style><div class=no><img src=http://a.example/a><canvas></canvas></div>": {},
		"<script src=https://a.example/a.js></script><script type=application/ld+json>{}</script>":                        {"resources-blocked;n=1, scripts-ignored", "resources-blocked;n=1 (head > script:nth-of-type(1)), scripts-ignored (head > script:nth-of-type(1))"},
		"<script type=application/ld+json>{}</script><template><script>1</script></template><p><noscript><script>1</script>" +
			"</noscript><script></script>": {},
		"<style>@font-face{font-family:f;src:url(\"data:font/woff2;base64,AA==\")}p{font-family:f;fill:url('#a')}</style><p>A": {},
		"<style>@font-face{font-family:f;src:url(data:,)}p{background:url(" + files.URL +
			"/PNG)}</style><p>A": {},
		"<style>@font-face{font-family:f;src:url('data:,')}</style><p style='background:url(http://a.example/p)'>A": {"resources-blocked;n=1", "resources-blocked;n=1 (p on page 1)"},
		"<style>@import url(http://a.example/s) screen;p{background:none!important}</style><p " +
			"style='background:url(http://a.example/p)'>A": {},
		"<style>p::after{content:url(http://a.example/a)}p::before{background:url(http://a.example/b)}</style><p>A":    {"resources-blocked;n=1", "resources-blocked;n=1 (p on page 1)"},
		"<style>@media screen{p{background:url(http://a.example/p)}}</style><p>A":                                      {},
		"<style>i::before{content:'\\f015';display:none}b::after{content:'\\f015';font-size:0}</style><i></i><b></b>A": {},
		"<style>i::before{content:'\\f015';visibility:hidden}</style><i></i>A<b style='font-size:0'>\uf015</b>":        {},
		"<style>" + strings.Repeat("@media print{", 5000) +
			"@font-face{font-family:f;src:url(data:,)}</style><p>A": {},
		"<p><canvas>A</canvas><canvas hidden></canvas>": {},
		"<p><canvas></canvas>":                          {"scripts-ignored", "scripts-ignored (canvas on page 1)"},
		"<p>A" + next + "<table id=t style='width:200mm'><td>A</table>": {"content-shrunk",
			"content-shrunk (#t on page 2)"},
		"<p style='width:400mm'>A": {"content-clipped, content-shrunk",
			"content-clipped (p on page 1), content-shrunk (p on page 1)"},
		"<div style='overflow-x:auto'><div style='width:300mm'>A</div></div>": {"content-clipped",
			"content-clipped (body > div:nth-of-type(1) on page 1)"},
		"<style>@media print{li::after{content:target-counters(attr(href),a,'.') target-counter(attr(href),a)}}@media screen{p{string-set:a}}" +
			"i{position:running(a)}p{float:footnote;bookmark-level:1}@page{@top-left{content:string(a)}@footnote{margin:0}}" +
			"p{content:counter(page);float:left}</style><p>A<ul><li>B</ul>": {
			`unsupported-css;n=6;names="target-counters target-counter footnote bookmark-level string"`,
			`unsupported-css;n=6;names="target-counters target-counter footnote bookmark-level string" (li on page 1, ` +
				`p on page 1, html on page 1)`},
		"<style>li{float:footnote}/* p{float:footnote} */ p::before{content:'float: footnote'}</style><p>A": {},
		"<p style='position:running(a)'>A": {`unsupported-css;n=1;names="running"`,
			`unsupported-css;n=1;names="running" (p on page 1)`},
		"<div style='overflow:hidden'><div style='width:300mm'>A</div></div>":              {},
		"<p style='overflow:hidden;width:9mm'>A_long_word<p style='transform:scale(.5)'>A": {},
		"<form><img name=querySelectorAll><input name=parentElement></form><script>1</script><p>A": {"scripts-ignored",
			"scripts-ignored (script)"},
		"<base href=http://a.example/>" + many("<img src=NUMBER>"): {"resources-blocked;n=10000",
			"resources-blocked;n=10000 (body > img:nth-of-type(1) on page 1, img:nth-of-type(2) on page 1, img:nth-of-type(3) " +
				"on page 1)"},
	} {
		d := page("<!DOCTYPE html><meta charset=utf-8>" + html)
		pdf, got, err := r.render(t.Context(), d)
		if err != nil || got != want[0] || len(pdf) == 0 {
			t.Errorf("%.200s: %q, %v, want %q", html, got, err, want[0])
		}
		d.Strict = true
		_, _, err = r.render(t.Context(), d)
		var rejected *event.RejectionError
		if want[1] == "" && err != nil || want[1] != "" && (!errors.As(err, &rejected) || rejected.ExceedsLimit ||
			rejected.Message != "strict is true, and the document has warnings: "+want[1] || rejected.Address != want[1]) {
			t.Errorf("strict, %.200s: %v, want %q", html, err, want[1])
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
}

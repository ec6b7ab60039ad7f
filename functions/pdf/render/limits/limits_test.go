package limits

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/pdftest"
)

var limits = Limits{Elements: 100, Depth: 20, Tables: 3, Pixels: 5000}

// Each limit of elements, depth, tables and image pixels returns an error that names the limit.
func TestCheck(t *testing.T) {
	small, large := pdftest.DataPNG(60, 60), pdftest.DataPNG(80, 80)
	quoted := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;")
	plain, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(large, "data:image/png;base64,"))
	tests := []struct{ name, html, want string }{
		{"empty", "", ""},
		{"text", "hello & <3", ""},
		{"as many elements as allowed", strings.Repeat("<p>x</p>", 100), ""},
		{"one element more", strings.Repeat("<p>x</p>", 101), "elements"},
		{"void elements count", strings.Repeat("<br>", 101), "elements"},
		{"within noscript", "<noscript>" + strings.Repeat("<br>", 101) + "</noscript>", "elements"},
		{"within an SVG title", "<svg><title>" + strings.Repeat("<g/>", 101) + "</title></svg>", "elements"},
		{"within an SVG style", "<svg><style>" + strings.Repeat("<g/>", 101), "elements"},
		{"text area holds no elements", "<textarea>" + strings.Repeat("<br>", 101) + "</textarea>", ""},
		{"comments hold no elements", "<!--" + strings.Repeat("<br>", 101) + "-->", ""},
		{"frames within count", `<iframe srcdoc="` + strings.Repeat("&lt;br>", 101) + `">`, "elements"},
		{"frames within frames count",
			`<iframe srcdoc="` + quoted.Replace(`<iframe srcdoc="`+quoted.Replace(strings.Repeat("<br>", 101))+`">`) +
				`">`, "elements"},
		{"depth", strings.Repeat("<div>", 21), "depth"},
		{"depth of inline elements", strings.Repeat("<b>", 21), "depth"},
		{"as deep as allowed", strings.Repeat("<div>", 20), ""},
		{"depth in SVG", "<svg>" + strings.Repeat("<g>", 20), "depth"},
		{"self-closing SVG is not deep", "<svg>" + strings.Repeat("<path/>", 40), ""},
		{"a slash closes nothing in HTML", strings.Repeat("<div/>", 21), "depth"},
		{"rows without end tags", "<table>" + strings.Repeat("<tr><td>x<td>y", 30), ""},
		{"sections without end tags", "<table><thead><tr><td>x<tbody>" + strings.Repeat("<tr><th>x<td>y", 30), ""},
		{"items without end tags", "<ul>" + strings.Repeat("<li>x", 90), ""},
		{"terms without end tags", "<dl>" + strings.Repeat("<dt>x<dd>y", 45), ""},
		{"options without end tags", "<select>" + strings.Repeat("<option>x", 90), ""},
		{"paragraphs without end tags", strings.Repeat("<p>x", 90), ""},
		{"paragraphs ended by blocks", strings.Repeat("<p>x<div>y</div>", 45), ""},
		{"stray end tags", strings.Repeat("</div>", 500), ""},
		{"nested tables", strings.Repeat("<table><tr><td>", 4), "tables"},
		{"tables side by side", strings.Repeat("<table><tr><td></table>", 20), ""},
		{"a data image", "<img src=" + small + ">", ""},
		{"a large data image", "<img src=" + large + ">", "pixels"},
		{"two data images", "<img src=" + small + "><img src='" + small + "'>", "pixels"},
		{"in any attribute", `<table background="` + large + `">`, "pixels"},
		{"in srcset", `<img srcset="` + small + " 1x, " + small + ` 2x">`, "pixels"},
		{"in a style attribute", `<p style="background:url('` + large + `')">`, "pixels"},
		{"in a style sheet", "<style>p{background:url(" + large + ")}</style>", "pixels"},
		{"in a frame", `<iframe srcdoc="` + quoted.Replace("<img src="+large+">") + `">`, "pixels"},
		{"in upper case", "<img src=" + strings.Replace(large, "data:image/png;base64", "DATA:IMAGE/PNG;BASE64", 1) +
			">", "pixels"},
		{"with white space", "<img src='" + strings.Replace(large, ",", ", \n", 1) + "'>", "pixels"},
		{"with entities", "<img src='" + strings.Replace(large, ":", "&colon;", 1) + "'>", "pixels"},
		{"percent-encoded", "<img src='data:image/png," + strings.ReplaceAll(url.QueryEscape(string(plain)), "+", "%20") +
			"'>", "pixels"},
		{"a broken data image", "<img src='data:image/png;base64,////'>", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := limits.Check(nil, test.html)
			var refused *event.RejectionError
			switch {
			case errors.As(err, &refused):
				if refused.Reason != test.want || refused.Message == "" {
					t.Errorf("got %q, want %q", refused.Reason, test.want)
				}
			case err != nil || test.want != "":
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// The time of Check is proportional to the size of the document.
func TestCheckIsLinear(t *testing.T) {
	unlimited := Limits{Elements: 1 << 30, Depth: 500, Tables: 500, Pixels: 1 << 40}
	const full = 262_144
	for _, unit := range []string{
		"<", "<a", "<a ", "<!--", "</", "&", "&amp;", "<p>", "<b></b>", "<div></div>", "</div>", "<li>", "<table>", "<svg>",
		"<style>",
		"data:", "data:,", "data:;base64,", "data:%", "data:(,", "<a b=data:,>", "<a style='data:,data:,'>", "<tr><td>",
		"<p><b>", "<iframe srcdoc='",
		"<iframe srcdoc=\"&lt;", "\x00", "<![CDATA[", "<title>", "<noscript>", "<p a", "<p =",
	} {
		for _, wrap := range []string{"%s", "<style>%s", "<img src=\"%s\">"} {
			took := func(bytes int) time.Duration {
				document := fmt.Sprintf(wrap, strings.Repeat(unit, bytes/len(unit)))
				began := time.Now()
				_ = unlimited.Check(nil, document)
				return time.Since(began)
			}
			least := func(bytes int) time.Duration { return min(took(bytes), took(bytes), took(bytes)) }
			var ratio float64
			for range 5 { // another program can take the processor
				if ratio = float64(least(full)) / float64(least(full/8)); ratio < 24 {
					break
				}
			}
			if ratio >= 24 {
				t.Errorf("%q in %q: eight times the text takes %.0f times as long", unit, wrap, ratio)
			}
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("<table><tr><td>x<svg><title>y</svg><iframe srcdoc='<p>'>")
	f.Add("<style>a{b:url(data:image/png;base64,AAAA)}")
	f.Add("<style media=print>@page{@footnote{a:b}}p::footnote-call,a{&{float:footnote;content:leader('.'}}</style><p " +
		"style='x:string('")
	f.Fuzz(func(t *testing.T, document string) {
		_ = limits.Check(nil, document)
		Declarations(document, document)
		References(document)
	})
}

// Block renames what the browser would not load, leaves every other byte of the document, and reads markup as a browser
// does.
func TestBlock(t *testing.T) {
	for document, want := range map[string]string{
		"<p CLASS=a>x<IMG Alt='1' src = a.png>": `<p CLASS=a>x<img alt="1" svc-blocked="a.png">`,
		"<link REL=stylesheet href='https://a.example/?b&amp;c'/>y": `<link rel="stylesheet" ` +
			`svc-blocked="https://a.example/?b&amp;c"/>y`,
		"<script src=//a.example></script>":                `<script svc-blocked="//a.example"></script>`,
		"<iframe src=https://a.example></iframe>":          `<iframe svc-blocked="https://a.example"></iframe>`,
		"<svg><image xlink:href=http://a.example /></svg>": `<svg><image svc-blocked="http://a.example"/></svg>`,
		"<video poster=https://a.example src=https://a.example>": `<video poster="https://a.example" ` +
			`svc-blocked="https://a.example">`,
		"<noscript><img src=http://a.example></noscript>": `<noscript><img svc-blocked="http://a.example"></noscript>`,
		"<img srcset='http://a.example 1x, https://b.example 2x'>": `<img svc-blocked="http://a.example 1x, ` +
			`https://b.example 2x">`,
		"<td background=http://a.example>": `<td svc-blocked="http://a.example">`,
		"<p style='background:url(http://a.example) red'>": `<p style="background:image-set(&#34;&#34; ` +
			`type(&#34;svc-blocked&#34;)) red" svc-style="http://a.example">`,
		"<style>/*url(a)*/a::before{content:'url(b)' URL( \"c\" )}@page{@top-left{}background:url(d)}b{mask:url(e)}": "<style>/*url(a)*/a::before{content:'url(b)' image-set(\"c\" " +
			"type(\"svc-blocked\"))}@page{@top-left{}background:url(d)}b{mask:image-set(\"e\" type(\"svc-blocked\"))}",
		"<style>@import url(a) print/**/;@IMPORT 'b'</style>": "<style>@svc-blocked url(a) print/**/;@svc-blocked 'b'</style>",
		"<base href=http://a.example/><img src=b.png>":        `<base href=http://a.example/><img svc-blocked="b.png">`,
		"<base href=https://a.example/><link rel=stylesheet href=b.css>": `<base href=https://a.example/><link ` +
			`rel="stylesheet" svc-blocked="b.css">`,
		// Nothing is blocked below.
		"<style>a{--a:url(a);filter:url(b);background:url(https://a.example),url(#a),-x(url(c))}@import url(d);</style>": "",
		"<style>a{}@import url(a);</style><p style='@import url(a)'>":                                                    "",
		"<style>@import url(a) layer(b);a{background:url(a\\)}</style><svg><style>a{background:url(b)}</style></svg>":    "",
		"<IMG src=https://a.example><img src=' DATA:image/png;base64,'><img src=''><img>":                                "",
		"<base href=https://a.example><img src=a.png>":                                                                   "",
		"<base href=http://a.example/><base href=https://b.example/><img src=a.png>":                                     "",
		"<!--<base href=https://a.example/>--><img src=a.png>":                                                           "",
		`<base href=https:\\a.example/><img src=a.png>`:                                                                  "",
		`<base href=http://a.example/><img src=\\b.example>`:                                                             "",
		"<iframe srcdoc=a src=https://a.example></iframe><iframe src=about:blank>":                                       "",
		"<svg><use href='#a' /></svg><a href=http://a.example>a</a>":                                                     "",
		"<textarea><img src=a></textarea><!--<img src=a>--><title><img src=a></title>":                                   "",
	} {
		if want == "" {
			want = document
		}
		if got := Block(document, func(u *url.URL, image bool) bool { return image && u.Scheme == "https" }); got != want {
			t.Errorf("%s\nis  %s\nnot %s", document, got, want)
		}
	}
}

// Only fonts in a style sheet need no layout: an image, an address elsewhere, or a face that a comment may end does.
func TestNeedsLayout(t *testing.T) {
	const font = "@font-face{src:URL( 'data:font/ttf;base64,AA')}"
	for sheet, want := range map[string][2]bool{
		"p{color:red}":                                         {false, false},
		font + "@font-face {" + font[11:]:                      {false, true},
		font + "p{background:url(data:image/png,)}":            {true, false},
		"@font-face{src:url(data:font/ttf,AA),url(//a)}":       {true, false},
		"/*@font-face{*/p{background:url(data:font/ttf,)}":     {true, false},
		"@font-face{/*}*/}p{background:url(data:image/png,)/*": {true, false},
		strings.Repeat(font, mostFonts+1):                      {true, false},
	} {
		if layout, fonts := NeedsLayout("<style>" + sheet); want != [2]bool{layout, fonts} {
			t.Errorf("%s: layout %t, fonts %t", sheet, layout, fonts)
		}
	}
}

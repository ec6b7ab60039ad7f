package limits

import (
	"net/url"
	"strings"
	"testing"
)

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

package limits

import (
	"net/url"
	"testing"
)

// Block renames what the browser would not load, leaves every other byte of the document, and reads markup as a browser does.
func TestBlock(t *testing.T) {
	for document, want := range map[string]string{
		"<p CLASS=a>x<IMG Alt='1' src = a.png>":                     `<p CLASS=a>x<img alt="1" svc-src="a.png">`,
		"<link REL=stylesheet href='https://a.example/?b&amp;c'/>y": `<link rel="stylesheet" svc-href="https://a.example/?b&amp;c"/>y`,
		"<script src=//a.example></script>":                         `<script svc-src="//a.example"></script>`,
		"<iframe src=https://a.example></iframe>":                   `<iframe svc-src="https://a.example"></iframe>`,
		"<svg><image xlink:href=http://a.example /></svg>":          `<svg><image svc-href="http://a.example"/></svg>`,
		"<video poster=https://a.example src=https://a.example>":    `<video poster="https://a.example" svc-src="https://a.example">`,
		"<noscript><img src=http://a.example></noscript>":           `<noscript><img svc-src="http://a.example"></noscript>`,
		"<img srcset='http://a.example 1x, https://b.example 2x'>":  `<img svc-srcset="http://a.example 1x, https://b.example 2x">`,
		// Nothing is renamed below.
		"<IMG src=https://a.example><img src=' DATA:image/png;base64,'><img src=''><img>": "",
		"<base href=https://a.example><img src=a.png>":                                    "",
		"<iframe srcdoc=a src=https://a.example></iframe><iframe src=about:blank>":        "",
		"<svg><use href='#a' /></svg><a href=http://a.example>a</a>":                      "",
		"<textarea><img src=a></textarea><!--<img src=a>--><title><img src=a></title>":    "",
	} {
		if want == "" {
			want = document
		}
		if got := Block(document, func(u *url.URL) bool { return u.Scheme == "https" }); got != want {
			t.Errorf("%s\nis  %s\nnot %s", document, got, want)
		}
	}
}

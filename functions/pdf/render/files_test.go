package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svcapi/test/pdftest"
)

// docs/decisions/pdf.md#pdf-files: relative addresses of a document, of its header and footer and of its style sheets
// load the files of the request, and nothing else does.
func TestFiles(t *testing.T) {
	font, err := os.ReadFile(filepath.Join(filepath.Dir(pdftest.Browser()), "fonts", "Cousine_700Bold.ttf"))
	if err != nil {
		t.Fatal(err)
	}
	const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><rect width="90" height="90"/>`
	png := pdftest.Chequered(64, 64)
	r := started(t, configuration(t, nil))
	const shows, face = "images", "@font-face{font-family:f;src:url(../f/a.ttf?v=4#x)}p{font-family:f}"
	for _, c := range []struct {
		name, html, header string
		files              map[string]string
		want, shown        string // the warnings, or the error; images, or the name of a font
	}{
		{"an image in a folder, with a query", "<img src='./img/a%20%C3%A9.png?v=1#x'>", "",
			map[string]string{"img/a é.png": string(png)}, "", shows},
		{"from the root", "<img src=/img/a.png>", "", map[string]string{"img/a.png": string(png)}, "", shows},
		{"a style sheet with its import, font and image", "<link rel=stylesheet href=css/a.css><p>A", "", map[string]string{
			"css/a.css": "@import 'b.css';p{background:url(../a.png)}", "css/b.css": face, "f/a.ttf": string(font),
			"a.png": string(png)}, "", "Cousine-Bold"},
		{"a font of the document's own style", "<style>@font-face{font-family:f;src:url(a.ttf)}p{font-family:f}</style><p>A",
			"", map[string]string{"a.ttf": string(font)}, "", "Cousine-Bold"},
		{"a font in the document's own style", "<style>@font-face{font-family:f;src:url('data:font/ttf;base64," +
			base64.StdEncoding.EncodeToString(font) + "')}p{font-family:f}</style><p>A", "", nil, "", "Cousine-Bold"},
		{"a drawing", "<img src=a.svg>", "", map[string]string{"a.svg": drawing + "</svg>"}, "", ""},
		{"a transparent drawing without a size", "<img src=a.svg>", "",
			map[string]string{"a.svg": "<?xml version='1.0'?><!DOCTYPE svg><svg xmlns='http://www.w3.org/2000/svg'/>"}, "", ""},
		{"a drawing that names others", "<img src=a.svg>", "", map[string]string{"a.svg": drawing +
			"<style>@import 'https://a.example/s';</style><image href='https://a.example/i'/><use href='#a'/></svg>"},
			"resources-blocked;n=2", ""},
		{"a drawing that is no XML", "<img src=a.svg>", "", map[string]string{"a.svg": drawing},
			"the image a.svg cannot be decoded", ""},
		{"a broken image", "<img src=a.png>", "", map[string]string{"a.png": string(png[:40])},
			"the image a.png cannot be decoded", ""},
		{"a broken font", "<style>@font-face{font-family:f;src:url(a.ttf)}p{font-family:f}</style><p>A", "",
			map[string]string{"a.ttf": string(font[:900])}, "resources-blocked;n=1", ""},
		{"unused", "<p>A", "", map[string]string{"a.png": string(png), "b.css": ""}, "unused-files;n=2", ""},
		{"a font that no text needs", "<style>@font-face{font-family:f;src:url(a.ttf)}</style><p>A", "",
			map[string]string{"a.ttf": string(font)}, "", ""},
		{"no such file", "<img src=b.png><link rel=stylesheet href=b.css>", "", map[string]string{"a.png": string(png)},
			"resources-blocked;n=2, unused-files;n=1", ""},
		{"a base of the document's own", "<base href=http://a.example/><img src=a.png>", "",
			map[string]string{"a.png": string(png)}, "resources-blocked;n=1", ""},
		{"a relative base", "<base href=img/><img src=a.png>", "", map[string]string{"img/a.png": string(png)}, "", shows},
		{"a frame", "<iframe src=a.svg></iframe>", "", map[string]string{"a.svg": drawing + "</svg>"},
			"resources-blocked;n=1", ""},
		{"a sprite", "<svg><use href=a.svg#a /></svg>", "",
			map[string]string{"a.svg": drawing + "<g id='a'/></svg>"}, "", ""},
		{"a style sheet that leaves", "<link rel=stylesheet href=a.css><p>A", "", map[string]string{
			"a.css": "@import 'http://a.example/c';p{background:url(//a.example/b);list-style:url(x.png)}"},
			"resources-blocked;n=3", ""},
		{"a header", "<p>A", "<link rel=stylesheet href=css/a.css><p>A", map[string]string{"a.png": string(png),
			"css/a.css": "@import 'b.css';p{-webkit-print-color-adjust:exact}", "css/b.css": "p{background:url(../a.png)}"}, "",
			shows},
		{"an image and a font of a header", "<p>A",
			"<style>" + strings.ReplaceAll(face, "../", "") + "</style><p><img src=a.png>A",
			map[string]string{"a.png": string(png), "f/a.ttf": string(font)}, "resources-blocked;n=1", shows},
		{"a header that leaves", "<p>A", "<link rel=stylesheet href=a.css><p style='background:url(b.png)'>A",
			map[string]string{"a.css": "@import 'a.css';p{background:url(http://a.example/)}"}, "resources-blocked;n=3", ""},
		{"too many pixels", "<p>A", "", map[string]string{"a.png": string(pdftest.Chequered(9000, 9000))},
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

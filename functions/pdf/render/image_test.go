package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"svcapi/test/must"
	"svcapi/test/pdftest"
)

// serveFiles serves images by their names, with "-" for a space.
func serveFiles(t *testing.T) *httptest.Server {
	files := map[string][]byte{}
	for _, i := range pdftest.Images() {
		files["/"+fileName(i.Name)] = i.Body
	}
	return pdftest.Serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(files[r.URL.Path]) })
}

func fileName(name string) string { return strings.ReplaceAll(name, " ", "-") }

// docs/decisions/pdf.md#pdf-images: the browser draws an image by its address as the same image in a data URL. Only an
// image that the browser cannot draw at all, and one that is too large, is an error.
func TestImages(t *testing.T) {
	server := serveFiles(t)
	r := started(t, configuration(t, server))
	const box = "<body style='margin:0'><div style='width:100mm;height:100mm;background:url(ADDRESS) 0 0/100% 100%'>"
	draw := func(address string) (pdf []byte, err error) {
		pdf, _, err = r.render(t.Context(), page(strings.Replace(box, "ADDRESS", address, 1)))
		return pdf, err
	}
	empty, err := draw("")
	must.Succeed(t, err)
	blank, intact := pdftest.PNG(t, empty, 1, 72), map[string]pdftest.Margins{}
	for _, i := range pdftest.Images() {
		t.Run(i.Name, func(t *testing.T) {
			byAddress, err := draw(server.URL + "/" + fileName(i.Name))
			asData, dataErr := draw("data:image/png;base64," + base64.StdEncoding.EncodeToString(i.Body))
			switch i.Drawn {
			case pdftest.Refused:
				if want := fmt.Sprintf("has %d pixels; at most 20000000", i.Pixels); err == nil ||
					!strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
				if dataErr == nil || !strings.Contains(dataErr.Error(), "more than 60000000 pixels") {
					t.Errorf("as data: %v", dataErr)
				}
				return
			case pdftest.Nothing:
				if err == nil || !strings.HasSuffix(err.Error(), fileName(i.Name)+" cannot be decoded") {
					t.Errorf("got %v", err)
				}
				if dataErr != nil || !bytes.Equal(pdftest.PNG(t, asData, 1, 72), blank) {
					t.Errorf("as data the image is drawn: %v", dataErr)
				}
				return
			}
			if err != nil || dataErr != nil {
				t.Fatalf("got %v, as data %v", err, dataErr)
			}
			got := pdftest.PNG(t, byAddress, 1, 72)
			if !bytes.Equal(got, pdftest.PNG(t, asData, 1, 72)) {
				t.Error("by its address the image is drawn differently")
			}
			if bytes.Equal(got, blank) != (i.Drawn == pdftest.Clear) {
				t.Errorf("blank: %v", bytes.Equal(got, blank))
			}
			if i.Drawn == pdftest.Clear {
				return
			}
			format, _, _ := strings.Cut(strings.ReplaceAll(i.Name, ",", ""), " ")
			ink := pdftest.Inked(t, byAddress)
			if _, ok := intact[format]; !ok {
				intact[format] = ink
			}
			if all := ink.Near(intact[format], 2); all != (i.Drawn == pdftest.Whole) {
				t.Errorf("the ink is %v, that of an intact image %v", ink, intact[format])
			}
		})
	}
}

// A broken image is an error wherever the document names it, and a damaged image that the browser draws is none.
func TestImagesEverywhere(t *testing.T) {
	server := serveFiles(t)
	r := started(t, configuration(t, server))
	for name, html := range map[string]string{
		"image":              "<img src=URL>",
		"invisible image":    "<img src=URL style='visibility:hidden'>",
		"image with CORS":    "<img src=URL crossorigin>",
		"lazy image":         "<div style='height:5000mm'></div><img src=URL loading=lazy>",
		"source set":         "<img srcset='URL 1x'>",
		"picture":            "<picture><source srcset=URL><img></picture>",
		"button":             "<input type=image src=URL>",
		"poster":             "<video poster=URL></video>",
		"attribute":          "<table background=URL><tr><td>x</table>",
		"background":         "<p style='background:url(URL)'>x",
		"escaped background": `<p style='background:\75rl(URL)'>x`,
		"reference":          "<p style='background:&#117;rl(URL)'>x",
		"border":             "<p style='border:9px solid;border-image:url(URL) 3'>x",
		"bullet":             "<ul style='list-style-image:url(URL)'><li>x</ul>",
		"content":            "<style>p::before{content:url(URL)}</style><p>x",
		"mask":               "<p style='mask:url(URL)'>x",
		"print style":        "<style>@media print{p{background:url(URL)}}</style><p>x",
		"image set":          "<p style='background:image-set(\"URL\" 1x)'>x",
		"SVG":                "<svg><image href=URL width=9 height=9 /></svg>",
		"SVG pattern": "<svg><pattern id=p width=1 height=1><image href=URL width=9 height=9 /></pattern><rect " +
			"fill=url(#p) width=9 height=9 /></svg>",
		"frame":           "<iframe srcdoc='<img src=URL>'></iframe>",
		"sandboxed frame": "<iframe sandbox srcdoc='<img src=URL>'></iframe>",
		"policy":          "<meta http-equiv=Content-Security-Policy content=\"default-src 'none';img-src https:\"><img src=URL>",
		"base":            "<base href=https://example.com/><img src=URL>",
		"names of the method": "<img name=Image id=createImageBitmap><form id=OffscreenCanvas name=Uint32Array></form><a " +
			"id=Promise></a><img src=URL>",
		"second image": "<img src=" + server.URL + "/PNG><img src=URL>",
	} {
		for file, want := range map[string]string{"PNG-without-its-end": "", "PNG-without-data": "decoded"} {
			t.Run(name+" "+file, func(t *testing.T) {
				_, _, err := r.render(t.Context(), page(strings.ReplaceAll(html, "URL", server.URL+"/"+file)))
				if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), file+" cannot be "+want) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// A header draws a permitted image by its address, and a broken one is an error of the document.
func TestHeaderImage(t *testing.T) {
	server := serveFiles(t)
	r := started(t, configuration(t, server))
	draw := func(address string) (pdf []byte, err error) {
		d := page("<p>x")
		d.Header = []byte("<img style='height:5mm;width:5mm' src='" + address + "'>")
		pdf, _, err = r.render(t.Context(), d)
		return pdf, err
	}
	none, err := draw("http://example.com/a.png")
	must.Succeed(t, err)
	byAddress, err := draw(server.URL + "/PNG")
	if err != nil || pdftest.Inked(t, byAddress)[0] > 10 || pdftest.Inked(t, none)[0] < 14 {
		t.Errorf("%v, without an image %v, %v", pdftest.Inked(t, byAddress), pdftest.Inked(t, none), err)
	}
	asData, err := draw("data:image/png;base64," + base64.StdEncoding.EncodeToString(pdftest.Images()[0].Body))
	if err != nil || !bytes.Equal(pdftest.PNG(t, asData, 1, 72), pdftest.PNG(t, byAddress, 1, 72)) {
		t.Errorf("in a data URL the image is drawn differently: %v", err)
	}
	for _, file := range []string{"PNG-without-data", "absent"} {
		if _, err := draw(server.URL + "/" + file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

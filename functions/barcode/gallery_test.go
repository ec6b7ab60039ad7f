package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"svcapi/functions/barcode/draw"
	"svcapi/shared/request"
	"svcapi/test/fuzztest"
	"svcapi/test/must"
)

// update makes TestGalleryIsCurrent write docs/gallery: make gallery.
var update = flag.Bool("update", false, "write the barcodes of docs/gallery")

// example is one row of a table of the gallery: the body of a request and what the request shows.
type example struct{ body, about string }

// gallery has an example of every type, every option and every mode.
var gallery = []struct {
	title, prefix, first string
	draw                 func(body string) (drawing, error)
	examples             []example
}{
	{"Types", "type", "Type", drawBarcode, []example{
		{`{"type": "C128", "data": "SVC-2026/11 00481516"}`, "ASCII 0 to 127; the shortest symbol over the sets A, B and C"},
		{`{"type": "C128A", "data": "PJJ123C"}`, "characters 0 to 95, set A only"},
		{`{"type": "C128B", "data": "Hello, world"}`, "characters 32 to 127, set B only"},
		{`{"type": "C128C", "data": "0123456789"}`, "an even count of digits, set C only"},
		{`{"type": "EAN13", "data": "400638133393"}`, "12 digits, or 13 with the check digit"},
		{`{"type": "EAN8", "data": "7351353"}`, "7 digits, or 8 with the check digit"},
		{`{"type": "UPCA", "data": "03600029145"}`, "11 digits, or 12 with the check digit"},
		{`{"type": "UPCE", "data": "654321"}`, "6, 7 or 8 digits, or a UPC-A that compresses"},
		{`{"type": "C39", "data": "CODE-39"}`, "0-9, A-Z, - . $ / + % and space"},
		{`{"type": "C39+", "data": "CODE-39"}`, "as C39, with the modulo 43 check character"},
		{`{"type": "I25", "data": "0123456789"}`, "digits; an odd count gets a leading 0"},
		{`{"type": "ITF14", "data": "1540014128876"}`, "13 digits, or 14 with the check digit"},
		{`{"type": "MSI", "data": "1234567"}`, "digits, no check digit"},
		{`{"type": "POSTNET", "data": "12345-6789", "height": 30}`, "5, 9 or 11 digits; the check digit is added"},
		{`{"type": "GS1128", "data": "(01)09506000134352(10)AB-123"}`, "GS1 elements, identifiers in parentheses"},
		{`{"type": "DATAMATRIX", "data": "30Q324343430794", "width_factor": 4}`, "ISO/IEC 8859-1; height has no effect"},
	}},
	{"Options", "options", "Type", drawBarcode, []example{
		{`{"data": "Option"}`, "the defaults: width_factor 2, height 80, black, PNG"},
		{`{"data": "Option", "width_factor": 1}`, "width_factor 1"},
		{`{"data": "Option", "height": 20}`, "height 20"},
		{`{"data": "Option", "color": "#b00020"}`, "color #b00020"},
		{`{"data": "Option", "quiet_zone": true}`, "quiet_zone true"},
		{`{"data": "Option", "format": "svg"}`, "format svg"},
		{`{"data": "Option", "text": true}`, "text true"},
		{`{"data": "Option", "rotation": 90, "text": true}`, "rotation 90, text true"},
		{`{"data": "Option", "color": "14213d", "background": "fca311"}`, "color 14213d, background fca311"},
		{`{"data": "Option", "background": "transparent"}`, "background transparent"},
		{`{"data": "(01)09506000134352(17)261231", "gs1": true, "text": true}`, "C128, gs1 and text true"},
		{`{"type": "DATAMATRIX", "data": "(01)09506000134352(10)AB-123", "gs1": true, "width_factor": 4}`, "gs1 true"},
		{`{"type": "DATAMATRIX", "data": "30Q324343430794", "shape": "rectangle", "width_factor": 4}`, "shape rectangle"},
		{`{"type": "EAN13", "data": "590123412345", "quiet_zone": true, "text": true}`, "text and quiet_zone true"},
		{`{"type": "EAN8", "data": "7351353", "quiet_zone": true, "text": true}`, "text and quiet_zone true"},
		{`{"type": "UPCA", "data": "03600029145", "quiet_zone": true, "text": true}`, "text and quiet_zone true"},
		{`{"type": "UPCE", "data": "654321", "quiet_zone": true, "text": true}`, "text and quiet_zone true"},
		{`{"type": "ITF14", "data": "1540014128876", "quiet_zone": true, "text": true, "dpi": 300}`,
			"text and quiet_zone true, dpi 300"},
	}},
	{"QR codes", "qr", "Level", drawQRCode, []example{
		{`{"data": "https://example.com/"}`, "the defaults: error_correction M, size 256, margin 4, black on white, PNG"},
		{`{"data": "https://example.com/", "error_correction": "H"}`, "error_correction H"},
		{`{"data": "https://example.com/", "size": 64}`, "size 64"},
		{`{"data": "https://example.com/", "margin": 0}`, "margin 0: pixels that integer modules leave over remain"},
		{`{"data": "https://example.com/", "color": "14213d", "background": "fca311"}`, "color 14213d, background fca311"},
		{`{"data": "https://example.com/", "format": "svg"}`, "format svg"},
		{`{"data": "00481516234200481516"}`, "digits only: numeric mode"},
		{`{"data": "PAY 1250.00 LKR"}`, "capital letters: alphanumeric mode"},
		{`{"data": "Zoë · ශ්\u200dරී ලංකා · 日本"}`, "UTF-8: byte mode"},
		{`{"data": "` + strings.Repeat("0123456789abcdef", 184) + `", "error_correction": "L", "size": 1024}`,
			"2,944 bytes: the largest symbol, version 40"},
	}},
}

// drawing is a picture with the fields of its request that a row shows.
type drawing struct {
	*draw.Picture
	first, data, format string
}

func drawBarcode(body string) (drawing, error) {
	r, err := read(body, decodeBarcode)
	if err != nil {
		return drawing{}, err
	}
	picture, _, err := r.picture()
	return drawing{picture, r.kind, r.data, r.format}, err
}

func drawQRCode(body string) (drawing, error) {
	r, err := read(body, decodeQRCode)
	if err != nil {
		return drawing{}, err
	}
	picture, err := r.picture()
	return drawing{picture, r.level, r.data, r.format}, err
}

// read decodes a body as the operation does.
func read[R any](body string, decode func(*request.Input) (R, error)) (r R, err error) {
	in, err := request.ReadInput([]byte(body), nil)
	if err != nil {
		return r, err
	}
	if r, err = decode(in); err == nil && len(in.Problems()) > 0 {
		err = fmt.Errorf("%s: %v", body, in.Problems())
	}
	return r, err
}

// drawGallery returns the files of the gallery by their path in docs/gallery.
func drawGallery(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	var page bytes.Buffer
	page.WriteString("# Barcodes and QR codes\n\nEvery type and option, drawn by `make gallery`. " +
		"The pictures are responses of `POST /utilities/barcode/generate` and `POST /utilities/qrcode/generate`.\n")
	for _, table := range gallery {
		fmt.Fprintf(&page, "\n## %s\n\n| %s | Data | What | Size | Picture |\n|---|---|---|---|---|\n",
			table.title, table.first)
		for i, e := range table.examples {
			d, err := table.draw(e.body)
			must.Succeed(t, err)
			file := fmt.Sprintf("barcodes/%s-%02d.%s", table.prefix, i+1, d.format)
			if files[file] = d.PNG(); d.format == "svg" {
				files[file] = d.SVG()
			}
			if len(d.data) > 60 {
				d.data = d.data[:30] + "…"
			}
			fmt.Fprintf(&page, "| %s | `%s` | %s | %d × %d | ![%[1]s](%[6]s) |\n", d.first, d.data, e.about,
				d.Width, d.Height, file)
		}
	}
	files["barcodes.md"] = page.Bytes()
	return files
}

// The gallery in docs/ has the pictures that the code draws: same request, same bytes, on any machine.
func TestGalleryIsCurrent(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "gallery")
	files := drawGallery(t)
	for name, want := range files {
		path := filepath.Join(folder, name)
		if *update {
			must.Succeed(t, os.WriteFile(path, want, 0o644))
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/gallery/%s differs from the code's picture: run make gallery (%v)", name, err)
		}
	}
	if n, _ := filepath.Glob(filepath.Join(folder, "barcodes", "*")); len(n) != len(files)-1 {
		t.Errorf("docs/gallery has %d pictures, want %d", len(n), len(files)-1)
	}
}

// A body that decodes without a problem is within the limits of openapi.yaml#BarcodeRequest, and is drawn or rejected.
func FuzzBarcode(f *testing.F) {
	color := regexp.MustCompile(`\A#?[0-9a-fA-F]{6}\z`) // openapi.yaml#Color
	fuzztest.Bodies(f, decodeBarcode, func(t *testing.T, _ *request.Input, r barcodeRequest) {
		if r.factor < 1 || r.factor > 4 || r.height < 20 || r.height > 300 || utf8.RuneCountInString(r.data) > 80 ||
			r.data == "" || !color.MatchString(r.color) {
			t.Fatalf("%+v", r)
		}
		if picture, _, err := r.picture(); err == nil && r.kind == "DATAMATRIX" {
			if width, height := picture.Size(); width < 8*r.factor || width > 66*r.factor || height < 8*r.factor ||
				height > 66*r.factor || r.text {
				t.Errorf("%d by %d pixels: %+v", width, height, r)
			}
		} else if err == nil && (picture.Height > r.height) != r.text {
			t.Errorf("%d pixels high, want %d and the text: %v", picture.Height, r.height, r.text)
		} else if err != nil && !utf8.ValidString(err.Error()) {
			t.Error(err)
		}
	}, `{"data":"12345670","type":"EAN8","format":"svg","width_factor":3.9999999999999999999999,"height":8e1,`+
		`"color":"#00FF7f","quiet_zone":true,"text":true}`,
		`{"data":"A\u0000é","width_factor":1e999999,"height":20.0}`, `{"data":"","type":"c128"}`,
		`{"data":"1","color":"12345"}`, `{"data":"1","color":"#0000000"}`, `{"data":"1","color":"00000g"}`,
		`{"data":"0","type":"POSTNET","height":300.5}`, `{"data":"日本","format":"png","privacy_mode":"x"}`,
		`{"data":["1"]}`,
		`{"data":"(01)09506000134352(10)A\\\\(","gs1":true,"rotation":270,"background":"transparent","text":true}`,
		`{"data":"é1234\\u0080","type":"DATAMATRIX","shape":"rectangle","quiet_zone":true,"rotation":90.0}`,
		`{"data":"(3103)123456","type":"DATAMATRIX","gs1":true,"shape":"x","rotation":45}`)
}

// A body that decodes without a problem is within the limits of openapi.yaml#QrCodeRequest, and is drawn or rejected.
func FuzzQRCode(f *testing.F) {
	fuzztest.Bodies(f, decodeQRCode, func(t *testing.T, _ *request.Input, q qrRequest) {
		if q.size < 64 || q.size > 1024 || q.margin < 0 || q.margin > 10 || q.data == "" {
			t.Fatalf("%+v", q)
		}
		if picture, err := q.picture(); err == nil && (picture.Width != q.size || picture.Height != q.size) {
			t.Errorf("%d × %d pixels, want %d", picture.Width, picture.Height, q.size)
		}
	}, `{"data":"A\u0000é","size":64,"margin":0,"error_correction":"H","background":"ffffff"}`,
		`{"data":"0","size":1024.0000000000000000000001,"margin":-0}`, `{"data":"日本","format":"png","privacy_mode":"x"}`,
		`{"data":""}`, `{"data":["1"]}`)
}

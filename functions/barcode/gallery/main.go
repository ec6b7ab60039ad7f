// The command gallery draws a page of every barcode type and option. Its argument is the folder: barcodes.md goes
// there, and the pictures into a folder barcodes beside it. See the target gallery-barcode.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/qrcode"
	"svcapi/functions/barcode/symbology"
)

// linear is a request for a barcode; zero values are the defaults.
type linear struct {
	kind, data     string
	factor, height int
	color, format  string
	quietZone      bool
	about          string
}

// types has an example of every type.
var types = []linear{
	{kind: "C128", data: "SVC-2026/11 00481516", about: "ASCII 0 to 127; the shortest symbol over the sets A, B and C"},
	{kind: "C128A", data: "PJJ123C", about: "characters 0 to 95, set A only"},
	{kind: "C128B", data: "Hello, world", about: "characters 32 to 127, set B only"},
	{kind: "C128C", data: "0123456789", about: "an even count of digits, set C only"},
	{kind: "EAN13", data: "400638133393", about: "12 digits, or 13 with the check digit"},
	{kind: "EAN8", data: "7351353", about: "7 digits, or 8 with the check digit"},
	{kind: "UPCA", data: "03600029145", about: "11 digits, or 12 with the check digit"},
	{kind: "UPCE", data: "654321", about: "6, 7 or 8 digits, or a UPC-A that compresses"},
	{kind: "C39", data: "CODE-39", about: "0-9, A-Z, - . $ / + % and space"},
	{kind: "C39+", data: "CODE-39", about: "as C39, with the modulo 43 check character"},
	{kind: "I25", data: "0123456789", about: "digits; an odd count gets a leading 0"},
	{kind: "ITF14", data: "1540014128876", about: "13 digits, or 14 with the check digit"},
	{kind: "MSI", data: "1234567", about: "digits, no check digit"},
	{kind: "POSTNET", data: "12345-6789", height: 30, about: "5, 9 or 11 digits; the check digit is added"},
}

// options has every option of barcodes once.
var options = []linear{
	{data: "Option", about: "the defaults: width_factor 2, height 80, black, PNG"},
	{data: "Option", factor: 1, about: "width_factor 1"},
	{data: "Option", factor: 3, about: "width_factor 3"},
	{data: "Option", factor: 4, about: "width_factor 4"},
	{data: "Option", height: 20, about: "height 20"},
	{data: "Option", height: 300, about: "height 300"},
	{data: "Option", color: "#b00020", about: "color #b00020"},
	{data: "Option", quietZone: true, about: "quiet_zone true"},
	{data: "Option", format: "svg", about: "format svg"},
}

// square is a request for a QR code; zero values are the defaults.
type square struct {
	data, level       string
	size              int
	margin            int // -1: none
	color, background string
	format            string
	about             string
}

var squares = []square{
	{data: "https://example.com/", about: "the defaults: error_correction M, size 256, margin 4, black on white, PNG"},
	{data: "https://example.com/", level: "L", about: "error_correction L"},
	{data: "https://example.com/", level: "Q", about: "error_correction Q"},
	{data: "https://example.com/", level: "H", about: "error_correction H"},
	{data: "https://example.com/", size: 64, about: "size 64"},
	{data: "https://example.com/", size: 512, about: "size 512"},
	{data: "https://example.com/", margin: -1, about: "margin 0: what whole-pixel modules leave over remains"},
	{data: "https://example.com/", margin: 10, about: "margin 10"},
	{data: "https://example.com/", color: "14213d", background: "fca311", about: "color 14213d, background fca311"},
	{data: "https://example.com/", format: "svg", about: "format svg"},
	{data: "00481516234200481516", about: "digits only: numeric mode"},
	{data: "PAY 1250.00 LKR", about: "capital letters: alphanumeric mode"},
	{data: "Zoë · ශ්\u200dරී ලංකා · 日本", about: "UTF-8: byte mode"},
	{data: strings.Repeat("0123456789abcdef", 184), level: "L", size: 1024, about: "2,944 bytes: the largest symbol, version 40"},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gallery FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gallery:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	g := page{folder: folder}
	if err := os.MkdirAll(filepath.Join(g.folder, pictures), 0o755); err != nil {
		return err
	}
	g.text.WriteString("# Barcodes and QR codes\n\nEvery type and option, drawn by `make gallery`. " +
		"The pictures are what `POST /utilities/barcode/generate` and `POST /utilities/qrcode/generate` answer.\n")
	g.linears("Types", "type", types)
	g.linears("Options", "options", options)
	g.squares("QR codes", "qr", squares)
	if g.err != nil {
		return g.err
	}
	return os.WriteFile(filepath.Join(g.folder, "barcodes.md"), g.text.Bytes(), 0o644)
}

const pictures = "barcodes"

// page is the page as far as it is written, and the first thing that went wrong.
type page struct {
	folder string
	text   bytes.Buffer
	err    error
}

func (g *page) linears(title, prefix string, rows []linear) {
	g.head(title, "Type")
	for i, row := range rows {
		kind, ok := symbology.Lookup(cmp.Or(row.kind, "C128"))
		if !ok {
			g.err = fmt.Errorf("no type %s", row.kind)
			return
		}
		code, err := kind.Encode(row.data)
		if err != nil {
			g.err = err
			return
		}
		left, right := 0, 0
		if row.quietZone {
			left, right = kind.QuietLeft, kind.QuietRight
		}
		picture := draw.Linear(kind.Name, code, cmp.Or(row.factor, 2), cmp.Or(row.height, 80), left, right)
		g.row(fmt.Sprintf("%s-%02d", prefix, i+1), kind.Name, row.data, row.about, row.format, picture, row.color, "")
	}
}

func (g *page) squares(title, prefix string, rows []square) {
	g.head(title, "Level")
	for i, row := range rows {
		name := cmp.Or(row.level, "M")
		level, _ := qrcode.ParseLevel(name)
		code, err := qrcode.Encode(row.data, level)
		if err != nil {
			g.err = err
			return
		}
		picture, err := draw.Square("QR code", code, cmp.Or(row.size, 256), max(0, cmp.Or(row.margin, 4)))
		if err != nil {
			g.err = err
			return
		}
		g.row(fmt.Sprintf("%s-%02d", prefix, i+1), name, row.data, row.about, row.format, picture, row.color, row.background)
	}
}

func (g *page) head(title, first string) {
	fmt.Fprintf(&g.text, "\n## %s\n\n| %s | Data | What | Size | Picture |\n|---|---|---|---|---|\n", title, first)
}

// row writes the picture's file and its line on the page.
func (g *page) row(name, first, data, about, format string, picture *draw.Picture, foreground, background string) {
	if g.err != nil {
		return
	}
	if picture.Foreground, g.err = draw.ParseColor(cmp.Or(foreground, "000000")); g.err != nil {
		return
	}
	if picture.Background, g.err = draw.ParseColor(cmp.Or(background, "ffffff")); g.err != nil {
		return
	}
	file, body := name+".png", picture.PNG
	if format == "svg" {
		file, body = name+".svg", picture.SVG
	}
	shown := data
	if len(shown) > 60 {
		shown = shown[:30] + "…"
	}
	fmt.Fprintf(&g.text, "| %s | `%s` | %s | %d × %d | ![%s](%s/%s) |\n", first, shown, about, picture.Width, picture.Height, first, pictures, file)
	g.err = os.WriteFile(filepath.Join(g.folder, pictures, file), body(), 0o644)
}

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

// request is one row of a table: a barcode, or a QR code where the row has a level. Zero values are the defaults.
type request struct {
	kind, data        string
	factor, height    int
	quietZone, text   bool
	level             string
	size              int
	margin            int // -1: none
	color, background string
	format            string
	about             string
}

// types has an example of every type.
var types = []request{
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
var options = []request{
	{data: "Option", about: "the defaults: width_factor 2, height 80, black, PNG"},
	{data: "Option", factor: 1, about: "width_factor 1"},
	{data: "Option", factor: 3, about: "width_factor 3"},
	{data: "Option", factor: 4, about: "width_factor 4"},
	{data: "Option", height: 20, about: "height 20"},
	{data: "Option", height: 300, about: "height 300"},
	{data: "Option", color: "#b00020", about: "color #b00020"},
	{data: "Option", quietZone: true, about: "quiet_zone true"},
	{data: "Option", format: "svg", about: "format svg"},
	{data: "Option", text: true, about: "text true"},
	{kind: "EAN13", data: "590123412345", quietZone: true, text: true, about: "text and quiet_zone true"},
	{kind: "EAN13", data: "590123412345", text: true, format: "svg", about: "text true, format svg"},
	{kind: "EAN8", data: "7351353", quietZone: true, text: true, about: "text and quiet_zone true"},
	{kind: "UPCA", data: "03600029145", quietZone: true, text: true, about: "text and quiet_zone true"},
	{kind: "UPCE", data: "654321", quietZone: true, text: true, about: "text and quiet_zone true"},
}

// squares has every option of QR codes once, and every mode.
var squares = []request{
	{data: "https://example.com/", level: "M", about: "the defaults: error_correction M, size 256, margin 4, black on white, PNG"},
	{data: "https://example.com/", level: "L", about: "error_correction L"},
	{data: "https://example.com/", level: "Q", about: "error_correction Q"},
	{data: "https://example.com/", level: "H", about: "error_correction H"},
	{data: "https://example.com/", level: "M", size: 64, about: "size 64"},
	{data: "https://example.com/", level: "M", size: 512, about: "size 512"},
	{data: "https://example.com/", level: "M", margin: -1, about: "margin 0: pixels that integer modules leave over remain"},
	{data: "https://example.com/", level: "M", margin: 10, about: "margin 10"},
	{data: "https://example.com/", level: "M", color: "14213d", background: "fca311", about: "color 14213d, background fca311"},
	{data: "https://example.com/", level: "M", format: "svg", about: "format svg"},
	{data: "00481516234200481516", level: "M", about: "digits only: numeric mode"},
	{data: "PAY 1250.00 LKR", level: "M", about: "capital letters: alphanumeric mode"},
	{data: "Zoë · ශ්\u200dරී ලංකා · 日本", level: "M", about: "UTF-8: byte mode"},
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
	var page bytes.Buffer
	page.WriteString("# Barcodes and QR codes\n\nEvery type and option, drawn by `make gallery`. " +
		"The pictures are responses of `POST /utilities/barcode/generate` and `POST /utilities/qrcode/generate`.\n")
	if err := os.MkdirAll(filepath.Join(folder, pictures), 0o755); err != nil {
		return err
	}
	for _, table := range []struct {
		title, prefix, first string
		rows                 []request
	}{{"Types", "type", "Type", types}, {"Options", "options", "Type", options}, {"QR codes", "qr", "Level", squares}} {
		fmt.Fprintf(&page, "\n## %s\n\n| %s | Data | What | Size | Picture |\n|---|---|---|---|---|\n", table.title, table.first)
		for i, row := range table.rows {
			picture, first, err := row.picture()
			if err != nil {
				return err
			}
			file, body := fmt.Sprintf("%s/%s-%02d.png", pictures, table.prefix, i+1), picture.PNG
			if row.format == "svg" {
				file, body = strings.Replace(file, ".png", ".svg", 1), picture.SVG
			}
			data := row.data
			if len(data) > 60 {
				data = data[:30] + "…"
			}
			fmt.Fprintf(&page, "| %s | `%s` | %s | %d × %d | ![%s](%s) |\n", first, data, row.about, picture.Width, picture.Height, first, file)
			if err := os.WriteFile(filepath.Join(folder, file), body(), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(folder, "barcodes.md"), page.Bytes(), 0o644)
}

const pictures = "barcodes"

// picture draws the row, and returns the type or level as well.
func (r request) picture() (picture *draw.Picture, first string, err error) {
	if r.level != "" {
		level, _ := qrcode.ParseLevel(r.level)
		code, err := qrcode.Encode(r.data, level)
		if err != nil {
			return nil, "", err
		}
		first = r.level
		if picture, err = draw.Square("QR code", code, cmp.Or(r.size, 256), max(0, cmp.Or(r.margin, 4))); err != nil {
			return nil, "", err
		}
	} else {
		kind, _ := symbology.Lookup(cmp.Or(r.kind, "C128"))
		code, err := kind.Encode(r.data)
		if err != nil {
			return nil, "", err
		}
		left, right := 0, 0
		if r.quietZone {
			left, right = kind.QuietLeft, kind.QuietRight
		}
		first = kind.Name
		picture = draw.Linear(kind.Name, code, cmp.Or(r.factor, 2), cmp.Or(r.height, 80), left, right)
		if r.text {
			if err := picture.Print(kind.Labels(code, r.quietZone)); err != nil {
				return nil, "", err
			}
		}
	}
	if picture.Foreground, err = draw.ParseColor(cmp.Or(r.color, "000000")); err != nil {
		return nil, "", err
	}
	picture.Background, err = draw.ParseColor(cmp.Or(r.background, "ffffff"))
	return picture, first, err
}

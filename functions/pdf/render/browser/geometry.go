package browser

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"svcapi/functions/pdf/render/event"
)

// millimetresPerInch converts the request's margins to the protocol's unit.
const millimetresPerInch = 25.4

// size is a sheet's width and height in millimetres.
type size struct{ width, height float64 }

// named are the sheets that a request may name (openapi.yaml#generatePdf, page_size).
var named = map[string]size{
	"A4":     {210, 297},
	"Letter": {215.9, 279.4},
	"Legal":  {215.9, 355.6},
}

// sheet returns the size of the pages as printed.
func (d Document) sheet() size {
	sheet, known := named[d.PageSize]
	if !known {
		sheet = size{d.PageWidth, d.PageHeight}
	}
	if d.Landscape {
		return size{sheet.height, sheet.width}
	}
	return sheet
}

// mediaBox is the size of a page of a PDF in points, as Chromium writes one.
var mediaBox = regexp.MustCompile(`\n/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]`)

// sheets returns the sizes of the pages of a PDF.
func sheets(pdf []byte) []size {
	var sizes []size
	for _, match := range mediaBox.FindAllSubmatch(pdf, -1) {
		width, _ := strconv.ParseFloat(string(match[1]), 64)
		height, _ := strconv.ParseFloat(string(match[2]), 64)
		sizes = append(sizes, size{width * millimetresPerInch / 72, height * millimetresPerInch / 72})
	}
	return sizes
}

// checkSize returns an error for a PDF with a page that is larger than a request may ask for.
func checkSize(pdf []byte) error {
	for _, s := range sheets(pdf) {
		if max(s.width, s.height) > event.MaxSide+1 { // Chromium rounds to whole CSS pixels
			return event.Exceeded(reasonPages, "a page of the document is longer than %d mm", event.MaxSide)
		}
	}
	return nil
}

// content returns the width and height of a page within its margins, in CSS pixels of the sheet, and the scale of the
// content.
func (d Document) content() (width, height, scale float64) {
	sheet, m := d.sheet(), d.Margins
	return (sheet.width - m.Left - m.Right) * pixels, (sheet.height - m.Top - m.Bottom) * pixels, cmp.Or(d.Scale, 1)
}

// style returns the page rule that overrides every page rule of the document.
//
// Chromium prefers a document's @page to the size in the print command. Among important declarations the first cascade
// layer wins, whatever the selectors of the others, and a layer without a name can be neither joined nor reopened. So
// the rule is in an anonymous layer, in a style sheet before all others. The page is a box of its own: its widths,
// heights, padding and border move the content as a margin does.
func (d Document) style() string {
	mm := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + "mm" }
	sheet := d.sheet()
	ofSheet := fmt.Sprintf("size:%s %s!important;page-orientation:upright!important;", mm(sheet.width), mm(sheet.height))
	margin := mm
	if d.CSSSize { // Chromium ignores a size that the margins fill: those that no request names leave half of a label
		ofSheet = ""
		margin = func(v float64) string {
			if v == event.UsualMargin {
				return "min(" + mm(v) + ",25%)"
			}
			return mm(v)
		}
	}
	return fmt.Sprintf("@layer{@page{%s"+
		"margin:%s %s %s %s!important;"+
		"width:auto!important;min-width:0!important;max-width:none!important;"+
		"height:auto!important;min-height:0!important;max-height:none!important;"+
		"padding:0!important;border:none!important;outline:none!important}}",
		ofSheet, margin(d.Margins.Top), margin(d.Margins.Right), margin(d.Margins.Bottom), margin(d.Margins.Left))
}

// hideOnScreen is the program that hides the body of each document in the window, where nobody sees the body: Chromium
// otherwise lays a document out at its load, for the pages, and for the window again. The rule names the size of the
// window (flags), which no page has, because the media type is always print. A new document keeps the adopted sheets.
const hideOnScreen = `document.adoptedStyleSheets = [new CSSStyleSheet()];
	document.adoptedStyleSheets[0].insertRule(` +
	`"@media (width:800px) and (height:1px){:root>body{content-visibility:hidden!important}}");`

// showOnScreen is the program that undoes hideOnScreen until insertStyle.
const showOnScreen = "document.adoptedStyleSheets[0].disabled = true"

// insertStyle returns the program that puts the page rule before every style sheet of the document. The program calls
// methods through their prototypes, because a document can name an element "documentElement". The rule goes into a
// sheet without text, because a document can display its style elements.
//
// The zoom of the root element scales the margins of the page, too. An important declaration of the element itself
// overrides all sheets and layers; only a running transition overrides that, so the program forbids both.
func insertStyle(rule string) string {
	return `(() => {
	const get = (object, of, name) => Object.getOwnPropertyDescriptor(of.prototype, name).get.call(object);
	const root = get(document, Document, "documentElement");
	const style = Document.prototype.createElementNS.call(document, "http://www.w3.org/1999/xhtml", "style");
	Element.prototype.prepend.call(root, style);
	get(style, HTMLStyleElement, "sheet").insertRule(` + strconv.Quote(rule) + `);
	for (const sheet of get(document, Document, "adoptedStyleSheets")) sheet.disabled = false;
	const own = get(root, HTMLElement, "style");
	own.setProperty("transition", "none", "important");
	own.setProperty("zoom", "1", "important");
})()`
}

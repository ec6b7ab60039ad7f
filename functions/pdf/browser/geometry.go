package browser

import (
	"fmt"
	"strconv"
)

// millimetresPerInch converts the request's margins to the protocol's unit.
const millimetresPerInch = 25.4

// Size is a sheet's width and height in millimetres, upright.
type Size struct{ Width, Height float64 }

// Sizes are the sheets that can be asked for (contract: POST /utilities/pdf/generate, page_size).
var Sizes = map[string]Size{
	"A4":     {210, 297},
	"Letter": {215.9, 279.4},
	"Legal":  {215.9, 355.6},
}

// Margins are in millimetres.
type Margins struct{ Top, Right, Bottom, Left float64 }

// Geometry is the page that the request asks for. It wins over the document's own.
type Geometry struct {
	Size      Size
	Landscape bool
	Margins   Margins
}

// sheet is the size as printed, in millimetres.
func (g Geometry) sheet() Size {
	if g.Landscape {
		return Size{g.Size.Height, g.Size.Width}
	}
	return g.Size
}

// style holds the page rule that beats every other one of the document.
//
// Chromium lets a document's @page win over what it is told to print. Among important declarations the first
// cascade layer wins, whatever the selectors of the others; a layer without a name can be neither joined nor reopened. So
// the rule stands in an anonymous layer, in a sheet before all others. The page is a box of its own: its widths, heights,
// padding and border move the content as a margin does.
func (g Geometry) style() string {
	mm := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + "mm" }
	sheet := g.sheet()
	return fmt.Sprintf("@layer{@page{size:%s %s!important;page-orientation:upright!important;"+
		"margin:%s %s %s %s!important;"+
		"width:auto!important;min-width:0!important;max-width:none!important;"+
		"height:auto!important;min-height:0!important;max-height:none!important;"+
		"padding:0!important;border:none!important;outline:none!important}}",
		mm(sheet.Width), mm(sheet.Height),
		mm(g.Margins.Top), mm(g.Margins.Right), mm(g.Margins.Bottom), mm(g.Margins.Left))
}

// insertStyle is the program that puts the rule before every other sheet of the document. It reaches through the
// prototypes, as a document can name an element "documentElement". The rule goes into the sheet without text, as a
// document may well display its style elements.
//
// The root element's zoom scales the page's margins, too. An important declaration of the element itself beats all
// sheets and layers, so it is set there. By the cascade only a running transition beats that; there is none, either.
func insertStyle(rule string) string {
	return `(() => {
	const get = (object, of, name) => Object.getOwnPropertyDescriptor(of.prototype, name).get.call(object);
	const style = Document.prototype.createElementNS.call(document, "http://www.w3.org/1999/xhtml", "style");
	const root = get(document, Document, "documentElement");
	Element.prototype.prepend.call(root, style);
	get(style, HTMLStyleElement, "sheet").insertRule(` + strconv.Quote(rule) + `);
	const own = get(root, HTMLElement, "style");
	own.setProperty("transition", "none", "important");
	own.setProperty("zoom", "1", "important");
})()`
}

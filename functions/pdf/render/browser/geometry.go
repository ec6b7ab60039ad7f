package browser

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/go-rod/rod/lib/proto"

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
	margin := func(v, side float64) float64 { // as in the page rule
		if d.CSSSize && v == event.UsualMargin {
			return min(v, side/4)
		}
		return v
	}
	width = sheet.width - margin(m.Left, sheet.width) - margin(m.Right, sheet.width)
	height = sheet.height - margin(m.Top, sheet.height) - margin(m.Bottom, sheet.height)
	return width * pixels, height * pixels, cmp.Or(d.Scale, 1)
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

// showOnScreen is the program that shows the body in the window, where page.js hides it, until style.js.
const showOnScreen = "document.adoptedStyleSheets[0].disabled = true"

const (
	points = 72 / millimetresPerInch // in a millimetre
	pixels = 96 / millimetresPerInch // in a millimetre

	highest = event.MaxContentHeight * points
)

// printContent prints a document on pages that are as high as their content, the highest page of a document with forced
// breaks (docs/decisions/pdf.md#pdf-content-height).
//
// The height of the document in a window is that of a page, if one page holds it. Otherwise the height is the least one
// with as many pages as on much higher sheets, which only forced breaks end.
func (p *page) printContent(d Document, wanted []int) ([]byte, error) {
	d.PageSize, d.PageWidth, d.PageHeight, d.Landscape, d.ContentHeight = "", d.sheet().width, 0, false, false
	width, _, scale := d.content()
	d.Margins.Right += (width - math.Floor(width/scale)*scale) / pixels // a window has whole pixels
	height, err := p.contentHeight(d)
	if err != nil {
		return nil, err
	}
	margins := d.Margins.Top + d.Margins.Bottom
	least := math.Ceil(max(event.MinSide, margins+1) * points)
	var o objects
	count := func(height float64) (int, error) {
		d.PageHeight = height / points
		if err := p.insertRules(d); err != nil {
			return 0, err
		}
		pdf, err := p.printSheets(d, firstPages("", p.maxPages+1))
		if err != nil {
			return 0, err
		}
		o, err = readObjects(pdf)
		return o.pages, err
	}
	need := max(least, math.Ceil((height+1)*scale*points/pixels+margins*points))
	high := min(need, 10*highest)
	pages, err := count(high)
	if err != nil {
		return nil, err
	}
	if printed := o.printedScale(); pages > 1 || printed > 0 && printed < screenScale*scale*0.999 {
		if high, err = leastHeight(least, high, pages, count); err != nil {
			return nil, err
		}
	}
	if high > highest {
		return nil, &event.RejectionError{Reason: reasonHeight, Message: fmt.Sprintf("with its margins the content is "+
			"%.0f mm high, and a page has at most %d mm", need/points, event.MaxContentHeight)}
	}
	if d.PageHeight == high/points && d.PageRanges == "" {
		return o.pdf, nil
	}
	d.PageHeight = high / points
	if err := p.insertRules(d); err != nil {
		return nil, err
	}
	return p.printSheets(d, wanted)
}

// leastHeight returns the least height in points with as many pages as a much higher sheet, or a height above the
// highest where that has more pages. A sheet of the height high has this number of pages.
func leastHeight(low, high float64, pages int, count func(float64) (int, error)) (float64, error) {
	wide := min(4*high, 10*highest)
	few, err := count(wide)
	if err != nil {
		return 0, err
	}
	if pages != few {
		low, high = high, wide
	}
	for high-low > 1 && low < highest {
		middle := min(math.Floor((low+high)/2), highest)
		switch pages, err := count(middle); {
		case err != nil:
			return 0, err
		case pages == few:
			high = middle
		default:
			low = middle
		}
	}
	return high, nil
}

// contentHeight returns the height of a document in a window of the pages' width, in CSS pixels.
func (p *page) contentHeight(d Document) (float64, error) {
	if err := p.layOut(d, objects{}); err != nil {
		return 0, err
	}
	own := p.s.in(p.ctx, p.id)
	metrics, err := proto.PageGetLayoutMetrics{}.Call(own)
	if err != nil {
		return 0, err
	}
	return metrics.CSSContentSize.Height, proto.EmulationClearDeviceMetricsOverride{}.Call(own)
}

package browser

import (
	"fmt"
	"math"

	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/pdf/render/event"
)

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
func (p *page) printContent(d Document, wanted []event.Range) ([]byte, error) {
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
		pdf, err := p.printSheets(d, []event.Range{{First: 1, Last: p.maxPages + 1}})
		if err != nil {
			return 0, err
		}
		if o, err = readObjects(pdf); err != nil {
			return 0, err
		}
		return o.countPages()
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

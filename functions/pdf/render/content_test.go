package main

import (
	"math"
	"strings"
	"testing"

	"svcapi/functions/pdf/render/event"
	"svcapi/test/pdftest"
)

// docs/decisions/pdf.md#pdf-content-height: a page ends where its content ends, whatever the content is.
func TestContentHeight(t *testing.T) {
	r := started(t, configuration(t, nil))
	const plain = "<!DOCTYPE html><meta charset=utf-8><style>*{margin:0}div{height:50mm;background:#ccc}</style>"
	next := "<div style='break-before:page;height:70mm'></div>"
	for _, c := range []struct {
		name, html string
		e          event.Event
		pages      int
		height     float64 // millimetres of the content; 0: not known
		message    string
	}{
		{"short", plain + "<div></div>", event.Event{}, 1, 50, ""},
		{"nothing", plain, event.Event{}, 1, 2, ""},
		{"margins", plain + "<body style='margin:10mm 0'><div></div>", event.Event{}, 1, 70, ""},
		{"quirks", "<style>*{margin:0}</style><div style='height:50mm'></div><p>", event.Event{}, 1, 50, ""},
		{"text", plain + strings.Repeat("<p>ශ්\u200dරී receipt of several words that fill a line of paper", 99),
			event.Event{}, 1, 0, ""},
		{"long", plain + strings.Repeat("<div></div>", 100), event.Event{}, 1, 5000, ""},
		{"highest", plain + "<div style='height:5071.5mm'></div>", event.Event{}, 1, 5071.5, ""},
		{"too high", plain + strings.Repeat("<div></div>", 120), event.Event{}, 0, 0,
			"with its margins the content is 6008 mm high, and a page has at most 5080 mm"},
		{"far too high", plain + strings.Repeat("<div></div>", 9000), event.Event{}, 0, 0,
			"with its margins the content is 449990 mm high, and a page has at most 5080 mm"},
		{"too high before a break", plain + strings.Repeat("<div></div>", 120) + next, event.Event{}, 0, 0,
			"with its margins the content is 6078 mm high, and a page has at most 5080 mm"},
		{"break", plain + "<div></div>" + next, event.Event{}, 2, 70, ""},
		{"breaks", plain + strings.Repeat("<div></div>", 90) + next + strings.Repeat("<div></div>", 60),
			event.Event{}, 2, 4500, ""},
		{"second page", plain + "<div></div>" + next, event.Event{PageRanges: "2"}, 1, 70, ""},
		{"scale", plain + "<div></div>", event.Event{Scale: 0.5}, 1, 25, ""},
		{"of the window", plain + "<body style='min-height:100vh'><div></div>", event.Event{}, 1, 50, ""},
		{"half of the window", plain + "<body style='padding-top:50vh'><div></div>", event.Event{}, 1, 100, ""},
		{"wide", plain + "<div></div><table style='width:100mm;height:30mm'><td>A", event.Event{}, 1, 80 * 72 / 100., ""},
		{"landscape", plain + "<div></div>", event.Event{PageSize: "A4", Landscape: true}, 1, 50, ""},
	} {
		c.e.HTML, c.e.ContentHeight, c.e.Margins, c.e.MaxBytes = []byte(c.html), true, around(4), 1<<20
		width := 297.0
		if c.e.PageSize == "" {
			width, c.e.PageWidth = 80, 80
		}
		result := handled(t, r, c.e)
		if result.Rejection != nil || c.message != "" {
			if result.Rejection == nil || result.Rejection.Message != c.message || result.Rejection.ExceedsLimit {
				t.Errorf("%s: %+v, want %q", c.name, result.Rejection, c.message)
			}
			continue
		}
		sheets := pdftest.Sheets(t, result.PDF)
		got := sheets[0][1]*25.4/72 - 8
		if len(sheets) != c.pages || c.height > 0 && math.Abs(got-c.height) > 1 ||
			math.Abs(sheets[0][0]*25.4/72-width) > 0.7 {
			t.Errorf("%s: %d pages, %v, content %.2f", c.name, len(sheets), sheets[0], got)
		}
		if m := pdftest.Inked(t, result.PDF); c.name == "text" && m[2] > 6 {
			t.Errorf("%.1f mm below the text", m[2])
		}
	}
}

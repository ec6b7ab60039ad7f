// Package event is the language between the operation, which holds the money, and the renderer, which runs the browser:
// the event that asks for one PDF, and the result.
package event

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"svcapi/shared/pattern"
)

// Version is the version of the format. The renderer rejects an event of another version.
const Version = 1

// The bounds of an event (openapi.yaml#PdfRequest). A side is one of a sheet of the request's own size.
const (
	MaxHTML     = 524_288  // bytes of the document, and of its header or footer
	MaxPDF      = 64 << 20 // bytes that an event may ask for; the operation asks for fewer
	MaxFiles    = 100
	MaxFileName = 255  // bytes
	MaxMetadata = 255  // characters of each text
	MaxRanges   = 255  // characters of the text of page ranges
	MinScale    = 0.1  // of a page's content
	MaxScale    = 2    // of a page's content
	MaxMargin   = 100  // millimetres
	MinSide     = 10   // millimetres
	MaxSide     = 2000 // millimetres
	MinPassword = 4    // bytes
	MaxPassword = 127  // bytes (ISO 32000-2, 7.6.4.3.3)

	// UsualMargin is a margin that a request does not name, in millimetres, or a quarter of the side where that is less.
	UsualMargin = 15.0
	// MaxContentHeight is the height of the highest sheet with the height of its content in millimetres: 14,400 points
	// (PDF 1.7, annex C.2).
	MaxContentHeight = 5080
)

// PageSizes are the names of the sheets (openapi.yaml#PdfRequest, page_size).
var PageSizes = []string{"A4", "Legal", "Letter"}

// Margins are in millimetres.
type Margins struct {
	Top    float64 `json:"top"`
	Right  float64 `json:"right"`
	Bottom float64 `json:"bottom"`
	Left   float64 `json:"left"`
}

// Metadata describes a PDF inside the file. An empty text is not written.
type Metadata struct {
	Title    string `json:"title,omitzero"` // overrides the document's title element
	Author   string `json:"author,omitzero"`
	Subject  string `json:"subject,omitzero"`
	Keywords string `json:"keywords,omitzero"`
}

// Password opens a PDF. A Password prints as asterisks.
type Password string

// String implements fmt.Stringer.
func (Password) String() string { return "***" }

// Event asks for the PDF of one document. HTML is Base64 in JSON, so that the size of an event has a limit.
type Event struct {
	Version    int      `json:"version"`
	RequestID  string   `json:"request_id,omitzero"` // for the log
	Deadline   int64    `json:"deadline,omitzero"`   // Unix milliseconds, until when a PDF is of use; 0: no such time
	MaxBytes   int64    `json:"max_bytes"`           // of the PDF
	HTML       []byte   `json:"html"`
	Header     []byte   `json:"header,omitzero"`      // HTML that each page shows in its top margin
	Footer     []byte   `json:"footer,omitzero"`      // HTML that each page shows in its bottom margin
	PageSize   string   `json:"page_size"`            // empty: PageWidth and PageHeight
	PageWidth  float64  `json:"page_width,omitzero"`  // in millimetres
	PageHeight float64  `json:"page_height,omitzero"` // in millimetres
	CSSSize    bool     `json:"prefer_css_page_size,omitzero"`
	Landscape  bool     `json:"landscape,omitzero"`
	Margins    Margins  `json:"margins"`
	PageRanges string   `json:"page_ranges,omitzero"` // empty: all pages
	Scale      float64  `json:"scale,omitzero"`       // 0: 1
	Metadata   Metadata `json:"metadata,omitzero"`
	Tagged     bool     `json:"tagged,omitzero"`  // an accessible PDF
	Outline    bool     `json:"outline,omitzero"` // bookmarks of the headings
	Strict     bool     `json:"strict,omitzero"`  // a warning is a rejection
	Password   Password `json:"password,omitzero"`
	// Files are what relative addresses of the document load, by their normal names (FileName).
	Files map[string][]byte `json:"files,omitzero"`
	// ContentHeight makes pages as high as their content, in place of the height of PageSize or PageHeight.
	ContentHeight bool `json:"content_height,omitzero"`
}

// Encode returns the event as JSON, in the present version.
func (e Event) Encode() ([]byte, error) {
	e.Version = Version
	return json.Marshal(e) //nolint:gosec // the renderer needs the password
}

// Parse reads an event, and returns an error for an event of another version, with unknown fields, or with values that
// the operation never sends.
func Parse(text []byte) (Event, error) {
	var e Event
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&e)
	if err = errors.Join(err, e.validate()); err != nil {
		return e, fmt.Errorf("event: %w", err)
	}
	return e, nil
}

func (e Event) validate() error {
	text := func(html []byte) bool { return len(html) <= MaxHTML && utf8.Valid(html) }
	short := func(text string) bool { return utf8.RuneCountInString(text) <= MaxMetadata }
	_, _, ranges := Pages(e.PageRanges)
	about, sides := e.Metadata, e.Margins
	side := func(length float64) bool { return length >= MinSide && length <= MaxSide }
	var wrong []error
	for _, field := range []struct {
		name  string
		valid bool
	}{
		{"version", e.Version == Version},
		{"html", len(e.HTML) > 0 && text(e.HTML)},
		{"header", text(e.Header)},
		{"footer", text(e.Footer)},
		{"page_ranges", e.PageRanges == "" || ranges},
		{"scale", e.Scale == 0 || e.Scale >= MinScale && e.Scale <= MaxScale},
		{"metadata", short(about.Title) && short(about.Author) && short(about.Subject) && short(about.Keywords)},
		{"max_bytes", e.MaxBytes > 0 && e.MaxBytes <= MaxPDF},
		{"page_size", slices.Contains(PageSizes, e.PageSize) || e.PageSize == "" && side(e.PageWidth) &&
			(e.ContentHeight || side(e.PageHeight))},
		{"content_height", !e.ContentHeight || !e.CSSSize && e.PageHeight == 0},
		{"password", e.Password == "" || len(e.Password) >= MinPassword && len(e.Password) <= MaxPassword},
		{"files", validFiles(e.Files)},
		{"margins", min(sides.Top, sides.Right, sides.Bottom, sides.Left) >= 0 &&
			max(sides.Top, sides.Right, sides.Bottom, sides.Left) <= MaxMargin},
	} {
		if !field.valid {
			wrong = append(wrong, fmt.Errorf("the value of %s is not permitted", field.name))
		}
	}
	return errors.Join(wrong...)
}

// rangeForm is a page number, or a range of page numbers, from 1 to 9999.
var rangeForm = pattern.New(`^([1-9][0-9]{0,3})(?:-([1-9][0-9]{0,3}))?$`)

// Pages returns the pages of ranges such as 1-3,5 in ascending order. A document with the page lastStart has pages in
// each range of the text. The result is false for a text of another form, or with more than MaxRanges characters.
func Pages(text string) (pages []int, lastStart int, ok bool) {
	var wanted [10_000]bool
	for part := range strings.SplitSeq(text, ",") {
		match := rangeForm().FindStringSubmatch(part)
		if match == nil || len(text) > MaxRanges {
			return nil, 0, false
		}
		first, _ := strconv.Atoi(match[1]) // the form has digits only
		last, _ := strconv.Atoi(cmp.Or(match[2], match[1]))
		if first > last {
			return nil, 0, false
		}
		lastStart = max(lastStart, first)
		for page := first; page <= last; page++ {
			wanted[page] = true
		}
	}
	for page, is := range wanted {
		if is {
			pages = append(pages, page)
		}
	}
	return pages, lastStart, true
}

// Package event is the language between the operation, which holds the money, and the renderer, which runs the browser:
// the event that asks for one PDF, and the result.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Version is the version of the format. The renderer rejects an event of another version.
const Version = 1

const (
	// MaxHTML is the largest document, and the largest header or footer, in bytes (openapi.yaml#PdfRequest, html).
	MaxHTML = 524_288
	// MaxMetadata is the longest text of a PDF's metadata in characters.
	MaxMetadata = 255
	// MinScale is the smallest scale of a page's content.
	MinScale = 0.1
	// MaxScale is the largest scale of a page's content.
	MaxScale = 2
	// MaxMargin is the widest margin in millimetres.
	MaxMargin = 100
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

// Event asks for the PDF of one document. HTML is Base64 in JSON, so that the size of an event has a limit.
type Event struct {
	Version    int      `json:"version"`
	RequestID  string   `json:"request_id,omitzero"` // for the log
	Deadline   int64    `json:"deadline,omitzero"`   // Unix milliseconds, until when a PDF is of use; 0: no such time
	MaxBytes   int64    `json:"max_bytes"`           // of the PDF
	HTML       []byte   `json:"html"`
	Header     []byte   `json:"header,omitzero"` // HTML that each page shows in its top margin
	Footer     []byte   `json:"footer,omitzero"` // HTML that each page shows in its bottom margin
	PageSize   string   `json:"page_size"`
	Landscape  bool     `json:"landscape,omitzero"`
	Margins    Margins  `json:"margins"`
	PageRanges string   `json:"page_ranges,omitzero"` // empty: all pages
	Scale      float64  `json:"scale,omitzero"`       // 0: 1
	Metadata   Metadata `json:"metadata,omitzero"`
	Tagged     bool     `json:"tagged,omitzero"` // an accessible PDF
}

// Encode returns the event as JSON, in the present version.
func (e Event) Encode() ([]byte, error) {
	e.Version = Version
	return json.Marshal(e)
}

// Parse reads an event, and returns an error for an event of another version, with unknown fields, or with values that the
// operation never sends.
func Parse(text []byte) (Event, error) {
	var e Event
	var of struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return e, fmt.Errorf("event: %w", err)
	}
	if of.Version != Version {
		return e, fmt.Errorf("event: version %d, wants %d", of.Version, Version)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return e, fmt.Errorf("event: %w", err)
	}
	return e, e.validate()
}

func (e Event) validate() error {
	var wrong []error
	if n := len(e.HTML); n < 1 || n > MaxHTML || !utf8.Valid(e.HTML) {
		wrong = append(wrong, fmt.Errorf("event: html has %d bytes, wants 1 to %d of UTF-8", n, MaxHTML))
	}
	for name, part := range map[string][]byte{"header": e.Header, "footer": e.Footer} {
		if len(part) > MaxHTML || !utf8.Valid(part) {
			wrong = append(wrong, fmt.Errorf("event: %s has %d bytes, wants up to %d of UTF-8", name, len(part), MaxHTML))
		}
	}
	if _, _, ok := ParseRanges(e.PageRanges); e.PageRanges != "" && (!ok || len(e.PageRanges) > MaxRanges) {
		wrong = append(wrong, errors.New("event: page_ranges is malformed"))
	}
	if e.Scale != 0 && (e.Scale < MinScale || e.Scale > MaxScale) {
		wrong = append(wrong, fmt.Errorf("event: scale is %g, wants %g to %d", e.Scale, MinScale, MaxScale))
	}
	for _, text := range []string{e.Metadata.Title, e.Metadata.Author, e.Metadata.Subject, e.Metadata.Keywords} {
		if utf8.RuneCountInString(text) > MaxMetadata {
			wrong = append(wrong, fmt.Errorf("event: a text of the metadata has over %d characters", MaxMetadata))
		}
	}
	if e.MaxBytes < 1 {
		wrong = append(wrong, fmt.Errorf("event: max_bytes is %d", e.MaxBytes))
	}
	if !slices.Contains(PageSizes, e.PageSize) {
		wrong = append(wrong, fmt.Errorf("event: page_size is none of %q", PageSizes))
	}
	for _, side := range []float64{e.Margins.Top, e.Margins.Right, e.Margins.Bottom, e.Margins.Left} {
		if side < 0 || side > MaxMargin {
			wrong = append(wrong, fmt.Errorf("event: a margin is %g mm, wants 0 to %d", side, MaxMargin))
		}
	}
	return errors.Join(wrong...)
}

// staleAfter is the age from which a deadline is ignored, because the event is replayed from a file.
const staleAfter = time.Minute

// Until returns the time until when a PDF is of use. The result is false where the event names no such time.
func (e Event) Until() (time.Time, bool) {
	until := time.UnixMilli(e.Deadline)
	return until, e.Deadline != 0 && time.Since(until) < staleAfter
}

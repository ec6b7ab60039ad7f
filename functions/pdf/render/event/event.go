// Package event is the language between the operation, which holds the money, and the renderer, which runs the browser:
// the event that asks for one PDF, and the result.
package event

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

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

// The media types of files that the renderer treats in a way of their own.
const (
	SVG = "image/svg+xml"
	CSS = "text/css; charset=utf-8"
)

// ofName has the media type of a file by the ending of its name (openapi.yaml#PdfRequest, files).
var ofName = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".svg": SVG, ".css": CSS, ".ttf": "font/sfnt", ".otf": "font/sfnt", ".woff": "font/woff", ".woff2": "font/woff2",
}

// MediaType returns the media type of a file by its name; empty for no permitted one.
func MediaType(name string) string { return ofName[strings.ToLower(path.Ext(name))] }

// signatures are the first bytes of each binary media type that a document may load (WHATWG MIME Sniffing, 6 and 7).
var signatures = map[string][]string{
	"image/png": {"\x89PNG\r\n\x1a\n"}, "image/jpeg": {"\xff\xd8\xff"}, "image/gif": {"GIF87a", "GIF89a"},
	"image/webp": {"RIFF"}, "font/sfnt": {"\x00\x01\x00\x00", "OTTO", "true"}, "font/woff": {"wOFF"},
	"font/woff2": {"wOF2"},
}

// Sniff returns the media type of an image or a font by its first bytes; empty for any other.
func Sniff(body []byte) string {
	for mediaType, prefixes := range signatures {
		starts := func(prefix string) bool { return bytes.HasPrefix(body, []byte(prefix)) }
		if slices.ContainsFunc(prefixes, starts) &&
			(mediaType != "image/webp" || len(body) >= 16 && string(body[8:12]) == "WEBP") {
			return mediaType
		}
	}
	return ""
}

// Matches reports whether the bytes of a file are of a media type: a text in UTF-8 for a style sheet, one whose first
// element is svg for SVG, and the first bytes for all others.
func Matches(mediaType string, body []byte) bool {
	switch mediaType {
	case CSS:
		return utf8.Valid(body) && !bytes.ContainsRune(body, 0)
	case SVG:
		return utf8.Valid(body) && root(body) == "svg"
	}
	return mediaType != "" && Sniff(body) == mediaType
}

// root returns the name of the first element of an XML text.
func root(text []byte) string {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict = false
	for {
		token, err := d.RawToken()
		if err != nil {
			return ""
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local
		}
	}
}

// FileName returns the name of a file in its normal form: a relative path without the segments "." and "..", in Unicode
// form NFC. The result is false for a name that no relative address can have.
func FileName(name string) (string, bool) {
	odd := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`\?#`, r) }
	if name == "" || len(name) > MaxFileName || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) ||
		strings.TrimSpace(name) != name || slices.Contains(strings.Split(name, "/"), "..") {
		return "", false
	}
	first, _, _ := strings.Cut(name, "/")
	normal := norm.NFC.String(path.Clean(name))
	if first == "" || strings.Contains(first, ":") || normal == "." || strings.HasSuffix(name, "/") ||
		len(normal) > MaxFileName {
		return "", false
	}
	return normal, true
}

// Base is the address of every document. No network has the host of Base (RFC 6761, 6.4): the renderer itself answers
// requests for addresses below Base.
const Base = "http://document.invalid/"

// File returns the name of the file that an address of the document names, empty for none. A query or a fragment of the
// address has no effect.
func (e Event) File(address *url.URL) string {
	base := url.URL{Scheme: "http", Host: "document.invalid", Path: "/"}
	to := base.ResolveReference(address)
	name := norm.NFC.String(strings.TrimPrefix(path.Clean(to.Path), "/"))
	if to.Scheme != base.Scheme || to.Host != base.Host || e.Files[name] == nil {
		return ""
	}
	return name
}

// validFiles reports whether the files of an event have names and types that the operation sends.
func validFiles(files map[string][]byte) bool {
	for name, body := range files {
		if normal, ok := FileName(name); !ok || normal != name || !Matches(MediaType(name), body) {
			return false
		}
	}
	return len(files) <= MaxFiles
}

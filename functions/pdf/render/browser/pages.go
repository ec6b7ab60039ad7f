package browser

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"

	"svcapi/functions/pdf/render/event"
)

var errPDF = errors.New("browser: the output is no PDF of the expected structure")

var (
	startXref = regexp.MustCompile(`startxref\s+(\d+)\s+%%EOF\s*$`)
	infoEntry = regexp.MustCompile(`/Info\s+(\d+)\s+\d+\s+R`)
	rootEntry = regexp.MustCompile(`/Root\s+(\d+)\s+\d+\s+R`)
	pagesRef  = regexp.MustCompile(`/Pages\s+(\d+)\s+\d+\s+R`)
	length    = regexp.MustCompile(`/Length\s+(\d+)`)
	count     = regexp.MustCompile(`/Count\s+(\d+)`)
)

// missingGlyphs begins the descriptor of the box font (layers/chromium/box.js), whose name PDF prefixes with six
// letters.
var missingGlyphs = regexp.MustCompile(`\n/FontName /(?:[A-Z]{6}\+)?SVCMissingGlyph\n`)

// action begins the action of a link annotation as Chromium writes one: its only kind is an address.
const action = "/A <</Type /Action\n/S /URI\n/URI ("

// openable is an address that a link of a PDF may have. Chromium writes schemes in lower case and without white space.
var openable = regexp.MustCompile(`^(?:https?|mailto|tel):`)

// objects are the objects of a PDF, found through its cross-reference table (ISO 32000-1, 7.5.4). A search of the bytes
// would find text that a document writes into its title.
type objects struct {
	pdf     []byte
	entries []byte // of the table; 20 bytes each
	trailer []byte
}

func readObjects(pdf []byte) (objects, error) {
	start := number(startXref, pdf[max(0, len(pdf)-64):])
	if start < 0 || start >= len(pdf) {
		return objects{}, errPDF
	}
	table, isTable := bytes.CutPrefix(pdf[start:], []byte("xref\n0 "))
	table, trailer, hasTrailer := bytes.Cut(table, []byte("trailer"))
	_, entries, hasEntries := bytes.Cut(table, []byte("\n"))
	if !isTable || !hasTrailer || !hasEntries {
		return objects{}, errPDF
	}
	return objects{pdf, entries, trailer}, nil
}

// at returns the PDF from the start of object n, nil where there is no such object.
func (o objects) at(n int) []byte {
	if n < 0 || (n+1)*20 > len(o.entries) {
		return nil
	}
	offset, err := strconv.Atoi(string(o.entries[n*20 : n*20+10]))
	if err != nil || offset < 0 || offset >= len(o.pdf) {
		return nil
	}
	return o.pdf[offset:]
}

func (o objects) object(n int) []byte {
	body, _, _ := bytes.Cut(o.at(n), []byte("\nendobj"))
	return body
}

// of returns the numbers of the objects of a type, as Chromium writes it.
func (o objects) of(kind string) iter.Seq[int] {
	start := []byte("<</Type /" + kind + "\n")
	return func(yield func(int) bool) {
		for n := range len(o.entries) / 20 {
			head := o.at(n)
			if _, body, _ := bytes.Cut(head[:min(40, len(head))], []byte(" obj\n")); bytes.HasPrefix(body, start) && !yield(n) {
				return
			}
		}
	}
}

func number(pattern *regexp.Regexp, text []byte) int {
	if match := pattern.FindSubmatch(text); match != nil {
		if n, err := strconv.Atoi(string(match[1])); err == nil {
			return n
		}
	}
	return -1
}

// countPages returns the number of pages from the root of the page tree (ISO 32000-1, 7.7.3).
func (o objects) countPages() (int, error) {
	pages := number(count, o.object(number(pagesRef, o.object(number(rootEntry, o.trailer)))))
	if pages < 0 {
		return 0, errPDF
	}
	return pages, nil
}

// removeLinks hides the links that no reader of a PDF should open, such as those of javascript: and file:, and
// overwrites their actions: markup has many ways to a link, the PDF has one. A name of no place replaces the action,
// because pdfinfo of poppler 22 crashes at a link without either. The flag 2 is hidden (ISO 32000-1, 12.5.3).
func (o objects) removeLinks() error {
	for n := range o.of("Annot") {
		_, link, _ := bytes.Cut(o.at(n), []byte("<<"))
		// Before the first string or dictionary nothing is the document's own but the name of a place, which escapes these.
		first := bytes.IndexAny(link, "()<>")
		if first >= 0 && bytes.HasPrefix(link[first:], []byte(">>")) {
			continue // to a place of the document
		}
		start := max(0, first-len("/A "))
		address, isAction := bytes.CutPrefix(link[start:], []byte(action))
		end, flags := 0, bytes.Index(link[:start], []byte("/F 4\n"))
		for ; end < len(address) && address[end] != ')'; end++ {
			if address[end] == '\\' {
				end++
			}
		}
		if !isAction || flags < 0 || end >= len(address) || !bytes.HasPrefix(address[end:], []byte(")>>")) {
			return errPDF
		}
		if !openable.Match(address[:end]) || bytes.HasPrefix(address, []byte(event.Base)) {
			link[flags+len("/F ")] = '2'
			size := len(action) + end + len(")>>")
			copy(link[start:], fmt.Sprintf("%-*s", size, "/Dest /removed"))
		}
	}
	return nil
}

// missGlyphs reports whether a PDF shows the box of a character that no font has. Chromium takes the box from a font of
// its own, and writes the descriptor of each font that the pages show.
func (o objects) missGlyphs() bool {
	for n := range o.of("FontDescriptor") {
		if missingGlyphs.Match(o.object(n)) {
			return true
		}
	}
	return false
}

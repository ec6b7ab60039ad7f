package browser

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
)

var errPDF = errors.New("browser: the output is no PDF of the expected structure")

var (
	startXref = regexp.MustCompile(`startxref\s+(\d+)\s+%%EOF\s*$`)
	infoEntry = regexp.MustCompile(`/Info\s+(\d+)\s+\d+\s+R`)
	rootEntry = regexp.MustCompile(`/Root\s+(\d+)\s+\d+\s+R`)
	pagesRef  = regexp.MustCompile(`/Pages\s+(\d+)\s+\d+\s+R`)
	count     = regexp.MustCompile(`/Count\s+(\d+)`)
)

// missingGlyphs begins the descriptor of the box font (layers/chromium/box.js), whose name PDF prefixes with six letters.
var missingGlyphs = regexp.MustCompile(`\n/FontName /(?:[A-Z]{6}\+)?SVCMissingGlyph\n`)

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
	body, _, _ := bytes.Cut(o.at(n), []byte("endobj"))
	return body
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
func countPages(pdf []byte) (int, error) {
	o, err := readObjects(pdf)
	if err != nil {
		return 0, err
	}
	pages := number(count, o.object(number(pagesRef, o.object(number(rootEntry, o.trailer)))))
	if pages < 0 {
		return 0, errPDF
	}
	return pages, nil
}

// MissingGlyphs reports whether a PDF shows the box of a character that no font has. Chromium
// takes the box from a font of its own, and writes the descriptor of each font that the pages show.
func MissingGlyphs(pdf []byte) bool {
	o, err := readObjects(pdf)
	if err != nil {
		return false
	}
	for n := range len(o.entries) / 20 {
		_, body, _ := bytes.Cut(o.at(n)[:min(40, len(o.at(n)))], []byte(" obj\n"))
		if bytes.HasPrefix(body, []byte("<</Type /FontDescriptor")) && missingGlyphs.Match(o.object(n)) {
			return true
		}
	}
	return false
}

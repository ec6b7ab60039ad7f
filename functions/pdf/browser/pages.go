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
	rootEntry = regexp.MustCompile(`/Root\s+(\d+)\s+\d+\s+R`)
	pagesRef  = regexp.MustCompile(`/Pages\s+(\d+)\s+\d+\s+R`)
	count     = regexp.MustCompile(`/Count\s+(\d+)`)
)

// countPages returns the number of pages from the root of the page tree. countPages follows trailer, catalogue and page
// tree through the cross-reference table (ISO 32000-1, 7.5.4 to 7.7.3), because a search of the bytes for page objects
// would count text that a document writes into its title.
func countPages(pdf []byte) (int, error) {
	number := func(pattern *regexp.Regexp, text []byte) int {
		if match := pattern.FindSubmatch(text); match != nil {
			if n, err := strconv.Atoi(string(match[1])); err == nil {
				return n
			}
		}
		return -1
	}
	start := number(startXref, pdf[max(0, len(pdf)-64):])
	if start < 0 || start >= len(pdf) {
		return 0, errPDF
	}
	table, isTable := bytes.CutPrefix(pdf[start:], []byte("xref\n0 "))
	table, trailer, hasTrailer := bytes.Cut(table, []byte("trailer"))
	_, entries, hasEntries := bytes.Cut(table, []byte("\n"))
	if !isTable || !hasTrailer || !hasEntries {
		return 0, errPDF
	}
	// object returns the bytes of object n, nil where there is none; entries have 20 bytes each.
	object := func(n int) []byte {
		if n < 0 || (n+1)*20 > len(entries) {
			return nil
		}
		offset, err := strconv.Atoi(string(entries[n*20 : n*20+10]))
		if err != nil || offset < 0 || offset >= len(pdf) {
			return nil
		}
		body, _, _ := bytes.Cut(pdf[offset:], []byte("endobj"))
		return body
	}
	pages := number(count, object(number(pagesRef, object(number(rootEntry, trailer)))))
	if pages < 0 {
		return 0, errPDF
	}
	return pages, nil
}

package browser

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
)

var errPDF = errors.New("browser: what was printed is no PDF of the expected form")

var (
	startXref = regexp.MustCompile(`startxref\s+(\d+)\s+%%EOF\s*$`)
	rootEntry = regexp.MustCompile(`/Root\s+(\d+)\s+\d+\s+R`)
	pagesRef  = regexp.MustCompile(`/Pages\s+(\d+)\s+\d+\s+R`)
	count     = regexp.MustCompile(`/Count\s+(\d+)`)
)

// countPages reads the number of pages where it stands: trailer, catalogue, root of the page tree, each found through
// the cross-reference table (ISO 32000-1, 7.5.4 to 7.7.3). Searching the bytes for page objects would count what a
// document writes into its title.
func countPages(pdf []byte) (int, error) {
	tail := pdf[max(0, len(pdf)-64):]
	at := startXref.FindSubmatch(tail)
	if at == nil {
		return 0, errPDF
	}
	start, err := strconv.Atoi(string(at[1]))
	if err != nil || start >= len(pdf) || !bytes.HasPrefix(pdf[start:], []byte("xref\n0 ")) {
		return 0, errPDF
	}
	table := pdf[start+len("xref\n0 "):]
	newline := bytes.IndexByte(table, '\n')
	trailer := bytes.Index(table, []byte("trailer"))
	if newline < 0 || trailer < newline {
		return 0, errPDF
	}
	entries := table[newline+1 : trailer]

	// object returns the bytes from an object's beginning; entries have 20 bytes each.
	object := func(ref []byte) []byte {
		n, err := strconv.Atoi(string(ref))
		if err != nil || (n+1)*20 > len(entries) {
			return nil
		}
		offset, err := strconv.Atoi(string(entries[n*20 : n*20+10]))
		if err != nil || offset >= len(pdf) {
			return nil
		}
		body, _, _ := bytes.Cut(pdf[offset:], []byte("endobj"))
		return body
	}
	root := rootEntry.FindSubmatch(table[trailer:])
	if root == nil {
		return 0, errPDF
	}
	tree := pagesRef.FindSubmatch(object(root[1]))
	if tree == nil {
		return 0, errPDF
	}
	number := count.FindSubmatch(object(tree[1]))
	if number == nil {
		return 0, errPDF
	}
	return strconv.Atoi(string(number[1]))
}

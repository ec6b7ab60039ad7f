package browser

import (
	"bytes"
	"compress/zlib"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

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
	pages   int
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
	o := objects{pdf: pdf, entries: entries, trailer: trailer}
	// The root of the page tree has the number of pages (ISO 32000-1, 7.7.3).
	o.pages = number(count, o.object(number(pagesRef, o.object(number(rootEntry, trailer)))))
	if o.pages < 0 {
		return objects{}, errPDF
	}
	return o, nil
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

// inflate returns the content of a compressed stream, up to a number of bytes; nil for no such stream.
func (o objects) inflate(n int, most int64) []byte {
	_, content, _ := bytes.Cut(o.at(n), []byte("stream\n"))
	plain, err := zlib.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(plain, most))
	if err != nil {
		return nil
	}
	return text
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

// update is a change of a PDF that is written at its end (ISO 32000-1, 7.5.6).
type update struct {
	objects
	changed map[int]string
	next    int // number of the next new object
}

// get returns an object without its number.
func (u *update) get(n int) string {
	if body, ok := u.changed[n]; ok {
		return body
	}
	_, body, _ := bytes.Cut(u.object(n), []byte(" obj\n"))
	return string(body)
}

// set replaces the first old text of object n, if there is one.
func (u *update) set(n int, old, text string) {
	if before, after, found := strings.Cut(u.get(n), old); found {
		u.changed[n] = before + text + after
	}
}

func (u *update) add(body string) int {
	u.next++
	u.changed[u.next-1] = body
	return u.next - 1
}

// write returns the PDF with its update.
func (u *update) write() ([]byte, error) {
	if len(u.changed) == 0 {
		return u.pdf, nil
	}
	dictionary, _, hasEnd := bytes.Cut(u.trailer, []byte("startxref"))
	dictionary, isTrailer := bytes.CutSuffix(bytes.TrimSpace(dictionary), []byte(">>"))
	size := fmt.Appendf(nil, "/Size %d\n", len(u.entries)/20)
	if !hasEnd || !isTrailer || !bytes.Contains(dictionary, size) {
		return nil, errPDF
	}
	dictionary = bytes.Replace(dictionary, size, fmt.Appendf(nil, "/Size %d\n", u.next), 1)
	start := number(startXref, u.pdf[max(0, len(u.pdf)-64):])
	out, table := fmt.Appendln(u.pdf), []byte(nil)
	for _, n := range slices.Sorted(maps.Keys(u.changed)) {
		table = fmt.Appendf(table, "%d 1\n%010d 00000 n \n", n, len(out))
		out = fmt.Appendf(out, "%d 0 obj\n%s\nendobj\n", n, u.changed[n])
	}
	return fmt.Appendf(out, "xref\n%strailer\n%s\n/Prev %d>>\nstartxref\n%d\n%%%%EOF\n", table,
		bytes.TrimSpace(dictionary), start, len(out)), nil
}

// describe adds the metadata of the request to a PDF, and to a PDF with tags what makes it accessible.
func (p *page) describe(d Document, o objects, warnings string) ([]byte, error) {
	u := &update{o, map[int]string{}, len(o.entries) / 20}
	info := number(infoEntry, o.trailer)
	var entries strings.Builder
	for _, e := range []struct{ key, text string }{{"Author", d.Metadata.Author}, {"Subject", d.Metadata.Subject},
		{"Keywords", d.Metadata.Keywords}} {
		if e.text != "" {
			fmt.Fprintf(&entries, "/%s <%X>\n", e.key, types.EncodeUTF16String(e.text)) // ISO 32000-1, 7.9.2.2
		}
	}
	if entries.Len() > 0 {
		body, isDictionary := strings.CutSuffix(u.get(info), ">>")
		if !isDictionary {
			return nil, errPDF
		}
		u.changed[info] = body + "\n" + entries.String() + ">>"
	}
	if d.Tagged || d.Outline {
		if err := p.complete(d, u, warnings); err != nil {
			return nil, err
		}
	}
	pdf, err := u.write()
	if size := int64(len(pdf)); err == nil && size > d.MaxBytes {
		err = event.TooLarge(size, d.MaxBytes)
	}
	return pdf, err
}

var (
	title = regexp.MustCompile(`^<</Title (?:\(((?:\\.|[^\\)])*)\)|<([0-9A-F]*)>)`)
	lang  = regexp.MustCompile(`\n/Lang \(([^)]*)\)`)
	// languageTag is the form of a language (PDF/UA-1, 7.2; RFC 5646).
	languageTag = regexp.MustCompile(`^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$`)
)

// titleOf returns the title of a PDF, as its information dictionary has it; empty where that has none.
func titleOf(info string) string {
	match := title.FindStringSubmatch(info)
	if match == nil {
		return ""
	}
	text, err := types.StringLiteralToString(types.StringLiteral(match[1]))
	if match[2] != "" {
		text, err = types.HexLiteralToString(types.HexLiteral(match[2]))
	}
	if err != nil {
		return ""
	}
	return text
}

// metadata returns the metadata stream (ISO 32000-1, 14.3.2; XMP, ISO 16684-1) of a PDF, which says that the PDF
// conforms to PDF/UA-1 where universal is true (ISO 14289-1, 5).
func metadata(m event.Metadata, language string, universal bool) string {
	var x strings.Builder
	for _, e := range []struct{ before, text, after string }{
		{`<dc:title><rdf:Alt><rdf:li xml:lang="x-default">`, m.Title, "</rdf:li></rdf:Alt></dc:title>"},
		{"<dc:language><rdf:Bag><rdf:li>", language, "</rdf:li></rdf:Bag></dc:language>"},
		{"<dc:creator><rdf:Seq><rdf:li>", m.Author, "</rdf:li></rdf:Seq></dc:creator>"},
		{`<dc:description><rdf:Alt><rdf:li xml:lang="x-default">`, m.Subject, "</rdf:li></rdf:Alt></dc:description>"},
		{"<pdf:Keywords>", m.Keywords, "</pdf:Keywords>"},
		{"<pdfuaid:part>", map[bool]string{true: "1"}[universal], "</pdfuaid:part>"},
	} {
		if e.text != "" {
			x.WriteString(e.before)
			_ = xml.EscapeText(&x, []byte(e.text)) // a Builder returns no error
			x.WriteString(e.after + "\n")
		}
	}
	packet := "<?xpacket begin=\"\ufeff\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n" + `<x:xmpmeta xmlns:x="adobe:ns:meta/">` +
		`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" ` +
		`xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:pdf="http://ns.adobe.com/pdf/1.3/" ` +
		`xmlns:pdfuaid="http://www.aiim.org/pdfua/ns/id/">` + "\n" + x.String() +
		"</rdf:Description></rdf:RDF></x:xmpmeta>\n<?xpacket end=\"r\"?>"
	return fmt.Sprintf("<</Type /Metadata\n/Subtype /XML\n/Length %d>> stream\n%s\nendstream", len(packet), packet)
}

package browser

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"svcapi/functions/pdf/render/event"
)

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

// set replaces the first old text of object n.
func (u *update) set(n int, old, text string) { u.changed[n] = strings.Replace(u.get(n), old, text, 1) }

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
	out := bytes.NewBuffer(u.pdf)
	out.WriteByte('\n')
	var table bytes.Buffer
	for _, n := range slices.Sorted(maps.Keys(u.changed)) {
		fmt.Fprintf(&table, "%d 1\n%010d 00000 n \n", n, out.Len())
		fmt.Fprintf(out, "%d 0 obj\n%s\nendobj\n", n, u.changed[n])
	}
	at := out.Len()
	fmt.Fprintf(out, "xref\n%strailer\n%s\n/Prev %d>>\nstartxref\n%d\n%%%%EOF\n", table.Bytes(),
		bytes.TrimSpace(dictionary),
		start, at)
	return out.Bytes(), nil
}

// describe adds the metadata of the request to a PDF, and to a PDF with tags what makes it accessible.
func (p *page) describe(d Document, o objects, warnings string) ([]byte, error) {
	u := &update{o, map[int]string{}, len(o.entries) / 20}
	info := number(infoEntry, o.trailer)
	var entries strings.Builder
	for _, e := range []struct{ key, text string }{{"Author", d.Metadata.Author}, {"Subject", d.Metadata.Subject},
		{"Keywords", d.Metadata.Keywords}} {
		if e.text != "" {
			fmt.Fprintf(&entries, "/%s <%X>\n", e.key, textString(e.text))
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

// textString returns a text string (ISO 32000-1, 7.9.2.2).
func textString(text string) []byte {
	out, _ := binary.Append([]byte{0xfe, 0xff}, binary.BigEndian, utf16.Encode([]rune(text))) // numbers of a fixed size
	return out
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

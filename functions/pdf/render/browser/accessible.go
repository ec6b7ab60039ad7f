package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"svcapi/functions/pdf/render/event"
)

// complete adds to a PDF with tags what Chromium leaves out (docs/decisions/pdf.md#pdf-accessible).
func (p *page) complete(d Document, u *update, warnings string) error {
	root := number(rootEntry, u.trailer)
	m, language := d.Metadata, ""
	m.Title = titleOf(u.get(number(infoEntry, u.trailer)))
	t := readTags(u)
	if match := lang.FindStringSubmatch(u.get(root)); match != nil && languageTag.MatchString(match[1]) {
		language = match[1]
	} else if match != nil { // that of the browser: the document names none
		u.set(root, match[0], "")
		for _, e := range t.list {
			t.set(e.number, match[0], "")
		}
	}
	links, err := p.links(u)
	if err != nil {
		return err
	}
	t.mend()
	for n := range u.of("StructTreeRoot") {
		u.set(n, "/Type /StructTreeRoot\n", "/Type /StructTreeRoot\n/RoleMap <</Aside /Sect>>\n") // Aside is of PDF 2.0
	}
	linked, plain := t.nameLinks(links), u.markArtifacts(d.Margins)
	universal := m.Title != "" && language != "" && d.PageRanges == "" && d.Password == "" && linked && plain &&
		!strings.Contains(warnings, missingGlyphsWarning) && u.hasUnicode() && t.conform()
	u.set(root, "/Type /Catalog\n",
		fmt.Sprintf("/Type /Catalog\n/Metadata %d 0 R\n", u.add(metadata(m, language, universal))))
	return nil
}

// link is a link of the document, with its name for assistive technology.
type link struct{ Address, Name string }

// links returns the links of the document in their order, where the PDF has any.
func (p *page) links(u *update) (links []link, err error) {
	for range u.of("Annot") {
		return links, p.call("links", map[string]any{"longest": longestName / 3}, &links)
	}
	return nil, nil
}

// tag is a structure element (ISO 32000-1, 14.7.2).
type tag struct {
	number int
	kind   string
	kids   []*tag
	links  []int // annotations
}

// tags are the structure of a PDF in the order of the document, in which Chromium numbers the elements.
type tags struct {
	*update
	list []*tag
}

var (
	kindOf   = regexp.MustCompile(`^<</Type /StructElem\n/S /(\w+)\n`)
	kidsOf   = regexp.MustCompile(`\n/K (\[[^\]]*\]|<<[^>]*>>|\d+ 0 R|\d+)`)
	kid      = regexp.MustCompile(`<<[^>]*/Obj (\d+) 0 R[^>]*>>|<<[^>]*>>|(\d+) 0 R|\d+`)
	parentOf = regexp.MustCompile(`\n/P \d+ 0 R`)
)

func readTags(u *update) tags {
	t, byNumber := tags{update: u}, map[string]*tag{}
	for n := range u.of("StructElem") {
		if match := kindOf.FindStringSubmatch(u.get(n)); match != nil {
			e := &tag{number: n, kind: match[1]}
			byNumber[strconv.Itoa(n)], t.list = e, append(t.list, e)
		}
	}
	for _, e := range t.list {
		for _, match := range kid.FindAllStringSubmatch(t.kids(e), -1) {
			if child := byNumber[match[2]]; child != nil {
				e.kids = append(e.kids, child)
			}
			if annotation, err := strconv.Atoi(match[1]); err == nil {
				e.links = append(e.links, annotation)
			}
		}
	}
	return t
}

// kids returns the value of the kids of an element.
func (t tags) kids(e *tag) string {
	if match := kidsOf.FindStringSubmatch(t.get(e.number)); match != nil {
		return match[1]
	}
	return ""
}

// mend gives the elements other forms where PDF/UA-1 permits no others: the content of a list item is in its body
// (7.6), and a figure with a caption is a division with a figure.
func (t tags) mend() {
	for _, e := range t.list {
		inner := slices.DeleteFunc(slices.Clone(e.kids), (*tag).ofItem)
		switch {
		case e.kind == "Figure" && !t.described(e) &&
			slices.ContainsFunc(e.kids, func(k *tag) bool { return k.kind != "NonStruct" }):
			t.set(e.number, "/S /Figure\n", "/S /Div\n")
			e.kind = "Div"
		case e.kind == "LI" && len(inner) == 1 && inner[0].kind == "NonStruct":
			t.set(inner[0].number, "/S /NonStruct\n", "/S /LBody\n")
			inner[0].kind = "LBody"
		case e.kind == "LI" && len(inner) > 0:
			t.wrap(e, inner)
		}
	}
}

// ofItem reports whether a list item may have the element.
func (e *tag) ofItem() bool { return e.kind == "Lbl" || e.kind == "LBody" }

// wrap puts the kids of a list item into a body.
func (t tags) wrap(e *tag, inner []*tag) {
	body, moved := t.add(""), map[string]bool{}
	var list strings.Builder
	for _, k := range inner {
		reference := fmt.Sprintf("%d 0 R", k.number)
		moved[reference] = true
		list.WriteString(reference + " ")
		t.changed[k.number] = parentOf.ReplaceAllString(t.get(k.number), fmt.Sprintf("\n/P %d 0 R", body))
	}
	t.changed[body] = fmt.Sprintf("<</Type /StructElem\n/S /LBody\n/P %d 0 R\n/K [%s]>>", e.number, list.String())
	outer := slices.DeleteFunc(kid.FindAllString(t.kids(e), -1), func(k string) bool { return moved[k] })
	t.set(e.number, "\n/K "+t.kids(e), fmt.Sprintf("\n/K [%s %d 0 R]", strings.Join(outer, " "), body))
	e.kids = slices.DeleteFunc(e.kids, func(k *tag) bool { return !k.ofItem() })
	e.kids = append(e.kids, &tag{number: body, kind: "LBody", kids: inner})
}

// described reports whether an element has an alternative text.
func (t tags) described(e *tag) bool {
	return strings.Contains(t.get(e.number), "\n/Alt ") && !strings.Contains(t.get(e.number), "\n/Alt ()")
}

var addressOf = regexp.MustCompile(`/URI \(((?:\\.|[^\\)])*)\)|/Dest /(\S+)`)

// longestName bounds the name of a link, in bytes of UTF-8.
const longestName = 600

// nameLinks gives the links that are not hidden their names, or else their addresses (ISO 32000-1, 14.9.3), and reports
// whether each is in an element.
func (t tags) nameLinks(links []link) bool {
	unnamed := map[int]bool{}
	for n := range t.of("Annot") {
		if !strings.Contains(t.get(n), "\n/F 2\n") {
			unnamed[n] = true
		}
	}
	name := func(annotations []int) {
		var contents int
		for _, n := range annotations {
			match := addressOf.FindStringSubmatch(t.get(n))
			if !unnamed[n] || match == nil {
				continue
			}
			if contents == 0 {
				address := match[1]
				if raw, err := types.Unescape(match[1]); err == nil {
					address = string(raw)
				}
				if place, err := types.DecodeName(match[2]); err == nil && match[2] != "" {
					address = event.Base + "#" + place
				}
				text := strings.TrimPrefix(address, event.Base)
				if i := slices.IndexFunc(links, func(l link) bool { return l.Address == address }); i >= 0 {
					text, links = cmp.Or(links[i].Name, text), links[i+1:]
				}
				contents = t.add(fmt.Sprintf("<%X>", types.EncodeUTF16String(text[:min(longestName, len(text))])))
			}
			t.set(n, "/Type /Annot\n", fmt.Sprintf("/Type /Annot\n/Contents %d 0 R\n", contents))
			delete(unnamed, n)
		}
	}
	for _, e := range t.list {
		if e.kind == "Link" {
			name(e.links)
		}
	}
	whole := len(unnamed) == 0
	for n := range t.of("Annot") {
		name([]int{n})
	}
	return whole
}

// flow are the elements that any other element may have.
const flow = `Art |Sect |Aside |Div |BlockQuote |Caption |H[1-6] |P |L |Table |Code |Link |Figure |Form |Lbl |Ruby ` +
	`|RB |RT |RP |Span `

// kidsOfKind are the kids that elements may have (PDF/UA-1, 7.2; ISO 32000-1, 14.8.4).
var kidsOfKind = map[string]*regexp.Regexp{
	"":      regexp.MustCompile(`^(` + flow + `)*$`),
	"Table": regexp.MustCompile(`^(Caption )?(TR )+$|^(TR )+Caption $`),
	"TR":    regexp.MustCompile(`^(TH |TD )+$`),
	"L":     regexp.MustCompile(`^(Caption )?(L |LI )+$`),
	"LI":    regexp.MustCompile(`^(Lbl )?(LBody )?$`),
}

// within returns the kids of an element through the elements without a meaning.
func (e *tag) within() (kids []*tag) {
	for _, k := range e.kids {
		if k.kind == "NonStruct" {
			kids = append(kids, k.within()...)
		} else {
			kids = append(kids, k)
		}
	}
	return kids
}

// conform reports whether the structure keeps the rules of PDF/UA-1 that a program can check.
func (t tags) conform() bool {
	level := 0
	for _, e := range t.list {
		if e.kind == "NonStruct" {
			continue
		}
		var kids strings.Builder
		for _, k := range e.within() {
			kids.WriteString(k.kind + " ")
		}
		pattern := cmp.Or(kidsOfKind[e.kind], kidsOfKind[""])
		if !pattern.MatchString(kids.String()) || e.kind == "Figure" && !t.described(e) ||
			e.kind == "Table" && !t.regular(e) {
			return false
		}
		if match := lang.FindStringSubmatch(t.get(e.number)); match != nil && !languageTag.MatchString(match[1]) {
			return false
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(e.kind, "H")); err == nil {
			if n > level+1 {
				return false // 7.4.2
			}
			level = n
		}
	}
	return len(t.list) > 0
}

// maxColumns bounds the time for a table: a cell may span 1,000 columns.
const maxColumns = 1000

var spans = regexp.MustCompile(`/RowSpan (\d+)>> <</O /Table\n/ColSpan (\d+)>>`)

// regular reports whether the rows of a table have the same number of columns, and its cells do not overlap.
func (t tags) regular(table *tag) bool {
	var below []int // rows that a cell of the column still covers
	for i, row := range slices.DeleteFunc(table.within(), func(k *tag) bool { return k.kind != "TR" }) {
		column := 0
		next := func() {
			for column < len(below) && below[column] > 0 {
				column++
			}
		}
		for _, cell := range row.within() {
			rows, columns := 1, 1
			if match := spans.FindStringSubmatch(t.get(cell.number)); match != nil {
				rows, _ = strconv.Atoi(match[1])
				columns, _ = strconv.Atoi(match[2])
			}
			next()
			for range columns {
				if i == 0 && column < maxColumns {
					below = append(below, 0)
				}
				if column >= len(below) || below[column] > 0 {
					return false
				}
				below[column] = rows
				column++
			}
		}
		next()
		if column != len(below) {
			return false
		}
		for c := range below {
			below[c]--
		}
	}
	return !slices.ContainsFunc(below, func(rows int) bool { return rows > 0 })
}

var (
	toUnicode = regexp.MustCompile(`/ToUnicode (\d+) 0 R`)
	// noCharacter matches a glyph without a character in a map from glyphs to characters (PDF/UA-1, 7.21.7).
	noCharacter = regexp.MustCompile(`(?m) <(?:0000|FEFF|FFFE)>$`)
)

// hasUnicode reports whether all fonts are embedded, and each glyph is that of a character.
func (u *update) hasUnicode() bool {
	for n := range u.of("FontDescriptor") {
		if !strings.Contains(u.get(n), "\n/FontFile") {
			return false
		}
	}
	for n := range u.of("Font") {
		font := u.object(n)
		if bytes.Contains(font, []byte("/CIDSystemInfo")) {
			continue // of a font with a map
		}
		if text := u.stream(number(toUnicode, font)); len(text) == 0 || noCharacter.Match(text) {
			return false
		}
	}
	return true
}

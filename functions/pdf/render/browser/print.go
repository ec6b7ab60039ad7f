package browser

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"svcapi/functions/pdf/render/event"
	"svcapi/functions/pdf/render/fetch"
	"svcapi/functions/pdf/render/limits"
)

// firstPages returns the first n pages of the ranges; of all pages where the text is empty.
func firstPages(text string, n int) []int {
	pages, _, _ := event.Pages(text)
	if text == "" {
		for page := range n {
			pages = append(pages, page+1)
		}
	}
	return pages[:min(n, len(pages))]
}

// pageRanges returns pages in ascending order as Chromium reads them.
func pageRanges(pages []int) string {
	var ranges []string
	for len(pages) > 0 {
		n := 1
		for n < len(pages) && pages[n] == pages[0]+n {
			n++
		}
		ranges = append(ranges, fmt.Sprintf("%d-%d", pages[0], pages[n-1]))
		pages = pages[n:]
	}
	return strings.Join(ranges, ",")
}

// emptyTemplate is a header or footer without content: Chromium prints one of its own for an empty text.
const emptyTemplate = "<span></span>"

// template returns the HTML of a header or footer as the browser may draw it.
//
// Chromium draws headers and footers in a page of its own, which has no network and where scripts run. So template
// keeps the elements that show text, tables and images, and no attribute that runs anything. Vector graphics and frames
// are left out, because another reading of their markup could run. Permitted images by address are written into the
// HTML.
func (p *page) template(fragment string) (string, error) {
	root := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(strings.NewReader(fragment), root)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnprintable, err)
	}
	for _, node := range nodes {
		root.AppendChild(node)
	}
	if err := p.clean(root); err != nil {
		return "", err
	}
	var out strings.Builder
	if root.FirstChild != nil {
		out.WriteString("<style>:where(html){font-family:sans-serif" + standardFont + "}</style>")
	}
	for node := range root.ChildNodes() { // without the root: widths are those of the page
		if err := html.Render(&out, node); err != nil {
			return "", fmt.Errorf("%w: %w", errUnprintable, err)
		}
	}
	if out.Len() == 0 {
		return emptyTemplate, nil
	}
	return out.String(), nil
}

// templateElements are the elements of a header or footer.
var templateElements = strings.Fields(`a abbr address article aside b bdi bdo big blockquote br caption center cite code
	col colgroup dd del dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd label li
	main mark nav ol p pre q s samp section small span strike strong style sub sup table tbody td tfoot th thead time tr tt
	u ul var wbr`)

// templateAttributes are the attributes of a header or footer. Of an image, clean keeps the source, too.
var templateAttributes = strings.Fields(`align alt bgcolor border cellpadding cellspacing class color colspan dir face
	height id lang role rowspan size start style title type valign width`)

// clean removes what a template may not have below a node.
func (p *page) clean(node *html.Node) error {
	for _, child := range slices.Collect(node.ChildNodes()) {
		switch {
		case child.Type == html.TextNode:
			if node.Data == "style" {
				child.Data = p.sheet(child.Data, "", 0)
			}
		case p.linked(child):
		case child.Type != html.ElementNode || child.Namespace != "" || !slices.Contains(templateElements, child.Data):
			node.RemoveChild(child)
			p.lost(child)
		default:
			all := child.Attr
			child.Attr = nil
			for _, a := range all {
				switch {
				case a.Namespace != "":
				case slices.Contains(templateAttributes, a.Key):
					switch a.Key {
					case "style":
						a.Val = p.sheet(a.Val, "", 0)
					case "face":
						a.Val += standardFont
					}
					child.Attr = append(child.Attr, a)
				case child.Data == "img" && a.Key == "src" && a.Val != "":
					data, err := p.source(a.Val)
					if err != nil {
						return err
					}
					child.Attr = append(child.Attr, html.Attribute{Key: "src", Val: data})
				}
			}
			if err := p.clean(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// loaded matches the start of what loads an address in a style sheet, and the address.
var loaded = regexp.MustCompile(`(?i)((?:url\(|@import)\s*["']?)([^"'()\s;#]+)`)

// standardFont ends each list of families of a template. A document takes the bold letters of most scripts from
// Chromium's standard font, and the page of headers and footers has no standard font (docs/decisions/pdf.md#pdf-fonts).
const standardFont = ",Times New Roman"

var (
	// fontFamilies matches the families of a declaration, and a font face as a whole.
	fontFamilies = regexp.MustCompile(`(?i)@font-face\s*\{[^}]*\}|(?:^|[;{\s/])font(?:-family)?\s*:[^;}!]+`)
	// withoutFamilies matches what names no family.
	withoutFamilies = regexp.MustCompile(`(?i)^@|:\s*(?:inherit|initial|unset|revert|revert-layer|caption|icon|menu|` +
		`message-box|small-caption|status-bar)\s*$`)
)

// sheet returns a style sheet of a template, which is the named file or in the template itself, without addresses but
// data URLs: Chromium prints no page whose header waits for a style sheet.
func (p *page) sheet(text, file string, imports int) string {
	text = fontFamilies.ReplaceAllStringFunc(text, func(match string) string {
		if withoutFamilies.MatchString(match) {
			return match
		}
		return match + standardFont
	})
	return loaded.ReplaceAllStringFunc(text, func(match string) string {
		parts := loaded.FindStringSubmatch(match)
		if address := strings.ToLower(parts[2]); address == "url" || strings.HasPrefix(address, "data:") {
			return match
		}
		if data, ok := p.inline(parts[2], file, imports); ok {
			return parts[1] + data
		}
		p.block(parts[2])
		return parts[1] + "data:,"
	})
}

// attribute returns the value of an attribute of an element, empty where the element lacks the attribute.
func attribute(e *html.Node, name string) string {
	for _, a := range e.Attr {
		if a.Namespace == "" && a.Key == name {
			return a.Val
		}
	}
	return ""
}

var (
	isStyle = regexp.MustCompile(`(?i)(?:^|\s)stylesheet(?:\s|$)`)
	// executable are the types of scripts that are no data (HTML, 4.12.1).
	executable = regexp.MustCompile(
		`(?i)^\s*(?:module|(?:(?:text|application)/(?:x-)?(?:java|ecma|j|live)script[\d.]*)?)\s*$`)
	// unseen are elements that a template loses without a difference.
	unseen = strings.Fields("area base datalist head map meta param source template title track")
)

// linked turns a link to a style sheet among the files into a style element.
func (p *page) linked(e *html.Node) bool {
	rel := attribute(e, "rel")
	address := attribute(e, "href")
	name := p.file(event.Base + address)
	if e.Data != "link" || !isStyle.MatchString(rel) || event.MediaType(name) != event.CSS {
		return false
	}
	media := attribute(e, "media")
	text := p.sheet(string(p.document.Files[p.use(event.Base+address)]), name, 0)
	e.Data, e.DataAtom, e.Attr = "style", atom.Style, []html.Attribute{{Key: "media", Val: media}}
	e.AppendChild(&html.Node{Type: html.TextNode, Data: strings.ReplaceAll(text, "</", `<\/`)})
	return true
}

// lost notes what a template loses with an element: a script, or a resource by its address or else its name.
func (p *page) lost(e *html.Node) {
	rel := attribute(e, "rel")
	kind := attribute(e, "type")
	if e.Type != html.ElementNode || slices.Contains(unseen, e.Data) || e.Data == "link" && !isStyle.MatchString(rel) ||
		e.Data == "script" && !executable.MatchString(kind) {
		return
	}
	what := e.Data
	for _, name := range []string{"poster", "data", "href", "src"} {
		if address := attribute(e, name); address != "" {
			what = address
		}
	}
	text := e.FirstChild != nil && strings.TrimSpace(e.FirstChild.Data) != ""
	if e.Data == "canvas" || e.Data == "script" && (what != e.Data || text) {
		p.scripts = true
	}
	if what != e.Data || e.Data != "canvas" && e.Data != "script" {
		p.block(what)
	}
}

// source returns the source of an image of a template: a data URL, also of a permitted address; "data:," otherwise,
// with a warning.
func (p *page) source(address string) (string, error) {
	address = strings.TrimSpace(address)
	if len(address) > 5 && strings.EqualFold(address[:5], "data:") {
		return address, nil
	}
	if data, ok := p.inline(address, "", 0); ok {
		return data, nil
	}
	mediaType, body, err := p.document.Images.Get(p.ctx, address)
	if errors.Is(err, fetch.ErrNotPermitted) {
		p.block(address)
		return "data:,", nil
	}
	if err != nil {
		return "", err
	}
	p.note(p.fetched, address)
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(body), nil
}

// file returns the name of the file at an address, empty for none.
func (p *page) file(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return p.document.File(parsed)
}

// use notes that the page receives the file at an address, and returns its name.
func (p *page) use(address string) string {
	name := p.file(address)
	if event.MediaType(name) == event.SVG {
		for _, address := range limits.References(string(p.document.Files[name])) {
			p.block(address)
		}
	}
	p.note(p.used, name)
	return name
}

// sheets returns the style sheets among the files that the page received.
func (p *page) sheets() (texts []string) {
	for _, name := range p.noted(p.used) {
		if event.MediaType(name) == event.CSS {
			texts = append(texts, string(p.document.Files[name]))
		}
	}
	return texts
}

// unused returns the number of files that the page did not receive and that no text of the document names. A font that
// no character needs is named.
func (p *page) unused() int {
	d, n := p.document, 0
	texts := []string{string(d.HTML), string(d.Header), string(d.Footer)}
	for name, body := range d.Files {
		if event.MediaType(name) == event.CSS {
			texts = append(texts, string(body))
		}
	}
	used := p.noted(p.used)
	for name := range d.Files {
		own := path.Base(name)
		named := func(text string) bool {
			return strings.Contains(text, own) || strings.Contains(text, url.PathEscape(own))
		}
		if !slices.Contains(used, name) && !slices.ContainsFunc(texts, named) {
			n++
		}
	}
	return n
}

// waitForFonts waits for the fonts in the style sheets of a document that has no layout yet, or for those among the
// files. The end of the document's load does not wait for them.
func (p *page) waitForFonts(all bool) error {
	ofFiles := slices.ContainsFunc(slices.Collect(maps.Keys(p.document.Files)), func(name string) bool {
		return strings.HasPrefix(event.MediaType(name), "font/")
	})
	if !all && !ofFiles {
		return nil
	}
	return p.call("fonts", all, nil)
}

// maxImports bounds the style sheets of a template that load one another.
const maxImports = 8

// inline returns the file at an address, below another one, as a data URL; false for no file.
func (p *page) inline(address, from string, imports int) (string, bool) {
	below, err := url.Parse(event.Base + from)
	if err != nil {
		return "", false
	}
	to, err := below.Parse(address)
	if err != nil || imports == maxImports {
		return "", false
	}
	name := p.file(to.String())
	if name == "" || strings.HasPrefix(event.MediaType(name), "font/") { // a template does not wait for its fonts
		return "", false
	}
	p.use(to.String())
	body := p.document.Files[name]
	if event.MediaType(name) == event.CSS {
		body = []byte(p.sheet(string(body), name, imports+1))
	}
	return "data:" + event.MediaType(name) + ";base64," + base64.StdEncoding.EncodeToString(body), true
}

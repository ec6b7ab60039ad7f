package limits

import "slices"

// stack estimates the open elements. A stack knows which end tags are optional, so that a long table without end tags
// does not count as deep.
type stack struct {
	names   []string
	tables  int // open elements table
	foreign int // open elements svg and math
}

// void elements have no content (HTML, 13.1.2).
var void = set("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")

// implied describes a start tag that closes elements without an end tag (HTML, 13.1.2.4). The tag closes the innermost
// open element of ends, unless an element of boundary is nearer.
type implied struct{ ends, boundary map[string]bool }

var (
	inTable = set("table", "template")
	inRow   = set("tr", "table", "template")
	// A block closes an open paragraph, unless one of these elements is nearer.
	inButton = set("table", "td", "th", "caption", "button", "object", "marquee", "template", "foreignobject")

	implies = func() map[string]implied {
		m := map[string]implied{
			"li":       {set("li"), set("ul", "ol", "table", "template")},
			"dt":       {set("dt", "dd"), set("dl", "table", "template")},
			"dd":       {set("dt", "dd"), set("dl", "table", "template")},
			"option":   {set("option"), set("select", "datalist")},
			"optgroup": {set("option", "optgroup"), set("select", "datalist")},
			"rt":       {set("rt", "rp"), set("ruby")},
			"rp":       {set("rt", "rp"), set("ruby")},
			"td":       {set("td", "th"), inRow},
			"th":       {set("td", "th"), inRow},
			"tr":       {set("tr", "caption", "colgroup"), inTable},
			"tbody":    {set("tbody", "thead", "tfoot", "caption", "colgroup"), inTable},
			"thead":    {set("tbody", "thead", "tfoot", "caption", "colgroup"), inTable},
			"tfoot":    {set("tbody", "thead", "tfoot", "caption", "colgroup"), inTable},
		}
		for _, block := range []string{
			"address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div", "dl", "fieldset", "figcaption",
			"figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "main", "menu", "nav", "ol", "p",
			"pre", "search", "section", "summary", "table", "ul",
		} {
			m[block] = implied{set("p"), inButton}
		}
		return m
	}()
)

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, name := range names {
		m[name] = true
	}
	return m
}

func (s *stack) top() string {
	if len(s.names) == 0 {
		return ""
	}
	return s.names[len(s.names)-1]
}

func (s *stack) open(name string) {
	if i, ok := implies[name]; ok {
		for at, open := range slices.Backward(s.names) {
			if i.boundary[open] {
				break
			}
			if i.ends[open] {
				s.truncate(at)
				break
			}
		}
	}
	if void[name] {
		return
	}
	s.names = append(s.names, name)
	s.count(name, 1)
}

func (s *stack) close(name string) {
	for at, open := range slices.Backward(s.names) {
		if open == name {
			s.truncate(at)
			return
		}
	}
}

// truncate closes the element at the index with all elements within.
func (s *stack) truncate(at int) {
	for _, name := range s.names[at:] {
		s.count(name, -1)
	}
	s.names = s.names[:at]
}

func (s *stack) count(name string, by int) {
	switch name {
	case "table":
		s.tables += by
	case "svg", "math":
		s.foreign += by
	}
}

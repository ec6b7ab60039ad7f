package limits

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// stack estimates the open elements. Optional end tags that a document leaves out add no depth.
type stack struct {
	names   []string
	tables  int // open elements table
	foreign int // open elements svg and math
}

// void elements have no content (HTML, 13.1.2).
var void = strings.Fields("area base br col embed hr img input link meta param source track wbr")

// implied describes a start tag that closes elements without an end tag (HTML, 13.1.2.4). The tag closes the innermost
// open element of ends, unless an element of boundary is nearer.
type implied struct{ ends, boundary []string }

var implies = func() map[string]implied {
	const blocks = "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer " +
		"form h1 h2 h3 h4 h5 " +
		"h6 header hgroup hr main menu nav ol p pre search section summary table ul"
	m := map[string]implied{}
	for _, rule := range []struct{ tags, ends, boundary string }{
		{"li", "li", "ul ol table template"},
		{"dt dd", "dt dd", "dl table template"},
		{"option", "option", "select datalist"},
		{"optgroup", "option optgroup", "select datalist"},
		{"rt rp", "rt rp", "ruby"},
		{"td th", "td th", "tr table template"},
		{"tr", "tr caption colgroup", "table template"},
		{"tbody thead tfoot", "tbody thead tfoot caption colgroup", "table template"},
		{blocks, "p", "table td th caption button object marquee template foreignobject"},
	} {
		for tag := range strings.FieldsSeq(rule.tags) {
			m[tag] = implied{strings.Fields(rule.ends), strings.Fields(rule.boundary)}
		}
	}
	return m
}()

func (s *stack) top() string {
	if len(s.names) == 0 {
		return ""
	}
	return s.names[len(s.names)-1]
}

// start opens the element of a start tag, and sets how the tokeniser reads what follows.
func (s *stack) start(tokens *html.Tokenizer, name string, kind html.TokenType) {
	s.open(name)
	if kind == html.SelfClosingTagToken && s.foreign > 0 {
		s.truncate(len(s.names) - 1) // outside SVG and MathML the slash has no meaning
	}
	// Without scripts the content of noscript is markup, and so is the content of every element within SVG and MathML.
	if name == "noscript" || s.foreign > 0 {
		tokens.NextIsNotRawText()
	}
	tokens.AllowCDATA(s.foreign > 0)
}

func (s *stack) open(name string) {
	if i, ok := implies[name]; ok {
		for at, open := range slices.Backward(s.names) {
			if slices.Contains(i.boundary, open) {
				break
			}
			if slices.Contains(i.ends, open) {
				s.truncate(at)
				break
			}
		}
	}
	if slices.Contains(void, name) {
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

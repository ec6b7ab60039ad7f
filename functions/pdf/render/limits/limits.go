// Package limits refuses documents that would overload a browser, before a browser loads them.
//
// The package makes one pass with a tokeniser and does not parse: it counts, and counts the larger number where markup
// has two readings. A document that passes by mistake still meets the limits of time and memory around the browser.
package limits

import (
	"encoding/base64"
	"iter"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"svcapi/functions/pdf/render/event"
	"svcapi/functions/pdf/render/fetch"
)

// Limits bound a document. Each is a maximum.
type Limits struct {
	Elements int   // start tags, also those in frames
	Depth    int   // elements within elements
	Tables   int   // tables within tables
	Pixels   int64 // of all images in data URLs and files
}

// Check returns an *event.RejectionError for the first limit that the files and the texts of a document, such as its
// body and its header, exceed.
func (l Limits) Check(files map[string][]byte, texts ...string) error {
	c := counter{Limits: l}
	for name, body := range files {
		var err error
		switch event.MediaType(name) {
		case event.SVG:
			texts = append(texts, string(body))
		case event.CSS:
			err = c.images(string(body))
		default:
			err = c.image(body)
		}
		if err != nil {
			return err
		}
	}
	for _, text := range texts {
		if err := c.document(text, 0); err != nil {
			return err
		}
	}
	return nil
}

// counter counts the elements and pixels of a document with its frames.
type counter struct {
	Limits
	elements int
	pixels   int64
}

// maxFrames bounds the nesting of srcdoc frames that are counted. Each level escapes the quotes of the next.
const maxFrames = 8

func (c *counter) document(text string, frames int) (err error) {
	var open stack
	for tokens, tag := range open.read(text) {
		if tag != nil {
			err = c.start(tag, &open, frames)
		} else {
			err = c.images(string(tokens.Text()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// start counts one element, which is open.
func (c *counter) start(tag *html.Token, open *stack, frames int) error {
	if c.elements++; c.elements > c.Elements {
		return event.Exceeded("elements", "the document has more than %d elements", c.Elements)
	}
	if len(open.names) > c.Depth {
		return event.Exceeded("depth", "elements of the document are nested more than %d deep", c.Depth)
	}
	if open.tables > c.Tables {
		return event.Exceeded("tables", "tables of the document are nested more than %d deep", c.Tables)
	}
	for _, a := range tag.Attr {
		if err := c.images(a.Val); err != nil {
			return err
		}
		if tag.Data == "iframe" && a.Key == "srcdoc" && frames < maxFrames {
			if err := c.document(a.Val, frames+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// images adds the pixels of the data URLs in the value of an attribute or in a style sheet, because a few bytes can
// unpack to gigabytes of pixels. A broken image adds nothing, because the browser does not show such an image.
func (c *counter) images(text string) error {
	for {
		at := indexFold(text, "data:")
		if at < 0 {
			return nil
		}
		text = text[at+len("data:"):]
		head, _, found := strings.Cut(text[:min(len(text), maxHead)], ",")
		if !found || strings.ContainsAny(head, "()<>") {
			continue
		}
		rest := text[len(head)+1:]
		isBase64 := strings.HasSuffix(strings.ToLower(strings.TrimSpace(head)), "base64")
		end := strings.IndexAny(rest, "\"'()<>\\,")
		if !isBase64 {
			end = indexFold(rest, "data:") // the data may contain every other character
		}
		if end < 0 {
			end = len(rest)
		}
		if err := c.image(dataBody(rest[:end], isBase64)); err != nil {
			return err
		}
		text = rest[end:]
	}
}

// image adds the pixels of an image.
func (c *counter) image(body []byte) error {
	if _, pixels, err := fetch.Measure(body); err == nil {
		if c.pixels += pixels; c.pixels > c.Pixels {
			return event.Exceeded("pixels", "the images written into the document have more than %d pixels", c.Pixels)
		}
	}
	return nil
}

// maxHead bounds the characters between the scheme and the comma of a data URL.
const maxHead = 200

var removeSpaceAndPadding = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "\f", "", "=", "")

// dataBody decodes the data of a data URL up to the first error.
func dataBody(text string, isBase64 bool) []byte {
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	if !isBase64 {
		return []byte(text)
	}
	text = removeSpaceAndPadding.Replace(text)
	body := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, _ := base64.RawStdEncoding.Decode(body, []byte(text))
	return body[:n]
}

// indexFold is strings.Index for an ASCII text without regard to case.
func indexFold(text, lower string) int {
	for i := 0; i+len(lower) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(lower)], lower) {
			return i
		}
	}
	return -1
}

// stack estimates the open elements. Optional end tags that a document leaves out add no depth.
type stack struct {
	names   []string
	tables  int // open elements table
	foreign int // open elements svg and math

	from, to int // where read is in the document
}

// void elements have no content (HTML, 13.1.2).
var void = strings.Fields("area base br col embed hr img input link meta param source track wbr")

// implied describes a start tag that closes elements without an end tag (HTML, 13.1.2.4). The tag closes the innermost
// open element of ends, unless an element of boundary is nearer.
type implied struct{ ends, boundary []string }

var implies = func() map[string]implied {
	const blocks = "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer " +
		"form h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section summary table ul"
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

// read opens and closes the elements of a document, and yields each start tag, and no tag for the text of each style
// element.
func (s *stack) read(document string) iter.Seq2[*html.Tokenizer, *html.Token] {
	return func(yield func(*html.Tokenizer, *html.Token) bool) {
		tokens := html.NewTokenizer(strings.NewReader(document))
		for {
			kind := tokens.Next()
			s.from, s.to = s.to, s.to+len(tokens.Raw())
			switch kind {
			case html.ErrorToken:
				return // the end, because every text can be tokenised
			case html.TextToken:
				if n := len(s.names); n > 0 && s.names[n-1] == "style" && !yield(tokens, nil) {
					return
				}
			case html.EndTagToken:
				name, _ := tokens.TagName()
				s.close(string(name))
			case html.StartTagToken, html.SelfClosingTagToken:
				tag := tokens.Token()
				if s.start(tokens, tag.Data, kind); !yield(tokens, &tag) {
					return
				}
			}
		}
	}
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

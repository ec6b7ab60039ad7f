// Package limits refuses documents that would overload a browser, before a browser loads them.
//
// The package makes one pass with a tokeniser and does not parse: it counts, and counts the larger number where markup
// has two readings. A document that passes by mistake still meets the limits of time and memory around the browser.
package limits

import (
	"encoding/base64"
	"net/url"
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

func (c *counter) document(text string, frames int) error {
	var open stack
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			return nil // the end, because every text can be tokenised
		case html.TextToken:
			if open.top() == "style" {
				if err := c.images(string(tokens.Text())); err != nil {
					return err
				}
			}
		case html.EndTagToken:
			name, _ := tokens.TagName()
			open.close(string(name))
		case html.StartTagToken, html.SelfClosingTagToken:
			if err := c.start(tokens, kind, &open, frames); err != nil {
				return err
			}
		}
	}
}

// start counts one element.
func (c *counter) start(tokens *html.Tokenizer, kind html.TokenType, open *stack, frames int) error {
	tag := tokens.Token()
	name := tag.Data
	if c.elements++; c.elements > c.Elements {
		return event.Exceeded("elements", "the document has more than %d elements", c.Elements)
	}
	open.start(tokens, name, kind)
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
		if name == "iframe" && a.Key == "srcdoc" && frames < maxFrames {
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

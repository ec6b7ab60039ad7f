// Package limits looks at a document before a browser does, and refuses what would hurt one.
//
// It is one pass of a tokeniser, not a parser: it counts, and where markup can be read in two ways it counts the
// greater. What it lets through by mistake meets the limits of time and memory around the browser.
package limits

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// Limits bound a document. Each is a maximum.
type Limits struct {
	Elements int   // start tags, those of frames within included
	Depth    int   // elements within elements
	Tables   int   // tables within tables
	Pixels   int64 // of all images written into the document as data URLs
	Measure  func(image []byte) (mediaType string, pixels int64, ok bool)
}

// Error is a limit that a document passes.
type Error struct {
	Limit   string // "elements", "depth", "tables" or "pixels", for metrics
	Message string
}

// Error implements error.
func (e *Error) Error() string { return "limits: " + e.Message }

// Refusal returns the words for the client.
func (e *Error) ClientMessage() string { return e.Message }

// Check returns an *Error for the first limit that the document passes.
func (l Limits) Check(document string) error {
	c := counter{Limits: l}
	return c.document(document, 0)
}

// counter is what has been seen so far. Frames within a document count into the same.
type counter struct {
	Limits
	elements int
	pixels   int64
}

// maxFrames bounds how far srcdoc frames are followed into each other; each level escapes the next one's quotes.
const maxFrames = 8

func (c *counter) document(text string, frames int) error {
	var open stack
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			return nil // the end: every text can be tokenised
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
	raw, more := tokens.TagName()
	name := string(raw)
	if c.elements++; c.elements > c.Elements {
		return &Error{"elements", fmt.Sprintf("the document has more than %d elements", c.Elements)}
	}
	open.open(name)
	if kind == html.SelfClosingTagToken && open.foreign > 0 {
		open.cut(len(open.names) - 1) // in HTML proper the slash means nothing
	}
	if len(open.names) > c.Depth {
		return &Error{"depth", fmt.Sprintf("elements of the document are nested more than %d deep", c.Depth)}
	}
	if open.tables > c.Tables {
		return &Error{"tables", fmt.Sprintf("tables of the document are nested more than %d deep", c.Tables)}
	}
	for more {
		var key, value []byte
		key, value, more = tokens.TagAttr()
		if err := c.images(string(value)); err != nil {
			return err
		}
		if name == "iframe" && string(key) == "srcdoc" && frames < maxFrames {
			if err := c.document(string(value), frames+1); err != nil {
				return err
			}
		}
	}
	// Without scripts the content of noscript is markup, and within SVG and MathML that of every element is.
	if name == "noscript" || open.foreign > 0 {
		tokens.NextIsNotRawText()
	}
	tokens.AllowCDATA(open.foreign > 0)
	return nil
}

// images adds up the pixels of the data URLs in an attribute's value or a style sheet. A few bytes can unfold to
// gigabytes of pixels. One that is broken adds nothing, as it shows nothing.
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
			end = indexFold(rest, "data:") // anything may stand in it
		}
		if end < 0 {
			end = len(rest)
		}
		if _, pixels, ok := c.Measure(dataBody(rest[:end], isBase64)); ok {
			if c.pixels += pixels; c.pixels > c.Pixels {
				return &Error{"pixels", fmt.Sprintf("the images written into the document have more than %d pixels", c.Pixels)}
			}
		}
		text = rest[end:]
	}
}

// maxHead is how much may stand between a data URL's scheme and its comma.
const maxHead = 200

// dataBody decodes what follows the comma of a data URL, as far as it can be decoded.
func dataBody(text string, isBase64 bool) []byte {
	if strings.Contains(text, "%") {
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
	}
	if !isBase64 {
		return []byte(text)
	}
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\f=", r) {
			return -1
		}
		return r
	}, text)
	body := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, _ := base64.RawStdEncoding.Decode(body, []byte(text))
	return body[:n]
}

// indexFold is strings.Index for a lower-case ASCII text, in any case.
func indexFold(text, lower string) int {
	for i := 0; i+len(lower) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(lower)], lower) {
			return i
		}
	}
	return -1
}

package limits

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// BlockedPrefix begins the name of an attribute that Block has renamed.
const BlockedPrefix = "svc-"

// loading has the attributes by which an element loads something. The value is true where the element loads an image.
var loading = map[string]map[string]bool{
	"link": {"href": false}, "script": {"src": false, "href": false, "xlink:href": false},
	"iframe": {"src": false}, "frame": {"src": false}, "embed": {"src": false}, "object": {"data": false},
	"audio": {"src": false}, "track": {"src": false}, "video": {"src": false, "poster": true}, "source": {"src": false, "srcset": true},
	"img": {"src": true, "srcset": true}, "input": {"src": true}, "image": {"href": true, "xlink:href": true},
	"use": {"href": false, "xlink:href": false}, "feimage": {"href": true, "xlink:href": true},
	"body": {"background": true}, "table": {"background": true}, "td": {"background": true}, "th": {"background": true},
}

var (
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	// loads matches a document that may have one of the elements.
	loads = regexp.MustCompile(`(?i)<(?:link|script|i?frame|embed|object|audio|video|track|source|ima?ge?|input|use|feimage|body|t[dh]|table)[\s/]`)
)

// Block renames the attributes of a document that name what the browser would not load, so that the browser does not try:
// a try costs a message to this process and the drawing of a broken image. Where permitted returns true, an image is loaded.
// A document that the browser reads in another way still meets the interception of its requests.
func Block(document string, permitted func(address *url.URL) bool) string {
	if !loads.MatchString(document) {
		return document
	}
	var out bytes.Buffer
	var open stack
	based := indexFold(document, "<base") >= 0 // a relative address then has a meaning
	tokens := html.NewTokenizer(strings.NewReader(document))
	for {
		kind := tokens.Next()
		raw := slices.Clone(tokens.Raw())
		switch kind {
		case html.ErrorToken:
			out.Write(raw)
			return out.String()
		case html.EndTagToken:
			name, _ := tokens.TagName()
			open.close(string(name))
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := tokens.Token()
			open.start(tokens, tag.Data, kind)
			if rename(&tag, based, permitted) {
				raw = []byte(tag.String())
			}
		}
		out.Write(raw)
	}
}

// rename renames the attributes of a tag, and reports whether there were any.
func rename(tag *html.Token, based bool, permitted func(*url.URL) bool) bool {
	renamed := false
	for i := range tag.Attr {
		a := &tag.Attr[i]
		image, loads := loading[tag.Data][a.Key]
		first, _, _ := strings.Cut(strings.TrimSpace(a.Val), " ") // of a srcset
		relative := !scheme.MatchString(first)
		address, err := url.Parse(first)
		switch {
		case !loads || first == "" || first[0] == '#' || relative && based,
			tag.Data == "iframe" && slices.ContainsFunc(tag.Attr, func(a html.Attribute) bool { return a.Key == "srcdoc" }),
			!relative && slices.Contains([]string{"data", "about", "javascript"}, strings.ToLower(first[:strings.Index(first, ":")])),
			image && err == nil && permitted(address):
		default:
			a.Key, renamed = BlockedPrefix+strings.TrimPrefix(a.Key, "xlink:"), true
		}
	}
	return renamed
}

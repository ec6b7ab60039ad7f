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
}

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// longestName is the length of the longest name of loading.
const longestName = 8

// mayLoad reports whether a document may have one of the elements.
func mayLoad(document string) bool {
	for tag := range strings.SplitSeq(document, "<") {
		end := 0
		for end < min(len(tag), longestName) && tag[end] >= 'A' {
			end++
		}
		if end > 0 && loading[strings.ToLower(tag[:end])] != nil {
			return true
		}
	}
	return false
}

// Block renames the attributes of a document that name what the browser would not load, so that the browser does not try:
// a try costs a message to this process and the drawing of a broken image. Where permitted returns true, an image is loaded.
// A document that the browser reads in another way still meets the interception of its requests.
func Block(document string, permitted func(address *url.URL) bool) string {
	if !mayLoad(document) {
		return document
	}
	out := bytes.NewBuffer(make([]byte, 0, len(document)+1024))
	var open stack
	based := strings.Contains(strings.ToLower(document), "<base") // a relative address then has a meaning
	tokens := html.NewTokenizer(strings.NewReader(document))
	for {
		kind, before := tokens.Next(), out.Len()
		out.Write(tokens.Raw()) // reading the tag changes the bytes
		switch kind {
		case html.ErrorToken:
			return out.String()
		case html.EndTagToken:
			name, _ := tokens.TagName()
			open.close(string(name))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := tokens.TagName()
			tag := html.Token{Type: kind, Data: string(name)}
			open.start(tokens, tag.Data, kind)
			if loading[tag.Data] == nil {
				continue
			}
			for more {
				var key, value []byte
				key, value, more = tokens.TagAttr()
				tag.Attr = append(tag.Attr, html.Attribute{Key: string(key), Val: string(value)})
			}
			if rename(&tag, based, permitted) {
				out.Truncate(before)
				out.WriteString(tag.String())
			}
		}
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
		ofScheme, _, _ := strings.Cut(strings.ToLower(first), ":")
		address, err := url.Parse(first)
		switch {
		case !loads || first == "" || first[0] == '#' || relative && based,
			tag.Data == "iframe" && slices.ContainsFunc(tag.Attr, func(a html.Attribute) bool { return a.Key == "srcdoc" }),
			!relative && slices.Contains([]string{"data", "about", "javascript"}, ofScheme),
			image && err == nil && permitted(address):
		default:
			a.Key, renamed = BlockedPrefix+strings.TrimPrefix(a.Key, "xlink:"), true
		}
	}
	return renamed
}

package limits

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
	"golang.org/x/net/html"
)

// Blocked is the attribute that has the addresses that an element would load, one a line, and the type of such images
// in style sheets. The attribute ofStyle has the addresses of the element's style.
const (
	Blocked = "svc-blocked"
	ofStyle = "svc-style"
)

// loading has the attributes by which an element loads something. The value is true where the element loads an image.
var loading = map[string]map[string]bool{
	"link": {"href": false}, "script": {"src": false, "href": false, "xlink:href": false},
	"iframe": {"src": false}, "frame": {"src": false}, "embed": {"src": false}, "object": {"data": false},
	"audio": {"src": false}, "track": {"src": false}, "video": {"src": false,
		"poster": true}, "source": {"src": false, "srcset": true},
	"img": {"src": true, "srcset": true}, "input": {"src": true}, "image": {"href": true, "xlink:href": true},
	"use": {"href": false, "xlink:href": false}, "feimage": {"href": true, "xlink:href": true},
}

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// mayLoad reports whether a document, in lower case, may have one of the elements or an image of a style sheet.
func mayLoad(lower string) bool {
	for name := range loading {
		if strings.Contains(lower, "<"+name) {
			return true
		}
	}
	return names(lower) || strings.Contains(lower, "background=")
}

// hidden are an escape of CSS and references of HTML, behind which "url(" can hide.
var hidden = regexp.MustCompile(`\\|&#|&lpar;`)

var (
	fontFace = regexp.MustCompile(`@font-face\s*\{[^{}]*\}`)
	// fontData matches the start of the address of a font that is in its own style sheet.
	fontData = regexp.MustCompile(`url\(\s*["']?data:(?:font/|application/(?:x-)?font-)`)
)

// CutFonts returns a document, in lower case, without the font faces that have their fonts as data, and the number of
// those faces. A face with a comment stays, because the comment can hide the end of another rule.
func CutFonts(lower string) (rest string, faces int) {
	rest = fontFace.ReplaceAllStringFunc(lower, func(face string) string {
		other := fontData.ReplaceAllString(face, "")
		if len(other) == len(face) || names(other) || strings.Contains(face, "/*") || strings.Contains(face, "*/") {
			return face
		}
		faces++
		return ""
	})
	return rest, faces
}

// mostFonts is the number of fonts that the renderer loads without a layout, whether text needs them or not.
const mostFonts = 20

// NeedsLayout reports whether a document may need a layout before its print, to animate or to load more than images and
// the fonts of CutFonts; fonts reports whether a document that needs none has such fonts.
func NeedsLayout(document string) (layout, fonts bool) {
	lower, faces := CutFonts(strings.ReplaceAll(strings.ToLower(document), "<img", ""))
	layout = faces > mostFonts || mayLoad(lower) || strings.Contains(lower, "@keyframes") || hidden.MatchString(lower)
	return layout, faces > 0 && !layout
}

// names reports whether a style sheet, in lower case, may name what it loads.
func names(lower string) bool {
	return strings.Contains(lower, "url(") || strings.Contains(lower, "@import") || strings.Contains(lower, "image-set(")
}

// blocker blocks what a document would load.
type blocker struct {
	base      *url.URL // of relative addresses, if the browser takes the document's base element; nil without one
	known     bool     // the document has no other base
	permitted func(address *url.URL, image bool) bool
}

// base returns the address of the document's base element, and whether a browser certainly finds no other one.
func base(document, lower string) (found *url.URL, known bool) {
	switch strings.Count(lower, "<base") {
	case 0:
		return nil, true
	case 1:
		tokens := html.NewTokenizer(strings.NewReader(document))
		for tokens.Next() != html.ErrorToken {
			tag := tokens.Token()
			i := slices.IndexFunc(tag.Attr, func(a html.Attribute) bool { return a.Key == "href" })
			if tag.Data == "base" && i >= 0 && !strings.Contains(tag.Attr[i].Val, `\`) {
				found, err := url.Parse(strings.TrimSpace(tag.Attr[i].Val))
				return found, err == nil
			}
		}
	}
	return nil, false
}

// Block moves what names an address that the browser would not load to where the browser does not try: a try costs a
// message to this process and the drawing of a broken image. Where permitted returns true, the address is loaded. A
// document that the browser reads in another way still meets the interception of its requests.
func Block(document string, permitted func(address *url.URL, image bool) bool) string {
	lower := strings.ToLower(document)
	if !mayLoad(lower) {
		return document
	}
	out := bytes.NewBuffer(make([]byte, 0, len(document)+1024))
	var open stack
	b, written := blocker{permitted: permitted}, 0
	b.base, b.known = base(document, lower)
	replace := func(text string) {
		out.WriteString(document[written:open.from])
		out.WriteString(text)
		written = open.to
	}
	for _, tag := range open.read(document) {
		switch {
		case tag != nil && b.tag(tag):
			replace(tag.String())
		case tag == nil && open.foreign == 0:
			replace(b.style(document[open.from:open.to], func(address string) string { return address }))
		}
	}
	return out.String() + document[written:]
}

// tag blocks what a tag would load, and reports whether there is any.
func (b blocker) tag(tag *html.Token) bool {
	var blocked, ofSheet []string
	kept := tag.Attr[:0]
	frame := tag.Data == "iframe" &&
		slices.ContainsFunc(tag.Attr, func(a html.Attribute) bool { return a.Key == "srcdoc" })
	for _, a := range tag.Attr {
		image, loads := loading[tag.Data][a.Key]
		if a.Key == "background" {
			image, loads = true, true
		}
		first, _, _ := strings.Cut(strings.TrimSpace(a.Val), " ") // of a srcset
		switch {
		case loads && !frame && b.blocks(first, image):
			blocked = append(blocked, strings.ReplaceAll(a.Val, "\n", ""))
			continue
		case a.Key == "style":
			a.Val = b.style(a.Val, func(address string) string {
				ofSheet = append(ofSheet, address)
				return ""
			})
		}
		kept = append(kept, a)
	}
	tag.Attr = kept
	if blocked != nil {
		tag.Attr = append(tag.Attr, html.Attribute{Key: Blocked, Val: strings.Join(blocked, "\n")})
	}
	if ofSheet != nil {
		tag.Attr = append(tag.Attr, html.Attribute{Key: ofStyle, Val: strings.Join(ofSheet, "\n")})
	}
	return blocked != nil || ofSheet != nil
}

// blocks reports whether the browser would try to load an address that is not permitted.
func (b blocker) blocks(address string, image bool) bool {
	relative := !scheme.MatchString(address)
	ofScheme, _, _ := strings.Cut(strings.ToLower(address), ":")
	if address == "" || address[0] == '#' || relative && !b.known ||
		!relative && slices.Contains([]string{"data", "about", "javascript"}, ofScheme) {
		return false
	}
	parsed, err := url.Parse(address)
	if err == nil && relative && b.base != nil && (b.permitted(b.base.ResolveReference(parsed), image) ||
		strings.Contains(address, `\`)) { // which a browser reads as a slash
		return false
	}
	return err != nil || !b.permitted(parsed, image)
}

// images are the properties of elements whose images Block blocks in style sheets. The property list-style-image is not
// one: an item without its image shows a marker.
var images = strings.Fields(`background background-image border-image border-image-source content mask mask-image
	-webkit-mask -webkit-mask-image`)

// conditional matches what follows the address of an import that has a layer or a condition.
var conditional = regexp.MustCompile(`(?i)^\s*(?:layer|supports)\b`)

// style gives the images of a style sheet that the browser would not load a type that the browser does not know (CSS
// Images 4, 2.4), and the addresses that named returns: the browser still computes which elements have them. An import
// becomes a rule that the browser does not know.
func (b blocker) style(sheet string, named func(address string) string) string {
	if !names(strings.ToLower(sheet)) {
		return sheet
	}
	out := bytes.NewBuffer(make([]byte, 0, len(sheet)))
	property, block, functions, start, imports := "", "", 0, 0, true
	lexer := css.NewLexer(parse.NewInputString(sheet))
	for rest := sheet; ; {
		kind, token := lexer.Next()
		if kind == css.ErrorToken {
			return out.String() + rest
		}
		text := rest[:len(token)]
		rest = rest[len(token):]
		switch kind {
		case css.SemicolonToken, css.LeftBraceToken, css.RightBraceToken:
			if kind == css.LeftBraceToken {
				block, imports = property, false
			}
			property, functions = "", 0
		case css.IdentToken, css.AtKeywordToken, css.CustomPropertyNameToken:
			if property == "" {
				property, start = strings.ToLower(text), out.Len()
			}
		case css.FunctionToken, css.LeftParenthesisToken:
			functions++
		case css.RightParenthesisToken:
			functions--
		case css.URLToken, css.StringToken:
			isURL := kind == css.URLToken
			address := text
			if isURL {
				address = strings.TrimSpace(strings.TrimSuffix(text[len("url("):], ")"))
			}
			address = strings.Trim(address, `"'`)
			// no element has those of @page
			image := isURL && slices.Contains(images, property) && !strings.HasPrefix(block, "@")
			switch {
			case functions > 0 || strings.ContainsAny(address, "\\\"\n ") || !b.blocks(address, image):
			case image:
				text = `image-set("` + named(address) + `" type("` + Blocked + `"))`
			case property == "@import" && imports && !conditional.MatchString(rest):
				out.Truncate(start)
				text = "@" + Blocked + " " + text
			}
		}
		out.WriteString(text)
	}
}

// ofSVG matches what an SVG file would load, with the address.
var ofSVG = regexp.MustCompile(`(?is)(?:url\(|@import\s+(?:url\()?|` +
	`(?:<(?:\w+:)?(?:image|use|feimage|script|iframe|img)\b|<\?xml-stylesheet\b)[^>]*?` +
	`\s(?:href|xlink:href|src)\s*=)\s*(?:&quot;|["'])?([^"'()\s;#>&][^"'()\s;>]*)`)

// References returns the addresses that an SVG file names: an image loads none of them.
func References(svg string) (addresses []string) {
	for _, match := range ofSVG.FindAllStringSubmatch(svg, -1) {
		if !strings.HasPrefix(strings.ToLower(match[1]), "data:") {
			addresses = append(addresses, match[1])
		}
	}
	return addresses
}

// paged are the functions, properties, keywords by property, and pseudo-elements of CSS GCPM 3, CSS Paged Media 3 and
// CSS Generated Content 3. The browser itself knows which of them it drops.
var paged = struct {
	functions, properties, pseudo []string
	keywords                      map[string]string
}{
	strings.Fields("target-counter target-counters target-text leader string element content running"),
	strings.Fields("string-set bookmark-level bookmark-label bookmark-state footnote-display footnote-policy marks " +
		"bleed running-element"),
	strings.Fields("footnote-call footnote-marker"),
	map[string]string{"float": "footnote"},
}

// hints are parts of the names, one of which each document with any of them has.
var hints = strings.Fields("target- leader( string( string-set element( content( running footnote bookmark- " +
	"marks bleed")

// Declaration is one of a style sheet that a browser may drop.
type Declaration struct {
	// around it: the texts before their blocks, from the outermost; of the style attribute Style: none
	Rules                 []string
	Style                 string
	Property, Value, Name string // without a property the browser drops the whole rule
}

// Declarations returns the declarations with generated content for paged media of a document and of style sheets.
func Declarations(document string, sheets ...string) []Declaration {
	found := []Declaration{}
	for _, sheet := range sheets {
		found = append(found, declarations(sheet, nil)...)
	}
	lower := strings.ToLower(document)
	if !slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(lower, hint) }) {
		return found
	}
	var open stack
	var rules []string
	for tokens, tag := range open.read(document) {
		if tag == nil {
			found = append(found, declarations(string(tokens.Text()), rules)...)
			continue
		}
		rules = nil
		for _, a := range tag.Attr {
			switch {
			case a.Key == "media" && a.Val != "":
				rules = []string{"@media " + a.Val}
			case a.Key == "style":
				for _, d := range declarations(a.Val, nil) {
					d.Style = a.Val
					found = append(found, d)
				}
			}
		}
	}
	return found
}

// declarations reads one style sheet, or the text of a style attribute, within rules.
func declarations(sheet string, rules []string) (found []Declaration) {
	var text strings.Builder
	property, names := "", []string(nil)
	rules = slices.Clone(rules)
	end := func() {
		_, value, _ := strings.Cut(text.String(), ":")
		if slices.Contains(paged.properties, property) {
			names = []string{property}
		}
		for _, name := range names {
			found = append(found, Declaration{Rules: slices.Clone(rules), Property: property,
				Value: strings.TrimSpace(value), Name: name})
		}
		text.Reset()
		property, names = "", nil
	}
	lexer := css.NewLexer(parse.NewInputString(sheet))
	for {
		kind, token := lexer.Next()
		word := strings.ToLower(string(token))
		switch kind {
		case css.ErrorToken:
			end()
			return found
		case css.CommentToken:
			continue
		case css.LeftBraceToken:
			rules = append(rules, strings.TrimSpace(text.String()))
			text.Reset()
			if property == "@footnote" {
				names = append(names, property)
			}
			for _, name := range names {
				if slices.Contains(paged.pseudo, name) || name == "@footnote" {
					found = append(found, Declaration{Rules: slices.Clone(rules), Name: name})
				}
			}
			property, names = "", nil
			continue
		case css.SemicolonToken, css.RightBraceToken:
			if end(); kind == css.RightBraceToken {
				rules = rules[:max(0, len(rules)-1)]
			}
			continue
		case css.FunctionToken:
			if name := strings.TrimSuffix(word, "("); property != "" && slices.Contains(paged.functions, name) {
				names = append(names, name)
			}
		case css.IdentToken, css.AtKeywordToken:
			switch {
			case slices.Contains(paged.pseudo, word):
				names = append(names, word)
			case property == "":
				property = word
			case paged.keywords[property] == word:
				names = append(names, word)
			}
		}
		text.Write(token)
	}
}

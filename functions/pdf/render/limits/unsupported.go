package limits

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

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
		case css.RightBraceToken:
			end()
			rules = rules[:max(0, len(rules)-1)]
			continue
		case css.SemicolonToken:
			end()
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

package symbology

import (
	"strings"
	"unicode"

	"github.com/boombuler/barcode"
)

// Label is a piece of the human-readable text of a symbol, centred below the modules From to To. Module 0 is the first of
// the symbol, and modules of a quiet zone are before 0 and behind the last.
type Label struct {
	Text     string
	From, To int
}

// group is a label's number of characters and its place.
type group struct{ characters, from, to int }

// groupings are the groups of digits of EAN and UPC (GS1 General Specifications, 5.2.5). In the quiet zones are the digits
// that have no bars of their own, and those that UPC sets apart. Without a quiet zone they are at the edges of the symbol.
var groupings = map[string]struct{ quiet, bare []group }{
	"EAN13": {[]group{{1, -9, -2}, {6, 3, 45}, {6, 50, 92}}, []group{{1, 0, 6}, {6, 8, 45}, {6, 50, 92}}},
	"EAN8":  {[]group{{4, 3, 31}, {4, 36, 64}}, []group{{4, 3, 31}, {4, 36, 64}}},
	"UPCA": {
		[]group{{1, -9, -2}, {5, 10, 45}, {5, 50, 85}, {1, 97, 104}},
		[]group{{1, 0, 6}, {5, 10, 45}, {5, 50, 85}, {1, 89, 95}},
	},
	"UPCE": {[]group{{1, -9, -2}, {6, 3, 45}, {1, 52, 58}}, []group{{1, 0, 6}, {6, 8, 43}, {1, 45, 51}}},
}

// Labels returns the human-readable text of a symbol: EAN and UPC in the groups of their standard, all other types as one
// label below the whole symbol. Characters that cannot be printed are left out.
func (t *Type) Labels(code barcode.Barcode, quietZone bool) []Label {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, code.Content())
	grouping, grouped := groupings[t.Name]
	if !grouped {
		return []Label{{text, 0, code.Bounds().Dx()}}
	}
	groups := grouping.bare
	if quietZone {
		groups = grouping.quiet
	}
	var labels []Label
	for _, g := range groups {
		labels = append(labels, Label{text[:g.characters], g.from, g.to})
		text = text[g.characters:]
	}
	return labels
}

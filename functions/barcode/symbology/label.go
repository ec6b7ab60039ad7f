package symbology

import (
	"strings"
	"unicode"

	"github.com/boombuler/barcode"
)

// Label is a piece of the human-readable text of a symbol, centred below the modules From to To. Module 0 is the first
// of the symbol, and modules of a quiet zone are before 0 and behind the last.
type Label struct {
	Text     string
	From, To int
}

// group is a label's number of characters and its place.
type group struct{ characters, from, to int }

// groupings are the groups of digits of EAN and UPC, and the modules of the guard bars, to which UPC-A adds the bars of
// its first and last digit (GS1 General Specifications, 5.2.5). In the quiet zones are the digits that have no bars of
// their own, and those that UPC sets apart. Without a quiet zone they are beside the guard bars.
var groupings = map[string]struct {
	quiet, bare []group
	guards      [][2]int
}{
	"EAN13": {
		[]group{{1, -9, -2}, {6, 3, 45}, {6, 50, 92}}, []group{{1, 3, 9}, {6, 10, 45}, {6, 50, 92}},
		[][2]int{{0, 3}, {45, 50}, {92, 95}},
	},
	"EAN8": {
		[]group{{4, 3, 31}, {4, 36, 64}}, []group{{4, 3, 31}, {4, 36, 64}},
		[][2]int{{0, 3}, {31, 36}, {64, 67}},
	},
	"UPCA": {
		[]group{{1, -9, -2}, {5, 10, 45}, {5, 50, 85}, {1, 97, 104}},
		[]group{{1, 10, 16}, {5, 17, 45}, {5, 50, 78}, {1, 79, 85}},
		[][2]int{{0, 10}, {45, 50}, {85, 95}},
	},
	"UPCE": {
		[]group{{1, -9, -2}, {6, 3, 45}, {1, 52, 58}}, []group{{1, 3, 8}, {6, 9, 39}, {1, 40, 45}},
		[][2]int{{0, 3}, {45, 51}},
	},
}

// Guards returns the modules whose bars are longer where the symbol has text, from the first to the one after the last.
func (t *Type) Guards() [][2]int { return groupings[t.Name].guards }

// Bearer returns the height of the bars above and below a symbol with text, in modules: 2 for ITF-14, the least that
// GS1 General Specifications, 5.3, ask for where no printing plate is used; else 0.
func (t *Type) Bearer() int {
	if t.Name == "ITF14" {
		return 2
	}
	return 0
}

// Labels returns the human-readable text of a symbol: EAN and UPC in the groups of their standard, all other types as
// one label below the whole symbol. Characters that cannot be printed are left out.
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

// Package symbology turns text into the modules of linear barcodes.
//
// A linear symbol is one row high; POSTNET, whose bars have two heights, has five rows.
package symbology

import (
	"fmt"
	"image"
	"image/color"
	"strings"
	"unicode"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/utils"

	"svcapi/functions/barcode/gs1"
)

// Type is one value of the request's field "type" (openapi.yaml#BarcodeRequest).
type Type struct {
	Name string
	// QuietLeft and QuietRight are the light margins that the symbology's standard asks for, in modules.
	QuietLeft, QuietRight int
	takes                 characters
	encode                encoder
}

// Symbol is a drawn symbol, without quiet zone.
type Symbol struct {
	Size    image.Point         // in modules
	Text    string              // that a reader returns
	Dark    func(x, y int) bool // reports whether a module is dark
	message *gs1.Message        // nil: data without identifiers in parentheses
}

// drawn returns a symbol that a library has drawn, or its error.
func drawn(code barcode.Barcode, err error) (Symbol, error) {
	if err != nil {
		return Symbol{}, err
	}
	return Symbol{Size: code.Bounds().Size(), Text: code.Content(), Dark: func(x, y int) bool {
		return code.At(x, y) == color.Color(color.Black)
	}}, nil
}

// oneRow returns the symbol of bars and spaces.
func oneRow(bars *utils.BitList, text string) Symbol {
	return Symbol{Size: image.Pt(bars.Len(), 1), Text: text, Dark: func(x, _ int) bool { return bars.GetBit(x) }}
}

// encoder draws data that has only characters of its type.
type encoder func(data string) (Symbol, error)

// characters says which characters a type takes, as the text of an error and as a test.
type characters struct {
	rule    string
	allowed func(rune) bool
}

var digits = characters{"takes digits only", isDigit}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// ascii is the rule of a type that takes a range of ASCII.
func ascii(from, to rune) characters {
	rule := fmt.Sprintf("takes ASCII characters %d to %d only", from, to)
	return characters{rule, func(r rune) bool { return from <= r && r <= to }}
}

// oneOf returns a test for membership in a set of characters.
func oneOf(set string) func(rune) bool {
	return func(r rune) bool { return strings.ContainsRune(set, r) }
}

// types has all types, in the order of openapi.yaml#BarcodeRequest.
var types = [...]Type{
	{"C128", 10, 10, ascii(0, 127), code128},
	{"C128A", 10, 10, ascii(0, 95), code128In(setA)},
	{"C128B", 10, 10, ascii(32, 127), code128In(setB)},
	{"C128C", 10, 10, digits, code128In(setC)},
	{"EAN13", 11, 7, digits, checked(13, eanCode)},
	{"EAN8", 7, 7, digits, checked(8, eanCode)},
	{"UPCA", 9, 9, digits, checked(12, upcA)},
	{"UPCE", 9, 7, digits, upcE},
	{"C39", 10, 10, code39Takes, code39(false)},
	{"C39+", 10, 10, code39Takes, code39(true)},
	{"I25", 10, 10, digits, interleaved},
	{"ITF14", 10, 10, digits, checked(14, interleaved)},
	{"MSI", 12, 12, digits, msi},
	{"POSTNET", 10, 10, postnetTakes, postnet},
	{"GS1128", 10, 10, gs1Takes, gs1Symbol(maxGS1128, code128)},
	{"DATAMATRIX", 1, 1, latin1, dataMatrix(squares)},
}

// variants are the types that a field of the request chooses in place of the named one.
var variants = map[string]Type{
	"DATAMATRIX rectangle":     {"DATAMATRIX", 1, 1, latin1, dataMatrix(rectangles)},
	"C128 gs1":                 types[len(types)-2],
	"GS1128 gs1":               types[len(types)-2],
	"DATAMATRIX gs1":           {"DATAMATRIX", 1, 1, gs1Takes, gs1Symbol(0, dataMatrix(squares))},
	"DATAMATRIX rectangle gs1": {"DATAMATRIX", 1, 1, gs1Takes, gs1Symbol(0, dataMatrix(rectangles))},
}

// Variant returns the type for fields of the request beside the name, and false where the type has no such variant.
func Variant(name string, rectangle, gs1 bool) (*Type, bool) {
	if rectangle && name == "DATAMATRIX" {
		name += " rectangle"
	}
	if gs1 {
		name += " gs1"
	}
	if t, ok := variants[name]; ok {
		return &t, true
	}
	return Lookup(name)
}

// Matrix reports whether the symbols of the type have two dimensions.
func (t *Type) Matrix() bool { return t.Name == "DATAMATRIX" }

// Names lists the names of all types, in the order of openapi.yaml#BarcodeRequest.
func Names() []string {
	names := make([]string, len(types))
	for i := range types {
		names[i] = types[i].Name
	}
	return names
}

// Lookup finds a type by its exact name.
func Lookup(name string) (*Type, bool) {
	for i := range types {
		if types[i].Name == name {
			return &types[i], true
		}
	}
	return nil, false
}

// Encode returns the symbol for data. Its text has the check digit of EAN, UPC and ITF-14, and the zero before an odd
// count of digits (I25).
//
// The error is a client message: the type, the rule, and the offending character with its position (from 1, in
// characters) or the expected check digit.
func (t *Type) Encode(data string) (Symbol, error) {
	err := t.takes.validate(data)
	var code Symbol
	if err == nil {
		code, err = t.encode(data)
	}
	if err != nil {
		return Symbol{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	return code, nil
}

// validate rejects empty data and the first character that is not allowed.
func (c characters) validate(data string) error {
	if data == "" {
		return fmt.Errorf("%s; the data is empty", c.rule)
	}
	position := 0
	for _, r := range data {
		position++
		if !c.allowed(r) {
			return fmt.Errorf("%s; found %q at position %d", c.rule, r, position)
		}
	}
	return nil
}

// fnc1 marks the function character 1 in the data of an encoder. No other data has this character.
const fnc1 = '\xf1'

// maxGS1128 is the maximum of characters of a GS1-128 symbol, identifiers and separators included (GS1 General
// Specifications, 5.4.4.5).
const maxGS1128 = 48

// gs1Takes lets gs1.Parse judge the characters.
var gs1Takes = characters{"takes ASCII characters 32 to 126 only", func(r rune) bool { return ' ' <= r && r <= '~' }}

// gs1Symbol returns the encoder of elements with identifiers in parentheses, of at most a number of characters (0:
// any).
func gs1Symbol(limit int, encode encoder) encoder {
	return func(data string) (Symbol, error) {
		message, err := gs1.Parse(data)
		if err != nil {
			return Symbol{}, err
		}
		text := message.Data(string([]byte{fnc1}))
		if n := len(text) - 1; limit > 0 && n > limit {
			return Symbol{}, fmt.Errorf("takes at most %d characters with identifiers and separators; found %d", limit, n)
		}
		code, err := encode(text)
		code.Text, code.message = message.Text(), message
		return code, err
	}
}

// Warnings returns the warnings about the data of the symbol (openapi.yaml#Warnings).
func (s Symbol) Warnings() (warnings []string) {
	if s.message == nil {
		return nil
	}
	for _, w := range []struct {
		name  string
		names []string
	}{{"missing-companions", s.message.Lacking}, {"invalid-pairs", s.message.Invalid}} {
		if n := len(w.names); n > 0 {
			warnings = append(warnings, fmt.Sprintf("%s;n=%d;names=%q", w.name, n, strings.Join(w.names[:min(n, 5)], " ")))
		}
	}
	return warnings
}

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
func (t *Type) Labels(code Symbol, quietZone bool) []Label {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, code.Text)
	grouping, grouped := groupings[t.Name]
	if !grouped {
		return []Label{{text, 0, code.Size.X}}
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

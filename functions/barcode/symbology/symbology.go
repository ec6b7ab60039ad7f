// Package symbology turns text into the modules of linear barcodes.
//
// Every symbol is a [barcode.Barcode] with one pixel per module, without quiet zone. A linear symbol is one row high;
// POSTNET, whose bars have two heights, has five rows. Bars are color.Black.
package symbology

import (
	"fmt"
	"strings"

	"github.com/boombuler/barcode"
)

// Type is one value of the request's field "type" (openapi.yaml#BarcodeRequest).
type Type struct {
	Name string
	// QuietLeft and QuietRight are the light margins that the symbology's standard asks for, in modules.
	QuietLeft, QuietRight int
	takes                 characters
	encode                encoder
}

// encoder draws data that has only characters of its type.
type encoder func(data string) (barcode.Barcode, error)

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

// GS1 reports whether the data of the type has identifiers in parentheses.
func (t *Type) GS1() bool { return t.takes.rule == gs1Takes.rule }

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

// Encode returns the symbol for data. Content() of the symbol is the text that a reader returns: with the check digit
// of EAN, UPC and ITF-14, and with the zero before an odd count of digits (I25).
//
// The error is a client message: the type, the rule, and the offending character with its position (from 1, in
// characters) or the expected check digit.
func (t *Type) Encode(data string) (barcode.Barcode, error) {
	if err := t.takes.validate(data); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	code, err := t.encode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
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

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
	encode                func(data string) (barcode.Barcode, error)
}

// types has all types, in the order of openapi.yaml#BarcodeRequest.
var types = [...]Type{
	{"C128", 10, 10, code128},
	{"C128A", 10, 10, code128A},
	{"C128B", 10, 10, code128B},
	{"C128C", 10, 10, code128C},
	{"EAN13", 11, 7, ean13},
	{"EAN8", 7, 7, ean8},
	{"UPCA", 9, 9, upcA},
	{"UPCE", 9, 7, upcE},
	{"C39", 10, 10, code39},
	{"C39+", 10, 10, code39Checked},
	{"I25", 10, 10, interleaved},
	{"ITF14", 10, 10, itf14},
	{"MSI", 12, 12, msi},
	{"POSTNET", 10, 10, postnet},
}

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
	code, err := t.encode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return code, nil
}

// onlyCharacters rejects empty data and the first character that is not allowed.
func onlyCharacters(data, rule string, allowed func(rune) bool) error {
	if data == "" {
		return fmt.Errorf("%s; the data is empty", rule)
	}
	position := 0
	for _, r := range data {
		position++
		if !allowed(r) {
			return fmt.Errorf("%s; found %q at position %d", rule, r, position)
		}
	}
	return nil
}

func onlyDigits(data string) error {
	return onlyCharacters(data, "takes digits only", isDigit)
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// oneOf returns a test for membership in a set of characters.
func oneOf(set string) func(rune) bool {
	return func(r rune) bool { return strings.ContainsRune(set, r) }
}

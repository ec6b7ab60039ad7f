package symbology

import (
	"fmt"
	"strings"

	"github.com/boombuler/barcode"

	"svcapi/functions/barcode/gs1"
)

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
	return func(data string) (barcode.Barcode, error) {
		message, err := gs1.Parse(data)
		if err != nil {
			return nil, err
		}
		text := message.Data(string([]byte{fnc1}))
		if n := len(text) - 1; limit > 0 && n > limit {
			return nil, fmt.Errorf("takes at most %d characters with identifiers and separators; found %d", limit, n)
		}
		code, err := encode(text)
		if err != nil {
			return nil, err
		}
		return readAs{code, message.Text()}, nil
	}
}

// Warnings returns the warnings about data that the type has encoded (openapi.yaml#Warnings).
func (t *Type) Warnings(data string) (warnings []string) {
	if !t.GS1() {
		return nil
	}
	message, err := gs1.Parse(data)
	if err != nil {
		return nil // never of encoded data
	}
	for _, w := range []struct {
		name  string
		names []string
	}{{"missing-companions", message.Lacking}, {"invalid-pairs", message.Invalid}} {
		if n := len(w.names); n > 0 {
			warnings = append(warnings, fmt.Sprintf("%s;n=%d;names=%q", w.name, n, strings.Join(w.names[:min(n, 5)], " ")))
		}
	}
	return warnings
}

package vendors

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// text reads a string, number or boolean as text: vendors change their minds
// about types. Anything else is "".
func text(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		b, _ := jsontext.AppendUnquote(nil, v) // comes from a decoder: it is well-formed
		return string(b)
	case '0', 't', 'f':
		return string(v)
	}
	return ""
}

var numberForm = regexp.MustCompile(`^-?\d[\d,]*(\.\d+)?$`)

func isNumber(s string) bool { return numberForm.MatchString(s) }

// The forms of a number that vendors want, from +947XXXXXXXX.

func local(to string) string         { return "0" + strings.TrimPrefix(to, "+94") } // 07XXXXXXXX
func international(to string) string { return strings.TrimPrefix(to, "+") }         // 947XXXXXXXX
func bare(to string) string          { return strings.TrimPrefix(to, "+94") }       // 7XXXXXXXX

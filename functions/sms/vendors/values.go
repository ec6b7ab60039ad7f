package vendors

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
)

// text returns a string, number or boolean as text, because vendors change types without notice. Any other value is "".
func text(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		b, _ := jsontext.AppendUnquote(nil, v) // a decoder returned v, so v is well-formed
		return string(b)
	case '0', 't', 'f':
		return string(v)
	}
	return ""
}

// flag returns the text of a boolean in any form of the vendors as "0" or "1".
func flag(text string) string {
	switch strings.ToLower(text) {
	case "", "0", "false", "no":
		return "0"
	}
	return "1"
}

// members decodes a JSON object and returns its members with the text of its status, and none for malformed JSON.
func members(body []byte) (values map[string]jsontext.Value, status string) {
	if json.Unmarshal(body, &values) != nil {
		return nil, ""
	}
	return values, text(values["status"])
}

// each applies a format to several numbers.
func each(numbers []string, format func(string) string) []string {
	formatted := make([]string, len(numbers))
	for i, n := range numbers {
		formatted[i] = format(n)
	}
	return formatted
}

var numberPattern = pattern.New(`^-?\d[\d,]*(\.\d+)?$`)

func isNumber(s string) bool { return numberPattern().MatchString(s) }

// Formats of a number +947XXXXXXXX for vendors.

func local(to string) string         { return "0" + strings.TrimPrefix(to, "+94") } // 07XXXXXXXX
func international(to string) string { return strings.TrimPrefix(to, "+") }         // 947XXXXXXXX
func bare(to string) string          { return strings.TrimPrefix(to, "+94") }       // 7XXXXXXXX

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

// flag reads a truth value in any of the forms that vendors use, as "0" or "1".
func flag(v jsontext.Value) string {
	switch strings.ToLower(text(v)) {
	case "", "0", "false", "no":
		return "0"
	}
	return "1"
}

// each applies a number form to many numbers.
func each(numbers []string, form func(string) string) []string {
	formed := make([]string, len(numbers))
	for i, n := range numbers {
		formed[i] = form(n)
	}
	return formed
}

var numberPattern = regexp.MustCompile(`^-?\d[\d,]*(\.\d+)?$`)

func isNumber(s string) bool { return numberPattern.MatchString(s) }

// The forms of a number that vendors want, from +947XXXXXXXX.

func local(to string) string         { return "0" + strings.TrimPrefix(to, "+94") } // 07XXXXXXXX
func international(to string) string { return strings.TrimPrefix(to, "+") }         // 947XXXXXXXX
func bare(to string) string          { return strings.TrimPrefix(to, "+94") }       // 7XXXXXXXX

// orSuccess names an acceptance whose vendor gave it no word.
func orSuccess(word string) string {
	if word == "" {
		return "success"
	}
	return word
}

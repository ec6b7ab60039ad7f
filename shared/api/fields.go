package api

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// minEditedName is the length of the shortest known name that is proposed for a name with one edit.
	minEditedName = 4
	// maxMisspelt bounds the length of a name that is compared with the known names.
	maxMisspelt = 100
)

// Knows declares fields that the operation reads from other bodies than this one.
func (o Object) Knows(names ...string) {
	for _, name := range names {
		o.known[name] = true
	}
}

// noteMisspelt notes a problem on every field of the body that the operation does not know and whose name is nearly that of
// a known field, but on at most maxListProblems of them (docs/decisions.md#misspelt-fields). All other unknown fields are
// ignored.
func (o Object) noteMisspelt() {
	known, noted := slices.Sorted(maps.Keys(o.known)), 0
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if o.known[name] || len(name) > maxMisspelt || o.members[name].Kind() == 'n' {
			continue
		}
		if meant := nearest(name, known); meant != "" {
			quoted, _ := jsontext.AppendQuote(nil, meant) // a known name is valid UTF-8
			o.Problem(name, "unknown field"+didYouMean(string(quoted)))
			if noted++; noted == maxListProblems {
				return
			}
		}
	}
}

// nearest returns the known name that differs from a name only in case, hyphens or underscores, or else by one edit; ""
// where there is none.
func nearest(name string, known []string) string {
	bare := strings.NewReplacer("-", "", "_", "")
	for _, k := range known {
		if strings.EqualFold(bare.Replace(name), bare.Replace(k)) {
			return k
		}
	}
	for _, k := range known {
		if utf8.RuneCountInString(k) >= minEditedName && oneEdit([]rune(name), []rune(k)) {
			return k
		}
	}
	return ""
}

// oneEdit reports whether one insertion, deletion, substitution or transposition of neighbours turns a name into another.
func oneEdit(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch a, b := a[i:], b[i:]; {
	case len(b) == len(a)+1:
		return slices.Equal(a, b[1:])
	case len(a) != len(b) || len(a) == 0:
		return false
	case slices.Equal(a[1:], b[1:]):
		return true
	default:
		return len(a) > 1 && a[0] == b[1] && a[1] == b[0] && slices.Equal(a[2:], b[2:])
	}
}

package api

import (
	"maps"
	"slices"
	"strings"

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

// noteMisspelt notes a problem on unknown fields of the body whose name is nearly that of a known field, on at most
// maxListProblems of them (docs/decisions.md#misspelt-fields). All other unknown fields are ignored.
func (o Object) noteMisspelt() {
	var known []knownField
	for _, name := range slices.Sorted(maps.Keys(o.known)) {
		known = append(known, knownField{name, bare(name), []rune(name)})
	}
	meant := map[string]string{}
	for name, value := range o.members {
		if !o.known[name] && len(name) <= maxMisspelt && value.Kind() != 'n' {
			if proposal := nearest(name, known); proposal != "" {
				meant[name] = proposal
			}
		}
	}
	misspelt := slices.Sorted(maps.Keys(meant))
	for _, name := range misspelt[:min(len(misspelt), maxListProblems)] {
		quoted, _ := jsontext.AppendQuote(nil, meant[name]) // a known name is valid UTF-8
		o.Problem(name, "unknown field"+didYouMean(string(quoted)))
	}
}

// knownField is the name of a field in the forms that other names are compared with.
type knownField struct {
	name, bare string
	letters    []rune
}

// bare returns a name without hyphens and underscores.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return r
	}, name)
}

// nearest returns the known name that differs only in case, hyphens or underscores, else by one edit; "" for none.
func nearest(name string, known []knownField) string {
	without, letters := bare(name), []rune(name)
	for _, k := range known {
		if strings.EqualFold(without, k.bare) {
			return k.name
		}
	}
	for _, k := range known {
		if len(k.letters) >= minEditedName && oneEdit(letters, k.letters) {
			return k.name
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

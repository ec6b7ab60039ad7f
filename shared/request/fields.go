package request

import (
	"bytes"
	"fmt"
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

// unread is in the place of another name's field, for a field that the operation reads from other bodies only.
const unread = "?"

// Knows declares fields that the operation reads from some bodies. From a body where the operation does not read them,
// they are ignored with a warning.
func (o Object) Knows(names ...string) {
	for _, name := range names {
		o.fields[name] = unread
	}
}

// Means declares other names for a field, which is proposed where the field is absent.
func (o Object) Means(field string, others ...string) {
	for _, other := range others {
		o.fields[other] = field
	}
}

// Refuse declares names of fields that the operation must not ignore, at any depth of the body: lower-case names
// without hyphens and underscores, each with the message about a field with the name in any spelling. Fields that the
// operation reads and proposals for misspelt ones come before (docs/decisions/sms.md#refused-fields).
func (in *Input) Refuse(messages map[string]string) { in.refused = messages }

// Warn adds a warning to the response, whatever its status (openapi.yaml#Warnings).
func (in *Input) Warn(warning string) { in.warnings = append(in.warnings, warning) }

// refusal returns the path of the first refused name in an unknown member, and the message about the name.
func (n *notes) refusal(name string, value jsontext.Value) (path, message string) {
	if message = n.refused[strings.ToLower(bare(name))]; message != "" || len(n.refused) == 0 {
		return name, message
	}
	d := jsontext.NewDecoder(bytes.NewReader(value))
	for token, err := d.ReadToken(); err == nil; token, err = d.ReadToken() {
		if kind, tokens := d.StackIndex(d.StackDepth()); kind != '{' || tokens%2 == 0 {
			continue // no name of a member
		}
		if message = n.refused[strings.ToLower(bare(token.String()))]; message != "" && d.PeekKind() != 'n' {
			return name + strings.ReplaceAll(string(d.StackPointer()), "/", "."), message
		}
	}
	return "", ""
}

// noteMisspelt notes a problem on unknown fields of the body's objects whose name is nearly that of a known field
// (within an inner object, of an absent one) or another name of an absent field, on at most maxListProblems of an
// object, and on those with a refused name in them (docs/decisions/requests.md#misspelt-fields). noteMisspelt returns
// the paths of the other unknown fields.
func (n *notes) noteMisspelt() (ignored []string) {
	for _, o := range n.objects {
		var known []knownField
		for _, name := range slices.Sorted(maps.Keys(o.fields)) {
			if o.fields[name] == "" || o.fields[name] == unread {
				known = append(known, knownField{name, bare(name), []rune(name)})
			}
		}
		misspelt := 0
		for _, name := range slices.Sorted(maps.Keys(o.members)) {
			field, listed := o.fields[name]
			switch {
			case listed && field == "" || o.members[name].Kind() == 'n':
				continue
			case field == unread:
				ignored = append(ignored, o.path+name)
				continue
			case listed && o.present(field):
				field = ""
			case !listed && len(name) <= maxMisspelt:
				if field = nearest(name, known); o.path != "" && o.present(field) {
					field = ""
				}
			}
			path, message := name, fmt.Sprintf("unknown field; did you mean %q?", field)
			if field == "" {
				path, message = n.refusal(name, o.members[name])
			}
			if message == "" {
				ignored = append(ignored, o.path+name)
			} else if misspelt++; misspelt <= maxListProblems {
				o.Problem(path, message)
			}
		}
	}
	return ignored
}

// knownField is the name of a field in the forms that other names are compared with.
type knownField struct {
	name, bare string
	letters    []rune
}

// bare returns a name without hyphens, underscores, dots and blanks.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
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

// oneEdit reports whether one insertion, deletion, substitution or transposition of neighbours turns a name into
// another.
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

package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// Knows declares fields that the operation reads from other bodies. In this one they are ignored with a warning.
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

// oneEdit reports whether one insertion, deletion, substitution or transposition of neighbours turns a into b.
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

// malformedError says where a text stops to be JSON, and the mistake that is likely there.
type malformedError struct {
	line, column int // of the first character that cannot be read, from 1; columns count characters
	cause        string
}

// Error returns the message for the client.
func (e *malformedError) Error() string {
	message := fmt.Sprintf("%s; line %d, column %d cannot be read", errNoJSON, e.line, e.column)
	if e.cause != "" {
		message += ": " + e.cause
	}
	return message
}

// Unwrap returns errNoJSON.
func (e *malformedError) Unwrap() error { return errNoJSON }

// malformed returns the error for a text that jsontext refuses, whose error for too many levels has no type of its own.
func malformed(text []byte, err error) error {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok: // the text ends before its first value is complete
		return malformedAt(text, len(text), err)
	case strings.Count(string(syntax.JSONPointer), "/") >= maxDepth:
		return errTooDeep
	}
	return malformedAt(text, firstUnreadable(text, int(syntax.ByteOffset), err), err)
}

// malformedAt returns the error for a text that cannot be read at an offset; err is nil for text after the value.
func malformedAt(text []byte, at int, err error) error {
	read := text[:at]
	start := bytes.LastIndexByte(read, '\n') + 1
	return &malformedError{bytes.Count(read, []byte("\n")) + 1, utf8.RuneCount(read[start:]) + 1,
		likelyCause(text, at, err)}
}

// firstUnreadable returns the offset of the first unreadable character. jsontext has the start of the faulty comma,
// word or escape. encoding/json has the character, but accepts duplicate names, invalid UTF-8 and half surrogate pairs.
func firstUnreadable(text []byte, at int, err error) int {
	// A text with a zero at its end always has a character that cannot be read.
	ended := append(bytes.Clone(text), 0)
	syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(ended, new(json.RawMessage)))
	if !ok || errors.Is(err, jsontext.ErrDuplicateName) {
		return at
	}
	place, first := int(syntax.Offset)-1, ended[at]
	if place > at && (first >= utf8.RuneSelf || first == '\\' && place > at+len(`\u123`)) {
		return at
	}
	return place
}

// space is the white space of JSON (RFC 8259, section 2).
const space = " \t\r\n"

// likelyCause returns the mistake that best explains why the text cannot be read at an offset; "" where none does.
func likelyCause(text []byte, at int, err error) string {
	whole := bytes.TrimLeft(text, space)
	rest := text[at:]
	next, size := utf8.DecodeRune(rest)
	last, _ := utf8.DecodeLastRune(bytes.TrimRight(text[:at], space)) // utf8.RuneError where there is none
	word := wordAt(text, at)
	follows := bytes.TrimLeft(rest[len(wordAt(rest, 0)):], space)
	switch {
	case isUTF16(text):
		return "the text is UTF-16 and must be UTF-8"
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return "the text begins with a byte order mark"
	case bytes.HasPrefix(whole, []byte("<")):
		return "the body is XML or HTML"
	case bytes.HasPrefix(whole, []byte("--")), isForm(whole):
		return "the body is form data, such as a=b&c=d; send a JSON object"
	case err == nil:
		return "text follows the JSON value"
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "the name occurs twice in its object"
	case len(rest) == 0:
		return "the text ends before all quotes and brackets are closed"
	case next == utf8.RuneError && size == 1:
		return "the text is not UTF-8"
	case next == '\'' || next == '`':
		return "single quotes; names and texts need double quotes"
	case unicode.In(next, unicode.Pi, unicode.Pf):
		return "curved quotes; names and texts need straight double quotes"
	case last == ',' && (next == '}' || next == ']'):
		return "trailing comma"
	case next == ',' && strings.ContainsRune(",:[{", last):
		return "a value is missing before the comma"
	case next == '/' || next == '#':
		return "JSON has no comments"
	case next < ' ' && strings.ContainsRune(space, next):
		return `a line break or tab in a text is written \n or \t`
	case next < ' ':
		return "a control character in a text is written as an escape, such as \\u0000"
	case last == '\\':
		return `a backslash in a text is written \\`
	case bytes.HasPrefix(rest, []byte(`\u`)):
		return "half of a surrogate pair"
	case bytes.Contains(text[max(0, at-5):at], []byte(`\u`)):
		return `\u takes four hexadecimal digits`
	case bytes.HasPrefix(follows, []byte(":")) && (last == '{' || last == ','):
		return "names need double quotes"
	case otherLiterals[strings.ToLower(word)]:
		return "the only words of JSON are true, false and null"
	case (last == '0' || next == '+') && at > 0:
		return "a number has no leading 0 or +; a phone number needs double quotes"
	case next == '=' || next == '>':
		return "a name is followed by a colon"
	case last == ':' && unicode.IsLetter(next):
		return "texts need double quotes"
	case last == '"' && unicode.IsLetter(next):
		return `a double quote in a text is written \", or a comma is missing`
	case strings.ContainsRune("\"]}", last) || unicode.IsLetter(last) || unicode.IsDigit(last):
		return "a comma, colon or closing bracket is missing"
	}
	return ""
}

// otherLiterals are the literals of other languages, in lower case.
var otherLiterals = map[string]bool{
	"true": true, "false": true, "null": true, "none": true, "nil": true, "undefined": true, "nan": true, "infinity": true,
}

func wordAt(text []byte, at int) string {
	inWord := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-'
	}
	begin, end := len(bytes.TrimRightFunc(text[:at], inWord)), len(text)-len(bytes.TrimLeftFunc(text[at:], inWord))
	return string(text[begin:end])
}

// isForm reports whether a body is form data: a field name and an equals sign.
func isForm(body []byte) bool {
	name, _, ok := bytes.Cut(body, []byte("="))
	return ok && len(name) > 0 && !bytes.ContainsAny(name, "{}:\", \t\r\n")
}

// isUTF16 reports whether a body begins with the byte order mark of UTF-16, or with a zero beside an ASCII byte.
func isUTF16(body []byte) bool {
	return len(body) > 1 && (body[0] == 0xfe && body[1] == 0xff || body[0] == 0xff && body[1] == 0xfe ||
		(body[0] == 0) != (body[1] == 0))
}

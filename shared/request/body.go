package request

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Problems collects messages by field path, such as to.0 and margin.top (docs/decisions/requests.md#error-details).
type Problems map[string][]string

// Add adds a message on a field.
func (p Problems) Add(path, message string) { p[path] = append(p[path], message) }

// maxListProblems is the number of bad items of one list that a response reports.
const maxListProblems = 20

// Object is a JSON object of a request. Each read of a field validates the field and notes its problems, so that one
// response names all failing fields. Fields that the operation does not read are ignored.
type Object struct {
	members map[string]jsontext.Value
	path    string            // with a trailing dot, or empty
	fields  map[string]string // those that the operation reads, with "", and other names with the field that they mean
	*notes
}

// notes is what the objects of one body have in common.
type notes struct {
	problems   Problems
	objects    []Object       // of the body, as far as they are read
	unreported map[string]int // bad items of which no problem says anything, by the path of their list
	refused    map[string]string
	warnings   []string
}

func newNotes() *notes { return &notes{problems: Problems{}, unreported: map[string]int{}} }

var (
	errNoObject = errors.New("must be a JSON object")
	errNoJSON   = errors.New("must be well-formed JSON")
	errTooDeep  = errors.New("must be JSON of at most 10,000 levels")
)

// maxDepth is the depth that jsontext reads.
const maxDepth = 10_000

// parseObject reads one JSON object and nothing after it. An empty text counts as an empty object. Duplicate names and
// invalid UTF-8 are malformed, at any depth (docs/decisions/requests.md#json-bodies).
func parseObject(text []byte, path string, notes *notes) (Object, error) {
	o := Object{map[string]jsontext.Value{}, path, map[string]string{}, notes}
	notes.objects = append(notes.objects, o)
	if len(bytes.Trim(text, space)) == 0 {
		return o, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if d.PeekKind() != '{' {
		if _, err := d.ReadValue(); err != nil {
			return o, malformed(text, err)
		}
		return o, errNoObject
	}
	_, err := d.ReadToken()
	for err == nil {
		var name jsontext.Token // or the end of the object
		if name, err = d.ReadToken(); err != nil || name.Kind() == '}' {
			break
		}
		key := name.String()
		var value jsontext.Value
		if value, err = d.ReadValue(); err == nil {
			o.members[key] = value.Clone()
		}
	}
	if err != nil {
		return o, malformed(text, err)
	}
	if rest := bytes.TrimLeft(text[d.InputOffset():], space); len(rest) > 0 {
		return o, malformedAt(text, len(text)-len(rest), nil)
	}
	return o, nil
}

// Has reports whether the field is present; null counts as absent.
func (o Object) Has(name string) bool {
	o.fields[name] = ""
	return o.present(name)
}

func (o Object) present(name string) bool {
	v, ok := o.members[name]
	return ok && v.Kind() != 'n'
}

// Is reports whether the field is a string with this text.
func (o Object) Is(name, text string) bool {
	return o.Has(name) && o.members[name].Kind() == '"' && unquote(o.members[name]) == text
}

// Names returns the names of an object whose names are the client's own, in ascending order.
func (o Object) Names() []string { return slices.Sorted(maps.Keys(o.members)) }

// Problem notes a message on a field.
func (o Object) Problem(name, message string) { o.problems.Add(o.path+name, message) }

// take returns the value of a field of the wanted kind, or notes the reason why there is none.
func (o Object) take(name string, required bool, what string, kinds ...jsontext.Kind) (jsontext.Value, bool) {
	if !o.Has(name) {
		if required {
			o.Problem(name, "is required")
		}
		return nil, false
	}
	v := o.members[name]
	if !slices.Contains(kinds, v.Kind()) {
		o.Problem(name, "must be "+what)
		return nil, false
	}
	return v, true
}

// Text is the validation rule of a string field. Lengths are in Unicode code points.
type Text struct {
	Required bool
	Min, Max int                   // 0: no maximum
	Pattern  func() *regexp.Regexp // nil: any text
	Message  string                // the message for a text that Pattern does not match
	Explain  func(string) string   // a better message about such a text, "" for none; nil: Message for all
	Type     string                // what a value of another type should be; "": a string
	OneOf    []string              // nil: any text
	Default  string
}

// validate returns the message about a text, "" for a valid one.
func (r Text) validate(s string) string {
	n := utf8.RuneCountInString(s)
	switch {
	case r.Min > 0 && n < r.Min && r.Min == 1:
		return "must not be empty"
	case n < r.Min:
		return fmt.Sprintf("must be at least %d characters", r.Min)
	case r.Max > 0 && n > r.Max:
		return fmt.Sprintf("must be at most %d characters", r.Max)
	case r.OneOf != nil && !slices.Contains(r.OneOf, s):
		return "must be one of " + strings.Join(r.OneOf, ", ")
	case r.Pattern != nil && !r.Pattern().MatchString(s):
		if r.Explain != nil {
			return cmp.Or(r.Explain(s), r.Message)
		}
		return r.Message
	}
	return ""
}

// Text reads a string field.
func (o Object) Text(name string, r Text) string {
	v, ok := o.take(name, r.Required, cmp.Or(r.Type, "a string"), '"')
	if !ok {
		return r.Default
	}
	s := unquote(v)
	if wrong := r.validate(s); wrong != "" {
		o.Problem(name, wrong)
	}
	return s
}

// Bool reads a boolean field, false where the field is absent.
func (o Object) Bool(name string) bool {
	v, ok := o.take(name, false, "a boolean", 't', 'f')
	return ok && v.Kind() == 't'
}

// Number is the exact validation rule of a number field (docs/decisions/requests.md#numbers-in-bodies).
type Number struct {
	Required bool
	Min, Max float64
	Integer  bool // 80.0 is an integer, 80.5 is not
	Truncate bool // only the integer part counts: 3.9 is 3
	Default  float64
	Type     string // what a value of another type should be; "": a number, or an integer
}

// Number reads a number field and returns the float64 that is nearest to a valid number.
func (o Object) Number(name string, r Number) float64 {
	what := "a number"
	if r.Integer {
		what = "an integer"
	}
	v, ok := o.take(name, r.Required, cmp.Or(r.Type, what), '0')
	if !ok {
		return r.Default
	}
	sent := decimalOf(string(v))
	switch {
	case sent.compare(decimalOfFloat(r.Min)) < 0 || sent.compare(decimalOfFloat(r.Max)) > 0:
		o.Problem(name, fmt.Sprintf("must be between %v and %v", r.Min, r.Max))
		return r.Default
	case r.Integer && !sent.isInteger():
		o.Problem(name, "must be an integer")
		return r.Default
	case r.Truncate:
		sent = sent.truncate()
	}
	return sent.float()
}

// Object reads a field that is an object; an absent field gives an empty object.
func (o Object) Object(name string) Object {
	v, ok := o.take(name, false, "an object", '{')
	if !ok {
		v = jsontext.Value("{}")
	}
	inner, _ := parseObject(v, o.path+name+".", o.notes) // v has been parsed once
	return inner
}

// List is the validation rule of an array field.
type List struct {
	Required bool
	Min, Max int
}

// list reads an array field and calls each for its items. The function each reports whether the item was good. The
// notes of the request get the problems of the first maxListProblems bad items, and the number of the others.
func (o Object) list(name string, r List, each func(n *notes, path string, v jsontext.Value) bool) {
	v, ok := o.take(name, r.Required, "an array", '[')
	if !ok {
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	_, _ = d.ReadToken() // the array has been parsed once: nothing below can fail
	var items []jsontext.Value
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil || len(items) > r.Max {
			break
		}
		items = append(items, item.Clone())
	}
	if len(items) < r.Min || len(items) > r.Max {
		o.Problem(name, fmt.Sprintf("must have %d to %d items", r.Min, r.Max))
		return
	}
	bad, notes := 0, o.notes
	for i, item := range items {
		if each(notes, o.path+name+"."+strconv.Itoa(i), item) {
			continue
		}
		if bad++; bad == maxListProblems {
			notes = newNotes() // of the further items only the number counts
		}
	}
	if bad > maxListProblems {
		o.unreported[o.path+name] = bad - maxListProblems
	}
}

// Texts reads an array of strings.
func (o Object) Texts(name string, r List, item Text) []string {
	var texts []string
	o.list(name, r, func(n *notes, path string, v jsontext.Value) bool {
		wrong := "must be a string"
		if v.Kind() == '"' {
			s := unquote(v)
			texts = append(texts, s)
			wrong = item.validate(s)
		}
		if wrong != "" {
			n.problems.Add(path, wrong)
		}
		return wrong == ""
	})
	return texts
}

// Objects reads an array of objects and calls read for each.
func (o Object) Objects(name string, r List, read func(Object)) {
	o.list(name, r, func(n *notes, path string, v jsontext.Value) bool {
		if v.Kind() != '{' {
			n.problems.Add(path, "must be an object")
			return false
		}
		before := len(n.problems)
		inner, _ := parseObject(v, path+".", n)
		read(inner)
		return len(n.problems) == before
	})
}

// unquote reads a JSON string that has been parsed once, so the call cannot fail.
func unquote(v jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, v)
	return string(b)
}

// decimal is a JSON number to the last digit, ±0.digits × 10^point, whose digits neither begin nor end with 0.
type decimal struct {
	sign   int // -1, 0 or 1
	digits string
	point  int
}

// farPoint is the exponent for all larger ones: a body has too few digits to bring such a number back into range.
const farPoint = math.MaxInt32

// decimalOf reads a well-formed JSON number, in time and memory of its length, whatever its exponent.
func decimalOf(number string) decimal {
	text, negative := strings.CutPrefix(number, "-")
	exponent := 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		n, _ := strconv.ParseInt(text[e+1:], 10, 64) // beyond int64, ParseInt returns the nearest one
		exponent = int(max(-farPoint, min(n, farPoint)))
		text = text[:e]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d := decimal{1, strings.TrimRight(digits, "0"), exponent + len(digits) - len(fraction)}
	switch {
	case d.digits == "":
		return decimal{}
	case negative:
		d.sign = -1
	}
	return d
}

func decimalOfFloat(f float64) decimal { return decimalOf(strconv.FormatFloat(f, 'f', -1, 64)) }

// compare returns -1 where d is the lesser number, 1 where d is the greater, and 0 where both are equal.
func (d decimal) compare(e decimal) int {
	if d.sign != e.sign {
		return cmp.Compare(d.sign, e.sign)
	}
	return d.sign * cmp.Or(cmp.Compare(d.point, e.point), cmp.Compare(d.digits, e.digits))
}

func (d decimal) isInteger() bool { return len(d.digits) <= d.point || d.digits == "" }

// truncate drops the digits behind the decimal point.
func (d decimal) truncate() decimal {
	kept := strings.TrimRight(d.digits[:max(0, min(d.point, len(d.digits)))], "0")
	if kept == "" {
		return decimal{}
	}
	return decimal{d.sign, kept, d.point}
}

// float returns the nearest float64, infinite beyond the greatest one.
func (d decimal) float() float64 {
	text := "0." + d.digits + "e" + strconv.Itoa(d.point)
	if d.sign < 0 {
		text = "-" + text
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range: infinite, or zero
	return f
}

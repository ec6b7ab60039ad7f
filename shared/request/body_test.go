package request

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
	"svcapi/test/must"
)

// read reads one field of every kind, as an operation would.
func read(o Object) {
	o.Text("name", Text{Required: true, Min: 1, Max: 5})
	o.Text("code", Text{Pattern: pattern.New(`^[a-z]+$`), Message: "must be lower case"})
	o.Text("type", Text{OneOf: []string{"a", "b"}, Default: "a"})
	o.Bool("flag")
	o.Number("height", Number{Min: 20, Max: 300, Integer: true, Default: 80})
	o.Number("factor", Number{Min: 1, Max: 4, Default: 2})
	margins := o.Object("margins")
	margins.Number("top", Number{Min: 0, Max: 100, Default: 15})
	o.Means("name", "title")
	(&Input{Object: o}).Refuse(map[string]string{"sendat": "is late"})
	o.Texts("list", List{Min: 1, Max: 30}, Text{Max: 3})
	o.Objects("items", List{Min: 1, Max: 3},
		func(i Object) { i.Means("to", "number"); i.Text("to", Text{Required: true, Min: 1}) })
}

// TestObjectNamesEveryProblem checks that error.details name every failing field by its path
// (docs/decisions/requests.md#error-details).
func TestObjectNamesEveryProblem(t *testing.T) {
	long := `"` + strings.Repeat("x", 4) + `"`
	cases := []struct{ name, body, want string }{
		{"all right", `{"name":"n","code":"c","type":"b","flag":true,"height":80.0,"factor":2.5,"margins":{"top":0},` +
			`"list":["a"],"items":[{"to":"x"}]}`, ""},
		{"required and absent", `{}`, "name: is required"},
		{"an empty body is {}", ``, "name: is required"},
		{"white space is {}", " \n", "name: is required"},
		{"null is absent", `{"name":null,"flag":null,"height":null,"margins":null,"list":null}`, "name: is required"},
		{"unknown fields are ignored", `{"name":"n","other":[1,{"a":null}]}`, ""},
		{"names are case-sensitive", `{"Name":"n"}`, "Name: unknown field; did you mean \"name\"?\nname: is required"},
		{"case, hyphens and underscores", `{"name":"n","F-L_ag":true,"Nam_E":"n"}`,
			"F-L_ag: unknown field; did you mean \"flag\"?\nNam_E: unknown field; did you mean \"name\"?"},
		{"one edit", `{"name":"n","nam":1,"names":1,"nbme":1,"anme":1,"xname":1,"nema":1,"na":1,"namess":1,"Namex":1}`,
			strings.Join([]string{
				`anme: unknown field; did you mean "name"?`, `nam: unknown field; did you mean "name"?`,
				`names: unknown field; did you mean "name"?`, `nbme: unknown field; did you mean "name"?`,
				`xname: unknown field; did you mean "name"?`,
			}, "\n")},
		{"nearly a nested field", `{"name":"n","margins":{"Top":1},"items":[{"to":"a","TO":1},{"To":1}]}`,
			"items.1.To: unknown field; did you mean \"to\"?\nitems.1.to: is required\nmargins.Top: unknown field; did you " +
				"mean \"top\"?"},
		{"a name of less than four letters, in another case and with an edit",
			`{"name":"n","items":[{"TO":1,"t-o":1,"too":1,"t":1}]}`,
			"items.0.TO: unknown field; did you mean \"to\"?\nitems.0.t-o: unknown field; did you mean \"to\"?\nitems.0.to: " +
				"is required"},
		{"another name", `{"name":"n","title":"t","items":[{"number":"1"}]}`,
			"items.0.number: unknown field; did you mean \"to\"?\nitems.0.to: is required"},
		{"another name of an absent field", `{"title":"t"}`,
			"name: is required\ntitle: unknown field; did you mean \"name\"?"},
		{"nearly a field, and null", `{"name":"n","Flag":null}`, ""},
		{"refused names, at any depth",
			`{"name":"n","Send-At":1,"items":[{"to":"a","send_at":"b"}],"o":{"x":[{"y":"send_at"},` +
				`{"sendAt":[],"send_at":1}]},"send_at":null,"p":{"sendAt":null}}`,
			"Send-At: is late\nitems.0.send_at: is late\no.x.1.sendAt: is late"},
		{"far too long a name", `{"name":"n","flag` + strings.Repeat("_", 100) + `":1}`, ""},
		{"empty text", `{"name":""}`, "name: must not be empty"},
		{"too long, in code points", `{"name":"ක😀éabc"}`, "name: must be at most 5 characters"},
		{"not too long, in code points", `{"name":"ක😀éab"}`, ""},
		{"a number is no string", `{"name":1}`, "name: must be a string"},
		{"a string is no number", `{"name":"n","height":"80"}`, "height: must be an integer"},
		{"a string is no boolean", `{"name":"n","flag":"true"}`, "flag: must be a boolean"},
		{"a number is no boolean", `{"name":"n","flag":1}`, "flag: must be a boolean"},
		{"pattern", `{"name":"n","code":"C"}`, "code: must be lower case"},
		{"enumeration", `{"name":"n","type":"c"}`, "type: must be one of a, b"},
		{"no integer", `{"name":"n","height":80.5}`, "height: must be an integer"},
		{"exponent is an integer", `{"name":"n","height":8e1}`, ""},
		{"range", `{"name":"n","height":301,"factor":4.5}`,
			"factor: must be between 1 and 4\nheight: must be between 20 and 300"},
		{"beyond floats", `{"name":"n","factor":1e999}`, "factor: must be between 1 and 4"},
		{"nested", `{"name":"n","margins":{"top":101}}`, "margins.top: must be between 0 and 100"},
		{"nested of another kind", `{"name":"n","margins":[]}`, "margins: must be an object"},
		{"list items", `{"name":"n","list":["ok",1,` + long + `]}`,
			"list.1: must be a string\nlist.2: must be at most 3 characters"},
		{"empty list", `{"name":"n","list":[]}`, "list: must have 1 to 30 items"},
		{"too many items", `{"name":"n","items":[{},{},{},{}]}`, "items: must have 1 to 3 items"},
		{"list items that are no objects", `{"name":"n","items":[{"to":"a"},"x",{}]}`,
			"items.1: must be an object\nitems.2.to: is required"},
		{"all at once", `{"name":"","flag":2,"height":1}`,
			"flag: must be a boolean\nheight: must be between 20 and 300\nname: must not be empty"},
		{"20 misspelt names", `{"name":"n"` + strings.Join(spellings("type", 40), "") + `}`,
			strings.Join(complaints("type", 20), "\n")},
		{"a list reports its first 20", `{"name":"n","list":[` + strings.TrimSuffix(strings.Repeat("0,", 30), ",") + `]}`,
			func() string {
				var lines []string
				for i := range strings.FieldsSeq("0 1 10 11 12 13 14 15 16 17 18 19 2 3 4 5 6 7 8 9") {
					lines = append(lines, "list."+i+": must be a string")
				}
				return strings.Join(lines, "\n")
			}()},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o, err := parseObject([]byte(c.body), "", newNotes())
			must.Succeed(t, err)
			read(o)
			_ = o.noteMisspelt()
			if got := o.problems.text(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// spellings returns members of an object whose names differ from a name in underscores alone, in their order.
func spellings(name string, n int) (members []string) {
	for i := range n {
		members = append(members, `,"`+name+strings.Repeat("_", i+1)+`":1`)
	}
	return members
}

// complaints returns the problems of the first spellings.
func complaints(name string, n int) (problems []string) {
	for i := range n {
		problems = append(problems, name+strings.Repeat("_", i+1)+`: unknown field; did you mean "`+name+`"?`)
	}
	return problems
}

// TestFurtherItems checks that the message says how many more items of a list are bad than error.details names.
func TestFurtherItems(t *testing.T) {
	for items, want := range map[int]string{
		20: "The request has missing or invalid fields.",
		21: "The request has missing or invalid fields, and 1 more in list.",
		30: "The request has missing or invalid fields, and 10 more in list.",
	} {
		o, err := parseObject([]byte(`{"list":["good"`+strings.Repeat(",1", items)+`]}`), "", newNotes())
		must.Succeed(t, err)
		o.Texts("list", List{Max: 100}, Text{})
		if e := errInvalid(o.notes); e.Message != want || len(e.Details) != 20 {
			t.Errorf("%d: %s", len(e.Details), e.Message)
		}
	}
}

func (p Problems) text() string {
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(p)) {
		lines = append(lines, path+": "+strings.Join(p[path], "; "))
	}
	return strings.Join(lines, "\n")
}

// TestParseObjectRefuses checks the bodies that are no object or too deep (docs/decisions/requests.md#json-bodies).
// TestMalformed has the bodies that are no JSON.
func TestParseObjectRefuses(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       error
	}{
		{"array", `[]`, errNoObject},
		{"string", `"a"`, errNoObject},
		{"null", `null`, errNoObject},
		{"number", `1`, errNoObject},
		{"too deep", `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", errTooDeep},
		{"too deep, objects", strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000), errTooDeep},
		{"too deep, no object", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), errTooDeep},
		{"one too deep", `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}", errTooDeep},
		{"deep, and duplicate names", `{"a":` + strings.Repeat("[", 9_000) + `{"a":1,"a":2}` + strings.Repeat("]", 9_000) +
			"}", errNoJSON},
		{"invalid UTF-8 in a name", "{\"\xff\":1}", errNoJSON},
		{"garbage", "\x00", errNoJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parseObject([]byte(c.body), "", newNotes()); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// A text that is read as an object is one JSON value that another reader accepts too, and its problems can be encoded.
func FuzzObject(f *testing.F) {
	for _, body := range []string{
		`{"name":"n","list":["a"],"items":[{"to":"x"}],"margins":{"top":1e2}}`, `{"name":"\ud83d\ude00","height":80.0}`, ``,
		` {} `, `{"a":1,"a":2}`,
		`{"name":"\ud800"}`, "\ufeff{}", "{\"name\":\"\xff\"}", `{"height":4.0000000000000000000001,"factor":1e999999}`,
		`{"list":[1,2,3],"items":[1,{}]}`,
		strings.Repeat(`{"margins":`, 50) + "1" +
			strings.Repeat("}", 50), `{"name":"\u0000\u202e","code":"\u0441"}`, `[]`, `{}{}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := parseObject(body, "", newNotes())
		v := jsontext.Value(body)
		if reads := v.IsValid() && v.Kind() == '{' || strings.Trim(string(body), " \t\r\n") == ""; reads != (err == nil) {
			t.Fatalf("another reader says %v: %v", reads, err)
		}
		if err == nil {
			read(o)
			_ = o.noteMisspelt()
		} else if place, ok := errors.AsType[*malformedError](err); ok {
			place.validate(t, body)
		}
		p := o.problems
		for path, messages := range p {
			if !utf8.ValidString(path) || len(messages) == 0 || strings.Contains(path, "..") {
				t.Errorf("%q: %q", path, messages)
			}
		}
		if _, err := encode(envelope{Error: &errorBody{Details: p}}); err != nil {
			t.Errorf("problems do not encode: %v", err)
		}
		// sorted, rounded, without white space
		if canonical := v.Clone(); err == nil && len(v) > 0 && canonical.Canonicalize() == nil {
			again, err := parseObject(canonical, "", newNotes())
			if err != nil {
				t.Fatalf("%s: %v", canonical, err)
			}
			read(again)
			if again.noteMisspelt(); len(again.problems) > len(p) {
				t.Errorf("%s: more is wrong than with %s", canonical, body)
			}
		}
	})
}

// docs/decisions/requests.md#malformed-json: line and column of the first unreadable character, and the likely cause.
func TestMalformed(t *testing.T) {
	const (
		duplicate = "the name occurs twice in its object"
		ends      = "the text ends before all quotes and brackets are closed"
		missing   = "a comma, colon or closing bracket is missing"
		words     = "the only words of JSON are true, false and null"
		number    = "a number has no leading 0 or +; a phone number needs double quotes"
		form      = "the body is form data, such as a=b&c=d; send a JSON object"
		names     = "names need double quotes"
		single    = "single quotes; names and texts need double quotes"
		straight  = "curved quotes; names and texts need straight double quotes"
		quote     = `a double quote in a text is written \", or a comma is missing`
		escape    = `a backslash in a text is written \\`
		lines     = `a line break or tab in a text is written \n or \t`
		surrogate = "half of a surrogate pair"
	)
	for _, c := range []struct {
		body         string
		line, column int
		cause        string
	}{
		{`{"a":1,}`, 1, 8, "trailing comma"},
		{"{\n  \"to\": \"0771234567\",\n  \"message\": \"m\",\n}", 4, 1, "trailing comma"},
		{`{"a":[1,2 , ]}`, 1, 13, "trailing comma"},
		{`{"a":{"b":[{"c":1,}]}}`, 1, 19, "trailing comma"},
		{`{'a':1}`, 1, 2, single},
		{`{"a":'b'}`, 1, 6, single},
		{`{“a”:1}`, 1, 2, straight},
		{`{"ආ":"ක", “a”:1}`, 1, 11, straight},
		{"to=0771234567&message=m", 1, 2, form},
		{"send_method=single&to=0771234567", 1, 1, form},
		{"to=%2B94771234567", 1, 2, form},
		{"--boundary\r\nContent-Disposition: form-data; name=\"to\"\r\n", 1, 2, form},
		{"<sms><to>0771234567</to></sms>", 1, 1, "the body is XML or HTML"},
		{"\ufeff{}", 1, 1, "the text begins with a byte order mark"},
		{"{\x00}\x00", 1, 2, "the text is UTF-16 and must be UTF-8"},
		{"\xff\xfe{\x00}\x00", 1, 1, "the text is UTF-16 and must be UTF-8"},
		{"{\"a\":\"\xff\"}", 1, 7, "the text is not UTF-8"},
		{`{"a":1,"b":2,"a":3}`, 1, 14, duplicate},
		{"{\"x\":[\r\n{\"a\":1,\r\n \"\\u0061\":2}]}", 3, 2, duplicate},
		{`{"a":1`, 1, 7, ends},
		{`{"a":"b`, 1, 8, ends},
		{`{"a":"\u12`, 1, 11, ends},
		{`{"a":1,` + "\n", 2, 1, ends},
		{`{`, 1, 2, ends},
		{`{"a":True}`, 1, 6, words},
		{`{"a":None}`, 1, 6, words},
		{`{"a":nil}`, 1, 7, words},
		{`{"a":undefined}`, 1, 6, words},
		{`{"a":NaN}`, 1, 6, words},
		{`{"to":0771234567}`, 1, 8, number},
		{`{"to":+94771234567}`, 1, 7, number},
		{`{a:1}`, 1, 2, names},
		{`{"a":1, b : 2}`, 1, 9, names},
		{`{"a":hello}`, 1, 6, "texts need double quotes"},
		{`{"a"=1}`, 1, 5, "a name is followed by a colon"},
		{`{"a"=>1}`, 1, 5, "a name is followed by a colon"},
		{`{"a" 1}`, 1, 6, missing},
		{`{"a":1 "b":2}`, 1, 8, missing},
		{`{"a":[1 2]}`, 1, 9, missing},
		{`{"a":"b"c"}`, 1, 9, quote},
		{`{"a":,}`, 1, 6, "a value is missing before the comma"},
		{`{"a":1,,"b":2}`, 1, 8, "a value is missing before the comma"},
		{`{"a":1 // one` + "\n}", 1, 8, "JSON has no comments"},
		{`{/**/}`, 1, 2, "JSON has no comments"},
		{"{\"a\":\"b\nc\"}", 1, 8, lines},
		{"{\"a\":\"b\tc\"}", 1, 8, lines},
		{"{\"a\":\"\x01\"}", 1, 7, `a control character in a text is written as an escape, such as \u0000`},
		{`{"a":"C:\dir"}`, 1, 10, escape},
		{`{"a":"\u12g4"}`, 1, 11, `\u takes four hexadecimal digits`},
		{`{"a":"\ud800"}`, 1, 7, surrogate},
		{`{"a":1}}`, 1, 8, "text follows the JSON value"},
		{`{"a":1} {"b":2}`, 1, 9, "text follows the JSON value"},
		{"{}\n;", 2, 1, "text follows the JSON value"},
		{`{"a":1.}`, 1, 8, ""},
		{`}`, 1, 1, ""},
		{`,`, 1, 1, ""},
		{`{null:1}`, 1, 2, names},
		{`{"a":1,true:2}`, 1, 8, names},
		{`{1:2}`, 1, 2, names},
	} {
		_, err := parseObject([]byte(c.body), "", newNotes())
		place, ok := errors.AsType[*malformedError](err)
		if !ok || *place != (malformedError{c.line, c.column, c.cause}) {
			t.Errorf("%q: %v, want line %d, column %d: %s", c.body, err, c.line, c.column, c.cause)
		}
		if ok {
			place.validate(t, []byte(c.body))
		}
	}
}

// validate checks that jsontext reads the text before the place as the beginning of a JSON text.
func (e *malformedError) validate(t *testing.T, body []byte) {
	t.Helper()
	lines := bytes.SplitAfterN(body, []byte("\n"), e.line)
	read := body[:len(body)-len(lines[len(lines)-1])]
	for range e.column - 1 {
		_, size := utf8.DecodeRune(body[len(read):])
		read = body[:len(read)+size]
	}
	d := jsontext.NewDecoder(bytes.NewReader(read))
	var err error
	for err == nil {
		_, err = d.ReadToken()
	}
	comma := bytes.HasSuffix(bytes.TrimRight(read, space), []byte(",")) // jsontext refuses a comma at the end
	if !comma && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q: %v, but jsontext refuses %q: %v", body, e, read, err)
	}
}

// TestNumbersAreComparedAsSent checks docs/decisions/requests.md#numbers-in-bodies: an integer field accepts 80.0 and
// refuses 80.5, and the range is compared to the last digit that was sent.
func TestNumbersAreComparedAsSent(t *testing.T) {
	const between, integer = "must be between 1 and 4", "must be an integer"
	cases := []struct {
		number            string
		whole, cut, plain string // what a field of each kind says of it, or its value
	}{
		{"4", "4", "4", "4"},
		{"80e-1", between, between, between},
		{"4.0", "4", "4", "4"},
		{"0.4e1", "4", "4", "4"},
		{"40E-1", "4", "4", "4"},
		{"4.0000000000000000000001", between, between, between},
		{"3.9999999999999999999999", integer, "3", "4"}, // the nearest float64
		{"1.0000000000000000000001", integer, "1", "1"},
		{"0.9999999999999999999999", between, between, between},
		{"2.5", integer, "2", "2.5"},
		{"2." + strings.Repeat("0", 100_000), "2", "2", "2"},
		{"2." + strings.Repeat("0", 100_000) + "1", integer, "2", "2"},
		{"2e" + strings.Repeat("0", 1000), "2", "2", "2"},
		{strings.Repeat("9", 1_000_000), between, between, between},
		{"1e999999", between, between, between},
		{"1e-999999", between, between, between},
		{"1e99999999999999999999999999", between, between, between},
		{"1e-99999999999999999999999999", between, between, between},
		{"-2", between, between, between},
		{"-0", between, between, between},
	}
	said := func(number string, r Number) string {
		o, err := parseObject([]byte(`{"n":`+number+`}`), "", newNotes())
		must.Succeed(t, err)
		r.Min, r.Max = 1, 4
		n := o.Number("n", r)
		if len(o.problems) > 0 {
			return strings.Join(o.problems["n"], "; ")
		}
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	for _, c := range cases {
		for name, check := range map[string]struct {
			rule Number
			want string
		}{"whole": {Number{Integer: true}, c.whole}, "cut": {Number{Truncate: true}, c.cut}, "plain": {Number{}, c.plain}} {
			if got := said(c.number, check.rule); got != check.want {
				t.Errorf("%s, %.40q: %s, want %s", name, c.number, got, check.want)
			}
		}
	}
	o, _ := parseObject([]byte(`{"minus":-0,"tiny":-1e-999999,"zero":0e999999}`), "", newNotes())
	for _, name := range []string{"minus", "tiny", "zero"} {
		o.Number(name, Number{Max: 1})
	}
	if got := o.problems.text(); got != "tiny: must be between 0 and 1" {
		t.Errorf("around zero: %s", got)
	}
}

// The arithmetic agrees with that of math/big.
func FuzzDecimal(f *testing.F) {
	for _, n := range []string{"0", "-0", "80.0", "8e1", "4.0000000000000000000001", "-0.05e-3", "1e400",
		"123456789012345678901234567890", "0.0"} {
		f.Add(n, "4")
		f.Add("-4.5", n)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, knownX := rational(a)
		y, knownY := rational(b)
		if !knownX || !knownY {
			return
		}
		da, db := decimalOf(a), decimalOf(b)
		if da.compare(db) != x.Cmp(y) || db.compare(da) != y.Cmp(x) {
			t.Errorf("%s and %s: %d, want %d", a, b, da.compare(db), x.Cmp(y))
		}
		if da.isInteger() != x.IsInt() {
			t.Errorf("%s: whole is %v", a, da.isInteger())
		}
		if want, _ := strconv.ParseFloat(a, 64); da.float() != want {
			t.Errorf("%s: %v, want %v", a, da.float(), want)
		}
		integer := new(big.Int).Quo(x.Num(), x.Denom())
		if !da.truncate().isInteger() || da.truncate().compare(decimalOf(integer.String())) != 0 {
			t.Errorf("%s is cut to %+v, want %s", a, da.truncate(), integer)
		}
	})
}

// rational reads a JSON number whose exponent is small enough to be written out.
func rational(number string) (*big.Rat, bool) {
	v := jsontext.Value(number)
	if len(number) > 1000 || !v.IsValid() || v.Kind() != '0' || strings.ContainsAny(number, " \t\r\n") {
		return nil, false
	}
	if e := strings.IndexAny(number, "eE"); e >= 0 {
		if n, err := strconv.Atoi(number[e+1:]); err != nil || n > 1000 || n < -1000 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(number)
}

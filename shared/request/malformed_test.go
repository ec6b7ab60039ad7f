package request

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

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

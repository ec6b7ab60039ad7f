package event

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"svcapi/test/must"
)

func valid() Event {
	return Event{RequestID: "r", MaxBytes: 9, HTML: []byte("<p>\x00é"), PageSize: "Legal", Landscape: true,
		Margins: Margins{0, 1.5, 100, 15}, Files: map[string][]byte{"a/b.css": []byte("a{}")}}
}

// An event arrives as it was sent, and an event that the operation never sends is rejected.
func TestParse(t *testing.T) {
	sent := valid()
	text, err := sent.Encode()
	must.Succeed(t, err)
	got, err := Parse(text)
	if sent.Version = Version; err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("%+v, %v", got, err)
	}
	for old, with := range map[string]string{
		`"version":1`:             `"version":2`,
		`"version":1,`:            ``,
		`"max_bytes":9`:           `"max_bytes":0`,
		`"max_bytes":9,`:          `"max_bytes":67108865,`,
		`"html":"`:                `"html":"-`,
		`"html"`:                  `"text"`,
		`"Legal"`:                 `"A5"`,
		`"right":1.5`:             `"right":100.1`,
		`"top":0`:                 `"top":-1`,
		`"a/b.css"`:               `"a/../b.css"`,
		`b.css"`:                  `b.png"`,
		`"landscape":true`:        `"landscape":1`,
		`{"version":1`:            `{"table":"wallets","version":1`,
		`"html":"PHA+AMOp"`:       `"html":"/w=="`,
		`"html":"PHA+AMOp",`:      `"html":"",`,
		`"page_size":"Legal",`:    ``,
		`"page_size":"Legal"`:     `"page_size":"","page_width":9.9,"page_height":100`,
		`"landscape":true,`:       `"password":"123",`,
		`"landscape":true,"`:      `"content_height":true,"prefer_css_page_size":true,"`,
		`{"version":1,"request_`:  `["version",1,"request_`,
		`"margins":{"top":0`:      `"margins":{"inside":0`,
		`"request_id":"r","max_b`: `"request_id":7,"max_b`,
	} {
		broken := strings.Replace(string(text), old, with, 1)
		if _, err := Parse([]byte(broken)); broken == string(text) || err == nil {
			t.Errorf("%s for %s in %s: %v", with, old, text, err)
		}
	}
	for name, want := range map[string]string{"a.png": "a.png", "./a//b.png": "a/b.png",
		"e\u0301.png": "é.png", "..a": "..a",
		"": "", "/a": "", "a/../b": "", "..": "", ".": "", "a/": "", `a\b`: "", "a?b": "", "a#b": "", "c:d": "", "\x20a": "",
		"a\n": "", "\xff": "", strings.Repeat("a", 256): ""} {
		if got, ok := FileName(name); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got, ok, want)
		}
	}
	large := valid()
	large.HTML = bytes.Repeat([]byte("x"), MaxHTML+1)
	if text, err := large.Encode(); err == nil {
		if _, err := Parse(text); err == nil {
			t.Error("a document of more bytes than allowed")
		}
	}
}

// A result arrives as it was sent, in a stream of any pieces, and before the stream ends.
func TestRead(t *testing.T) {
	for _, sent := range []Result{
		{PDF: []byte("%PDF-1.4\x00\x00\x00\x00\x00\x00\x00\x00 …")}, {PDF: bytes.Repeat([]byte{7}, 1<<20),
			Warnings: "missing-glyphs, resources-blocked;n=2"},
		{Rejection: &RejectionError{Message: "the document has <more> than 5 pages",
			ExceedsLimit: true}}, {Rejection: &RejectionError{Message: "x", TooLarge: true}},
	} {
		for _, pieces := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			stream := pieces(io.MultiReader(response(t, sent), iotest.ErrReader(errors.New("read beyond the result"))))
			if got, err := Read(stream, 1<<20); err != nil || !reflect.DeepEqual(got, sent) {
				t.Errorf("%.60v, %v, want %.60v", got, err, sent)
			}
		}
	}
}

func response(t testing.TB, r Result) io.Reader {
	t.Helper()
	stream, err := r.Response()
	must.Succeed(t, err)
	return stream
}

// A stream that is no complete result is an error.
func TestReadBroken(t *testing.T) {
	whole, err := io.ReadAll(response(t, Result{PDF: []byte("%PDF-")}))
	must.Succeed(t, err)
	for _, stream := range []string{
		"", "{}", string(whole[:20]), string(whole[:len(whole)-1]), "{}" + string(separator), "x" + string(separator),
		strings.Replace(string(whole), `"200"`, "", 1)[:10] + string(separator), strings.Repeat(" ", 1<<20),
		strings.Replace(string(whole), `"5"`, `"6"`, 1), strings.Replace(string(whole), `"5"`, `"-1"`,
			1), strings.Replace(string(whole), `"5"`, `"0"`, 1), strings.Replace(string(whole), `"5"`, `"11"`, 1),
		strings.Replace(string(whole), `200`, `500`, 1), strings.Replace(string(whole), `200`, `400`, 1),
	} {
		if got, err := Read(strings.NewReader(stream), 10); !errors.Is(err, errResult) {
			t.Errorf("%.40q: %v, %v", stream, got, err)
		}
	}
}

// No event and no stream makes the decoders panic, and what Parse accepts is within the limits.
func FuzzParse(f *testing.F) {
	text, err := valid().Encode()
	must.Succeed(f, err)
	whole, err := io.ReadAll(response(f, Result{PDF: []byte("%PDF-")}))
	must.Succeed(f, err)
	f.Add(text)
	f.Add(whole)
	f.Fuzz(func(t *testing.T, text []byte) {
		if e, err := Parse(text); err == nil {
			again, err := e.Encode()
			must.Succeed(t, err)
			if same, err := Parse(again); err != nil || !reflect.DeepEqual(same, e) {
				t.Errorf("%+v, %v, want %+v", same, err, e)
			}
		}
		if result, err := Read(bytes.NewReader(text), 100); err == nil && len(result.PDF) > 100 {
			t.Errorf("%d bytes", len(result.PDF))
		}
	})
}

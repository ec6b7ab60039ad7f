package main

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"svcapi/functions/pdf/render/event"
	"svcapi/shared/request"
	"svcapi/test/fuzztest"
	"svcapi/test/must"
)

// maxEvent is the largest event in bytes that Lambda accepts.
const maxEvent = 6 << 20

// openapi.yaml#PdfRequest: each field makes its part of the event that the renderer gets, in each of its forms, and has
// its default (docs/decisions/pdf.md#pdf-fields, docs/decisions/pdf.md#pdf-base64).
func TestDecode(t *testing.T) {
	for body, change := range map[string]func(*event.Event){
		`{"html":"<p>é"}`: func(*event.Event) {},
		`{"html":"<p>é","page_size":null,"orientation":null,"margins":null,"response_type":null,"privacy_mode":null,` +
			`"is_base64":null}`: func(*event.Event) {},
		`{"html":"PHA+w6k=","is_base64":true}`:                          func(*event.Event) {},
		`{"html":" PHA+\nw6k \r\n","is_base64":true}`:                   func(*event.Event) {},
		`{"html":"<p>é","page_size":"Letter","orientation":"portrait"}`: func(e *event.Event) { e.PageSize = "Letter" },
		`{"html":"<p>é","page_size":"Legal","orientation":"landscape"}`: func(e *event.Event) {
			e.PageSize, e.Landscape = "Legal", true
		},
		`{"html":"<p>é","margins":{"top":0,"right":12.5,"left":100,"bottom":null,"unknown":1}}`: func(e *event.Event) {
			e.Margins = event.Margins{Top: 0, Right: 12.5, Bottom: 15, Left: 100}
		},
		`{"html":"<p>é","page_width":80,"page_height":"content"}`: func(e *event.Event) {
			e.PageSize, e.PageWidth, e.ContentHeight = "", 80, true
		},
		`{"html":"<p>é","page_width":40,"page_height":50.5}`: func(e *event.Event) { // a small label has small margins
			e.PageSize, e.PageWidth, e.PageHeight = "", 40, 50.5
			e.Margins = event.Margins{Top: 10, Right: 10, Bottom: 10, Left: 10}
		},
		`{"html":"PHA+w6k","header_html":"YQ==","footer_html":"Yg==","is_base64":true,"page_ranges":"3,1","scale":0.5,` +
			`"metadata":{"title":"A","author":"B","subject":"C","keywords":"D"},"tagged":true,"outline":true,"strict":true,` +
			`"prefer_css_page_size":true,"password":"sesame","files":{"./a.css":"YXt9"}}`: func(e *event.Event) {
			e.Header, e.Footer, e.PageRanges, e.Scale = []byte("a"), []byte("b"), "3,1", 0.5
			e.Metadata = event.Metadata{Title: "A", Author: "B", Subject: "C", Keywords: "D"}
			e.Tagged, e.Outline, e.Strict, e.CSSSize, e.Password = true, true, true, true, "sesame"
			e.Files = map[string][]byte{"a.css": []byte("a{}")}
		},
	} {
		in, err := request.ReadInput([]byte(body), nil)
		must.Succeed(t, err)
		got, err := decode(in)
		want := event.Event{HTML: []byte("<p>é"), PageSize: "A4", Scale: 1,
			Margins: event.Margins{Top: 15, Right: 15, Bottom: 15, Left: 15}}
		if change(&want); err != nil || len(in.Problems()) > 0 || !reflect.DeepEqual(got.event, want) {
			t.Errorf("%s: %+v, %v, %v; want %+v", body, got.event, in.Problems(), err, want)
		}
		want.Version, want.MaxBytes, got.event.MaxBytes = event.Version, 1, 1
		sent, err := got.event.Encode()
		must.Succeed(t, err)
		if received, err := event.Parse(sent); err != nil || !reflect.DeepEqual(received, want) {
			t.Errorf("the renderer gets %+v, %v; want %+v", received, err, want)
		}
	}
}

// A body that decodes without a problem makes an event that the renderer and Lambda accept.
func FuzzBody(f *testing.F) {
	fuzztest.Bodies(f, decode, func(t *testing.T, _ *request.Input, d document) {
		d.event.MaxBytes = maxBuffered
		text, err := d.event.Encode()
		must.Succeed(t, err)
		if e, err := event.Parse(text); err != nil || len(text) > maxEvent {
			t.Errorf("%+v: %v, %d bytes", e, err, len(text))
		}
	}, `{"html":"<p>a</p>","page_size":"Letter","orientation":"landscape","margins":{"top":0,"right":1e2,`+
		`"bottom":99.9999999999999999999999,"left":-0},"response_type":"base64"}`,
		`{"html":"PHA+YTwvcD4","is_base64":true}`, `{"html":"PHA+\nYTwvcD4=","is_base64":true}`,
		`{"html":"/w==","is_base64":true}`, `{"html":"=","is_base64":true}`,
		`{"html":"a","files":{"a/./b.css":"YQ==","é.svg":"PHN2Zy8+","../c.png":"iVBORw0KGgo=","a\\u0000.png":""}}`,
		`{"html":"a","margins":[1]}`, `{"html":"a","margins":{"top":100.0000000000000000000001}}`,
		`{"html":null,"is_base64":"true"}`, `{"html":"\u0000","page_size":"a4"}`)
}

// Only standard Base64 is decoded, and white space has no effect.
func FuzzBase64(f *testing.F) {
	for _, text := range []string{"YQ==", "YQ", "Y Q\n=\t=", "YR==", "YQ=", "YQ===", "-_-_", "====", "\u00a0YQ=="} {
		f.Add(text, []byte("a"))
	}
	f.Fuzz(func(t *testing.T, text string, plain []byte) {
		if got, err := decodeBase64(text); err == nil {
			tight := strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\f\v", r) }),
				"")
			if again, err := decodeBase64(tight); err != nil || string(again) != string(got) || len(got) > len(text) {
				t.Errorf("%q is %q, without white space %q, %v", text, got, again, err)
			}
		}
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
			if got, err := decodeBase64(encoding.EncodeToString(plain)); err != nil || string(got) != string(plain) {
				t.Errorf("%q is %q, %v", plain, got, err)
			}
		}
	})
}

package main

import (
	"encoding/base64"
	"strings"
	"testing"

	"svcapi/functions/pdf/render/event"
	"svcapi/shared/request"
	"svcapi/test/fuzztest"
	"svcapi/test/must"
)

// maxEvent is the largest event in bytes that Lambda accepts.
const maxEvent = 6 << 20

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

package iplookup

import (
	"math"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A parsed value of a vendor has one format or is null.
func FuzzValues(f *testing.F) {
	for _, v := range []string{`"LK"`, `"lk "`, `"AS9329"`, `9329`, `"as00012"`, `6.9271`, `"-79.8612"`, `"NaN"`, `"0x1p-2"`, `"1e400"`, `null`, `"unknown"`, `true`, `{"a":1}`, `"\ud83d"`, "\"\xff\""} {
		f.Add([]byte(v))
	}
	country, asn := regexp.MustCompile(`\A[A-Z]{2}\z`), regexp.MustCompile(`\AAS[1-9][0-9]{0,9}\z`)
	f.Fuzz(func(t *testing.T, value []byte) {
		options := []json.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
		var text Text
		var number Number
		if err, bad := json.Unmarshal(value, &text, options...), json.Unmarshal(value, &number, options...); (err == nil) != (bad == nil) || err != nil {
			if err == nil || bad == nil {
				t.Errorf("%q: %v, %v", value, err, bad)
			}
			return
		}
		if c := text.Country(); c != nil && !country.MatchString(*c) {
			t.Errorf("%q is the country %q", value, *c)
		}
		if a := text.ASN(); a != nil && !asn.MatchString(*a) {
			t.Errorf("%q is the number %q", value, *a)
		}
		if p := text.Pointer(); p != nil && (*p == "" || !utf8.ValidString(*p)) {
			t.Errorf("%q is the text %q", value, *p)
		}
		if n := number.Within(MaxLongitude); n != nil && (math.Abs(*n) > MaxLongitude || math.IsNaN(*n) || math.Signbit(*n) && *n == 0) {
			t.Errorf("%q is the number %v", value, *n)
		}
		if lat, lon := Coordinates(number, number); (lat == nil) != (lon == nil) || lat != nil && math.Abs(*lat) > MaxLatitude {
			t.Errorf("%q is a place", value)
		}
	})
}

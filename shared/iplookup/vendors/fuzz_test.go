package vendors

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
		var parsed text
		var numeric number
		if err, bad := json.Unmarshal(value, &parsed, options...), json.Unmarshal(value, &numeric, options...); (err == nil) != (bad == nil) || err != nil {
			if err == nil || bad == nil {
				t.Errorf("%q: %v, %v", value, err, bad)
			}
			return
		}
		if c := parsed.country(); c != nil && !country.MatchString(*c) {
			t.Errorf("%q is the country %q", value, *c)
		}
		if a := parsed.asn(); a != nil && !asn.MatchString(*a) {
			t.Errorf("%q is the number %q", value, *a)
		}
		if p := parsed.pointer(); p != nil && (*p == "" || !utf8.ValidString(*p)) {
			t.Errorf("%q is the text %q", value, *p)
		}
		if n := numeric.within(maxLongitude); n != nil && (math.Abs(*n) > maxLongitude || math.IsNaN(*n) || math.Signbit(*n) && *n == 0) {
			t.Errorf("%q is the number %v", value, *n)
		}
		if p := (Place{}).at(numeric, numeric); (p.Latitude == nil) != (p.Longitude == nil) || p.Latitude != nil && math.Abs(*p.Latitude) > maxLatitude {
			t.Errorf("%q is a place", value)
		}
	})
}

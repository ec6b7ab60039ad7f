package vendors

import (
	"math"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// A parsed value of a vendor has one format or is null.
func FuzzValues(f *testing.F) {
	for _, v := range []string{`"LK"`, `"lk "`, `"AS9329"`, `9329`, `"as00012"`, `6.9271`, `"-79.8612"`, `"NaN"`,
		`"0x1p-2"`, `"1e400"`, `null`, `"unknown"`, `true`, `{"a":1}`, `"\ud83d"`, "\"\xff\""} {
		f.Add([]byte(v))
	}
	country, asn := regexp.MustCompile(`\A[A-Z]{2}\z`), regexp.MustCompile(`\AAS[1-9][0-9]{0,9}\z`)
	f.Fuzz(func(t *testing.T, value []byte) {
		var decoded any
		if json.Unmarshal(value, &decoded, laxJSON) != nil {
			return
		}
		parsed := textOf(decoded)
		if c := parsed.country(); c != nil && !country.MatchString(*c) {
			t.Errorf("%q is the country %q", value, *c)
		}
		if a := parsed.asn(); a != nil && !asn.MatchString(*a) {
			t.Errorf("%q is the number %q", value, *a)
		}
		if p := parsed.pointer(); p != nil && (*p == "" || !utf8.ValidString(*p)) {
			t.Errorf("%q is the text %q", value, *p)
		}
		if n := parsed.within(maxLongitude); n != nil &&
			(math.Abs(*n) > maxLongitude || math.IsNaN(*n) || math.Signbit(*n) && *n == 0) {
			t.Errorf("%q is the number %v", value, *n)
		}
		if p := (Place{}).at(parsed, parsed); (p.Latitude == nil) != (p.Longitude == nil) ||
			p.Latitude != nil && math.Abs(*p.Latitude) > maxLatitude {
			t.Errorf("%q is a place", value)
		}
	})
}

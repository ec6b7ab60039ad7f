package iplookup

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Text is a vendor's text, whatever its JSON type: vendors change their minds.
type Text string

// UnmarshalJSONFrom takes strings, numbers and booleans; all else is empty.
func (t *Text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*t = ""
	switch v.Kind() {
	case '"':
		b, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return err
		}
		*t = Text(b)
	case '0', 't', 'f':
		*t = Text(v)
	}
	return nil
}

// nothing are the words with which vendors say that they do not know.
var nothing = map[string]bool{"": true, "-": true, "unknown": true, "n/a": true, "na": true, "none": true, "null": true, "not found": true}

// Pointer is the text, or nil where the vendor has none.
func (t Text) Pointer() *string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(t), "\uFFFD"))
	if nothing[strings.ToLower(s)] {
		return nil
	}
	return &s
}

var countryForm = regexp.MustCompile(`^[A-Z]{2}$`)

// Country is a country code of two capitals (ISO 3166-1 alpha-2), or nil.
func (t Text) Country() *string {
	s := strings.ToUpper(strings.TrimSpace(string(t)))
	if !countryForm.MatchString(s) {
		return nil
	}
	return &s
}

var asnForm = regexp.MustCompile(`^(?:AS)?0*([1-9][0-9]{0,9})$`)

// ASN is an autonomous-system number as "AS" and digits, or nil.
func (t Text) ASN() *string {
	m := asnForm.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(string(t))))
	if m == nil {
		return nil
	}
	s := "AS" + m[1]
	return &s
}

// Number is a vendor's number, also where it comes as a string.
type Number struct{ text Text }

// UnmarshalJSONFrom takes what Text takes.
func (n *Number) UnmarshalJSONFrom(d *jsontext.Decoder) error { return n.text.UnmarshalJSONFrom(d) }

// Within is the number, or nil where there is none within plus and minus most.
func (n Number) Within(most float64) *float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(string(n.text)), 64)
	return within(f, err == nil, most)
}

func within(f float64, ok bool, most float64) *float64 {
	if !ok || math.IsNaN(f) || math.Abs(f) > most {
		return nil
	}
	f += 0 // no negative zero
	return &f
}

// The bounds of coordinates, in degrees.
const (
	MaxLatitude  = 90
	MaxLongitude = 180
)

// Coordinates are a latitude and a longitude in degrees, or both nil: one
// without the other is no place.
func Coordinates(latitude, longitude Number) (*float64, *float64) {
	lat, lon := latitude.Within(MaxLatitude), longitude.Within(MaxLongitude)
	if lat == nil || lon == nil {
		return nil, nil
	}
	return lat, lon
}

package iplookup

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"
)

// Text is a vendor's text of any JSON type, because vendors change the types of fields.
type Text string

// UnmarshalJSONFrom accepts strings, numbers and booleans. Any other value is an empty text.
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

// absentTexts are the texts of vendors for an absent value.
var absentTexts = map[string]bool{"": true, "-": true, "unknown": true, "n/a": true, "na": true, "none": true, "null": true, "not found": true}

// Pointer returns the text, or nil for an absent text.
func (t Text) Pointer() *string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(t), "\uFFFD"))
	if absentTexts[strings.ToLower(s)] {
		return nil
	}
	return &s
}

var countryPattern = regexp.MustCompile(`^[A-Z]{2}$`)

// Country returns a country code of two capital letters (ISO 3166-1 alpha-2), or nil.
func (t Text) Country() *string {
	s := strings.ToUpper(strings.TrimSpace(string(t)))
	if !countryPattern.MatchString(s) {
		return nil
	}
	return &s
}

var asnPattern = regexp.MustCompile(`^(?:AS)?0*([1-9][0-9]{0,9})$`)

// ASN returns an autonomous-system number as "AS" and digits, or nil.
func (t Text) ASN() *string {
	m := asnPattern.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(string(t))))
	if m == nil {
		return nil
	}
	s := "AS" + m[1]
	return &s
}

// Number is a vendor's number in a JSON number or string, or in a database.
type Number struct{ text Text }

// UnmarshalJSONFrom accepts the values of Text.
func (n *Number) UnmarshalJSONFrom(d *jsontext.Decoder) error { return n.text.UnmarshalJSONFrom(d) }

// UnmarshalMaxMindDBCursor accepts a floating-point number.
func (n *Number) UnmarshalMaxMindDBCursor(c mmdbdata.Cursor) (mmdbdata.Cursor, error) {
	f, next, err := c.ReadFloat()
	n.text = Text(strconv.FormatFloat(f, 'g', -1, 64))
	return next, err
}

// Within returns the number, or nil for an absent number or an absolute value above most.
func (n *Number) Within(most float64) *float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(string(n.text)), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > most {
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

// Coordinates returns a latitude and a longitude in degrees, or nil for both where one is absent.
func Coordinates(latitude, longitude Number) (*float64, *float64) {
	lat, lon := latitude.Within(MaxLatitude), longitude.Within(MaxLongitude)
	if lat == nil || lon == nil {
		return nil, nil
	}
	return lat, lon
}

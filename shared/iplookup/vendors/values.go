package vendors

import (
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"

	"svcapi/shared/pattern"
)

// text is a vendor's text of any JSON type, because vendors change the types of fields.
type text string

// UnmarshalJSONFrom accepts strings, numbers and booleans. Any other value is an empty text.
func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
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
		*t = text(b)
	case '0', 't', 'f':
		*t = text(v)
	}
	return nil
}

// absentTexts are the texts of vendors for an absent value.
var absentTexts = map[string]bool{"": true, "-": true, "unknown": true, "n/a": true, "na": true, "none": true, "null": true, "not found": true}

// pointer returns the text, or nil for an absent text.
func (t text) pointer() *string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(t), "\uFFFD"))
	if absentTexts[strings.ToLower(s)] {
		return nil
	}
	return &s
}

var countryPattern = pattern.New(`^[A-Z]{2}$`)

// country returns a country code of two capital letters (ISO 3166-1 alpha-2), or nil.
func (t text) country() *string {
	s := strings.ToUpper(strings.TrimSpace(string(t)))
	if !countryPattern().MatchString(s) {
		return nil
	}
	return &s
}

var asnPattern = pattern.New(`^(?:AS)?0*([1-9][0-9]{0,9})$`)

// asn returns an autonomous-system number as "AS" and digits, or nil.
func (t text) asn() *string {
	m := asnPattern().FindStringSubmatch(strings.ToUpper(strings.TrimSpace(string(t))))
	if m == nil {
		return nil
	}
	s := "AS" + m[1]
	return &s
}

// number is a vendor's number in a JSON number or string, or in a database.
type number struct{ text text }

// UnmarshalJSONFrom accepts the values of text.
func (n *number) UnmarshalJSONFrom(d *jsontext.Decoder) error { return n.text.UnmarshalJSONFrom(d) }

// UnmarshalMaxMindDBCursor accepts a floating-point number.
func (n *number) UnmarshalMaxMindDBCursor(c mmdbdata.Cursor) (mmdbdata.Cursor, error) {
	f, next, err := c.ReadFloat()
	n.text = text(strconv.FormatFloat(f, 'g', -1, 64))
	return next, err
}

// within returns the number, or nil for an absent number or an absolute value above most.
func (n *number) within(most float64) *float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(string(n.text)), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > most {
		return nil
	}
	f += 0 // no negative zero
	return &f
}

// The bounds of coordinates, in degrees.
const (
	maxLatitude  = 90
	maxLongitude = 180
)

// at returns the place with its coordinates in degrees, or without both where one is absent.
func (p Place) at(latitude, longitude number) Place {
	if lat, lon := latitude.within(maxLatitude), longitude.within(maxLongitude); lat != nil && lon != nil {
		p.Latitude, p.Longitude = lat, lon
	}
	return p
}

package vendors

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"svcapi/shared/pattern"
)

// document is a JSON object of a vendor, or a record of a database.
type document map[string]any

// at returns the value at a path of names with dots between them, nil where there is none.
func (d document) at(path string) any {
	if path == "" {
		return nil
	}
	value := any(map[string]any(d))
	for name := range strings.SplitSeq(path, ".") {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

// object returns the object at a path, nil where there is none.
func (d document) object(path string) document {
	members, _ := d.at(path).(map[string]any)
	return members
}

func (d document) text(path string) text { return textOf(d.at(path)) }

// flag reports whether the value at a path is true, and whether it is a boolean.
func (d document) flag(path string) (set, known bool) {
	set, known = d.at(path).(bool)
	return set, known
}

// fields are the paths of a vendor's fields; an empty path has no value. The first path of network and isp with a value
// counts.
type fields struct {
	country, countryCode, city, latitude, longitude, timezone, asn string

	network, isp []string
}

// risk returns the risk that the flags of an object set, with the fields of the document.
func (c Caller) risk(d document, f fields, flags Flags, object document) (Risk, error) {
	risk, err := c.flagged(flags, object)
	risk.CountryCode, risk.City = d.text(f.countryCode).country(), d.text(f.city).pointer()
	risk.ASN, risk.Network = d.text(f.asn).asn(), d.first(f.network)
	return risk, err
}

func (d document) place(f fields) Place {
	return Place{
		Country: d.text(f.country).pointer(), CountryCode: d.text(f.countryCode).country(), City: d.text(f.city).pointer(),
		ISP: d.first(f.isp), Timezone: d.text(f.timezone).pointer(),
	}.at(d.text(f.latitude), d.text(f.longitude))
}

// first returns the first text of the paths that is not absent, or nil.
func (d document) first(paths []string) *string {
	for _, path := range paths {
		if p := d.text(path).pointer(); p != nil {
			return p
		}
	}
	return nil
}

type text string

// textOf returns the text of a value of any type, because vendors change the types of fields. The text of an object, a
// list and null is empty.
func textOf(value any) text {
	switch v := value.(type) {
	case nil, map[string]any, []any:
		return ""
	case float64:
		return text(strconv.FormatFloat(v, 'f', -1, 64))
	}
	return text(fmt.Sprint(value))
}

// absentTexts are the texts of vendors for an absent value.
var absentTexts = map[string]bool{"": true, "-": true, "unknown": true, "n/a": true, "na": true, "none": true,
	"null": true, "not found": true}

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

// within returns the number, or nil for an absent number or an absolute value above most.
func (t text) within(most float64) *float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(string(t)), 64)
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
func (p Place) at(latitude, longitude text) Place {
	if lat, lon := latitude.within(maxLatitude), longitude.within(maxLongitude); lat != nil && lon != nil {
		p.Latitude, p.Longitude = lat, lon
	}
	return p
}

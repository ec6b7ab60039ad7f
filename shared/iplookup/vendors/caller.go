package vendors

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// Caller makes the calls of one vendor account.
type Caller struct {
	Client    *upstream.Client
	Databases *Databases
	Account   upstream.Account
}

// meaning is the meaning of a vendor's error: a class, quota or unknown.
type meaning = upstream.Class

// The meanings.
const (
	unusable            = upstream.Unusable           // the response is not valid, or an HTTP 5xx
	rejected            = upstream.Rejected           // the vendor refuses the request
	credentials         = upstream.CredentialsRefused // the vendor refuses the key, the account or its plan
	quota       meaning = "quota"                     // the account has used its quota
	unknown     meaning = "unknown"                   // the vendor does not know the address
)

// statuses are the default meanings of HTTP statuses.
var statuses = map[int]meaning{
	http.StatusUnauthorized:    credentials,
	http.StatusPaymentRequired: quota,
	http.StatusForbidden:       credentials,
	http.StatusTooManyRequests: quota,
}

// get makes a GET request to the vendor and returns the response with any status.
func (c Caller) get(ctx context.Context, path string, query url.Values,
	header http.Header) (*upstream.Response, error) {
	target := c.Account.Endpoint + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return c.Client.Do(ctx, c.Account.Integration.Vendor, &upstream.Request{
		Method: http.MethodGet, URL: target, Header: header, Redact: c.Account.Redact(),
	})
}

// laxJSON accepts duplicate names and invalid UTF-8.
var laxJSON = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// decode parses a JSON object, also with duplicate names and invalid UTF-8.
func (c Caller) decode(body []byte) (d document, err error) {
	if err := json.Unmarshal(body, &d, laxJSON); err != nil || d == nil {
		return nil, c.fail(unusable, "invalid JSON: "+string(body))
	}
	return d, nil
}

// byStatus returns the error of a response by its HTTP status, or nil for 200. The vendor's own meanings take
// precedence.
func (c Caller) byStatus(r *upstream.Response) error {
	if r.Status == http.StatusOK {
		return nil
	}
	other := unusable
	if r.Status >= 400 && r.Status < 500 {
		other = rejected
	}
	own := services()[c.Account.Integration.Vendor].Statuses[r.Status]
	return c.fail(cmp.Or(own, statuses[r.Status], other), http.StatusText(r.Status)+": "+string(r.Body))
}

// document parses the JSON object of a response with status 200.
func (c Caller) document(r *upstream.Response) (document, error) {
	if err := c.byStatus(r); err != nil {
		return nil, err
	}
	return c.decode(r.Body)
}

// getJSON makes a GET request and parses the JSON object of a response with status 200.
func (c Caller) getJSON(ctx context.Context, path string, query url.Values, header http.Header) (document, error) {
	r, err := c.get(ctx, path, query, header)
	if err != nil {
		return nil, err
	}
	return c.document(r)
}

// fail returns the error of a meaning, with a detail for the operator.
func (c Caller) fail(meaning meaning, detail string) error {
	switch meaning {
	case unknown:
		return ErrUnknown
	case quota:
		meaning, detail = rejected, "quota used up: "+detail
	}
	return upstream.Failure(meaning, c.Account.Integration.Vendor, detail, c.Account.Redact())
}

// byMessage returns the error of a message by the vendor's first phrase that matches, or else a rejection.
func (c Caller) byMessage(message string) error {
	for _, p := range services()[c.Account.Integration.Vendor].Phrases {
		if regexp.MustCompile(p.Pattern).MatchString(message) {
			return c.fail(p.Meaning, message)
		}
	}
	return c.fail(rejected, message)
}

// document is a JSON object of a vendor, or a record of a database.
type document map[string]any

// at returns the value at a path of names with dots between them, nil where there is none.
func (d document) at(path string) any {
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

// fields are the paths of a vendor's fields by the name in Place or Risk. The first path with a value counts.
type fields map[string][]string

// place returns the place with its coordinates in degrees, or without both where one is absent.
func (d document) place(f fields) Place {
	get := func(name string) text { return d.first(f[name]) }
	place := Place{
		Country: get("country").pointer(), CountryCode: get("country_code").country(), City: get("city").pointer(),
		ISP: get("isp").pointer(), Timezone: get("timezone").pointer(),
	}
	if lat, lon := get("latitude").within(maxLatitude), get("longitude").within(maxLongitude); lat != nil && lon != nil {
		place.Latitude, place.Longitude = lat, lon
	}
	return place
}

// first returns the first text of the paths that is not absent, or the empty text.
func (d document) first(paths []string) text {
	for _, path := range paths {
		if t := d.text(path); t.pointer() != nil {
			return t
		}
	}
	return ""
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

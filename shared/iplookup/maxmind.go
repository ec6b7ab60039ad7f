package iplookup

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// MaxMind is MaxMind's GeoIP web service (dev.maxmind.com, version 2.1).
var MaxMind = upstream.Spec{
	Name: "maxmind", Title: "MaxMind GeoIP web service", Endpoint: "https://geoip.maxmind.com",
	Secrets: []upstream.Field{
		{Name: "account_id", Description: "account ID", Required: true},
		{Name: "license_key", Description: "license key; IP risk uses GeoIP Insights, location GeoIP City", Required: true},
	},
}

// MaxMindResponse holds the used fields of a response of City and Insights, which omit booleans that are false.
type MaxMindResponse struct {
	CityRecord
	Traits *struct {
		IP           Text `json:"ip_address"`
		ASN          Text `json:"autonomous_system_number"`
		Organization Text `json:"autonomous_system_organization"`
		ISP          Text `json:"isp"`
	} `json:"traits"`
	Anonymizer struct { // Insights
		AnonymousRecord
		Residential Feed `json:"residential"`
	} `json:"anonymizer"`
	Code  Text `json:"code"`  // of an error
	Error Text `json:"error"` // of an error
}

// Feed reports whether an anonymizer feed knows the address. The vendor sends an object with the fields of the feed, also
// where every other flag is false (GeoIP2-dotnet 6.1.0, geoip2-node 7.1.0).
type Feed bool

// UnmarshalJSONFrom accepts an object with members, and true.
func (f *Feed) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	var members map[string]jsontext.Value
	*f = v.Kind() == 't' || v.Kind() == '{' && json.Unmarshal(v, &members, laxJSON) == nil && len(members) > 0
	return nil
}

// maxMindCodes are the vendor's error codes.
var maxMindCodes = map[Text]Meaning{
	"IP_ADDRESS_NOT_FOUND":  Unknown,
	"IP_ADDRESS_RESERVED":   Unknown,
	"IP_ADDRESS_INVALID":    Rejected,
	"IP_ADDRESS_REQUIRED":   Rejected,
	"AUTHORIZATION_INVALID": Credentials,
	"LICENSE_KEY_REQUIRED":  Credentials,
	"ACCOUNT_ID_REQUIRED":   Credentials,
	"PERMISSION_REQUIRED":   Credentials,
	"INSUFFICIENT_FUNDS":    Quota,
}

// MaxMind makes a look-up with a product of MaxMind's web service: city or insights.
func (c Caller) MaxMind(ctx context.Context, product string, addr netip.Addr) (a MaxMindResponse, err error) {
	user := c.Account.Secrets["account_id"] + ":" + c.Account.Secrets["license_key"]
	r, err := c.Get(ctx, "/geoip/v2.1/"+product+"/"+url.PathEscape(addr.String()), nil, http.Header{
		"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user))},
		"Accept":        {"application/json"},
	})
	if err != nil {
		return a, err
	}
	decoded := c.Decode(r.Body, &a)
	if meaning, ok := maxMindCodes[a.Code]; ok && decoded == nil {
		return a, c.Fail(meaning, string(a.Code+": "+a.Error))
	}
	if err := c.ByStatus(r, nil); err != nil {
		return a, err
	}
	switch {
	case decoded != nil:
		return a, decoded
	case a.Code != "":
		return a, c.Fail(Rejected, string(a.Code+": "+a.Error))
	case a.Traits == nil:
		return a, c.Fail(Unusable, "response without traits")
	}
	return a, nil
}

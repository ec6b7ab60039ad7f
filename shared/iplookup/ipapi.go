package iplookup

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"svcapi/shared/upstream"
)

// IPAPI is ip-api.com's pro service (ip-api.com/docs/api:json). The free service has no TLS and no commercial use.
var IPAPI = upstream.Spec{
	Name: "ip-api", Title: "ip-api.com (pro)", Endpoint: "https://pro.ip-api.com",
	Secrets: []upstream.Field{{Name: "api_key", Description: "key of a pro subscription", Required: true}},
}

// IPAPIResponse holds the used fields of a response. The vendor sends the fields that the request names.
type IPAPIResponse struct {
	Status      Text   `json:"status"` // success or fail
	Message     Text   `json:"message"`
	Country     Text   `json:"country"`
	CountryCode Text   `json:"countryCode"`
	City        Text   `json:"city"`
	ISP         Text   `json:"isp"`
	Latitude    Number `json:"lat"`
	Longitude   Number `json:"lon"`
	Timezone    Text   `json:"timezone"`
	AS          Text   `json:"as"` // the number and the name, such as "AS9329 Sri Lanka Telecom"
	ASName      Text   `json:"asname"`
	Proxy       *bool  `json:"proxy"` // a proxy, a VPN or a Tor exit
	Hosting     *bool  `json:"hosting"`
}

// IPAPI makes a look-up of some fields at ip-api.com. The status in the body decides, because failures have HTTP status 200.
func (c Caller) IPAPI(ctx context.Context, addr netip.Addr, fields string) (a IPAPIResponse, err error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}, "fields": {"status,message," + fields + ",query"}}
	r, err := c.Get(ctx, "/json/"+url.PathEscape(addr.String()), query, nil)
	if err != nil {
		return a, err
	}
	// The response to an invalid key is plain text, with an undocumented status.
	if r.Status < http.StatusInternalServerError && strings.Contains(strings.ToLower(string(r.Body)), "invalid key") {
		return a, c.Fail(Credentials, "invalid key")
	}
	if err := c.ByStatus(r, nil); err != nil {
		return a, err
	}
	if err := c.Decode(r.Body, &a); err != nil {
		return a, err
	}
	switch {
	case a.Status == "success":
		return a, nil
	case a.Status == "fail" && (a.Message == "private range" || a.Message == "reserved range"):
		return a, ErrUnknown
	case a.Status == "fail":
		return a, c.Fail(Rejected, string(a.Message))
	}
	return a, c.Fail(Unusable, "response without a known status")
}

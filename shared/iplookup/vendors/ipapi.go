package vendors

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"svcapi/shared/upstream"
)

// ipAPISpec is ip-api.com's pro service (ip-api.com/docs/api:json). The free service has no TLS and no commercial use.
var ipAPISpec = upstream.Spec{
	Name: "ip-api", Title: "ip-api.com (pro)", Endpoint: "https://pro.ip-api.com",
	Secrets: []upstream.Field{{Name: "api_key", Description: "key of a pro subscription", Required: true}},
}

// ipAPIResponse holds the used fields of a response. The vendor sends the fields that the request names.
type ipAPIResponse struct {
	Status      text   `json:"status"` // success or fail
	Message     text   `json:"message"`
	Country     text   `json:"country"`
	CountryCode text   `json:"countryCode"`
	City        text   `json:"city"`
	ISP         text   `json:"isp"`
	Latitude    number `json:"lat"`
	Longitude   number `json:"lon"`
	Timezone    text   `json:"timezone"`
	AS          text   `json:"as"` // the number and the name, such as "AS9329 Sri Lanka Telecom"
	ASName      text   `json:"asname"`
	Proxy       *bool  `json:"proxy"`
	Hosting     *bool  `json:"hosting"`
}

// ipAPIFlags are the flags of ip-api.com/docs/api:json, where "proxy" is a proxy, a VPN or a Tor exit.
var ipAPIFlags = []Flag{
	{Path: "proxy", Sets: Proxy},
	{Path: "hosting", Sets: Hosting},
	{Path: "mobile", Sets: Ignored},
}

// ipAPI makes a look-up of some fields at ip-api.com. The status in the body decides, because failures have HTTP status 200.
func (c Caller) ipAPI(ctx context.Context, addr netip.Addr, fields string) (a ipAPIResponse, body []byte, err error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}, "fields": {"status,message," + fields + ",query"}}
	r, err := c.get(ctx, "/json/"+url.PathEscape(addr.String()), query, nil)
	if err != nil {
		return a, nil, err
	}
	// The response to an invalid key is plain text, with an undocumented status.
	if r.Status < http.StatusInternalServerError && strings.Contains(strings.ToLower(string(r.Body)), "invalid key") {
		return a, nil, c.fail(credentials, "invalid key")
	}
	if err := c.byStatus(r, nil); err != nil {
		return a, nil, err
	}
	if err := c.decode(r.Body, &a); err != nil {
		return a, nil, err
	}
	switch {
	case a.Status == "success":
		return a, r.Body, nil
	case a.Status == "fail" && (a.Message == "private range" || a.Message == "reserved range"):
		return a, nil, ErrUnknown
	case a.Status == "fail":
		return a, nil, c.fail(rejected, string(a.Message))
	}
	return a, nil, c.fail(unusable, "response without a known status")
}

// ipAPIRisk makes a look-up of the risk.
func ipAPIRisk(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	a, body, err := c.ipAPI(ctx, addr, "countryCode,city,isp,as,asname,proxy,hosting")
	if err != nil {
		return Risk{}, err
	}
	if a.Proxy == nil || a.Hosting == nil {
		return Risk{}, c.fail(unusable, "response without proxy or hosting")
	}
	number, name, _ := strings.Cut(string(a.AS), " ")
	risk, err := c.flagged(ipAPIFlags, body)
	risk.CountryCode, risk.City = a.CountryCode.country(), a.City.pointer()
	risk.ASN, risk.Network = text(number).asn(), cmp.Or(text(name).pointer(), a.ASName.pointer(), a.ISP.pointer())
	return risk, err
}

func ipAPIPlace(ctx context.Context, c Caller, addr netip.Addr) (Place, error) {
	a, _, err := c.ipAPI(ctx, addr, "country,countryCode,city,isp,lat,lon,timezone")
	if err != nil {
		return Place{}, err
	}
	return Place{
		Country: a.Country.pointer(), CountryCode: a.CountryCode.country(), City: a.City.pointer(),
		ISP: a.ISP.pointer(), Timezone: a.Timezone.pointer(),
	}.at(a.Latitude, a.Longitude), nil
}

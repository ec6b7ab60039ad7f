package iplookup

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"svcapi/shared/upstream"
)

// IPGeolocation is ipgeolocation.io, API v3 (the vendor's OpenAPI document of 2026-04-30).
var IPGeolocation = upstream.Spec{
	Name: "ipgeolocation", Title: "ipgeolocation.io", Endpoint: "https://api.ipgeolocation.io",
	Secrets: []upstream.Field{{Name: "api_key", Description: "API key; IP risk needs a plan with the security module", Required: true}},
}

// IPGeolocationResponse holds the used fields of a response of /v3/ipgeo.
type IPGeolocationResponse struct {
	IP       Text `json:"ip"`
	Message  Text `json:"message"` // of an error
	Location *struct {
		Country     Text   `json:"country_name"`
		CountryCode Text   `json:"country_code2"`
		City        Text   `json:"city"`
		Latitude    Number `json:"latitude"`
		Longitude   Number `json:"longitude"`
	} `json:"location"`
	ASN struct {
		Number       Text `json:"as_number"`
		Organization Text `json:"organization"`
	} `json:"asn"`
	Timezone struct {
		Name Text `json:"name"`
	} `json:"time_zone"`
	Security *struct { // with include=security
		VPN     bool `json:"is_vpn"`
		Proxy   bool `json:"is_proxy"`
		Tor     bool `json:"is_tor"`
		Relay   bool `json:"is_relay"`
		Hosting bool `json:"is_cloud_provider"`
	} `json:"security"`
}

var ipGeolocationStatuses = map[int]Meaning{
	http.StatusNotFound: Unknown, // a valid address that is not in the database
	http.StatusLocked:   Unknown, // bogon or private address
}

// IPGeolocation makes a look-up at ipgeolocation.io. A non-empty include names additional modules.
func (c Caller) IPGeolocation(ctx context.Context, addr netip.Addr, include string) (a IPGeolocationResponse, err error) {
	query := url.Values{"apiKey": {c.Account.Secrets["api_key"]}, "ip": {addr.String()}}
	if include != "" {
		query.Set("include", include)
	}
	if _, err := c.GetJSON(ctx, "/v3/ipgeo", query, nil, ipGeolocationStatuses, &a); err != nil {
		return a, err
	}
	if a.Message != "" && a.Location == nil {
		return a, c.Fail(Rejected, string(a.Message))
	}
	if a.Location == nil {
		return a, c.Fail(Unusable, "response without location")
	}
	return a, nil
}

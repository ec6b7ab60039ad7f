package vendors

import (
	"context"
	"net/netip"
	"net/url"

	"svcapi/shared/iplookup"
	"svcapi/shared/upstream"
)

// ipInfoLiteSpec is ipinfo.io's Lite API (the vendor's OpenAPI document and Go client of 2026-01): country and network only.
var ipInfoLiteSpec = upstream.Spec{
	Name: "ipinfo-lite", Title: "ipinfo.io Lite", Endpoint: "https://api.ipinfo.io",
	Secrets: []upstream.Field{{Name: "token", Description: "access token of any plan, also the free one", Required: true}},
}

// ipInfoLiteResponse holds the used fields of a response of /lite.
type ipInfoLiteResponse struct {
	iplookup.IPInfoStatus
	ASN         iplookup.Text `json:"asn"`
	Network     iplookup.Text `json:"as_name"`
	Country     iplookup.Text `json:"country"`
	CountryCode iplookup.Text `json:"country_code"`
}

func ipInfoLite(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	var a ipInfoLiteResponse
	if err := c.IPInfoGet(ctx, "/lite/"+url.PathEscape(addr.String()), &a, &a.IPInfoStatus); err != nil {
		return Place{}, err
	}
	p := Place{Country: a.Country.Pointer(), CountryCode: a.CountryCode.Country(), ISP: a.Network.Pointer()}
	if p == (Place{}) && a.ASN.ASN() == nil {
		return Place{}, iplookup.ErrUnknown
	}
	return p, nil
}

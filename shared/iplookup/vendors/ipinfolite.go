package vendors

import (
	"context"
	"net/netip"
	"net/url"

	"svcapi/shared/upstream"
)

// ipInfoLiteSpec is ipinfo.io's Lite API (the vendor's OpenAPI document and Go client of 2026-01): country and network only.
var ipInfoLiteSpec = upstream.Spec{
	Name: "ipinfo-lite", Title: "ipinfo.io Lite", Endpoint: "https://api.ipinfo.io",
	Secrets: []upstream.Field{{Name: "token", Description: "access token of any plan, also the free one", Required: true}},
}

// ipInfoLiteResponse holds the used fields of a response of /lite.
type ipInfoLiteResponse struct {
	ipInfoStatus
	ASN         text `json:"asn"`
	Network     text `json:"as_name"`
	Country     text `json:"country"`
	CountryCode text `json:"country_code"`
}

func ipInfoLite(ctx context.Context, c Caller, addr netip.Addr) (Place, error) {
	var a ipInfoLiteResponse
	if err := c.ipInfoGet(ctx, "/lite/"+url.PathEscape(addr.String()), &a, &a.ipInfoStatus); err != nil {
		return Place{}, err
	}
	p := Place{Country: a.Country.pointer(), CountryCode: a.CountryCode.country(), ISP: a.Network.pointer()}
	if p == (Place{}) && a.ASN.asn() == nil {
		return Place{}, ErrUnknown
	}
	return p, nil
}

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

// ipInfoLiteFields are the used fields of a response of /lite.
var ipInfoLiteFields = fields{country: "country", countryCode: "country_code", isp: []string{"as_name"}}

func ipInfoLite(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	d, err = c.ipInfoGet(ctx, "/lite/"+url.PathEscape(addr.String()))
	if err == nil && d.place(ipInfoLiteFields) == (Place{}) && d.text("asn").asn() == nil {
		err = ErrUnknown
	}
	return d, nil, err
}

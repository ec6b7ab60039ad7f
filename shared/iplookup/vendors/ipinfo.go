package vendors

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"

	"svcapi/shared/upstream"
)

// ipInfoSpec is ipinfo.io's Core and Plus API (the vendor's Go client of 2026-01 and OpenAPI document).
var ipInfoSpec = upstream.Spec{
	Name: "ipinfo", Title: "ipinfo.io", Endpoint: "https://api.ipinfo.io",
	Secrets: []upstream.Field{{Name: "token",
		Description: "access token of a Core plan, for IP risk of a Plus plan", Required: true}},
}

// ipInfoFields are the used fields of a response of /lookup.
var ipInfoFields = fields{
	country: "geo.country", countryCode: "geo.country_code", city: "geo.city", timezone: "geo.timezone",
	latitude: "geo.latitude", longitude: "geo.longitude", asn: "as.asn", network: []string{"as.name"},
	isp: []string{"as.name"},
}

// ipInfoFlags are the flags of the Plus API (the vendor's OpenAPI document, and the example of its page, where
// is_res_proxy is true beside a false is_proxy).
var ipInfoFlags = Flags{
	VPN: {"anonymous.is_vpn"}, Proxy: {"anonymous.is_proxy", "anonymous.is_res_proxy"}, Tor: {"anonymous.is_tor"},
	Relay: {"anonymous.is_relay"}, Unnamed: {"is_anonymous"}, Hosting: {"is_hosting"},
}

var ipInfoStatuses = map[int]meaning{http.StatusNotFound: unknown}

// ipInfoGet makes a look-up at ipinfo.io. An error is an object or a text.
func (c Caller) ipInfoGet(ctx context.Context, path string) (document, error) {
	header := http.Header{"Authorization": {"Bearer " + c.Account.Secrets["token"]}}
	d, err := c.getJSON(ctx, path, nil, header, ipInfoStatuses)
	if err != nil {
		return nil, err
	}
	switch bogon, _ := d.flag("bogon"); {
	case bogon:
		return nil, ErrUnknown
	case d.text("title") != "" || d.at("error") != nil:
		return nil, c.fail(rejected, fmt.Sprint(d))
	case d.text("ip") == "":
		return nil, c.fail(unusable, "response without ip")
	}
	return d, nil
}

// ipInfo makes a look-up at ipinfo.io's Core and Plus API.
func ipInfo(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	d, err = c.ipInfoGet(ctx, "/lookup/"+url.PathEscape(addr.String()))
	switch {
	case err != nil:
	case d.object("geo") == nil:
		err = c.fail(unusable, "response without geo")
	case d.text("geo.country_code").country() == nil && d.text("as.asn").asn() == nil:
		err = ErrUnknown
	}
	return d, d, err
}

// ipInfoRisk returns all five flags, on a Plus plan.
func ipInfoRisk(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	d, flags, err = ipInfo(ctx, c, addr)
	if err == nil && d.object("anonymous") == nil {
		err = c.fail(credentials, "response without anonymous: not in the token's plan")
	}
	return d, flags, err
}

// ipInfoLiteSpec is ipinfo.io's Lite API (the vendor's OpenAPI document and Go client of 2026-01): country and network
// only.
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

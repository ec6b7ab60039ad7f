package vendors

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"svcapi/shared/upstream"
)

// ipGeolocationSpec is ipgeolocation.io, API v3 (the vendor's OpenAPI document of 2026-04-30).
var ipGeolocationSpec = upstream.Spec{
	Name: "ipgeolocation", Title: "ipgeolocation.io", Endpoint: "https://api.ipgeolocation.io",
	Secrets: []upstream.Field{{Name: "api_key",
		Description: "API key; IP risk needs a plan with the security module", Required: true}},
}

// ipGeolocationFields are the used fields of a response of /v3/ipgeo. The vendor has no field for the ISP.
var ipGeolocationFields = fields{
	country: "location.country_name", countryCode: "location.country_code2", city: "location.city",
	latitude: "location.latitude", longitude: "location.longitude", timezone: "time_zone.name",
	asn: "asn.as_number", network: []string{"asn.organization"}, isp: []string{"asn.organization"},
}

// ipGeolocationFlags are the flags of the module security (IPGeolocation/openapi of 2026-04-30).
var ipGeolocationFlags = Flags{
	VPN: {"is_vpn"}, Proxy: {"is_proxy", "is_residential_proxy"}, Tor: {"is_tor"}, Relay: {"is_relay"},
	Unnamed: {"is_anonymous"}, Hosting: {"is_cloud_provider"},
}

var ipGeolocationStatuses = map[int]meaning{
	http.StatusNotFound: unknown, // a valid address that is not in the database
	http.StatusLocked:   unknown, // bogon or private address
}

// ipGeolocation makes a look-up at ipgeolocation.io. A non-empty include names additional modules.
func ipGeolocation(include string) lookup {
	return func(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
		query := url.Values{"apiKey": {c.Account.Secrets["api_key"]}, "ip": {addr.String()}}
		if include != "" {
			query.Set("include", include)
		}
		if d, err = c.getJSON(ctx, "/v3/ipgeo", query, nil, ipGeolocationStatuses); err != nil {
			return nil, nil, err
		}
		switch message := string(d.text("message")); {
		case d.object("location") != nil:
			return d, d.object("security"), nil
		case message != "":
			return nil, nil, c.fail(rejected, message)
		}
		return nil, nil, c.fail(unusable, "response without location")
	}
}

// ipGeolocationRisk returns all five flags. The vendor calls hosting a cloud provider.
func ipGeolocationRisk(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	d, flags, err = ipGeolocation("security")(ctx, c, addr)
	if err == nil && flags == nil {
		err = c.fail(credentials, "response without security: not in the key's plan")
	}
	return d, flags, err
}

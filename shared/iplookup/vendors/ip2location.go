package vendors

import (
	"context"
	"net/netip"
	"net/url"
	"strings"

	"svcapi/shared/upstream"
)

// ip2LocationSpec is IP2Location.io's geolocation API (the vendor's SDKs, such as ip2location-io-go of 2025-09).
var ip2LocationSpec = upstream.Spec{
	Name: "ip2location", Title: "IP2Location.io", Endpoint: "https://api.ip2location.io",
	Secrets: []upstream.Field{{Name: "api_key", Description: "API key of a Security plan", Required: true}},
}

// ip2LocationFields are the used fields of a response. Absent texts are "-".
var ip2LocationFields = fields{countryCode: "country_code", city: "city_name", asn: "asn",
	network: []string{"as", "isp"}}

// ip2LocationFlags are the flags of ip2location-io-go, where is_proxy is true for each kind but a data center and a
// crawler. A consumer privacy network is a relay.
var ip2LocationFlags = Flags{
	Unnamed: {"is_proxy", "proxy.is_enterprise_private_network"}, VPN: {"proxy.is_vpn"}, Tor: {"proxy.is_tor"},
	Proxy: {"proxy.is_public_proxy", "proxy.is_web_proxy", "proxy.is_residential_proxy"},
	Relay: {"proxy.is_consumer_privacy_network"}, Hosting: {"proxy.is_data_center"},
}

func ip2Location(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	query := url.Values{"key": {c.Account.Secrets["api_key"]}, "ip": {addr.String()}, "format": {"json"}}
	if d, err = c.getJSON(ctx, "/", query, nil, nil); err != nil {
		return nil, nil, err
	}
	_, vpn := d.flag("proxy.is_vpn")
	_, tor := d.flag("proxy.is_tor")
	proxy, _ := d.flag("is_proxy")
	bogon, _ := d.flag("proxy.is_bogon")
	message := string(d.text("error.error_message"))
	switch {
	case d.object("error") != nil && strings.Contains(strings.ToLower(message), "key"):
		return nil, nil, c.fail(credentials, message)
	case d.object("error") != nil:
		return nil, nil, c.fail(rejected, message)
	case d.text("ip") == "":
		return nil, nil, c.fail(unusable, "response without ip")
	case !vpn || !tor:
		return nil, nil, c.fail(credentials, "response without the kinds of proxy: not in the key's plan")
	case bogon || d.text("country_code").country() == nil && d.text("asn").asn() == nil && !proxy:
		return nil, nil, ErrUnknown
	}
	return d, d, nil
}

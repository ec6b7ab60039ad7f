package vendors

import (
	"cmp"
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

// ip2LocationResponse is the used part of a response. Absent texts are "-".
type ip2LocationResponse struct {
	IP          text `json:"ip"`
	CountryCode text `json:"country_code"`
	City        text `json:"city_name"`
	ASN         text `json:"asn"`
	AS          text `json:"as"`
	ISP         text `json:"isp"`
	IsProxy     bool `json:"is_proxy"`
	Proxy       *struct {
		VPN   *bool `json:"is_vpn"`
		Tor   *bool `json:"is_tor"`
		Bogon bool  `json:"is_bogon"`
	} `json:"proxy"`
	Error *struct {
		Message text `json:"error_message"`
	} `json:"error"`
}

// ip2LocationFlags are the flags of ip2location-io-go, where is_proxy is true for each kind but a data center and a crawler. A
// consumer privacy network is a relay.
var ip2LocationFlags = []Flag{
	{Path: "is_proxy", Sets: Unnamed},
	{Path: "proxy.is_vpn", Sets: VPN},
	{Path: "proxy.is_tor", Sets: Tor},
	{Path: "proxy.is_public_proxy", Sets: Proxy},
	{Path: "proxy.is_web_proxy", Sets: Proxy},
	{Path: "proxy.is_residential_proxy", Sets: Proxy},
	{Path: "proxy.is_enterprise_private_network", Sets: Unnamed},
	{Path: "proxy.is_consumer_privacy_network", Sets: Relay},
	{Path: "proxy.is_data_center", Sets: Hosting},
	{Path: "proxy.is_web_crawler", Sets: Ignored},
	{Path: "proxy.is_spammer", Sets: Ignored},
	{Path: "proxy.is_scanner", Sets: Ignored},
	{Path: "proxy.is_botnet", Sets: Ignored},
}

// ip2Location makes a look-up at IP2Location.io.
func ip2Location(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	var a ip2LocationResponse
	query := url.Values{"key": {c.Account.Secrets["api_key"]}, "ip": {addr.String()}, "format": {"json"}}
	r, err := c.getJSON(ctx, "/", query, nil, nil, &a)
	if err != nil {
		return Risk{}, err
	}
	p := a.Proxy
	switch {
	case a.Error != nil && strings.Contains(strings.ToLower(string(a.Error.Message)), "key"):
		return Risk{}, c.fail(credentials, string(a.Error.Message))
	case a.Error != nil:
		return Risk{}, c.fail(rejected, string(a.Error.Message))
	case a.IP == "":
		return Risk{}, c.fail(unusable, "response without ip")
	case p == nil || p.VPN == nil || p.Tor == nil:
		return Risk{}, c.fail(credentials, "response without the kinds of proxy: not in the key's plan")
	case p.Bogon || a.CountryCode.country() == nil && a.ASN.asn() == nil && !a.IsProxy:
		return Risk{}, ErrUnknown
	}
	risk, err := c.flagged(ip2LocationFlags, r.Body)
	risk.CountryCode, risk.City = a.CountryCode.country(), a.City.pointer()
	risk.ASN, risk.Network = a.ASN.asn(), cmp.Or(a.AS.pointer(), a.ISP.pointer())
	return risk, err
}

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
	IsProxy     bool `json:"is_proxy"` // of any kind but a data center and a crawler
	Proxy       *struct {
		VPN            *bool `json:"is_vpn"`
		Tor            *bool `json:"is_tor"`
		DataCenter     bool  `json:"is_data_center"`
		Public         bool  `json:"is_public_proxy"`
		Web            bool  `json:"is_web_proxy"`
		Residential    bool  `json:"is_residential_proxy"`
		PrivacyNetwork bool  `json:"is_consumer_privacy_network"`
		Bogon          bool  `json:"is_bogon"`
	} `json:"proxy"`
	Error *struct {
		Message text `json:"error_message"`
	} `json:"error"`
}

// ip2Location returns all five flags. A consumer privacy network is a relay. A proxy of no named kind is a proxy.
func ip2Location(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	var a ip2LocationResponse
	query := url.Values{"key": {c.Account.Secrets["api_key"]}, "ip": {addr.String()}, "format": {"json"}}
	if _, err := c.getJSON(ctx, "/", query, nil, nil, &a); err != nil {
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
	risk := Risk{
		VPN: *p.VPN, Proxy: p.Public || p.Web || p.Residential, Tor: *p.Tor, Relay: p.PrivacyNetwork, Hosting: p.DataCenter,
		CountryCode: a.CountryCode.country(), City: a.City.pointer(),
		ASN: a.ASN.asn(), Network: cmp.Or(a.AS.pointer(), a.ISP.pointer()),
	}
	risk.Proxy = risk.Proxy || a.IsProxy && !risk.VPN && !risk.Tor && !risk.Relay
	return risk, nil
}

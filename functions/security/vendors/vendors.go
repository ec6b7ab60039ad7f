// Package vendors looks up the risk of IP addresses. A new vendor is a file and a row of Table. Package iplookup makes the
// calls of the vendors that also report the location, and this file derives the risk from the responses.
package vendors

import (
	"cmp"
	"context"
	"net/netip"
	"strings"

	"svcapi/shared/iplookup"
)

// Risk holds the fields of openapi.yaml#VpnResult about an address. A field that the vendor does not report is false or nil.
type Risk struct {
	VPN         bool    `json:"is_vpn"`
	Proxy       bool    `json:"is_proxy"`
	Tor         bool    `json:"is_tor"`
	Relay       bool    `json:"is_relay"`
	Hosting     bool    `json:"is_hosting"`
	CountryCode *string `json:"country_code"` // two capitals
	City        *string `json:"city"`
	ASN         *string `json:"asn"`          // "AS" and the number
	Network     *string `json:"network_name"` // operator of the network
}

// Vendor is one row of the table.
type Vendor = iplookup.Vendor[Risk]

// Table returns the vendors. Responses of ipinfo, proxycheck and ip-api are cached: their published terms do not forbid
// caching, but no contract was read. A database file is as quick as the cache.
func Table() []Vendor {
	return []Vendor{
		{Spec: iplookup.IPGeolocation, Ask: ipGeolocation, Uncached: true},
		{Spec: iplookup.IPInfo, Ask: ipInfo},
		{Spec: proxyCheckSpec, Ask: proxyCheck},
		{Spec: vpnAPISpec, Ask: vpnAPI, Uncached: true},
		{Spec: iplookup.IPAPI, Ask: ipAPI},
		{Spec: ipQualityScoreSpec, Ask: ipQualityScore, Uncached: true},
		{Spec: ip2LocationSpec, Ask: ip2Location, Uncached: true},
		{Spec: iplookup.MaxMind, Ask: maxMind, Uncached: true},
		{Spec: iplookup.MaxMindDatabase, Ask: maxMindDatabase, Uncached: true},
	}
}

// ipGeolocation returns all five flags. The vendor calls hosting a cloud provider.
func ipGeolocation(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.IPGeolocation(ctx, addr, "security")
	if err != nil {
		return Risk{}, err
	}
	if a.Security == nil {
		return Risk{}, c.Fail(iplookup.Credentials, "response without security: not in the key's plan")
	}
	s := a.Security
	return Risk{
		VPN: s.VPN, Proxy: s.Proxy, Tor: s.Tor, Relay: s.Relay, Hosting: s.Hosting,
		CountryCode: a.Location.CountryCode.Country(), City: a.Location.City.Pointer(),
		ASN: a.ASN.Number.ASN(), Network: a.ASN.Organization.Pointer(),
	}, nil
}

// ipInfo returns all five flags, on a Plus plan.
func ipInfo(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.IPInfo(ctx, addr)
	if err != nil {
		return Risk{}, err
	}
	if a.Anonymous == nil {
		return Risk{}, c.Fail(iplookup.Credentials, "response without anonymous: not in the token's plan")
	}
	s := a.Anonymous
	return Risk{
		VPN: s.VPN, Proxy: s.Proxy, Tor: s.Tor, Relay: s.Relay, Hosting: a.Hosting,
		CountryCode: a.Geo.CountryCode.Country(), City: a.Geo.City.Pointer(),
		ASN: a.AS.ASN.ASN(), Network: a.AS.Name.Pointer(),
	}, nil
}

// ipAPI returns neither VPNs nor Tor exits on their own, because the vendor's flag "proxy" has them all, and no relays.
func ipAPI(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.IPAPI(ctx, addr, "countryCode,city,isp,as,asname,proxy,hosting")
	if err != nil {
		return Risk{}, err
	}
	if a.Proxy == nil || a.Hosting == nil {
		return Risk{}, c.Fail(iplookup.Unusable, "response without proxy or hosting")
	}
	number, name, _ := strings.Cut(string(a.AS), " ")
	return Risk{
		Proxy: *a.Proxy, Hosting: *a.Hosting, CountryCode: a.CountryCode.Country(), City: a.City.Pointer(),
		ASN: iplookup.Text(number).ASN(), Network: cmp.Or(iplookup.Text(name).Pointer(), a.ASName.Pointer(), a.ISP.Pointer()),
	}, nil
}

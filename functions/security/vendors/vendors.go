// Package vendors looks up the risk of IP addresses, one file for each vendor. A new vendor is a file and a row of Table.
package vendors

import "svcapi/shared/iplookup"

// Risk is a vendor's information about an address. A flag or a text that the vendor does not report is false or nil.
type Risk struct {
	VPN, Proxy, Tor, Relay, Hosting bool

	CountryCode *string // two capitals
	City        *string
	ASN         *string // "AS" and the number
	Network     *string // operator of the network
}

// Vendor is one row of the table.
type Vendor = iplookup.Vendor[Risk]

// Table returns the vendors. Responses of ipinfo, proxycheck and ip-api are cached: their published terms do not forbid caching, but
// no contract was read. A database file is as quick as the cache.
func Table() []Vendor {
	return []Vendor{
		{Spec: iplookup.IPGeolocation(), Ask: ipGeolocation, Uncached: true},
		{Spec: iplookup.IPInfo(), Ask: ipInfo},
		{Spec: proxyCheckSpec(), Ask: proxyCheck},
		{Spec: vpnAPISpec(), Ask: vpnAPI, Uncached: true},
		{Spec: iplookup.IPAPI(), Ask: ipAPI},
		{Spec: ipQualityScoreSpec(), Ask: ipQualityScore, Uncached: true},
		{Spec: ip2LocationSpec(), Ask: ip2Location, Uncached: true},
		{Spec: iplookup.MaxMind(), Ask: maxMind, Uncached: true},
		{Spec: iplookup.MaxMindDatabase(), Ask: maxMindDatabase, Uncached: true},
	}
}

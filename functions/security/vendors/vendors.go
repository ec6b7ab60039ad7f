// Package vendors asks IP risk vendors, one file each. Adding one is a file and
// a row of Table.
package vendors

import (
	"svcapi/shared/iplookup"
	"svcapi/shared/upstream"
)

// Risk is what a vendor says of an address. A flag is false where the vendor
// does not report it; a text is nil where the vendor has none.
type Risk struct {
	VPN, Proxy, Tor, Relay, Hosting bool

	CountryCode *string // two capitals
	City        *string
	ASN         *string // "AS" and the number
	Network     *string // who runs it
}

// Vendor is one row of the table.
type Vendor = iplookup.Vendor[Risk]

// Table lists the vendors.
//
// Answers of ipinfo and proxycheck are kept for a while: nothing that was
// read forbids it, but no contract was read. Uncached vendors are asked each time; a
// database file is as quick as the cache.
func Table() []Vendor {
	return []Vendor{
		{Spec: iplookup.IPGeolocation(), Ask: ipGeolocation, Uncached: true},
		{Spec: iplookup.IPInfo(), Ask: ipInfo},
		{Spec: proxyCheckSpec(), Ask: proxyCheck},
		{Spec: vpnAPISpec(), Ask: vpnAPI, Uncached: true},
		{Spec: iplookup.MaxMind(), Ask: maxMind, Uncached: true},
		{Spec: iplookup.MaxMindDatabase(), Ask: maxMindDatabase, Uncached: true},
	}
}

// Spec returns what the vendor of a name needs, or nil.
func Spec(name string) *upstream.Spec {
	if v := iplookup.Find(Table(), name); v != nil {
		return &v.Spec
	}
	return nil
}

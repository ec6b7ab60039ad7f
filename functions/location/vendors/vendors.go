// Package vendors looks up the location of IP addresses, one file for each vendor. A new vendor is a file and a row of Table.
package vendors

import "svcapi/shared/iplookup"

// Place is a vendor's information about an address. A field that the vendor does not report is nil.
type Place struct {
	Country     *string // English name
	CountryCode *string // two capitals
	City        *string
	ISP         *string
	Latitude    *float64 // degrees, with Longitude or not at all
	Longitude   *float64 // degrees
	Timezone    *string  // IANA name
}

// Vendor is one row of the table.
type Vendor = iplookup.Vendor[Place]

// Table returns the vendors. Responses of ipinfo and ip-api are cached: their published terms do not forbid caching, but no
// contract was read. A database file is as quick as the cache.
func Table() []Vendor {
	return []Vendor{
		{Spec: iplookup.IPAPI(), Ask: ipAPI},
		{Spec: iplookup.IPInfo(), Ask: ipInfo},
		{Spec: ipInfoLiteSpec(), Ask: ipInfoLite},
		{Spec: iplookup.IPGeolocation(), Ask: ipGeolocation, Uncached: true},
		{Spec: iplookup.MaxMind(), Ask: maxMind, Uncached: true},
		{Spec: iplookup.MaxMindDatabase(), Ask: maxMindDatabase, Uncached: true},
	}
}

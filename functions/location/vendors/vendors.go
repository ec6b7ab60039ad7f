// Package vendors asks IP location vendors, one file each. Adding one is a file
// and a row of Table.
package vendors

import (
	"svcapi/shared/iplookup"
	"svcapi/shared/upstream"
)

// Place is what a vendor says of an address; nil where it has nothing.
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

// Table lists the vendors.
//
// Answers of ipinfo and ip-api are kept for a while: nothing that was
// read forbids it, but no contract was read. Uncached vendors are asked each time; a
// database file is as quick as the cache.
func Table() []Vendor {
	return []Vendor{
		{Spec: ipAPISpec(), Ask: ipAPI},
		{Spec: iplookup.IPInfo(), Ask: ipInfo},
		{Spec: iplookup.IPGeolocation(), Ask: ipGeolocation, Uncached: true},
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

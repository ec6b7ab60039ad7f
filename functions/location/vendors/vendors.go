// Package vendors looks up the location of IP addresses. A new vendor is a file and a row of Table. Package iplookup makes
// the calls of the vendors that also report the risk, and this file derives the place from the responses.
package vendors

import (
	"cmp"
	"context"
	"errors"
	"net/netip"

	"svcapi/shared/iplookup"
)

// Place is openapi.yaml#LocationResult. A field that the vendor does not report is nil.
type Place struct {
	Country     *string  `json:"country"`      // English name
	CountryCode *string  `json:"country_code"` // two capitals
	City        *string  `json:"city"`
	ISP         *string  `json:"isp"`
	Latitude    *float64 `json:"latitude"`  // degrees, with Longitude or not at all
	Longitude   *float64 `json:"longitude"` // degrees
	Timezone    *string  `json:"timezone"`  // IANA name
}

// Vendor is one row of the table.
type Vendor = iplookup.Vendor[Place]

// Table returns the vendors. Responses of ipinfo and ip-api are cached: their published terms do not forbid caching, but no
// contract was read. A database file is as quick as the cache.
func Table() []Vendor {
	return []Vendor{
		{Spec: iplookup.IPAPI, Ask: ipAPI},
		{Spec: iplookup.IPInfo, Ask: ipInfo},
		{Spec: ipInfoLiteSpec, Ask: ipInfoLite},
		{Spec: iplookup.IPGeolocation, Ask: ipGeolocation, Uncached: true},
		{Spec: iplookup.MaxMind, Ask: maxMind, Uncached: true},
		{Spec: iplookup.MaxMindDatabase, Ask: maxMindDatabase, Uncached: true},
	}
}

// at returns the place with its coordinates.
func (p Place) at(latitude, longitude iplookup.Number) Place {
	p.Latitude, p.Longitude = iplookup.Coordinates(latitude, longitude)
	return p
}

func ipAPI(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.IPAPI(ctx, addr, "country,countryCode,city,isp,lat,lon,timezone")
	if err != nil {
		return Place{}, err
	}
	return Place{
		Country: a.Country.Pointer(), CountryCode: a.CountryCode.Country(), City: a.City.Pointer(),
		ISP: a.ISP.Pointer(), Timezone: a.Timezone.Pointer(),
	}.at(a.Latitude, a.Longitude), nil
}

func ipInfo(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.IPInfo(ctx, addr)
	if err != nil {
		return Place{}, err
	}
	return Place{
		Country: a.Geo.Country.Pointer(), CountryCode: a.Geo.CountryCode.Country(), City: a.Geo.City.Pointer(),
		ISP: a.AS.Name.Pointer(), Timezone: a.Geo.Timezone.Pointer(),
	}.at(a.Geo.Latitude, a.Geo.Longitude), nil
}

// ipGeolocation returns the organization of the network as the ISP, because the vendor has no field for the ISP.
func ipGeolocation(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.IPGeolocation(ctx, addr, "")
	if err != nil {
		return Place{}, err
	}
	return Place{
		Country: a.Location.Country.Pointer(), CountryCode: a.Location.CountryCode.Country(), City: a.Location.City.Pointer(),
		ISP: a.ASN.Organization.Pointer(), Timezone: a.Timezone.Name.Pointer(),
	}.at(a.Location.Latitude, a.Location.Longitude), nil
}

// maxMind calls GeoIP City.
func maxMind(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.MaxMind(ctx, "city", addr)
	if err != nil {
		return Place{}, err
	}
	return maxMindPlace(a.CityRecord, a.Traits.ISP, a.Traits.Organization), nil
}

// maxMindDatabase reads the City database, and the ISP or ASN database where one exists.
func maxMindDatabase(_ context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	var city iplookup.CityRecord
	var network iplookup.NetworkRecord
	inCity, err := c.Databases.Record(iplookup.CityFiles, addr, &city)
	inNetwork, networkErr := c.Databases.Optional(iplookup.NetworkFiles, addr, &network)
	if err := errors.Join(err, networkErr); err != nil {
		return Place{}, c.Fail(iplookup.Unusable, err.Error())
	}
	if !inCity && !inNetwork {
		return Place{}, iplookup.ErrUnknown
	}
	return maxMindPlace(city, network.ISP, network.Organization), nil
}

func maxMindPlace(r iplookup.CityRecord, isp, organization iplookup.Text) Place {
	return Place{
		Country: iplookup.Text(r.Country.Names.English).Pointer(), CountryCode: r.Country.Code.Country(),
		City: iplookup.Text(r.City.Names.English).Pointer(), Timezone: r.Location.Timezone.Pointer(),
		ISP: cmp.Or(isp.Pointer(), organization.Pointer()),
	}.at(r.Location.Latitude, r.Location.Longitude)
}

package vendors

import (
	"context"
	"net/netip"

	"svcapi/shared/iplookup"
)

// maxMind asks GeoIP City.
func maxMind(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.MaxMind(ctx, "city", addr)
	if err != nil {
		return Place{}, err
	}
	p := Place{
		Country: iplookup.Text(a.Country.Names.English).Pointer(), CountryCode: a.Country.Code.Country(),
		City: iplookup.Text(a.City.Names.English).Pointer(), Timezone: a.Location.Timezone.Pointer(),
		ISP: a.Traits.ISP.Pointer(),
	}
	if p.ISP == nil {
		p.ISP = a.Traits.Organization.Pointer()
	}
	p.Latitude, p.Longitude = iplookup.Coordinates(a.Location.Latitude, a.Location.Longitude)
	return p, nil
}

// maxMindDatabase reads the City database, and the ISP or ASN one where it is there.
func maxMindDatabase(_ context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	var city iplookup.CityRecord
	var network iplookup.NetworkRecord
	placed, err := c.Databases.Record(iplookup.CityFiles, addr, &city)
	if err != nil {
		return Place{}, c.Fail(iplookup.Unusable, err.Error())
	}
	routed, err := c.Databases.Optional(iplookup.NetworkFiles, addr, &network)
	if err != nil {
		return Place{}, c.Fail(iplookup.Unusable, err.Error())
	}
	if !placed && !routed {
		return Place{}, iplookup.ErrUnknown
	}
	p := Place{
		Country: iplookup.Text(city.Country.Names.English).Pointer(), CountryCode: iplookup.Text(city.Country.Code).Country(),
		City: iplookup.Text(city.City.Names.English).Pointer(), Timezone: iplookup.Text(city.Location.Timezone).Pointer(),
		ISP: iplookup.Text(network.ISP).Pointer(),
	}
	if p.ISP == nil {
		p.ISP = iplookup.Text(network.Organization).Pointer()
	}
	p.Latitude, p.Longitude = city.Coordinates()
	return p, nil
}

package vendors

import (
	"cmp"
	"context"
	"errors"
	"net/netip"

	"svcapi/shared/iplookup"
)

// maxMind calls GeoIP City.
func maxMind(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.MaxMind(ctx, "city", addr)
	if err != nil {
		return Place{}, err
	}
	p := Place{
		Country: iplookup.Text(a.Country.Names.English).Pointer(), CountryCode: a.Country.Code.Country(),
		City: iplookup.Text(a.City.Names.English).Pointer(), Timezone: a.Location.Timezone.Pointer(),
		ISP: cmp.Or(a.Traits.ISP.Pointer(), a.Traits.Organization.Pointer()),
	}
	p.Latitude, p.Longitude = iplookup.Coordinates(a.Location.Latitude, a.Location.Longitude)
	return p, nil
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
	p := Place{
		Country: iplookup.Text(city.Country.Names.English).Pointer(), CountryCode: iplookup.Text(city.Country.Code).Country(),
		City: iplookup.Text(city.City.Names.English).Pointer(), Timezone: iplookup.Text(city.Location.Timezone).Pointer(),
		ISP: cmp.Or(iplookup.Text(network.ISP).Pointer(), iplookup.Text(network.Organization).Pointer()),
	}
	p.Latitude, p.Longitude = city.Coordinates()
	return p, nil
}

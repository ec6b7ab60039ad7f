package vendors

import (
	"context"
	"net/netip"

	"svcapi/shared/iplookup"
)

func ipInfo(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.IPInfo(ctx, addr)
	if err != nil {
		return Place{}, err
	}
	p := Place{
		Country: a.Geo.Country.Pointer(), CountryCode: a.Geo.CountryCode.Country(), City: a.Geo.City.Pointer(),
		ISP: a.AS.Name.Pointer(), Timezone: a.Geo.Timezone.Pointer(),
	}
	p.Latitude, p.Longitude = iplookup.Coordinates(a.Geo.Latitude, a.Geo.Longitude)
	return p, nil
}

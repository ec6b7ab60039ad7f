package vendors

import (
	"context"
	"net/netip"

	"svcapi/shared/iplookup"
)

func ipAPI(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.IPAPI(ctx, addr, "country,countryCode,city,isp,lat,lon,timezone")
	if err != nil {
		return Place{}, err
	}
	p := Place{
		Country: a.Country.Pointer(), CountryCode: a.CountryCode.Country(), City: a.City.Pointer(),
		ISP: a.ISP.Pointer(), Timezone: a.Timezone.Pointer(),
	}
	p.Latitude, p.Longitude = iplookup.Coordinates(a.Latitude, a.Longitude)
	return p, nil
}

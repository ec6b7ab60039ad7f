package vendors

import (
	"context"
	"net/netip"

	"svcapi/shared/iplookup"
)

// ipGeolocation returns the organization of the network as the ISP, because the vendor has no field for the ISP.
func ipGeolocation(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	a, err := c.IPGeolocation(ctx, addr, "")
	if err != nil {
		return Place{}, err
	}
	p := Place{
		Country: a.Location.Country.Pointer(), CountryCode: a.Location.CountryCode.Country(), City: a.Location.City.Pointer(),
		ISP: a.ASN.Organization.Pointer(), Timezone: a.Timezone.Name.Pointer(),
	}
	p.Latitude, p.Longitude = iplookup.Coordinates(a.Location.Latitude, a.Location.Longitude)
	return p, nil
}

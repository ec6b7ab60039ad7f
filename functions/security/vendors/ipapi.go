package vendors

import (
	"cmp"
	"context"
	"net/netip"
	"strings"

	"svcapi/shared/iplookup"
)

// ipAPI returns neither VPNs nor Tor exits on their own, because the vendor's flag "proxy" has them all, and no relays.
func ipAPI(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Risk, error) {
	a, err := c.IPAPI(ctx, addr, "countryCode,city,isp,as,asname,proxy,hosting")
	if err != nil {
		return Risk{}, err
	}
	if a.Proxy == nil || a.Hosting == nil {
		return Risk{}, c.Fail(iplookup.Unusable, "response without proxy or hosting")
	}
	number, name, _ := strings.Cut(string(a.AS), " ")
	return Risk{
		Proxy: *a.Proxy, Hosting: *a.Hosting, CountryCode: a.CountryCode.Country(), City: a.City.Pointer(),
		ASN: iplookup.Text(number).ASN(), Network: cmp.Or(iplookup.Text(name).Pointer(), a.ASName.Pointer(), a.ISP.Pointer()),
	}, nil
}
